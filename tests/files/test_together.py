"""Several processes that change one file at the same moment: no change is lost.

That two processes cannot run one job is in `jobs.test_crash`. ``CRASH_TESTS=full pytest tests/files`` starts more
processes, more often.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from files.conftest import NewWorld
from files.holding import strays
from files.stores import ADD, BY_ID, TWO, World, history, jobs, profiles
from support.disks import FULL
from support.tool import Outcome

NUMBER, ROUNDS = (6, 25) if FULL else (2, 1)
ENDED = 60
"""Seconds after which every process has reached its wait, and then ended."""

each_round = pytest.mark.parametrize("round", range(ROUNDS))

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


def opened_by_both(pipe: Path, process: Process) -> int:
    """Open a pipe for writing as soon as a process reads from it."""
    until = time.monotonic() + ENDED
    while process.poll() is None and time.monotonic() < until:
        with suppress(OSError):  # not opened for reading yet
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
        time.sleep(0.005)
    pytest.fail("the process did not reach its wait")


@each_round
def test_simultaneous_changes_of_profiles_are_all_saved(round: int, new_world: NewWorld) -> None:
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
    """Let several processes send at once, each to another phone, and return the phones."""
    phones = [f"57300111110{number}" for number in range(NUMBER)]
    pipes = [world.home / f"message-{phone}" for phone in phones]
    for pipe in pipes:
        os.mkfifo(pipe)
    lines = [
        [*(word.format(phone=phone, home=world.home) for word in words), "--message-file", str(pipe)]
        for phone, pipe in zip(phones, pipes, strict=True)
    ]
    with begun(lines) as processes:
        messages = [opened_by_both(pipe, process) for pipe, process in zip(pipes, processes, strict=True)]
        for message in messages:
            os.write(message, b"Hola")
        for message in messages:
            os.close(message)
        for process in processes:
            ended(process)
    return phones


@each_round
@pytest.mark.parametrize("change", ["record the first send", "record a send"][: 2 if FULL else 1])
def test_simultaneous_sends_are_all_recorded(change: str, round: int, new_world: NewWorld) -> None:
    world = new_world(BY_ID[change])
    before = history(world)
    phones = send_at_once(world, "sms", "send", "{phone}")
    assert sorted(history(world)) == sorted([*before, *((phone, "accepted") for phone in phones)])
    assert strays(world) == []  # if two close it at once, the next one deletes the log


@each_round
def test_jobs_started_at_once_all_finish(round: int, new_world: NewWorld) -> None:
    world = new_world(BY_ID["begin a job"])
    send_at_once(world, "sms", "bulk", "{home}/recipients.csv", "--yes", "--quiet", "--again")
    found = jobs(world)
    assert [len(job) for job in found] == [1] * NUMBER
    assert {outcome for job in found for _, outcome in job} == {"accepted"}
    # Readers leave the log of a ledger to the next process that writes.
    assert [each for each in strays(world) if not each.endswith(("-wal", "-shm"))] == []
