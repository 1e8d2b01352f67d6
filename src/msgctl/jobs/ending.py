"""How a run of a job ended: the state of the job, and the error with its exit code and hint.

The store keeps the `Ending`, so that the same command under the same name reports it again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Self

from msgctl.config import profiles
from msgctl.errors import (
    ConditionError,
    ConfigurationError,
    Interrupted,
    MsgctlError,
    NotReachedError,
    RefusedError,
    StoreNotReachedError,
    TurnedAwayError,
)
from msgctl.http.response import stored_details
from msgctl.store.jobs import ONLY_RESEND, Job
from msgctl.text import plural

FAILURES_IN_A_ROW = 5


class Why(StrEnum):
    """Why a run ended, with the class of its error, and whether a scheduled job stays scheduled."""

    error: Callable[..., MsgctlError] | None
    stays_scheduled: bool

    COMPLETE = "complete", None, True  # a resend may be complete before the job has reached everyone
    CANARY = "canary"
    CLOSED = "the window is closed", None, True
    INTERRUPTED = "interrupted", Interrupted
    TERMINATED = "terminated", Interrupted, True
    ASKED = "another process asked", ConditionError
    CREDIT_LIMIT = "credit limit", ConditionError
    REFUSED = "five refused requests in a row", RefusedError
    NOT_FOR_RECIPIENTS = "a refusal that is not about recipients", RefusedError
    UNKNOWN = "five unknown requests in a row", ConditionError
    NOT_REACHED = "the service was not reached", NotReachedError, True
    RATE_LIMITED = "requests were turned away", TurnedAwayError, True
    STORE_LOST = "the store was lost", StoreNotReachedError, True
    TOO_LATE = "too late", ConditionError
    CONFIGURATION = "configuration", ConfigurationError, True
    NOT_KNOWN = "not known"

    def __new__(cls, text: str, error: Callable[..., MsgctlError] | None = None, stays_scheduled: bool = False) -> Self:
        why = str.__new__(cls, text)
        why._value_ = text
        why.error, why.stays_scheduled = error, stays_scheduled
        return why


@dataclass(frozen=True)
class Ending:
    """The end of a run: its cause, and the message, the hint and the reason of the error that stopped it, if any.

    ``words`` are the strings that a profile could add to make unknown outcomes certain. ``http_status`` and ``body``
    belong to the response that stopped the run, if any.
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
        words = error.word[1] if error.word else ()
        return cls(why, error.what, error.hint or "", error.reason, words, error.http_status, error.body)

    @property
    def stopped_by(self) -> str:
        """The reason for people; empty if the run is complete, or its window closed."""
        if self.why.error is Interrupted:
            return "Interrupted"
        if self.why is Why.CANARY:
            return "After the recipients of --canary"
        if self.why is Why.ASKED:
            return "Another process paused the job"
        what = self.what.rstrip(".")
        if self.why in (Why.REFUSED, Why.UNKNOWN):
            return f"Stopped after {FAILURES_IN_A_ROW} failed requests in a row. Last error: {what}"
        return what

    def dump(self) -> str:
        """Return the ending as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, text: str) -> Ending:
        """Return the ending in JSON of `dump`; `Why.NOT_KNOWN` if the process was killed, or has a newer version."""
        values = json.loads(text or "{}")
        if values.get("why") not in [*Why]:  # a newer msgctl may have others, and more fields
            return cls(Why.NOT_KNOWN, "Its process ended before the job was done")
        known = {field.name: values[field.name] for field in fields(cls) if field.name in values}
        return cls(**{**known, "why": Why(values["why"])})


def state_after(job: Job, ending: Ending) -> str:
    """Return the state of a job after a run, unless another process asks for one: done, scheduled or paused."""
    if ending.why in (Why.COMPLETE, Why.CLOSED) and not job.pending:
        return "done"
    if ending.why is Why.COMPLETE and job.is_resending == ONLY_RESEND:
        return "paused"
    is_scheduled = job.state == "scheduled" and ending.why.stays_scheduled
    return "scheduled" if is_scheduled or ending.why is Why.CLOSED else "paused"


def counts(job: Job) -> str:
    """Return the outcomes of a job in words: ``120 accepted, 3 refused``."""
    return ", ".join((f"{job.accepted:,} accepted", *_not_accepted(job)))


def _not_accepted(job: Job) -> list[str]:
    numbers = {"refused": job.refused, "unknown": job.unknown + job.sending, "pending": job.pending}
    return [f"{number:,} {name}" for name, number in numbers.items() if number]


def error_of(job: Job, ending: Ending) -> MsgctlError | None:
    """Return the error of a run that has ended; None for exit code 0."""
    summary = ", ".join((f"{job.accepted:,} of {plural(job.sendable, 'recipient')} accepted", *_not_accepted(job)))
    if job.state == "cancelled":
        rest = f"msgctl job report {job.typed} --only pending --save rest.csv"
        after = f"Save its pending recipients for a new job: {rest}"
        if not job.requests:
            after = "To send it, choose another --name."
        return ConditionError(f"The job was cancelled. {summary}", after, reason="cancelled")
    hint = _hint(job, ending)
    if job.state == "scheduled" and ending.why is Why.CLOSED:
        return None  # run-due continues it when the window opens
    if ending.why.error is None:
        is_over = job.state == "done" or ending.why in (Why.CANARY, Why.COMPLETE)
        if job.unknown or job.sending or (job.refused and is_over):
            return ConditionError(summary, hint, reason="not_accepted")
        return None
    if ending.why.error is Interrupted:
        return Interrupted(ending.stopped_by, hint, consequence=summary)
    what = f"{ending.stopped_by}. {summary}"
    reason = ending.reason
    if ending.why in (Why.ASKED, Why.UNKNOWN):
        reason = "paused"
    error = ending.why.error(what, hint, consequence="", reason=reason)
    error.word = ("accepted", ending.words)
    error.details = stored_details(ending.http_status, ending.body.encode())
    return error


def _hint(job: Job, ending: Ending) -> str:
    """Return the next steps after an error."""
    resume = resume_hint(job)
    if job.state == "scheduled":
        resume = "The next run-due continues it."
    if ending.why is Why.CREDIT_LIMIT:
        return resume
    hints = [ending.hint, resume if job.pending else ""]
    if job.refused:
        hints.append(f"See why they were refused: msgctl job report {job.typed} --only refused")
        # The service may have refused a whole request for one of its numbers.
        hints.append(f"Resend to refused recipients, one request each: msgctl job resend {job.typed} --only refused")
    if job.unknown:
        hints.append(f"List recipients with unknown outcome: msgctl job report {job.typed} --only unknown")
    return "\n".join(filter(None, hints))


def resume_hint(job: Job) -> str:
    """Return the hint to resume a job, with the variables that must be set again and the option that it needs."""
    verb, option, total = "Resume", "", ""
    if job.profile == profiles.ENVIRONMENT:
        *names, last = profiles.VARIABLES.values()
        verb = f"Set {', '.join(names)} and {last}, then resume"
    if Ending.load(job.ending).why is Why.CREDIT_LIMIT:
        total, option = " (N is the new total)", " --max-credits N"
    return f"{verb}{total}: msgctl job resume {job.typed}{option}"
