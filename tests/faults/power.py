"""Cut the power at any moment of a job on SQLite: `python tests/faults/power.py --disks 2000`.

A job runs under strace. From its writes and syncs, `disks` builds the disks that a power cut may leave: writes that
were not synced are lost in any combination. On each, the job is resumed. Then nobody was sent to twice or is lost.
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

from faults.disks import TRACED, Disk, calls
from faults.sender import SETTINGS, arrived, check, new_job, phones, send
from msgctl.store import jobs
from msgctl.store.sqlite import SQLite
from msgctl.store.store import open_store

NUMBER = 24
"""Recipients of the job."""
DISKS_PER_JOB = 100


def strace(log: Path) -> list[str]:
    """Return the strace command prefix that logs a command's file changes."""
    options = ("-f", "-y", "-xx", "-s", "10000000", "--seccomp-bpf", "-e", f"trace={TRACED}")
    return ["strace", *options, "-o", str(log)]


def play(directory: Path) -> None:
    """Create a store and send a job: what is traced."""
    location = str(directory / "disk" / "store.sqlite3")
    with closing(open_store(location)) as store:
        send(store, new_job(store, NUMBER), directory / "arrivals")


class Recorded:
    """A job that was recorded, in a directory with its ``disk`` and the ``arrivals`` at the service.

    With ``without_sync``, the store does not wait for the disk: then the promise is broken.
    """

    def __init__(self, directory: Path, *, without_sync: bool = False) -> None:
        self._directory = directory
        (directory / "disk").mkdir(mode=0o700)
        self._before = Disk(directory / "disk")
        log = directory / "log"
        command = [*strace(log), sys.executable, __file__, "--play", str(directory)]
        subprocess.run([*command, "--without-sync"] if without_sync else command, check=True, timeout=300)
        self.events = [*calls(log)]

    def cut(self, number: int, seed: str) -> str:
        """Cut the power at some places, each in another way, and resume the job; return what is wrong, if anything."""
        dice, disk, notes = Random(seed), self._before.copy(), b""
        covered: dict[int, int] = {}
        arrivals = str(self._directory / "arrivals")
        place = 0
        for end in sorted(dice.randint(0, len(self.events)) for _ in range(number)):
            for thread, phase, call in self.events[place:end]:
                if phase == "begin":
                    covered[thread] = disk.begin(call)
                    if call.name == "write" and call.path == arrivals:
                        notes += call.data
                else:
                    disk.do(call, covered[thread])
            place = end
            disk.write(dice, self._directory / "disk")
            (self._directory / "arrivals").write_bytes(notes)
            try:
                self._resume()
            except Exception as error:  # noqa: BLE001 (reported with its place)
                return f"cut {end} of {len(self.events)}, seed {seed}: {type(error).__name__}: {error}"
        return ""

    def _resume(self) -> None:
        arrivals, path = self._directory / "arrivals", self._directory / "disk" / "store.sqlite3"
        with closing(open_store(path)) as store:
            found = jobs.listed(store)
            if not found:
                assert not arrived(arrivals), "the job is lost, but it has sent"
                return
            (job,) = found
            if job.state != "done":
                job = send(store, job.number, arrivals)
            check(store, job, phones(NUMBER), arrived(arrivals))
            assert SETTINGS.dump() == job.settings


def build(number: int, seed: str, *, without_sync: bool = False) -> str:
    """Record a job, and build this many disks; return what is wrong, if anything."""
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as directory:
        return Recorded(Path(directory), without_sync=without_sync).cut(number, seed)


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
    if given.without_sync and given.play:
        with mock.patch.object(SQLite, "change", _without_sync):
            play(given.play)
        return 0
    if given.play:
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
    print(f"{done:,} disks in {time.monotonic() - started:.0f} s, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
