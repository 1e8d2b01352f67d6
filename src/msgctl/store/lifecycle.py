"""The life of a job: the commands that it allows, and the state and the exit code after a run.

`ALLOWED` and `Why` are the tables. While a process runs a job, the store has it as ``scheduled`` or ``active``. If the
process dies, the job is in the state that another process asked for; or else it stays scheduled, or is paused.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Literal, Self

from msgctl.errors import (
    NOTHING_SENT,
    ConditionError,
    ConfigurationError,
    Hint,
    Interrupted,
    MsgctlError,
    NotReachedError,
    RefusedError,
    StoreNotReachedError,
    TurnedAwayError,
    UsageError,
)
from msgctl.outcomes.outcome import PENDING
from msgctl.store.jobs import ONLY_RESEND, Job
from msgctl.text import clean

# --- commands


Command = Literal["bulk", "resume", "resend", "run-due", "cancel", "remove"]
"""A command that uses a job; ``bulk`` is the bulk command that created it, which may run again."""

ALLOWED: Mapping[str, Collection[Command]] = {
    "scheduled": {"resume", "resend", "run-due", "cancel"},
    "running": {"cancel"},
    "paused": {"bulk", "resume", "resend", "cancel"},
    "done": {"resume", "resend", "remove"},
    "cancelled": {"cancel", "remove"},
}
"""The commands that each state allows. `check_allowed` raises the errors of other commands, except ``bulk``: see
`replayed_ending`.
"""


def replayed_ending(job: Job, canary_left: int | None) -> Ending | None:
    """Return the end of the earlier run, which the same bulk command reports again; None if it continues the job.

    ``canary_left`` is how many recipients --canary still allows. Raises ConditionError if the job is running.
    """
    if job.shown_state == "scheduled":
        return Ending(Why.CLOSED)  # it exits with 0, because run-due continues the job
    ending = Ending.load(job.ending)
    if job.shown_state in ("done", "cancelled"):
        return ending
    check_allowed(job, "bulk")
    if ending.why is Why.TOO_LATE:  # a person decides
        return ending
    if canary_left == 0 and not job.is_resending:
        return ending if ending.why in (Why.REFUSED, Why.UNKNOWN) else Ending(Why.CANARY)
    return None


def check_allowed(job: Job, command: Command, only: str = PENDING) -> None:
    """Raise the error for a command that a job does not allow: ConditionError, or UsageError.

    If it was cancelled, the hint is about the recipients that ``only`` selects.
    """
    name, state = job.reference, job.shown_state
    if job.removed is not None:
        raise ConditionError(f'The job "{name}" was removed', consequence=NOTHING_SENT, reason="job_removed")
    if command in ALLOWED[state] and not (command == "remove" and job.stopping):
        return
    if command == "remove":
        raise UsageError(f'The job "{name}" is not finished', Hint("Cancel it first: ", f"job cancel {job.typed}"))
    if command == "cancel":
        raise UsageError(f'The job "{name}" is done: there is nothing to cancel')
    if state == "cancelled" and command != "run-due":
        raise UsageError(
            f'The job "{name}" was cancelled: it never sends again',
            Hint(
                f"Save its {only} recipients for a new job: ",
                f"job report {job.typed} --only {only} --save rest.csv",
            ),
        )
    if state != "running":
        raise changed_elsewhere(job, f"it is {state} now")
    what = f'The job "{name}" is running on {clean(job.machine)} in another process'
    hint = Hint("Wait for it. To end it permanently: ", f"job cancel {job.typed}")
    raise ConditionError(what, hint, consequence=NOTHING_SENT, reason="running_elsewhere")


def changed_elsewhere(job: Job, how: str) -> ConditionError:
    """Return the error for a job that another process has changed since this one read it."""
    return ConditionError(
        f'Another process has changed the job "{job.reference}": {how}',
        Hint("Check it: ", f"job show {job.typed}"),
        consequence=NOTHING_SENT,
        reason="running_elsewhere",
    )


# --- runs


class Why(StrEnum):
    """Why a run ended, with the class and the reason of its error, and whether a scheduled job stays scheduled.

    Without a ``reason``, the error that stopped the run has one.
    """

    error: Callable[..., MsgctlError] | None
    reason: str
    stays_scheduled: bool

    COMPLETE = "complete", None, "", True  # a resend may be complete before the job has reached everyone
    CANARY = "canary"
    CLOSED = "the window is closed", None, "", True
    INTERRUPTED = "interrupted", Interrupted
    TERMINATED = "terminated", Interrupted, "", True
    ASKED = "another process asked", ConditionError, "paused"
    CREDIT_LIMIT = "credit limit", ConditionError, "credit_limit"
    REFUSED = "five refused requests in a row", RefusedError
    NOT_FOR_RECIPIENTS = "a refusal that is not about recipients", RefusedError
    UNKNOWN = "five unknown requests in a row", ConditionError, "paused"
    NOT_REACHED = "the service was not reached", NotReachedError, "", True
    RATE_LIMITED = "requests were turned away", TurnedAwayError, "", True
    STORE_LOST = "the store was lost", StoreNotReachedError, "", True
    TOO_LATE = "too late", ConditionError, "too_late"
    CONFIGURATION = "configuration", ConfigurationError, "", True
    NOT_KNOWN = "not known"

    def __new__(
        cls, text: str, error: Callable[..., MsgctlError] | None = None, reason: str = "", stays_scheduled: bool = False
    ) -> Self:
        why = str.__new__(cls, text)
        why._value_ = text
        why.error, why.reason, why.stays_scheduled = error, reason, stays_scheduled
        return why


@dataclass(frozen=True)
class Ending:
    """The end of a run: its cause, and the message, the hint and the reason of the error that stopped it, if any.

    The store keeps it, so that the same command under the same name reports it again. ``words`` are the strings that a
    profile could add to make unknown outcomes certain. ``http_status`` and ``body`` belong to the response that stopped
    the run, if any.
    """

    why: Why
    what: str = ""
    hint: str = ""
    reason: str = ""
    words: Sequence[str] = ()
    http_status: int | None = None
    body: str = ""

    @classmethod
    def of(cls, why: Why, error: MsgctlError | None = None) -> Ending:
        """Return the ending of a run that was stopped by an error."""
        if error is None:
            return cls(why)
        words = error.missing_words[1] if error.missing_words else ()
        return cls(why, error.what, error.hint or "", error.reason, words, error.http_status, error.body)

    def dump(self) -> str:
        """Return the ending as JSON. An earlier version reads only ``hint``, without its parts."""
        hint_parts = getattr(self.hint, "parts", [self.hint])
        return json.dumps({**asdict(self), "hint_parts": hint_parts})

    @classmethod
    def load(cls, text: str) -> Ending:
        """Return the ending in JSON of `dump`; `Why.NOT_KNOWN` if the process was killed, or has a newer version."""
        values = json.loads(text or "{}")
        if values.get("why") not in [*Why]:  # a newer msgctl may have others, and more fields
            return cls(Why.NOT_KNOWN, "Its process ended before the job was done")
        known = {field.name: values[field.name] for field in fields(cls) if field.name in values}
        if "hint_parts" in values:
            known["hint"] = Hint(*values["hint_parts"])
        return cls(**{**known, "why": Why(values["why"])})


def state_after(job: Job, why: Why) -> str:
    """Return the state of a job after a run, unless another process asks for one: done, scheduled or paused."""
    if why in (Why.COMPLETE, Why.CLOSED) and not job.pending:
        return "done"
    if why is Why.COMPLETE and job.is_resending == ONLY_RESEND:
        return "paused"
    is_scheduled = job.state == "scheduled" and why.stays_scheduled
    return "scheduled" if is_scheduled or why is Why.CLOSED else "paused"
