"""Several processes that change one file at the same moment: no change is lost.

That two processes cannot run one job is in `jobs.test_crash`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from files.conftest import NewWorld
from files.holding import strays
from files.stores import ADD, BY_ID, LUIS, TWO, World, history, jobs, profiles
from support.tool import Outcome

NUMBER = 3
ENDED = 60
"""Seconds after which every process has ended."""


Process = subprocess.Popen[bytes]


@contextmanager
def begun(lines: Sequence[Sequence[str]], stdin: bytes = b"") -> Iterator[list[Process]]:
    """Start a process for each command line; kill those that a failed test leaves."""
    with ExitStack() as stack:
        processes = [stack.enter_context(_started(line)) for line in lines]
        for process in processes:
            stack.callback(process.kill)
            assert process.stdin is not None
            process.stdin.write(stdin)
            process.stdin.close()
        yield processes


def _started(line: Sequence[str]) -> Process:
    command = [sys.executable, "-m", "msgctl", *line]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ended(process: Process) -> Outcome:
    """Return the outcome of a process, which must have succeeded without a warning."""
    assert process.stdout is not None
    assert process.stderr is not None
    done = Outcome(0, process.stdout.read(), process.stderr.read())
    assert process.wait(ENDED) == 0, done.err
    assert "Warning" not in done.err
    return done


def test_simultaneous_changes_of_profiles_are_all_saved(new_world: NewWorld) -> None:
    world = new_world(BY_ID["add a profile"])
    new = [f"new{number}" for number in range(NUMBER)]
    adding = [[name if word == "new" else word for word in ADD] for name in new]
    others = [["profile", "use", "other"], ["profile", "remove", "main", "--yes"]]
    with begun([*adding, *others], b"the-key\n") as processes:
        for process in processes:
            ended(process)
    keys, _ = profiles(world)
    assert keys == {"other": TWO["other"], **dict.fromkeys(new, "the-key")}
    assert strays(world) == []


def send_at_once(world: World, *words: str) -> list[str]:
    """Let several processes send, each to another phone, and get their responses at once; return the phones."""
    phones = [f"57300111110{number}" for number in range(NUMBER)]
    world.server.hold()
    with begun([[word.format(phone=phone, home=world.home) for word in words] for phone in phones]) as processes:
        world.server.wait_for(NUMBER)
        world.server.release()
        for process in processes:
            ended(process)
    return phones


def test_simultaneous_sends_are_all_recorded(new_world: NewWorld) -> None:
    world = new_world(BY_ID["record the first send"])
    phones = send_at_once(world, "sms", "send", "{phone}", "-m", "Hola")
    assert sorted(history(world)) == [(phone, "accepted") for phone in phones]
    assert strays(world) == []  # if two close it at once, the next one deletes the log


def test_jobs_started_at_once_all_finish(new_world: NewWorld) -> None:
    world = new_world(BY_ID["begin a job"])
    send_at_once(world, "sms", "bulk", "{home}/recipients.csv", "-m", "Hola", "--yes", "--quiet", "--again")
    assert jobs(world) == [[(LUIS, "accepted")]] * NUMBER
    # Readers leave the log of a ledger to the next process that writes.
    assert [each for each in strays(world) if not each.endswith(("-wal", "-shm"))] == []
