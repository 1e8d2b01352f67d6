"""How a run of a job ended, for people: the error with its hint."""

from __future__ import annotations

from msgctl.config import profiles
from msgctl.errors import ConditionError, Hint, Interrupted, MsgctlError
from msgctl.http.response import stored_details
from msgctl.outcomes.outcome import PENDING, REFUSED, UNKNOWN
from msgctl.store.jobs import Job
from msgctl.store.lifecycle import Ending, Why
from msgctl.text import plural

FAILURES_IN_A_ROW = 5


def stopped_by(ending: Ending) -> str:
    """Return why a run stopped, for people; empty if it is complete, or its window closed."""
    why, what = ending.why, ending.what.rstrip(".")
    if why.error is Interrupted:
        return "Interrupted"
    if why is Why.CANARY:
        return "After the recipients of --canary"
    if why is Why.ASKED:
        return "Another process paused the job"
    if why in (Why.REFUSED, Why.UNKNOWN):
        kind = REFUSED if why is Why.REFUSED else UNKNOWN
        return f"Stopped after {FAILURES_IN_A_ROW} {kind} requests in a row. Last error: {what}"
    return what


def counts(job: Job) -> str:
    """Return the outcomes of a job in words: ``120 accepted, 3 refused``."""
    return ", ".join((f"{job.accepted:,} accepted", *_not_accepted(job)))


def _not_accepted(job: Job) -> list[str]:
    numbers = {REFUSED: job.refused, UNKNOWN: job.unknown + job.sending, PENDING: job.pending}
    return [f"{number:,} {name}" for name, number in numbers.items() if number]


def error_of(job: Job, ending: Ending, refusal: str = "") -> MsgctlError | None:
    """Return the error of a run that has ended; None for exit code 0.

    ``refusal`` is why the service refused all recipients, if the reason was the same for all.
    """
    summary = ", ".join((f"{job.accepted:,} of {plural(job.sendable, 'recipient')} accepted", *_not_accepted(job)))
    if job.state == "cancelled":
        rest = f"job report {job.typed} --only pending --save rest.csv"
        after: str = Hint("Save its pending recipients for a new job: ", rest)
        if not job.requests:
            after = "To send it, choose another --name."
        return ConditionError(f"The job was cancelled. {summary}", after, reason="cancelled")
    hint = _hint(job, ending)
    if job.state == "scheduled" and ending.why is Why.CLOSED:
        return None  # run-due continues it when the window opens
    if ending.why.error is None:
        is_over = job.state == "done" or ending.why in (Why.CANARY, Why.COMPLETE)
        if job.unknown or job.sending or (job.refused and is_over):
            return ConditionError(": ".join(filter(None, (summary, refusal))), hint, reason="not_accepted")
        return None
    if ending.why.error is Interrupted:
        return Interrupted(stopped_by(ending), hint, consequence=summary)
    what = f"{stopped_by(ending)}. {summary}"
    error = ending.why.error(what, hint, consequence="", reason=ending.why.reason or ending.reason)
    error.missing_words = ("accepted", ending.words)
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
        hints.append(Hint("See why they were refused: ", f"job report {job.typed} --only refused"))
        hints.append(resend_hint(job))
    if job.unknown:
        hints.append(Hint("List recipients with unknown outcome: ", f"job report {job.typed} --only unknown"))
    return Hint.joined(*hints)


def resend_hint(job: Job) -> str:
    """Return the hint to resend to refused recipients: a whole request may have been refused for one number."""
    return Hint("Resend to refused recipients, one request each: ", f"job resend {job.typed} --only refused")


def resume_hint(job: Job) -> str:
    """Return the hint to resume a job, with the variables that must be set again and the option that it needs."""
    verb, option, total = "Resume", "", ""
    if job.profile == profiles.ENVIRONMENT:
        *names, last = profiles.VARIABLES.values()
        verb = f"Set {', '.join(names)} and {last}, then resume"
    if Ending.load(job.ending).why is Why.CREDIT_LIMIT:
        total, option = " (N is the new total)", " --max-credits N"
    return Hint(f"{verb}{total}: ", f"job resume {job.typed}{option}")
