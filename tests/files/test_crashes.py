"""A process that is killed between two system calls, or in which one fails, leaves the old file or the new one.

The tests try a few of the system calls of a change; ``CRASH_TESTS=full pytest tests/files`` tries every one.
"""

from __future__ import annotations

import pytest

from files.conftest import NewWorld
from files.holding import assert_goes_on, assert_told, assert_whole
from files.stores import BY_ID, CHANGES, Change
from support.disks import FULL
from support.tracing import Call, Tracer

KILL = "KILL"
EVERY_FAULT = (KILL, "ENOSPC", "EDQUOT", "EIO", "EINTR", "EACCES", "EROFS")

CHANGES_TRIED = CHANGES if FULL else [BY_ID[each] for each in ("add a profile", "record a send", "begin a job")]
FAULTS_TRIED = [(fault,) for fault in EVERY_FAULT] if FULL else [(KILL, "ENOSPC", KILL)]


@pytest.mark.parametrize("faults", FAULTS_TRIED, ids="-".join)
@pytest.mark.parametrize("change", CHANGES_TRIED, ids=lambda change: change.id)
def test_a_kill_or_a_failure_at_a_system_call_loses_nothing(
    change: Change, faults: tuple[str, ...], new_world: NewWorld, tracer: Tracer
) -> None:
    world = new_world(change)
    calls = tracer.calls(change.arguments(world), change.stdin, touching=change.touches)
    assert len(calls) > len(faults)
    for place, fault in enumerate(faults, start=1):
        for call in calls if FULL else [calls[len(calls) * place // (len(faults) + 1)]]:
            try_one(change, fault, call, new_world, tracer)


def try_one(change: Change, fault: str, call: Call, new_world: NewWorld, tracer: Tracer) -> None:
    """Kill the process at a call, or let the call fail, and check the files."""
    world = new_world(change)
    words = change.arguments(world)
    if fault == KILL:
        done = tracer.killed(words, change.stdin, call)
    else:
        done = tracer.failing(words, change.stdin, call, fault)
    try:
        if fault != KILL:
            assert_told(change, world, done)
        assert_whole(change, world, done)
        assert_goes_on(change, world)
    except AssertionError as error:
        raise AssertionError(f"{fault} at {call}: {done}") from error
