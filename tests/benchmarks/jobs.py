"""How fast and how large `msgctl sms bulk` gets, with `wrk` as the ceiling in the same run.

Run it as ``python tests/benchmarks/jobs.py [NAME...]``; without names, everything: latency, bare, memory.
TMPDIR says on which disk the ledgers are; one in memory (tmpfs) does not tell much. Rates are measured where
requests arrive, from the first to the last: reading the file and writing the report are not in them.

Without `wrk` there is no ceiling.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

BATCH = 100
CONNECTIONS = 64
TEXT = "Hola, su pedido sale hoy"
WRK_SECONDS = 6
MIB = 1024


class Arrivals(NamedTuple):
    """Requests that reached the server: when each came, in seconds, and to how many it was."""

    times: list[float]
    sizes: list[int]

    @property
    def rate(self) -> float:
        """Requests a second, from the first to the last."""
        return (len(self.times) - 1) / (self.times[-1] - self.times[0])


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
        return Arrivals([when for when, _ in found], [size for _, size in found])

    def _line(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline()


class Ended(NamedTuple):
    """A process that ended well: its highest memory in KiB, and how long it ran, in seconds."""

    peak: int
    seconds: float


class Bench:
    """A folder for everything, and ways to run the tool in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._state = 0

    def recipients(self, number: int) -> Path:
        """A file of so many recipients."""
        path = self.folder / f"{number}.csv"
        if not path.exists():
            with path.open("w", encoding="ascii") as file:
                file.write("phone\n")
                file.writelines(f"{57_300_000_0000 + 7 * each}\n" for each in range(number))
        return path

    def bulk(self, server: Server, number: int) -> Ended:
        """Send to so many recipients as a new job."""
        self._state += 1
        file = str(self.recipients(number))
        options = ("--batch-size", str(BATCH), "--concurrency", str(CONNECTIONS), "--yes", "--quiet", "--json")
        return self._run(server, *MSGCTL, "sms", "bulk", file, "-m", TEXT, *options)

    def report(self, server: Server) -> Ended:
        """Read the whole report of the last job."""
        (job,) = self._state_folder.rglob("*.sqlite3")
        return self._run(server, *MSGCTL, "job", "report", job.stem, "-o", "csv")

    def forget(self) -> None:
        shutil.rmtree(self._state_folder, ignore_errors=True)

    @property
    def _state_folder(self) -> Path:
        return self.folder / f"state{self._state}"

    def _run(self, server: Server, *command: str) -> Ended:
        environ = {name: value for name, value in os.environ.items() if not name.startswith(("MSGCTL_", "PYTHOND"))}
        environ |= {
            "HOME": str(self.folder),
            "XDG_STATE_HOME": str(self._state_folder),
            "MSGCTL_BASE_URL": f"http://127.0.0.1:{server.port}/api/v1",
            "MSGCTL_CLIENT": "1",
            "MSGCTL_KEY": "key",
        }
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-S", "-c", PEAK, *command], env=environ, stdout=subprocess.PIPE, check=False
        )
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} ended with {done.returncode}")
        return Ended(int(done.stdout), time.monotonic() - began)


PEAK = """
import os, sys
quiet = [(os.POSIX_SPAWN_OPEN, number, "/dev/null", os.O_RDWR, 0) for number in (0, 1)]
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_, status, usage = os.wait4(child, 0)
print(usage.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""Runs a command from a small process, since a child is credited with the memory of its parent."""

MSGCTL = (sys.executable, "-m", "msgctl")


@contextlib.contextmanager
def answering(seconds: float = 0.0) -> Iterator[Server]:
    command = [sys.executable, str(Path(__file__).with_name("answering.py")), str(seconds)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Server(process)
        process.kill()


def wrk(bench: Bench, server: Server) -> float | None:
    """Requests a second of `wrk` with the body of a request of msgctl; None where there is no wrk."""
    if not shutil.which("wrk"):
        print("  wrk is not installed: no ceiling")
        return None
    phones = "%2C".join(str(573_000_000_000 + each) for each in range(BATCH))
    script = bench.folder / "post.lua"
    script.write_text(
        f'wrk.method = "POST"\nwrk.body = "client=1&key=key&phone={phones}&sms={TEXT.replace(" ", "+")}"\n'
        'wrk.headers["Content-Type"] = "application/x-www-form-urlencoded"\n'
    )
    options = ("-t", "1", "-c", str(CONNECTIONS), "-d", str(WRK_SECONDS), "-s", str(script))
    url = f"http://127.0.0.1:{server.port}/api/v1/send-sms"
    subprocess.run(["wrk", *options, url], check=True, stdout=subprocess.DEVNULL)
    return server.arrivals().rate


def latency(bench: Bench) -> None:
    with answering(0.05) as server:
        print(f"50 ms before each answer, {CONNECTIONS} at once, {BATCH} numbers a request:")
        _against_wrk(bench, server, 600_000, "wanted: 85 %")


def bare(bench: Bench) -> None:
    with answering() as server:
        print(f"no latency, {CONNECTIONS} at once, {BATCH} numbers a request (wanted: 1,000 requests a second):")
        _against_wrk(bench, server, 600_000, "for comparison")


def _against_wrk(bench: Bench, server: Server, number: int, wanted: str) -> None:
    before = wrk(bench, server)
    bench.bulk(server, number)
    arrivals = server.arrivals()
    assert sum(arrivals.sizes) == number
    bench.forget()
    after = wrk(bench, server)
    print(f"  msgctl {arrivals.rate:6.0f} requests a second, {sum(arrivals.sizes):,} messages")
    if before and after:
        ceiling = (before + after) / 2
        print(f"  wrk    {ceiling:6.0f} ({before:.0f} before, {after:.0f} after)")
        print(f"  msgctl / wrk = {arrivals.rate / ceiling:.0%} ({wanted})")


def memory(bench: Bench) -> None:
    print("highest memory of a process (wanted: under 64 MiB, and at most 10 MiB more than for 100,000):")
    peaks = {}
    with answering() as server:
        for number in (100_000, 1_000_000):
            sent = bench.bulk(server, number)
            server.arrivals()
            told = bench.report(server)
            bench.forget()
            peaks[number] = max(sent.peak, told.peak)
            print(
                f"  {number:9,} recipients: {sent.peak / MIB:.1f} MiB reading and sending in {sent.seconds:.1f} s, "
                f"{told.peak / MIB:.1f} MiB for the report in {told.seconds:.1f} s"
            )
    print(f"  a million takes {(peaks[1_000_000] - peaks[100_000]) / MIB:.1f} MiB more")


BENCHMARKS: dict[str, Callable[[Bench], None]] = {
    "latency": latency,
    "bare": bare,
    "memory": memory,
}


def main(names: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        print(f"Python {sys.version.split()[0]}, {os.cpu_count()} cores")
        for name in names or BENCHMARKS:
            BENCHMARKS[name](Bench(Path(folder)))


if __name__ == "__main__":
    main(sys.argv[1:])
