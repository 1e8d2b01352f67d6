"""How fast and how large `msgctl sms bulk` gets: `python tests/benchmarks/jobs.py [--store postgresql] [NAME...]`.

README.md lists the names. With PostgreSQL, each benchmark begins with an empty database of a server on this machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

if TYPE_CHECKING:
    from support.postgres import Cluster

BATCH = 100
CONNECTIONS = 64
KEY = "key-of-benchmarks"
ALLOWED = 50
TEXT = "Hola, su pedido sale hoy"
PERSONALISED = 10_000
ROUNDS = 3
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


CLUSTERS: list[Cluster] = []
"""The PostgreSQL server with the store; empty for SQLite, whose file is in the folder of a run."""


class Arrivals(NamedTuple):
    """Messages that reached the server, and the requests a second that brought them, from the first to the last."""

    messages: int
    rate: float


class Server:
    """The server in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.port = int(self._line())

    def times(self) -> list[tuple[float, int]]:
        """The times and sizes of the requests that arrived since this was asked last."""
        assert self._process.stdin
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return [(time, size) for time, size in json.loads(self._line())]

    def arrivals(self) -> Arrivals:
        """What arrived since this was asked last."""
        found = self.times()
        return Arrivals(sum(size for _, size in found), (len(found) - 1) / (found[-1][0] - found[0][0]))

    def _line(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline()


@contextlib.contextmanager
def responding(seconds: float = 0.0, rate: float = float("inf")) -> Iterator[Server]:
    """Start the server; ``rate`` is the number of requests per second that it allows."""
    command = [sys.executable, str(Path(__file__).with_name("responder.py")), str(seconds), str(rate)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Server(process)
        process.kill()


@contextlib.contextmanager
def job(server: Server, number: int) -> Iterator[tuple[Path, float, float]]:
    """Send to so many recipients; the folder of the job, its highest memory in MiB, and its time in seconds."""
    empty_store()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with (folder / "people.csv").open("w", encoding="ascii") as file:
            file.write("phone\n")
            file.writelines(f"{57_300_000_0000 + 7 * each}\n" for each in range(number))
        yield folder, *run(server, folder, "sms", "bulk", str(folder / "people.csv"), "-m", TEXT, *OPTIONS)


def empty_store() -> None:
    """Empty the store, which several folders share in PostgreSQL."""
    for cluster in CLUSTERS:
        cluster.empty()


def run(server: Server, folder: Path, *arguments: str) -> tuple[float, float]:
    """Run the tool; return its maximum memory in MiB and its time in seconds."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("MSGCTL_", "PYTHOND"))}
    environ |= {
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder),
        "MSGCTL_BASE_URL": f"http://127.0.0.1:{server.port}/api/v1",
        "MSGCTL_CLIENT": "1",
        "MSGCTL_KEY": KEY,
    }
    for cluster in CLUSTERS:
        environ["MSGCTL_STORE"] = cluster.url()
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


def aiohttp() -> None:
    """Compare msgctl with the aiohttp script in turn, several times."""
    print(f"{PERSONALISED:,} personalised messages, 50 ms each, {CONNECTIONS} at once (wanted: 1.1 of aiohttp's time):")
    with personalised(0.05) as compared:
        pairs = [(compared.msgctl(), compared.script("aiohttp")) for _ in range(ROUNDS)]
    for ours, theirs in pairs:
        print(f"  msgctl {ours:5.1f} s, aiohttp {theirs:5.1f} s: {ours / theirs:.2f}")
    ours, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))
    print(f"  medians: {ours / theirs:.2f}; load {os.getloadavg()[0]:.1f}")


def scripts() -> None:
    """Compare msgctl with all scripts, with and without a wait before each response."""
    for seconds in (0.05, 0.0):
        print(f"{PERSONALISED:,} personalised messages, {seconds * 1000:.0f} ms each, {CONNECTIONS} at once:")
        with personalised(seconds) as compared:
            ours = compared.msgctl()
            print(f"  msgctl   {ours:5.1f} s")
            for name in ("aiohttp", "requests", "httpx"):
                theirs = compared.script(name)
                print(f"  {name:8} {theirs:5.1f} s, msgctl takes {ours / theirs:.2f} of it")


class Compared(NamedTuple):
    """A server and a file of people, for msgctl and the scripts."""

    server: Server
    people: Path

    def msgctl(self) -> float:
        """Return the seconds of msgctl with a new store."""
        empty_store()
        with tempfile.TemporaryDirectory() as name:
            template = ("-m", "Hola {name}, su pedido sale hoy", "--concurrency", str(CONNECTIONS))
            arguments = ("sms", "bulk", str(self.people), *template, "--yes", "--quiet", "--json")
            seconds = run(self.server, Path(name), *arguments)[1]
        assert self.server.arrivals().messages == PERSONALISED
        return seconds

    def script(self, name: str) -> float:
        """Return the seconds of a script."""
        python = os.environ.get("SCRIPTS_PYTHON", sys.executable)
        script = Path(__file__).with_name("scripts") / f"send_{name}.py"
        url = f"http://127.0.0.1:{self.server.port}/api/v1"
        began = time.monotonic()
        subprocess.run([python, str(script), str(self.people), url, str(CONNECTIONS)], check=True)
        seconds = time.monotonic() - began
        assert self.server.arrivals().messages == PERSONALISED
        return seconds


@contextlib.contextmanager
def personalised(seconds: float) -> Iterator[Compared]:
    with responding(seconds) as server, tempfile.TemporaryDirectory() as name:
        people = Path(name, "people.csv")
        lines = (f"{57_300_000_0000 + 7 * each},Ana {each}\n" for each in range(PERSONALISED))
        people.write_text("phone,name\n" + "".join(lines), encoding="ascii")
        yield Compared(server, people)


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


def turned_away(messages: int = 10_000) -> None:
    """Send to a service that turns away all requests over a rate."""
    print(f"{messages:,} messages to a service that allows {ALLOWED} requests a second (wanted: 90 % of it):")
    with responding(0.02, ALLOWED) as server, tempfile.TemporaryDirectory() as name:
        people = Path(name, "people.csv")
        people.write_text("phone\n" + "".join(f"{57_300_000_0000 + 7 * each}\n" for each in range(messages)))
        run(
            server,
            Path(name),
            "sms",
            "bulk",
            str(people),
            "-m",
            TEXT,
            "--batch-size",
            "1",
            "--yes",
            "--quiet",
            "--json",
        )
        times = [arrival for arrival, _ in server.times()]
    rate = (len(times) - 1) / (times[-1] - times[0])
    print(f"  {len(times):,} messages arrived, {rate:.1f} a second: {rate / ALLOWED:.0%}")


BENCHMARKS: dict[str, Callable[[], None]] = {
    "aiohttp": aiohttp,
    "memory": memory,
    "turned-away": turned_away,
    "exclusions": exclusions,
    "limit": limit,
    "scripts": scripts,
    "latency": partial(speed, 0.05),
    "bare": partial(speed, 0.0),
}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("names", nargs="*", choices=[*BENCHMARKS, []], metavar="NAME", help=", ".join(BENCHMARKS))
    given = parser.parse_args()
    print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {given.store}")
    with contextlib.ExitStack() as stack:
        if given.store == "postgresql":
            from support.postgres import running

            CLUSTERS.append(stack.enter_context(running("fsync=on", "shared_buffers=128MB")))
        for name in given.names or BENCHMARKS:
            BENCHMARKS[name]()


if __name__ == "__main__":
    main()
