"""What each command may do with a job in each state, and the errors with which its runs end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from msgctl.errors import Hint, MsgctlError, NotReachedError
from msgctl.jobs.ending import counts, error_of, resume_hint
from msgctl.store.jobs import JOB_COLUMNS, Job
from msgctl.store.lifecycle import Command, Ending, Why, check_allowed, replayed_ending, state_after

_ZEROS: Any = [0] * len(JOB_COLUMNS.split(","))
JOB = replace(Job(*_ZEROS), id="20261121-362e8c", name=None, profile="main", ending="", owner=None, removed=None)
MIXED: Any = {"accepted": 4, "refused": 1, "unknown": 1, "sending": 1, "pending": 2}
SUMMARY = "4 of 9 recipients accepted, 1 refused, 2 unknown, 2 pending"
J = "20261121-362e8c"
RESUME = f"Resume: msgctl job resume {J}"
LISTS = (
    f"See why they were refused: msgctl job report {J} --only refused\n"
    f"Resend to refused recipients, one request each: msgctl job resend {J} --only refused\n"
    f"List recipients with unknown outcome: msgctl job report {J} --only unknown"
)
NEXT = f"{RESUME}\n{LISTS}"
CAUSE = {"what": "It failed.", "hint": "Fix it.", "reason": "unauthorized"}

STATES = ("scheduled", "running", "paused", "done", "cancelled")
ELSEWHERE = "running_elsewhere"


@pytest.mark.parametrize(
    ("command", "reasons"),
    [
        ("bulk", (ELSEWHERE, ELSEWHERE, "", ELSEWHERE, "usage")),
        ("resume", ("", ELSEWHERE, "", "", "usage")),
        ("resend", ("", ELSEWHERE, "", "", "usage")),
        ("run-due", ("", ELSEWHERE, ELSEWHERE, ELSEWHERE, ELSEWHERE)),
        ("cancel", ("", "", "", "usage", "")),
        ("remove", ("usage", "usage", "usage", "", "")),
    ],
)
def test_each_state_of_a_job_allows_some_commands(command: Command, reasons: tuple[str, ...]) -> None:
    for state, reason in zip(STATES, reasons, strict=True):
        stored = state.replace("running", "active")
        job = replace(JOB, state=stored, is_running=state == "running", stopping=None, machine="server")
        if not reason:
            check_allowed(job, command)
            continue
        with pytest.raises(MsgctlError) as error:
            check_allowed(job, command)
        assert (state, error.value.reason) == (state, reason)


@pytest.mark.parametrize(
    ("state", "why", "canary_left", "is_resending", "reported"),
    [
        ("scheduled", Why.TERMINATED, None, 0, Why.CLOSED),
        ("done", Why.COMPLETE, None, 0, Why.COMPLETE),
        ("cancelled", Why.ASKED, 0, 0, Why.ASKED),
        ("active", Why.NOT_KNOWN, None, 0, None),
        ("paused", Why.INTERRUPTED, None, 0, None),
        ("paused", Why.CREDIT_LIMIT, 3, 0, None),
        ("paused", Why.CANARY, 0, 0, Why.CANARY),
        ("paused", Why.NOT_REACHED, 0, 0, Why.CANARY),
        ("paused", Why.REFUSED, 0, 0, Why.REFUSED),
        ("paused", Why.UNKNOWN, 0, 0, Why.UNKNOWN),
        ("paused", Why.INTERRUPTED, 0, 1, None),
        ("paused", Why.TOO_LATE, None, 0, Why.TOO_LATE),
        ("paused", Why.TOO_LATE, 0, 0, Why.TOO_LATE),
    ],
)
def test_the_same_bulk_command_continues_a_job_or_reports_its_earlier_run(
    state: str, why: Why, canary_left: int | None, is_resending: int, reported: Why | None
) -> None:
    job = replace(JOB, state=state, ending=Ending(why).dump(), is_resending=is_resending)
    ending = replayed_ending(job, canary_left)
    assert (ending and ending.why) == reported


@pytest.mark.parametrize(
    ("why", "cause", "code", "reason", "message", "hint"),
    [
        (Why.COMPLETE, {}, 6, "not_accepted", SUMMARY, NEXT),
        (Why.CANARY, {}, 6, "not_accepted", SUMMARY, NEXT),
        (Why.CLOSED, {}, 6, "not_accepted", SUMMARY, NEXT),
        (Why.INTERRUPTED, {}, 130, "interrupted", f"Interrupted; {SUMMARY}", NEXT),
        (Why.TERMINATED, {}, 130, "interrupted", f"Interrupted; {SUMMARY}", NEXT),
        (Why.ASKED, {}, 6, "paused", f"Another process paused the job. {SUMMARY}", NEXT),
        (
            Why.CREDIT_LIMIT,
            {"what": "The limit is reached"},
            6,
            "credit_limit",
            f"The limit is reached. {SUMMARY}",
            f"Resume (N is the new total): msgctl job resume {J} --max-credits N",
        ),
        (
            Why.REFUSED,
            CAUSE,
            1,
            "unauthorized",
            f"Stopped after 5 refused requests in a row. Last error: It failed. {SUMMARY}",
            f"Fix it.\n{NEXT}",
        ),
        (Why.NOT_FOR_RECIPIENTS, CAUSE, 1, "unauthorized", f"It failed. {SUMMARY}", f"Fix it.\n{NEXT}"),
        (
            Why.UNKNOWN,
            CAUSE,
            6,
            "paused",
            f"Stopped after 5 unknown requests in a row. Last error: It failed. {SUMMARY}",
            f"Fix it.\n{NEXT}",
        ),
        (Why.NOT_REACHED, CAUSE, 4, "unauthorized", f"It failed. {SUMMARY}", f"Fix it.\n{NEXT}"),
        (Why.RATE_LIMITED, CAUSE, 4, "unauthorized", f"It failed. {SUMMARY}", f"Fix it.\n{NEXT}"),
        (Why.STORE_LOST, CAUSE, 4, "unauthorized", f"It failed. {SUMMARY}", f"Fix it.\n{NEXT}"),
        (Why.TOO_LATE, CAUSE, 6, "too_late", f"It failed. {SUMMARY}", f"Fix it.\n{NEXT}"),
        (Why.CONFIGURATION, CAUSE, 3, "unauthorized", f"It failed. {SUMMARY}", f"Fix it.\n{NEXT}"),
    ],
)
def test_each_end_of_a_paused_job_has_its_error(
    why: Why, cause: Any, code: int, reason: str, message: str, hint: str
) -> None:
    ending = Ending(why, **cause)
    job = replace(JOB, state="paused", ending=ending.dump(), **MIXED)
    error = error_of(job, ending)
    assert error is not None
    assert (error.exit_code, error.reason, error.message, error.hint) == (code, reason, message, hint)
    assert Ending.load(job.ending) == replace(ending, words=[])


def test_an_end_without_a_failure_is_no_error() -> None:
    ends: list[tuple[str, Why, Any]] = [
        ("done", Why.COMPLETE, {}),
        ("paused", Why.CANARY, {"pending": 3}),
        ("paused", Why.CLOSED, {"refused": 1, "pending": 3}),
        ("scheduled", Why.CLOSED, {"refused": 1, "unknown": 1, "pending": 3}),
    ]
    for state, why, changes in ends:
        assert error_of(replace(JOB, state=state, accepted=1, **changes), Ending(why)) is None
        if why is Why.COMPLETE:
            for failure in ("refused", "unknown", "sending"):
                failed: Any = {failure: 1}
                assert error_of(replace(JOB, state="done", accepted=1, **failed), Ending(why))


def test_a_cancelled_job_is_sent_again_only_as_a_new_job() -> None:
    for requests, hint in (
        (0, "To send it, choose another --name."),
        (1, f"Save its pending recipients for a new job: msgctl job report {J} --only pending --save rest.csv"),
    ):
        error = error_of(replace(JOB, state="cancelled", requests=requests, **MIXED), Ending(Why.COMPLETE))
        assert error is not None
        assert (error.reason, error.message, error.hint) == ("cancelled", f"The job was cancelled. {SUMMARY}", hint)


def test_a_job_is_resumed_with_what_it_needs() -> None:
    assert resume_hint(JOB) == RESUME
    names = "MSGCTL_BASE_URL, MSGCTL_CLIENT and MSGCTL_KEY"
    assert resume_hint(replace(JOB, profile="environment")) == f"Set {names}, then resume: msgctl job resume {J}"
    ending = Ending(Why.NOT_REACHED, "It failed")
    error = error_of(replace(JOB, state="scheduled", pending=1), ending)
    assert error is not None
    assert error.hint == "The next run-due continues it."
    assert counts(replace(JOB, accepted=1200)) == "1,200 accepted"


def test_the_end_that_is_stored_is_read_by_every_version() -> None:
    response = NotReachedError("It failed")
    assert Ending.of(Why.COMPLETE) == Ending(Why.COMPLETE)
    assert Ending.of(Why.NOT_REACHED, response) == Ending(Why.NOT_REACHED, "It failed", "", "not_reached")
    assert Ending.load("").why is Ending.load('{"why": "a newer one"}').why is Why.NOT_KNOWN
    assert Ending.load('{"why": "canary", "newer": 1}') == Ending(Why.CANARY)


@pytest.mark.parametrize(
    ("state", "why", "changes", "after"),
    [
        ("active", Why.COMPLETE, {}, "done"),
        ("scheduled", Why.CLOSED, {}, "done"),
        ("active", Why.COMPLETE, {"pending": 1}, "paused"),
        ("active", Why.CLOSED, {"pending": 1}, "scheduled"),
        ("active", Why.NOT_REACHED, {"pending": 1}, "paused"),
        ("scheduled", Why.NOT_REACHED, {}, "scheduled"),
        ("scheduled", Why.INTERRUPTED, {}, "paused"),
        ("scheduled", Why.TERMINATED, {}, "scheduled"),
        ("scheduled", Why.CANARY, {"pending": 1}, "paused"),
    ],
)
def test_a_run_leaves_a_job_done_scheduled_or_paused(state: str, why: Why, changes: Any, after: str) -> None:
    assert state_after(replace(JOB, state=state, **changes), why) == after


def test_the_hint_of_a_stored_ending_keeps_its_commands() -> None:
    ending = Ending(Why.TOO_LATE, "Late", Hint("To never send it: ", "job cancel X"))
    hint = Ending.load(ending.dump()).hint
    assert (hint, hint == ending.hint) == ("To never send it: msgctl job cancel X", True)
    assert isinstance(hint, Hint)
    assert hint.shown("main") == "To never send it: msgctl -p main job cancel X"
    earlier = '{"why": "too late", "hint": "To never send it: msgctl job cancel X"}'
    assert Ending.load(earlier) == replace(ending, what="")
