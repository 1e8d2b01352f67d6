"""Several processes that change one file at once, let go at the same moment: what each of them did is there.

That two do not work on one job is in `jobs.test_crash`. ``CRASH_TESTS=full pytest tests/files`` lets more of
them go, and more often.
"""

from __future__ import annotations

import fcntl
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
from files.stores import ADD, BY_ID, CONFIG, TWO, World, history, jobs, profiles, state
from support.disks import FULL
from support.tool import Outcome

NUMBER, ROUNDS = (6, 25) if FULL else (2, 1)
ENDED = 60
"""Seconds in which every process has come to where it waits, and has ended."""

each_round = pytest.mark.parametrize("round", range(ROUNDS))

Process = subprocess.Popen[bytes]


@contextmanager
def begun(lines: Sequence[Sequence[str]], stdin: bytes = b"") -> Iterator[list[Process]]:
    """Processes, one for each command line. What a failed test leaves is ended."""
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
    """The end of a process, which must have done what it was told, without a warning."""
    assert process.stdout is not None
    assert process.stderr is not None
    done = Outcome(0, process.stdout.read(), process.stderr.read())
    assert process.wait(ENDED) == 0, done.err
    assert "Warning" not in done.err
    return done


def moments(process: Process) -> Iterator[None]:
    """Now, and now, while it can be waited for a process."""
    until = time.monotonic() + ENDED
    while process.poll() is None and time.monotonic() < until:
        yield
        time.sleep(0.005)
    pytest.fail("it did not come to where it should wait")


def wait_until_open(path: Path, process: Process) -> None:
    """Wait until a process has opened a file."""
    for _ in moments(process):
        with suppress(OSError):  # it opens and closes others all the time
            if any(each.readlink() == path for each in Path(f"/proc/{process.pid}/fd").iterdir()):
                return


def opened_by_both(pipe: Path, process: Process) -> int:
    """A pipe to write to, as soon as a process reads from it."""
    for _ in moments(process):
        with suppress(OSError):  # nobody reads yet
            return os.open(pipe, os.O_WRONLY | os.O_NONBLOCK)
    raise AssertionError


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="this system does not show what a process has open")
@each_round
def test_profiles_that_are_changed_at_once_are_all_changed(round: int, new_world: NewWorld) -> None:
    world = new_world(BY_ID["add a profile"])
    new = [f"new{number}" for number in range(NUMBER)]
    adding = [[name if word == "new" else word for word in ADD] for name in new]
    others = [["profile", "use", "other"], ["profile", "remove", "main", "--yes"]]
    path = (world.home / CONFIG).with_name(".config.toml.lock")
    with path.open("wb") as lock, begun([*adding, *others], b"the-key\n") as processes:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for process in processes:
            wait_until_open(path, process)
        fcntl.flock(lock, fcntl.LOCK_UN)
        for process in processes:
            ended(process)
    keys, _ = profiles(world)
    assert keys == {"other": TWO["other"], **dict.fromkeys(new, "the-key")}
    assert strays(world) == []


def send_at_once(world: World, *words: str) -> list[str]:
    """Let several processes send, each to another phone, when all of them are about to read the message; the phones."""
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
@pytest.mark.parametrize("change", ["note the first dispatch", "note a dispatch"][: 2 if FULL else 1])
def test_dispatches_that_are_noted_at_once_are_all_noted(change: str, round: int, new_world: NewWorld) -> None:
    world = new_world(BY_ID[change])
    before = history(world)
    phones = send_at_once(world, "sms", "send", "{phone}")
    assert sorted(history(world)) == sorted([*before, *((phone, "accepted") for phone in phones)])
    assert strays(world) == []  # where two close it at once, it takes one more to take away the log


@each_round
@pytest.mark.parametrize("change", ["make the sandbox", "send in the sandbox"][: 2 if FULL else 1])
def test_what_is_sent_at_once_in_the_sandbox_is_charged_and_delivered(
    change: str, round: int, new_world: NewWorld
) -> None:
    world = new_world(BY_ID[change])
    charged, delivered = state(world) if change == "send in the sandbox" else (0, [])
    phones = send_at_once(world, "-p", "sandbox", "sms", "send", "{phone}")
    now, received = state(world)
    assert (now, sorted(received)) == (charged + NUMBER, sorted([*delivered, *phones]))
    assert strays(world) == []


@each_round
def test_jobs_that_are_begun_at_once_are_all_done(round: int, new_world: NewWorld) -> None:
    world = new_world(BY_ID["begin a job"])
    send_at_once(world, "sms", "bulk", "{home}/recipients.csv", "--yes", "--quiet")
    found = jobs(world)
    assert [len(job) for job in found] == [1] * NUMBER
    assert {outcome for job in found for _, outcome in job} == {"accepted"}
    assert strays(world) == []
