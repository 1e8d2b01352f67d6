"""`msgctl job run-due`: send the scheduled jobs that are due, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgctl import files, jsontext
from msgctl.cli.runs import running
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.errors import with_missing_words
from msgctl.config import profiles
from msgctl.errors import STORE_ERRORS, ConditionError, ConfigurationError, Hint, Interrupted, MsgctlError
from msgctl.jobs import report
from msgctl.jobs.ending import counts, error_of
from msgctl.jobs.settings import Settings
from msgctl.output.result import Layout, OwnResult, RawResult
from msgctl.store import jobs, owners, results
from msgctl.store.batches import LostJobError
from msgctl.store.jobs import Job
from msgctl.store.lifecycle import Ending, Why
from msgctl.store.store import Store

MAX_OVERDUE = 12 * 3600
"""Maximum seconds that a job may be late: the message of a later job may be outdated."""


def send_due(context: Context) -> RawResult | None:
    """Send the due jobs, the longest overdue first, and print a line about each.

    Return None if none is due, or if another run-due is running on this machine. If a job cannot be sent, the error is
    a failure of the result, and the other jobs are still sent. Raises ConfigurationError if there is no account at all.
    """
    if not context.config.profiles:  # a wrong HOME of cron, for example
        context.chosen(context.options.profile)
    failures: list[MsgctlError] = []
    if due := _all_due(context, failures):
        with files.locked(_lock(context)) as is_alone:
            if is_alone:
                failures += _send_all(due)
    return RawResult(b"", failures) if failures else None


def _send_all(due: Sequence[tuple[Context, Job]]) -> list[MsgctlError]:
    """Send jobs, each with the context of its store, until one is interrupted. Return their errors."""
    failures: list[MsgctlError] = []
    for store_context, job in due:
        errors = _send(store_context, job)
        failures += errors
        if any(isinstance(error, Interrupted) for error in errors):
            break  # the user knows why, and after a second Ctrl-C, a thread may still use the connection
        if errors:
            with suppress(*STORE_ERRORS):
                jobs.note_failure(store_context.store, job, errors[0])
    return failures


def _all_due(context: Context, failures: list[MsgctlError]) -> list[tuple[Context, Job]]:
    """Return the due jobs of each store, the longest overdue first. Add the errors of stores that cannot be used."""
    due: list[tuple[Context, Job]] = []
    for store_context in _contexts(context, failures):
        try:
            store = store_context.store
            overdue = jobs.listed(store, states=("scheduled",), due_before=store.now())
            for job in sorted(overdue, key=lambda job: job.due or 0):
                if job.shown_state == "scheduled" and context.options.profile in (None, job.profile):
                    due.append((store_context, job))
        except STORE_ERRORS as error:
            failures.append(_its_jobs_not_sent(error))
    return due


def _its_jobs_not_sent(error: MsgctlError) -> MsgctlError:
    """Return the error of a store, even if jobs of other stores were sent."""
    return error.replaced(what=f"{error.what.rstrip('.')}; its jobs were not sent", consequence="")


def _contexts(context: Context, failures: list[MsgctlError]) -> Iterator[Context]:
    """Yield a context for each store of this machine: the store of this run, and the stores of other profiles.

    If the profile of this run, or another one with a store, cannot be used, add the error to ``failures``: its jobs are
    not sent.
    """
    contexts = [(context, True)]
    if context.options.profile is None:
        for name, settings in context.config.profiles.items():
            other = context.with_profile(name)
            context.stack.enter_context(other.stack)
            contexts.append((other, "store" in settings))
    known: set[str] = set()
    for store_context, has_store in contexts:
        try:
            location = str(store_context.store_location)
        except ConfigurationError as error:
            failure = _its_jobs_not_sent(error)
            if has_store and failure.what not in [earlier.what for earlier in failures]:
                failures.append(failure)
            continue
        if location not in known:
            known.add(location)
            yield store_context


def _send(context: Context, job: Job) -> list[MsgctlError]:
    """Send a job, and print its line. Return its errors."""
    name = context.options.profile
    if name is not None:  # the context of another store has any of the profiles that use it
        name = None if job.profile == profiles.ENVIRONMENT else job.profile
    own = context.with_profile(name, context.store)
    try:
        with own.stack:
            running.check_account(own, job)
            is_too_late = _is_too_late(own.store, job)
            job_result = _pause(own, job) if is_too_late else running.send_pending(own, job, "run-due")
    except ConditionError as error:
        # Another machine, or a user who has just resumed it. A job that was lost on the way is an error.
        if error.reason == "running_elsewhere" and not isinstance(error, LostJobError):
            return []
        return [_of_job(error, own, job)]
    except MsgctlError as error:
        return [_of_job(error, own, job)]
    errors = job_result.failures
    try:
        _print(context, jobs.get(context.store, job.number))
    except STORE_ERRORS as lost:  # if the job lost the store, its own error is more precise
        errors = errors or [lost]
    return [_of_job(with_missing_words(error, own), own, job) for error in errors]


def _is_too_late(store: Store, job: Job) -> bool:
    """Return whether a job has sent nothing yet, long after its time. Closed hours of its window do not count."""
    hours = Settings.load(job.settings).hours(store.clock)
    open_seconds = hours.open_seconds((job.due or 0) / 1000, store.clock())
    return open_seconds > MAX_OVERDUE and results.sent_to(store, job.number) == 0


def _pause(context: Context, job: Job) -> OwnResult:
    """Pause a job because it is too late, and return it with the error: a person decides."""
    when = context.time_in_words((job.due or 0) / 1000)
    ending = Ending(
        Why.TOO_LATE,
        f"It was due at {when}, more than 12 hours ago, so nothing was sent",
        Hint("To never send it: ", f"job cancel {job.typed}"),
    )
    job = owners.take(context.store, job.number, "run-due").finish("paused", ending=ending.dump())
    return running.result(context, job, error_of(job, ending), Layout.JOB_RUN)


def _of_job(error: MsgctlError, context: Context, job: Job) -> MsgctlError:
    """Return an error that begins with its job. The commands in its hint find the store of the job."""
    error = error.within(f'Job "{job.reference}"')
    if error.hint:
        error = error.replaced(hint=context.for_profile(error.hint))
    error.job = job.id
    return error


def _print(context: Context, job: Job) -> None:
    line = f"{job.reference}: {job.shown_state}, {counts(job)}"
    if context.is_json:
        line = jsontext.dump(report.details(context.store, job, context.words_of(job.profile)).document())
    context.printer.print(RawResult(f"{line}\n".encode()))


def _lock(context: Context) -> Path:
    """Return the lock file of run-due on this machine. It is beside a store file, or else in the state directory."""
    location: str | Path = ""
    with suppress(ConfigurationError):  # other profiles can be used
        location = context.store_location
    return location.with_name("run-due.lock") if isinstance(location, Path) else files.state_path("run-due.lock")
