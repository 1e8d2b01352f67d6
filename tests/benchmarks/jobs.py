"""How fast and how large `msgctl sms bulk` gets, with `wrk` as the ceiling in the same run.

Run it as ``python tests/benchmarks/jobs.py [NAME...]``; without names, everything: latency, bare, scripts, memory,
exclusions, limit, many. ``scripts`` compares msgctl with scripts/*.py, which read the same file and keep no record; it
needs `pip install aiohttp requests`. The stores are in TMPDIR; with a disk in memory (tmpfs),
the rates say little. The server measures the rates, from the first request to the last, so they do not include reading
the file and writing the report.

Without `wrk` there is no ceiling.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from msgctl.config import profiles
from msgctl.jobs.settings import Settings
from msgctl.store import jobs, owners, recipients
from msgctl.store.jobs import NewJob
from msgctl.store.queue import Limits
from msgctl.store.recipients import NewContent, NewRecipient
from msgctl.store.results import RequestOutcome, RowOutcome
from msgctl.store.store import open_store

BATCH = 100
CONNECTIONS = 64
TEXT = "Hola, su pedido sale hoy"
JOBS = 2_000
PERSONALISED = 10_000
WRK_SECONDS = 6
MIB = 1024
OPTIONS = ("--batch-size", str(BATCH), "--concurrency", str(CONNECTIONS), "--yes", "--quiet", "--json")
PEAK = """
import os, sys
quiet = [(os.POSIX_SPAWN_OPEN, number, "/dev/null", os.O_RDWR, 0) for number in (0, 1)]
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_, status, usage = os.wait4(child, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""Runs a command from a small process, since a child is credited with the memory of its parent."""


class Arrivals(NamedTuple):
    """Messages that reached the server, and the requests a second that brought them, from the first to the last."""

    messages: int
    rate: float


class Server:
    """The server in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.port = int(self._line())

    def arrivals(self) -> Arrivals:
        """What arrived since this was asked last."""
        assert self._process.stdin
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        found = json.loads(self._line())
        return Arrivals(sum(size for _, size in found), (len(found) - 1) / (found[-1][0] - found[0][0]))

    def _line(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline()


@contextlib.contextmanager
def responding(seconds: float = 0.0) -> Iterator[Server]:
    command = [sys.executable, str(Path(__file__).with_name("responder.py")), str(seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Server(process)
        process.kill()


@contextlib.contextmanager
def job(server: Server, number: int) -> Iterator[tuple[Path, float, float]]:
    """Send to so many recipients; the folder of the job, its highest memory in MiB, and its time in seconds."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "people.csv").open("w", encoding="ascii") as file:
            file.write("phone\n")
            file.writelines(f"{57_300_000_0000 + 7 * each}\n" for each in range(number))
        yield folder, *run(server, folder, "sms", "bulk", str(folder / "people.csv"), "-m", TEXT, *OPTIONS)


def run(server: Server, folder: Path, *arguments: str) -> tuple[float, float]:
    """Run the tool; return its maximum memory in MiB and its time in seconds."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("MSGCTL_", "PYTHOND"))}
    environ |= {
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder),
        "MSGCTL_BASE_URL": f"http://127.0.0.1:{server.port}/api/v1",
        "MSGCTL_CLIENT": "1",
        "MSGCTL_KEY": "key",
    }
    command = [sys.executable, "-S", "-c", PEAK, sys.executable, "-m", "msgctl", *arguments]
    began = time.monotonic()
    done = subprocess.run(command, env=environ, stdout=subprocess.PIPE, check=True)
    return int(done.stdout) / MIB, time.monotonic() - began


def wrk(server: Server) -> float:
    """Requests a second of `wrk` with the body of a request of msgctl."""
    phones = "%2C".join(str(573_000_000_000 + each) for each in range(BATCH))
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(
            f'wrk.method = "POST"\nwrk.body = "client=1&key=key&phone={phones}&sms={TEXT.replace(" ", "+")}"\n'
            'wrk.headers["Content-Type"] = "application/x-www-form-urlencoded"\n'
        )
        script.flush()
        options = ("-t", "1", "-c", str(CONNECTIONS), "-d", str(WRK_SECONDS), "-s", script.name)
        url = f"http://127.0.0.1:{server.port}/api/v1/send-sms"
        subprocess.run(["wrk", *options, url], check=True, stdout=subprocess.DEVNULL)
    return server.arrivals().rate


def speed(seconds: float) -> None:
    """Compare a job with `wrk` before and after it, if the server waits so long before each response."""
    print(f"{seconds * 1000:.0f} ms before each response, {CONNECTIONS} at once, {BATCH} numbers a request:")
    has_ceiling = shutil.which("wrk") is not None
    with responding(seconds) as server:
        ceilings = [wrk(server)] if has_ceiling else []
        with job(server, 600_000):
            arrivals = server.arrivals()
        ceilings += [wrk(server)] if has_ceiling else []
    print(f"  msgctl {arrivals.rate:6.0f} requests a second, {arrivals.messages:,} messages")
    for ceiling in ceilings:
        print(f"  wrk    {ceiling:6.0f}, msgctl / wrk = {arrivals.rate / ceiling:.0%}")


def scripts() -> None:
    """Send personalised messages with msgctl and with each script, and compare the times from start to end."""
    for seconds in (0.05, 0.0):
        print(f"{PERSONALISED:,} personalised messages, {seconds * 1000:.0f} ms each, {CONNECTIONS} at once:")
        with responding(seconds) as server, tempfile.TemporaryDirectory() as name:
            people = Path(name, "people.csv")
            lines = (f"{57_300_000_0000 + 7 * each},Ana {each}\n" for each in range(PERSONALISED))
            people.write_text("phone,name\n" + "".join(lines), encoding="ascii")
            template = ("-m", "Hola {name}, su pedido sale hoy", "--concurrency", str(CONNECTIONS))
            ours = run(server, Path(name), "sms", "bulk", str(people), *template, "--yes", "--quiet", "--json")[1]
            assert server.arrivals().messages == PERSONALISED
            print(f"  msgctl        {ours:5.1f} s")
            for script in sorted(Path(__file__).with_name("scripts").glob("*.py")):
                arguments = (str(people), f"http://127.0.0.1:{server.port}/api/v1", str(CONNECTIONS))
                began = time.monotonic()
                subprocess.run([sys.executable, str(script), *arguments], check=True)
                theirs = time.monotonic() - began
                assert server.arrivals().messages == PERSONALISED
                print(
                    f"  {script.stem.removeprefix('send_'):12} {theirs:6.1f} s, msgctl takes {ours / theirs:.2f} of it"
                )


def memory() -> None:
    print("highest memory of a process (wanted: under 64 MiB, and at most 10 MiB more than for 100,000):")
    with responding() as server:
        for number in (100_000, 1_000_000):
            with job(server, number) as (folder, sent, seconds):
                told, reading = run(server, folder, "job", "report", "--last", "-o", "csv")
            print(
                f"  {number:9,} recipients: {sent:.1f} MiB reading and sending in {seconds:.1f} s, "
                f"{told:.1f} MiB for the report in {reading:.1f} s"
            )


def exclusions() -> None:
    print("5,000,000 excluded numbers (wanted: under 64 MiB and 10 s):")
    with responding() as server, tempfile.TemporaryDirectory() as name:
        people, excluded = Path(name, "people.csv"), Path(name, "excluded.txt")
        people.write_text("phone\n573009999999\n", encoding="ascii")
        with excluded.open("w", encoding="ascii") as file:
            file.writelines(f"{57_300_000_0000 + each}\n" for each in range(5_000_000))
        most, seconds = run(
            server, Path(name), "sms", "bulk", str(people), "-m", TEXT, *OPTIONS, "--exclude", str(excluded)
        )
        print(f"  {most:.1f} MiB, {seconds:.1f} s")


def limit() -> None:
    print("1,000,000 recipients, and again with --at-most, so that each has one message (wanted: at most 10 s more):")
    with responding() as server, job(server, 1_000_000) as (folder, *first):
        print(f"  {'the first job':17} {first[1]:5.1f} s, {first[0]:.1f} MiB")
        bulk = ("sms", "bulk", str(folder / "people.csv"), *OPTIONS, "-m")
        for options in (("--again",), ("--again", "--at-most", "3/day")):
            most, seconds = run(server, folder, *bulk, TEXT, *options)
            print(f"  {' '.join(options[1:]) or 'a second job':17} {seconds:5.1f} s, {most:.1f} MiB")


def many() -> None:
    print(f"{JOBS:,} other jobs in the state directory (wanted: at most 0.3 s more), in seconds and processor time:")
    with responding() as server:
        for days in (200, 0):
            with tempfile.TemporaryDirectory() as name:
                people = Path(name, "people.csv")
                people.write_text("phone\n573009999999\n", encoding="ascii")
                bulk = ("sms", "bulk", str(people), *OPTIONS, "-m")
                lines = {"sms bulk": (*bulk, TEXT, "--dry-run"), "history": ("history",), "usage": ("usage",)}
                lines |= {"job show": ("job", "show", "--last"), "job run-due": ("job", "run-due")}
                run(server, Path(name), *bulk, "Hola")
                alone = {what: fastest(server, Path(name), line) for what, line in lines.items()}
                fill(server, Path(name), days)
                first = run(server, Path(name), "usage")[1]
                print(f"  made in {max(days, 1)} days; the first command takes {first:.1f} s to build the index:")
                for what, line in lines.items():
                    found = zip(fastest(server, Path(name), line), alone[what], strict=True)
                    print(f"    {what:12}", *(f"{after - before:+.2f}" for after, before in found))


def fastest(server: Server, folder: Path, line: Sequence[str]) -> tuple[float, float]:
    """Run the tool some times; the time in seconds of the fastest run, and the least processor time."""
    seconds, processor = [], []
    for _ in range(7):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(run(server, folder, *line)[1])
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(seconds), min(processor)


def fill(server: Server, folder: Path, days: int) -> None:
    """Make finished jobs with ten recipients each and one text, the newest an hour ago."""
    base_url = f"http://127.0.0.1:{server.port}/api/v1"
    settings = Settings("sms send", "people.csv", profiles.ENVIRONMENT, base_url, 1, {})
    account = profiles.account(base_url, 1)
    now = time.time()
    with contextlib.closing(open_store(folder / "msgctl" / "store.sqlite3", clock=lambda: now)) as store:
        for number in range(JOBS):
            now = time.time() - 3600 - days * 86_400 * (JOBS - number) / JOBS
            job = jobs.create(store, NewJob(account, profiles.ENVIRONMENT, "sms bulk", settings.dump()))
            people = [NewRecipient(line, f"57300{10 * number + line:07}", 1) for line in range(2, 12)]
            recipients.add(store, job, [NewContent(1, json.dumps({"sms": TEXT}), b"text", 1)], people)
            jobs.publish(store, job, state="active", digest=b"")
            sending = owners.take(store, job)
            with sending.batch(Limits("sms")):
                intent = sending.intend(BATCH)
            assert intent
            with sending.batch(Limits("sms")):
                sending.record([RequestOutcome(intent, [RowOutcome("accepted")] * 10)])
            sending.finish("done")


def main(names: Sequence[str]) -> None:
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores")
    others = {"scripts": scripts, "memory": memory, "exclusions": exclusions, "limit": limit, "many": many}
    for name in names or ("latency", "bare", *others):
        if name in others:
            others[name]()
        else:
            speed({"latency": 0.05, "bare": 0.0}[name])


if __name__ == "__main__":
    main(sys.argv[1:])
