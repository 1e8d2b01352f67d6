"""Cut the power at any moment of a job on SQLite: `python tests/faults/power.py --disks 2000`.

A job runs under strace. From its writes and syncs, `disks` builds the disks that a power cut may leave: writes that
were not synced are lost in any combination. On each disk, the job is resumed. It must lose no recipient and send to no
one twice.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from faults.disks import TRACED, Call, Disk, calls
from faults.sender import SETTINGS, arrived, check, new_job, phones, send
from msgctl.store import jobs
from msgctl.store.sqlite import SQLite
from msgctl.store.store import open_store

NUMBER = 24
"""Recipients of the job."""
DISKS_PER_JOB = 100


def play(directory: Path) -> None:
    """Create a store and send a job, under strace."""
    with closing(open_store(str(directory / "disk" / "store.sqlite3"))) as store:
        send(store, new_job(store, NUMBER), directory / "arrivals")


def record(directory: Path, *, without_sync: bool) -> list[tuple[int, str, Call]]:
    """Run a job under strace; return the calls that change files."""
    log = directory / "log"
    options = ("-f", "-y", "-xx", "-s", "10000000", "--seccomp-bpf", "-e", f"trace={TRACED}", "-o", str(log))
    command = ["strace", *options, sys.executable, __file__, "--play", str(directory)]
    subprocess.run([*command, "--without-sync"] if without_sync else command, check=True, timeout=300)
    return [*calls(log)]


def resume(directory: Path) -> None:
    """Send a job to its end after a power cut, and check it."""
    arrivals = directory / "arrivals"
    with closing(open_store(directory / "disk" / "store.sqlite3")) as store:
        for job in jobs.listed(store):
            done = job if job.state == "done" else send(store, job.number, arrivals)
            check(store, done, phones(NUMBER), arrived(arrivals))
            assert SETTINGS.dump() == job.settings
            return
    assert not arrived(arrivals), "the job is lost, but it has sent"


def build(number: int, seed: str, *, without_sync: bool = False) -> str:
    """Record a job, cut the power at this many places, and resume the job each time. Return the broken promise, if any.

    Each cut loses other writes. With ``without_sync``, the store does not wait for the disk, so a promise is broken.
    """
    dice, arrivals, place = Random(seed), b"", 0
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as name:
        directory = Path(name)
        (directory / "disk").mkdir(mode=0o700)
        disk = Disk(directory / "disk")
        events = record(directory, without_sync=without_sync)
        for end in sorted(dice.randint(0, len(events)) for _ in range(number)):
            for thread, phase, call in events[place:end]:
                if phase == "end":
                    disk.end(thread, call)
                    continue
                disk.begin(thread, call)
                if call.name == "write" and call.path == str(directory / "arrivals"):
                    arrivals += call.data
            place = end
            disk.write(dice, directory / "disk")
            (directory / "arrivals").write_bytes(arrivals)
            try:
                resume(directory)
            except Exception as error:  # noqa: BLE001 (reported with its place)
                return f"cut {end} of {len(events)}, seed {seed}: {type(error).__name__}: {error}"
    return ""


_change = SQLite.change


def _without_sync(db: SQLite, statement: str, values: Sequence[Any] = ()) -> int:
    return _change(db, statement.replace("synchronous = FULL", "synchronous = OFF"), values)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--disks", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--without-sync", action="store_true", help="show that a broken msgctl is found out")
    parser.add_argument("--play", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.play:
        with mock.patch.object(SQLite, "change", _without_sync if given.without_sync else _change):
            play(given.play)
        return 0
    if shutil.which("strace") is None:
        print("strace is not installed: no disk was built")
        return 1
    started, done, wrong = time.monotonic(), 0, 0
    while done < given.disks:
        number = min(DISKS_PER_JOB, given.disks - done)
        if fault := build(number, f"{given.seed}-{done}", without_sync=given.without_sync):
            print(fault, flush=True)
            wrong += 1
        done += number
        print(f"\r{done:,} disks ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    print(f"{done:,} disks in {time.monotonic() - started:.0f} s, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
