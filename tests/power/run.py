"""Cut the power at any moment and check what msgctl does then: `python tests/power/run.py --disks 2000`.

A user's commands run under strace. From their writes, syncs and renames, `disks` builds the disks that a power cut may
leave. On each, the user continues, and `plans` checks that nothing was lost or sent twice. Some of these checks run
under strace too, and the power is cut a second time.
"""

from __future__ import annotations

import argparse
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import time
import traceback
from multiprocessing import get_context
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from power import plans
from power.disks import TRACED, Call, Disk, calls
from power.machine import Machine, ready
from power.plans import Checker, Known, WrongError

CUTS_PER_RECORD = 25
MAX_SECONDS = 120


def strace(log: Path) -> list[str]:
    """Return the strace command prefix that logs a command's file changes."""
    options = ("-f", "-y", "-xx", "-s", "10000000", "--seccomp-bpf", "-e", f"trace={TRACED}")
    return ["strace", *options, "-o", str(log)]


def record(folder: Path, known: Known) -> Path:
    """Run commands under strace: those of a plan, or, after a power cut, those of a check. Return the log."""
    log, task = folder / "log", folder / "task"
    task.write_bytes(pickle.dumps(known))
    done = subprocess.run(
        [*strace(log), sys.executable, __file__, "--play", str(folder)],
        capture_output=True,
        text=True,
        check=False,
        timeout=MAX_SECONDS,
    )
    if done.returncode:
        raise WrongError(done.stderr)
    return log


def play(folder: Path) -> None:
    """Run what `record` traces."""
    known: Known = pickle.loads((folder / "task").read_bytes())
    with ready(folder) as machine:
        if known.cuts:
            Checker(machine, known).check()
        else:
            plans.play(machine, known.steps)


class Player:
    """Plays a record up to each cut."""

    def __init__(self, machine: Machine, known: Known) -> None:
        self.machine, self.known = machine, known
        self.disk = Disk(machine.disk)
        self.notes = machine.service.notes.read_bytes()
        self.events = [*calls(record(machine.folder, known))]
        self.place = 0
        self.results = [*known.results]
        self.printed: dict[str, bytes] = {}
        self._covered: dict[int, int] = {}

    def go_to(self, place: int) -> None:
        for thread, phase, call in self.events[self.place : place]:
            if phase == "begin":
                self._covered[thread] = self.disk.begin(call)
                if call.name == "write" and call.path == str(self.machine.service.notes):
                    self.notes += call.data
            else:
                self.disk.do(call, self._covered[thread])
                if call.name == "write" and not self.known.cuts:
                    self._hear(call)
        self.place = place

    def _hear(self, call: Call) -> None:
        """Note what the user learns from a write to the output of a command, and from its end."""
        path = Path(call.path)
        if path.suffix == ".out" and path.parent == self.machine.folder:
            self.printed[path.stem] = self.printed.get(path.stem, b"") + call.data
        elif path.suffix == ".end" and path.parent == self.machine.folder:
            out = self.printed.get(path.stem, b"").decode()
            self.results.append({"code": int(call.data), "out": out})

    def cut(self, random: Random) -> Known:
        """Leave a disk that a power cut may leave now. Return what the user knows."""
        shutil.rmtree(self.machine.disk)
        self.disk.write(random, self.machine.disk)
        self.machine.service.notes.write_bytes(self.notes)
        printed = self.known.printed or self.printed.get(str(len(self.results)), b"").decode()
        return Known(self.known.steps, self.results[:], printed, self.known.cuts + 1)


def tried(task: tuple[int, int]) -> tuple[int, str]:
    """Cut the power a number of times during the plan of a seed, and as often again while the user continues.

    Return the number of disks, and what went wrong with the last one, if anything did.
    """
    seed, number = task
    random = Random(seed)
    memory = Path("/dev/shm")
    done, where = 0, ""
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as name, ready(Path(name)) as machine:
        known = Known(plans.plan(random, name), cuts=0)
        try:
            while known.cuts < 2:
                player = Player(machine, known)
                second = random.randrange(number)
                for cut, place in enumerate(sorted(random.randint(0, len(player.events)) for _ in range(number))):
                    player.go_to(place)
                    known = player.cut(Random(f"{seed} {done}"))
                    if cut == second:
                        left, notes = known, player.notes
                        shutil.copytree(machine.disk, machine.folder / "second", dirs_exist_ok=True)
                    done += 1
                    running = f"during msgctl {' '.join(known.next.arguments)}" if known.next else "after all commands"
                    where = f"disk {done} of seed {seed}, {running}, call {place} of {len(player.events)}"
                    Checker(machine, known).check()
                known = left
                machine.service.notes.write_bytes(notes)
                shutil.rmtree(machine.disk)
                (machine.folder / "second").rename(machine.disk)
        except AssertionError as error:
            return done, f"WRONG on {where}: {error}\n"
        except Exception:  # noqa: BLE001 (printed with its place)
            return done, f"WRONG on {where}:\n{traceback.format_exc()}\n"
    return done, ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--disks", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--per-record", type=int, default=CUTS_PER_RECORD)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--play", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.play:
        play(given.play)
        return 0
    began = time.monotonic()
    records = [(given.seed + number, given.per_record) for number in range(-(-given.disks // given.per_record // 2))]
    done = wrong = 0
    with get_context("fork").Pool(given.workers) as pool:
        for number, text in pool.imap_unordered(tried, records):
            done, wrong = done + number, wrong + bool(text)
            print(text, end="", flush=True)
            print(f"\r{done:,} disks ", end="", file=sys.stderr)
    took = time.monotonic() - began
    print(f"{done:,} disks of {len(records)} records from seed {given.seed} in {took:.0f} s, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
