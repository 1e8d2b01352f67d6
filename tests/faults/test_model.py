"""The model keeps every promise. Each error that is planted in it is found, with its shortest trace."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from faults.model import DEAD, JOB, KEY, NEW, OLD, Process, Protocol, Request, State, explore

pytestmark = pytest.mark.slow  # no fault in msgctl can change them


def test_no_sequence_of_steps_breaks_a_promise() -> None:
    assert explore(Protocol()) == (61_760, "", [])


class NoFence(Protocol):
    def fence(self, process: Process) -> bool:
        return process.work == "job"


class IntentAfterTheRequest(Protocol):
    def intend(self, s: State) -> tuple[State, list[Request]]:
        _, intents = super().intend(s)
        return s, intents


class UnknownIsRetried(Protocol):
    def lose(self, s: State) -> State:
        for message in JOB:
            if s.rows[message][-1] == "sending":
                s = s.set_last(message, "pending")
        return s


class ForgottenIntent(Protocol):
    def lose(self, s: State) -> State:
        return s


class LostCommitIsSent(Protocol):
    """A batch counts as stored although its commit was lost."""

    def batch(self, s: State, me: int) -> Iterator[State]:
        for after in super().batch(s, me):
            unsure = after.processes[me].phase("unsure")
            yield after.set_requests(me, unsure, *(each._replace(phase="intended") for each in unsure))


class NoExpiry(Protocol):
    def half_a_second(self, s: State) -> Iterator[State]:
        if s.optout == NEW:
            yield s._replace(optout=OLD)


class NoOptOutsInAResend(Protocol):
    def has_opted_out(self, s: State, message: int) -> bool:
        return len(s.rows[message]) == 1 and super().has_opted_out(s, message)


class SingleSendsDoNotCount(Protocol):
    def has_enough(self, s: State, message: int) -> bool:
        return super().has_enough(s._replace(rows=(*s.rows[:KEY], ("pending",))), message)


class LateOutcomeOfAnyAttempt(Protocol):
    def late(self, s: State, request: Request) -> State:
        return s.set_last(request.message, "accepted")


class LostResponseIsGivenBack(Protocol):
    def record(self, s: State, request: Request) -> State:
        return super().record(s, request._replace(phase=request.phase.replace("unknown", "not sent")))


class TotalsInAnotherTransaction(Protocol):
    def record(self, s: State, request: Request) -> State:
        return super().record(s, request)._replace(totals=s.totals)


class KeyOfADeadProcessIsFree(Protocol):
    def begin(self, s: State, me: int) -> Iterator[State]:
        if s.rows[KEY] == ("sending",) and s.key_owner == DEAD:
            s = s.set_last(KEY, "pending")
        return super().begin(s, me)


ERRORS: dict[type[Protocol], tuple[str, str]] = {
    NoFence: ("Ana is in flight, and no process waits for the response", "take 1, lose_lock 1, take 2, batch 1"),
    IntentAfterTheRequest: ("Ana was sent to and is pending", "take 1, batch 1, send 1"),
    UnknownIsRetried: ("Ana was sent to and is pending", "take 1, batch 1, send 1, lose_lock 1, take 2"),
    ForgottenIntent: (
        "Ana is in flight, and no process waits for the response",
        "take 1, batch 1, lose_lock 1, take 2",
    ),
    LostCommitIsSent: ("Ana was sent to and is pending", "take 1, batch 1, send 1"),
    NoExpiry: ("Ana was sent to after her opt-out", "take 1, batch 1, opt_out, half_a_second, send 1"),
    NoOptOutsInAResend: (
        "Ana was sent to after her opt-out",
        "take 1, batch 1, opt_out, half_a_second, lose_lock 1, resend, take 2, batch 2, send 2",
    ),
    SingleSendsDoNotCount: ("Luis was sent to beyond the limit", "opt_out, take 1, begin 2, batch 1"),
    LateOutcomeOfAnyAttempt: (
        "Ana is accepted and got nothing",
        "take 1, batch 1, send 1, respond 1, lose_lock 1, resend, record_late 1",
    ),
    LostResponseIsGivenBack: ("the key was sent to and is pending", "begin 1, send 1, respond 1, end 1"),
    TotalsInAnotherTransaction: ("the totals differ from the rows", "take 1, batch 1, reconnect 1"),
    KeyOfADeadProcessIsFree: ("the key was sent to twice", "begin 1, send 1, kill 1, begin 1, send 1"),
}
"""The promise that each error breaks, and the shortest way to it."""


@pytest.mark.parametrize("error", ERRORS)
def test_an_error_is_found_with_the_shortest_trace(error: type[Protocol]) -> None:
    _, promise, trace = explore(error())
    assert (promise, ", ".join(trace)) == ERRORS[error]
