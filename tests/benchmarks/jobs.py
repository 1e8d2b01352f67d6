"""Measure `msgctl sms bulk`: `python tests/benchmarks/jobs.py [--store postgresql] [NAME...]`.

README.md lists the names. With PostgreSQL, each benchmark begins with an empty database of a server on this machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

if TYPE_CHECKING:
    from support.postgres import Cluster

CONNECTIONS = 64
CONCURRENT = ("--concurrency", str(CONNECTIONS))
KEY = "key-of-benchmarks"
ALLOWED = 50
MESSAGES = 10_000
ROUNDS = 3
PEAK = """
import os, sys
quiet = [(os.POSIX_SPAWN_OPEN, number, "/dev/null", os.O_RDWR, 0) for number in (0, 1)]
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_, status, usage = os.wait4(child, 0)
print(usage.ru_maxrss / 1024)
sys.exit(os.waitstatus_to_exitcode(status))
"""
"""Runs a command from a small process, since a child is credited with the memory of its parent."""
CLUSTERS: list[Cluster] = []
"""Contains the PostgreSQL server of the store; empty for SQLite, which uses a file in the directory of a `Room`."""


class Server:
    """The server of `responder.py`, in a separate process."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.base_url = f"http://127.0.0.1:{int(self._line())}/api/v1"

    def arrivals(self) -> list[tuple[float, int]]:
        """Return the time and the number of recipients of each request that arrived since the last call."""
        assert self._process.stdin
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return [(time, size) for time, size in json.loads(self._line())]

    def _line(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline()


@contextlib.contextmanager
def responding(seconds: float = 0.0, rate: float = float("inf")) -> Iterator[Server]:
    """Start a server that responds after some seconds; ``rate`` is how many requests per second it allows."""
    command = [sys.executable, str(Path(__file__).with_name("responder.py")), str(seconds), str(rate)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Server(process)
        process.kill()


def environment(server: Server, directory: Path, store: str = "") -> dict[str, str]:
    """Return the variables of a user with this home directory and an account at the server."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("MSGCTL_", "PYTHOND"))}
    variables = {"HOME": str(directory), "XDG_STATE_HOME": str(directory)}
    variables |= {"MSGCTL_BASE_URL": server.base_url, "MSGCTL_CLIENT": "1", "MSGCTL_KEY": KEY}
    return kept | variables | ({"MSGCTL_STORE": store} if store else {})


def peak(command: Sequence[str], environ: Mapping[str, str]) -> tuple[float, float]:
    """Run a command; return its highest memory in MiB and its time in seconds."""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-S", "-c", PEAK, *command], env=environ, stdout=subprocess.PIPE, check=True)
    return float(done.stdout), time.monotonic() - began


class Room:
    """A directory with a file of recipients, which may have names, and an empty store."""

    def __init__(self, server: Server, directory: Path, number: int, *, has_names: bool) -> None:
        self.server, self.directory = server, directory
        self.people = directory / "people.csv"
        with self.people.open("w", encoding="ascii") as file:
            file.write("phone,name\n" if has_names else "phone\n")
            for each in range(number):
                name = f",Ana {each}" if has_names else ""
                file.write(f"{573_000_000_000 + 7 * each}{name}\n")

    def run(self, *arguments: str) -> tuple[float, float]:
        """Run msgctl; return its highest memory in MiB and its time in seconds."""
        store = CLUSTERS[0].url() if CLUSTERS else ""
        environ = environment(self.server, self.directory, store)
        return peak([sys.executable, "-m", "msgctl", *arguments], environ)

    def bulk(self, *options: str) -> tuple[float, float]:
        """Send a message to all people in the file."""
        return self.run("sms", "bulk", str(self.people), "--yes", "--quiet", "--json", *options)


@contextlib.contextmanager
def new_room(server: Server, number: int, *, has_names: bool = False) -> Iterator[Room]:
    for cluster in CLUSTERS:
        cluster.empty()
    with tempfile.TemporaryDirectory() as directory:
        yield Room(server, Path(directory), number, has_names=has_names)


def aiohttp() -> None:
    """Compare msgctl with a script that keeps no record, in alternating runs, with responses after 50 ms."""
    print(f"{MESSAGES:,} personalised messages, {CONNECTIONS} at once:")
    ours, theirs = list[float](), list[float]()
    with responding(0.05) as server:
        for _ in range(ROUNDS):
            with new_room(server, MESSAGES, has_names=True) as room:
                ours.append(room.bulk("-m", "Hola {name}, su pedido sale hoy", *CONCURRENT)[1])
            with new_room(server, MESSAGES, has_names=True) as room:
                theirs.append(script(room))
            assert sum(size for _, size in server.arrivals()) == 2 * MESSAGES
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(f"  msgctl {statistics.median(ours):.1f} s, aiohttp {statistics.median(theirs):.1f} s: {ratio:.2f} times")


def script(room: Room) -> float:
    """Run the script, and return its time in seconds."""
    python = os.environ.get("SCRIPTS_PYTHON", sys.executable)
    path = Path(__file__).with_name("send_aiohttp.py")
    return peak([python, str(path), str(room.people), room.server.base_url, str(CONNECTIONS)], os.environ)[1]


def memory() -> None:
    print("highest memory of a process (wanted: under 64 MiB, and at most 10 MiB more than for 100,000):")
    for number in (100_000, 1_000_000):
        with responding() as server, new_room(server, number) as room:
            sending, seconds = room.bulk("-m", "Hola, su pedido sale hoy", "--batch-size", "100", *CONCURRENT)
            reporting, reading = room.run("job", "report", "--last", "-o", "csv")
        print(f"  {number:9,} recipients: {sending:.1f} MiB reading and sending in {seconds:.1f} s, ", end="")
        print(f"{reporting:.1f} MiB for the report in {reading:.1f} s")


def turned_away() -> None:
    """Send to a service that turns away all requests over a rate."""
    print(f"{MESSAGES:,} messages to a service that allows {ALLOWED} requests a second (wanted: 90 % of it):")
    with responding(0.02, ALLOWED) as server, new_room(server, MESSAGES) as room:
        room.bulk("-m", "Hola, su pedido sale hoy", "--batch-size", "1")
        times = [arrival for arrival, _ in server.arrivals()]
    rate = (len(times) - 1) / (times[-1] - times[0])
    print(f"  {len(times):,} messages arrived, {rate:.1f} a second: {rate / ALLOWED:.0%}")


BENCHMARKS: dict[str, Callable[[], None]] = {
    "aiohttp": aiohttp,
    "memory": memory,
    "turned-away": turned_away,
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
