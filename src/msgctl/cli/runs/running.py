"""Run a job in the foreground: signals, progress and the result."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from signal import SIGINT
from typing import TYPE_CHECKING

from msgctl.cli.shell.context import Context
from msgctl.cli.shell.process import signals_handled_by
from msgctl.config import profiles, urls
from msgctl.credits import CREDIT
from msgctl.errors import (
    STORE_ERRORS,
    ConditionError,
    ConfigurationError,
    Hint,
    Interrupted,
    MsgctlError,
    StoreNotReachedError,
    UsageError,
)
from msgctl.jobs import ending, report
from msgctl.jobs.report import JOB_FIELDS
from msgctl.jobs.sending import JobRunner
from msgctl.jobs.settings import Settings
from msgctl.outcomes.outcome import ACCEPTED, PENDING, REFUSED, UNKNOWN
from msgctl.output.result import Format, Layout, OwnResult
from msgctl.store import owners, recipients, results
from msgctl.store.batches import LostJobError
from msgctl.store.jobs import ONLY_RESEND, Job
from msgctl.store.lifecycle import Command, Ending, Why, state_after
from msgctl.store.schema import ENDED
from msgctl.store.store import open_store
from msgctl.text import clean, plural

if TYPE_CHECKING:
    from msgctl.output.progress import JobProgress

REFRESH = 0.2
"""Seconds between two refreshes."""
MINUTE = 60.0


def send_pending(context: Context, job: Job, command: Command, settings: str | None = None) -> OwnResult:
    """Send a job's pending messages and return the job, with the error if it stopped or some were not accepted.

    If a resend was interrupted, this first completes the resend. Then it sends the other pending messages. It does not
    send them for `job resend`, or if the job was paused before the resend and not resumed since. ``settings`` (JSON)
    replace its settings when the run begins. Raises ConditionError if another process is running the job, or takes it
    over.
    """
    context.run.job, context.run.is_job_stored = job.id, False
    connect = context.client.sibling  # first, because it fails without a credential
    excluded_before = job.excluded if job.begun else 0
    owned = owners.take(context.store, job.number, command, settings, expected=job.settings)
    only_resend = command == "resend" or owned.job.is_resending == ONLY_RESEND
    is_resend, earlier_requests = bool(owned.job.is_resending), owned.job.requests
    before: Counter[str] = Counter()
    if is_resend:
        before = results.of_attempt(context.store, owned.job)
    # The settings as they are now, because another process may have changed them.
    runner = JobRunner(context.store, owned, Settings.load(owned.job.settings), connect, context.monotonic)
    is_stored = True
    try:
        _run(context, runner, owned.job)
        job, how = runner.finish()
        context.run.is_job_stored = True
    except STORE_ERRORS as lost:
        job, how = _without_store(runner, lost)
        is_stored = False
    if is_resend and is_stored:
        _note_resend(context, before, results.of_attempt(context.store, job))
    is_resent = is_resend and how.why is Why.COMPLETE
    if is_resent and job.pending and not only_resend:
        try:
            return send_pending(context, job, command)
        except (ConditionError, UsageError) as other:  # another process has taken or cancelled the job in between
            if context.run.sent.count and not isinstance(other, LostJobError):
                raise other.replaced(consequence="the resend is complete") from None
            raise
    error = None
    if not (is_resent and job.requests == earlier_requests):
        refusal = results.common_refusal(context.store, job) if is_stored else ""
        error = ending.error_of(job, how, refusal)
    _note_end(context, job, how, left_out=job.excluded - excluded_before)
    return result(context, job, error, Layout.JOB_RUN, is_stored=is_stored)


def _without_store(runner: JobRunner, error: MsgctlError) -> tuple[Job, Ending]:
    """Return the job and the ending of a run that lost the store. The job is paused, because its owner exits."""
    why = Why.STORE_LOST if isinstance(error, StoreNotReachedError) else Why.CONFIGURATION
    job, how = runner.job, Ending.of(why, error)
    job.is_running, job.state = False, state_after(job, why)
    return job, how


def _pause(context: Context, job: Job) -> None:
    """Pause a job at the second signal: the process abandons the threads, and ends."""
    store = context.store
    store.is_in_use = True
    with closing(open_store(store.location, timeout=context.options.timeout, clock=store.clock)) as other:
        owners.ask_to_stop(other, job.number, "paused")


def _note_resend(context: Context, before: Counter[str], after: Counter[str]) -> None:
    """Report the result of a resend; ``before`` and ``after`` are the recipients of this attempt, by outcome."""
    if left_out := before.total() - after.total():
        context.note(
            f"Left out {plural(left_out, 'recipient')} of the resend, because of an opt-out or --at-most. "
            "They keep their earlier outcomes."
        )
    done = {outcome: number for outcome, number in (after - before).items() if outcome != PENDING}
    if done:
        words = ", ".join(f"{number:,} {outcome}" for outcome, number in done.items())
        context.note(f"Resent to {plural(sum(done.values()), 'recipient')}: {words}.")
    elif not after[PENDING]:
        context.note("No recipients were left to resend to.")


def _note_end(context: Context, job: Job, how: Ending, *, left_out: int) -> None:
    """Report why a job has paused or is scheduled, and how many recipients this run has left out."""
    if how.why is Why.CANARY:
        context.note(f"Paused after {plural(job.sendable - job.pending, 'recipient')}, because of --canary.")
    if how.why is Why.CLOSED and job.state == "scheduled" and job.due is not None:
        _note_due(context, job)
    if left_out and not job.pending:
        context.note(Hint(f"Left out {plural(left_out, 'recipient')}: ", f"job report {job.typed} --only excluded"))


def result(
    context: Context,
    job: Job,
    failure: MsgctlError | None = None,
    layout: Layout = Layout.JOB,
    *,
    is_stored: bool = True,
    is_replayed: bool = False,
) -> OwnResult:
    """Return a job as ``job show`` prints it, with its error and the next steps."""
    context.run.job = job.id
    summary = report.details(context.store, job, context.words_of(job.profile)) if is_stored else report.summary(job)
    steps = report.next_steps(summary, context.store.now(), is_polled=layout is Layout.JOB_POLLED)
    if is_stored and job.pending and job.state not in ENDED and context.format is Format.TABLE:
        channel = summary.settings.performs.channel
        summary = replace(summary, pending=recipients.pending_messages(context.store, job.number, channel))
    failures = [failure] if failure else []
    return OwnResult(replace(summary, is_replayed=is_replayed), JOB_FIELDS, layout, failures=failures, hints=steps)


def replayed(context: Context, job: Job, how: Ending) -> OwnResult:
    """Return the result of an earlier run of a job, which ended in this way, with its error."""
    context.run.is_replayed = True
    if job.accepted or job.unknown or job.sending:
        context.run.sent.add(1)
    context.note_sandbox()
    context.note(f'This is the result of the earlier run of job "{job.reference}". Nothing was sent now.')
    error = ending.error_of(job, how, results.common_refusal(context.store, job))
    return result(context, job, error, Layout.JOB_RUN, is_replayed=True)


def scheduled(context: Context, job: Job) -> OwnResult:
    """Report when a job is due, and return it."""
    _note_due(context, job)
    return result(context, job, layout=Layout.JOB_RUN)


def _note_due(context: Context, job: Job) -> None:
    context.note(f"Scheduled for {context.time_in_words((job.due or 0) / 1000)}.")


# --- progress and signals


def _run(context: Context, runner: JobRunner, job: Job) -> None:
    """Run to the end and show progress: a bar on a terminal, one line a minute elsewhere.

    The first Ctrl-C (or SIGTERM, or SIGHUP) lets requests in flight finish; the second raises Interrupted.
    """
    received: list[int] = []

    def receive(number: int, _: object) -> None:
        """Record a signal. It may arrive while this thread writes, so nothing is written here."""
        received.append(number)
        if len(received) > 1:
            raise KeyboardInterrupt
        why = Why.INTERRUPTED if number == SIGINT else Why.TERMINATED
        runner.stop(why)

    bar = progress_bar(context)
    try:
        with signals_handled_by(receive):
            runner.start()
            _show_progress(context, runner, bar, received)
    except KeyboardInterrupt:
        why = Why.INTERRUPTED if SIGINT in received else Why.TERMINATED  # a shutdown sends SIGTERM, then SIGHUP
        if state_after(job, why) == "paused":
            _pause(context, job)
        hint = ending.resume_hint(job)
        raise Interrupted("Interrupted; the outcome of requests in flight is unknown", hint) from None
    finally:
        if bar:
            bar.stop()


def _show_progress(context: Context, runner: JobRunner, bar: JobProgress | None, received: Sequence[int]) -> None:
    """Wait for the end of a job, and show its progress until a signal is ``received``."""
    next_line = context.monotonic() + MINUTE
    while not runner.wait(REFRESH) and not received:
        job = runner.job
        done = job.accepted + job.refused + job.unknown
        if bar:
            counts = [(name, getattr(job, name)) for name in (ACCEPTED, REFUSED, UNKNOWN)]
            bar.show(done, job.sendable, [*counts, ("credits", job.credits // CREDIT)])
        elif context.monotonic() >= next_line:
            next_line = context.monotonic() + MINUTE
            context.note(f"{done:,} of {job.sendable:,} sent: {ending.counts(job)}")
    if received and bar:
        bar.stop()
    if received and runner.is_in_flight:
        again = "Press Ctrl-C" if received[0] == SIGINT else "Send the signal"
        context.note(
            f"Stopping: waiting for requests in flight. {again} again to stop at once; their outcome will be unknown."
        )
    while not runner.wait(REFRESH):
        pass


def progress_bar(context: Context) -> JobProgress | None:
    """Return a progress bar; None if notes are hidden, or if standard error is not a terminal or is a dumb one."""
    is_dumb = context.environ.get("TERM", "") in ("", "dumb", "unknown")
    if is_dumb or not (context.shows_notes and context.stderr.isatty()):
        return None
    from msgctl.output.progress import JobProgress

    return JobProgress(context.stderr, color=context.screen(context.stderr).color, monotonic=context.monotonic)


# --- the account of a job


def check_account(context: Context, job: Job) -> None:
    """Use a job's profile, unless another is selected or the three variables are the job's account.

    Raises ConfigurationError if the account is different.
    """
    settings = Settings.shown(job.settings)
    is_named = context.options.profile is not None
    is_environment = job.profile == profiles.ENVIRONMENT
    base_url, client, key = (context.environ.get(name) for name in profiles.VARIABLES.values())
    if is_environment and not (is_named or (base_url and client and key)):
        hint = "Set them again, or choose a profile of the same account with -p."
        if context.run.command == "job run-due":  # with -p, it sends only the jobs of the profile
            hint = f"Set them again, or use a profile of the same account: msgctl -p NAME job resume {job.typed}"
        raise ConfigurationError(
            f"The job was started with the environment variables {', '.join(profiles.VARIABLES.values())}",
            hint,
            reason="no_credentials",
        )
    is_given = base_url and client and key and urls.account(base_url, client) == job.account
    if not (is_named or is_given or is_environment):
        try:
            context.use(context.chosen(job.profile))  # the commands in hints stay the same
        except ConfigurationError as error:
            if error.reason != "no_profile":
                raise
            add = f"Add it on this machine: msgctl profile add {job.profile}"
            hint = Hint(f"{add}\nOr never send the job: ", f"job cancel {job.typed}")
            raise error.replaced(hint=hint) from None
    profile = context.profile
    if profile.account != job.account:
        raise ConfigurationError(
            f"The job uses client {settings.client} of {clean(settings.base_url)}, but profile {clean(profile.name)} "
            f"uses client {profile.client} of {clean(profile.base_url)}",
            "Choose a profile of the job's account with -p, or set the environment variables it was started with.",
        )
