"""Run a job in front of a person: its progress, Ctrl-C, and how it ends. `run_due` runs those whose time has come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from copy import copy
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from msgctl import operations as ops
from msgctl.cli import signals_handled_by
from msgctl.cli.context import Context
from msgctl.cli.history import delete_old
from msgctl.config import profiles
from msgctl.errors import (
    ConditionError,
    ConfigurationError,
    Interrupted,
    MsgctlError,
    NotReachedError,
    OutcomeUnknownError,
    ServiceError,
)
from msgctl.history import optouts
from msgctl.jobs import database
from msgctl.jobs.ledger import Ledger, facts
from msgctl.jobs.rate_limits import FAILURES_IN_A_ROW
from msgctl.jobs.report import RUNNING, SUMMARY, WAITING, summary
from msgctl.jobs.runner import Runner, StatePoller
from msgctl.jobs.schedule import SendingHours
from msgctl.jobs.spec import JobSpec
from msgctl.jobs.states import Outcome
from msgctl.jobs.store import Store
from msgctl.jobs.workers import Workers
from msgctl.output.result import Document, Format, OwnResult
from msgctl.storage import files
from msgctl.text import clean, plural

if TYPE_CHECKING:
    from msgctl.output.progress import JobProgress

REFRESH = 0.2
"""Seconds between two refreshes."""
MINUTE = 60.0
FOLLOW_INTERVAL = 1.0
"""Seconds between two refreshes of `job show --follow`."""
STATES_INTERVAL = 10.0
"""Seconds between two checks of delivery states with --follow."""

FINISHING = (
    "Stopping: waiting for requests in flight. Press Ctrl-C again to stop at once; their outcome will be unknown."
)

VARIABLES = ("MSGCTL_BASE_URL", "MSGCTL_CLIENT", "MSGCTL_KEY")
"""The variables that can take the place of a profile."""

Progress = tuple[int, int, Sequence[tuple[str, int]]]
"""What is done, of how much, and the counts to show beside it."""


def result(document: Document, failure: MsgctlError | None = None, view: str = "job") -> OwnResult:
    """Return a job's summary, without the fields that it does not have yet."""
    columns = [name for name in SUMMARY if name in document]
    return OwnResult(document, columns, view=view, failures=[failure] if failure else [])


def watch(context: Context, read: Callable[[], Document]) -> OwnResult:
    """Show the summary of a job while it is running, and return the last one; without a terminal, wait for it."""
    document, failure = read(), None
    with ExitStack() as stack:
        display = None
        if context.printer.shows_verdicts:
            from msgctl.output.progress import JobDisplay

            color = context.screen(context.stderr).color
            display = stack.enter_context(JobDisplay(context.stderr, color=color, clock=context.clock))
        try:
            while document["state"] in (RUNNING, WAITING):
                if display:
                    display.show(document)
                context.sleep(FOLLOW_INTERVAL)
                document = read()
        except KeyboardInterrupt:
            failure = Interrupted("Interrupted")
    return result(document, failure)


def send(context: Context, job: str, ledger: Ledger, *, waits: bool = True) -> OwnResult:
    """Send what is pending in a job and return its summary, with what stopped it or kept recipients unaccepted.

    Without ``waits`` it ends when its window closes, and the next `msgctl job run-due` continues it.
    """
    delete_old(context)
    runner = Runner(
        ledger,
        context.client.sibling,
        clock=context.clock,
        monotonic=context.monotonic,
        opted_out=partial(_opted_out, ledger),
        waits=waits,
    )
    if waits and ledger.due is not None:
        ledger.end_schedule()
    before = ledger.totals.requests
    hint = _resume_hint(job, ledger.spec)

    def progress() -> Progress:
        outcomes = runner.totals.outcomes(running=True)
        counts = [(str(each), outcomes[each]) for each in (Outcome.ACCEPTED, Outcome.REFUSED, Outcome.UNKNOWN)]
        of = runner.totals.sendable
        return of - outcomes[Outcome.PENDING], of, [*counts, ("credits", runner.totals.credits)]

    try:
        error, interrupted = _attend(context, runner, progress, hint, lambda: runner.waits_until)
    finally:
        sent = runner.totals.requests > before
        context.carried_out |= sent
    canary, done = ledger.spec.canary, ledger.totals.sent
    is_pending = ledger.totals.outcomes(running=False)[Outcome.PENDING] > 0
    is_canary = canary is not None and done >= canary and is_pending and not (error or interrupted)
    is_for_later = is_pending and not (interrupted or is_canary) and isinstance(error, NotReachedError | None)
    if ledger.due is not None and not is_for_later:
        ledger.end_schedule()
    error = _failure(job, ledger, error, interrupted=interrupted and is_pending, sent=sent)
    if is_canary:
        context.note(f"Paused after {plural(done, 'recipient')}, because of --canary. {hint}")
    return result(summary(job, ledger, running=False), error, "job end")


def respect_optouts(context: Context, ledger: Ledger) -> None:
    """Leave out recipients who opted out after the job was made."""
    with ledger.transaction():
        number = ledger.leave_out(_opted_out(ledger))
    if number:
        context.note(f"{plural(number, 'recipient')} opted out after the job was made: nothing is sent to them")


def _opted_out(ledger: Ledger) -> Iterator[str]:
    """Yield the numbers to which a job must not send; everyone can be blocked."""
    if ledger.spec.performs is not ops.BLOCK_PHONE and files.has_optouts():
        yield from (each.phone for each in optouts.every())


def poll_states(context: Context, job: str, ledger: Ledger, *, follow: bool = False) -> OwnResult:
    """Check the delivery states of a job's messages and return its summary, with what stopped or failed.

    With ``follow``, check those that are not final again and again.
    """
    hint = f"Continue: msgctl job states {job}{' --follow' * follow}"
    known: dict[str, int] = {}
    while True:
        poller = StatePoller(ledger, context.client.sibling, monotonic=context.monotonic)
        error, interrupted = _attend(context, poller, partial(_checked, poller), hint)
        is_over = error or interrupted or (poller.first_error and not poller.first_error.retryable)
        if is_over or not follow or next(database.to_check(ledger.db), None) is None:
            break
        if (found := database.deliveries(ledger.db)) != known:
            known = found
            context.note(", ".join(f"{number:,} {clean(state)}" for state, number in found.items()))
        try:
            context.sleep(STATES_INTERVAL)
        except KeyboardInterrupt:
            interrupted = True
            break
    if error:
        error.what = f"Stopped after checking {plural(poller.checked, 'message')}: {error.what}"
        error.hint = f"{error.hint or ''}\n{hint}".strip()
    elif interrupted:
        error = Interrupted(f"Interrupted after checking {plural(poller.checked, 'message')}", hint)
    elif error := poller.first_error:
        error.what = f"{plural(poller.failed, 'delivery state')} could not be checked. The first: {error.what}"
    return result(summary(job, ledger, running=False), error)


def _checked(poller: StatePoller) -> Progress:
    return poller.checked, poller.due, [("failed", poller.failed)]


def _attend(
    context: Context,
    work: Workers,
    progress: Callable[[], Progress],
    hint: str,
    waits_until: Callable[[], float | None] = lambda: None,
) -> tuple[MsgctlError | None, bool]:
    """Run something to its end and show its progress. Return its error, and whether a person stopped it.

    Progress is a bar on a terminal, one line a minute elsewhere. The first Ctrl-C (or SIGTERM, or SIGHUP) lets requests
    in flight finish; the second raises Interrupted.
    """
    received: list[int] = []

    def receive(number: int, _: object) -> None:
        received.append(number)
        if len(received) > 1:
            raise KeyboardInterrupt

    def tell(text: str) -> None:
        if bar:
            bar.stop()
        context.note(text)

    bar = _bar(context)
    next_line = context.monotonic() + MINUTE
    told, interrupted = None, False
    try:
        with signals_handled_by(receive), ExitStack() as stack:
            if bar:
                stack.callback(bar.stop)
            work.start()
            while not work.wait(REFRESH):
                done, of, counts = progress()
                if bar and of:
                    bar.show(done, of, counts)
                elif of and (now := context.monotonic()) >= next_line:
                    next_line = now + MINUTE
                    context.note(f"{done:,} of {of:,}{''.join(f', {number:,} {name}' for name, number in counts)}")
                if (until := waits_until()) not in (None, told):
                    told = until
                    tell(f"Waiting for the sending window until {local_time(until)}. Ctrl-C pauses the job.")
                if received and not interrupted:
                    interrupted = True
                    work.stop()
                    tell(FINISHING)
            return work.finish(), interrupted
    except KeyboardInterrupt:
        work.stop()  # if the second came so soon that the first was not seen
        raise Interrupted("Interrupted; the outcome of requests in flight is unknown", hint) from None


def _bar(context: Context) -> JobProgress | None:
    is_dumb = context.environ.get("TERM", "") in ("", "dumb", "unknown")
    if context.options.quiet or is_dumb or not context.stderr.isatty():
        return None
    from msgctl.output.progress import JobProgress

    return JobProgress(context.stderr, color=context.screen(context.stderr).color, monotonic=context.monotonic)


def _failure(
    job: str, ledger: Ledger, error: MsgctlError | None, *, interrupted: bool, sent: bool
) -> MsgctlError | None:
    """Return the error that a run ends with: what stopped it, or that some recipients were not accepted."""
    totals, outcomes = ledger.totals, ledger.totals.outcomes(running=False)
    found = [each for each in (Outcome.REFUSED, Outcome.UNKNOWN, Outcome.PENDING) if outcomes[each]]
    told = ", ".join(
        [f"{outcomes[Outcome.ACCEPTED]:,} of {plural(totals.sendable, 'recipient')} accepted"]
        + [f"{outcomes[each]:,} {each}" for each in found]
    )
    hints = {
        Outcome.PENDING: _resume_hint(job, ledger.spec) + " --max-credits N" * isinstance(error, ConditionError),
        Outcome.REFUSED: f"Send to refused recipients again: msgctl job resume {job} --resend-refused",
        Outcome.UNKNOWN: f"List unknown recipients: msgctl job report {job} --only unknown",
    }
    if error is None:
        if interrupted:
            return Interrupted("Interrupted", hints[Outcome.PENDING], consequence=told)
        bad = next((each for each in (Outcome.UNKNOWN, Outcome.REFUSED) if each in found), None)
        return ConditionError(told, f"List them: msgctl job report {job} --only {bad}") if bad else None
    what = error.message
    if isinstance(error, ServiceError | NotReachedError | OutcomeUnknownError):
        what = f"Stopped after {FAILURES_IN_A_ROW} failed requests in a row. The last: {what}"
    if isinstance(error, OutcomeUnknownError) or (isinstance(error, NotReachedError) and sent):
        error = ConditionError(what, error.hint)
    error.what, error.consequence = f"{what.rstrip('.')}. {told}", ""
    error.hint = "\n".join([*filter(None, [error.hint]), *(hint for each, hint in hints.items() if each in found)])
    return error


def _resume_hint(job: str, spec: JobSpec) -> str:
    """Return how to resume a job; variables that held its account must be set again."""
    variables = ", with MSGCTL_BASE_URL, MSGCTL_CLIENT and MSGCTL_KEY set" * (spec.profile == profiles.ENVIRONMENT)
    return f"Resume{variables}: msgctl job resume {job}"


def local_time(seconds: float) -> str:
    """Return a time in this machine's time zone: 2026-12-01 09:00."""
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M}"


def check_account(context: Context, spec: JobSpec) -> None:
    """Use the profile of a job, unless another is named. Raises ConfigurationError if it leads to another account.

    Variables that name the job's account override its profile, as they did when it was started.
    """
    is_named = context.options.profile is not None
    if spec.profile == profiles.ENVIRONMENT and not (is_named or all(map(context.environ.get, VARIABLES))):
        raise ConfigurationError(
            f"The job was started with the environment variables {', '.join(VARIABLES)}",
            "Set them again, or choose a profile of the same account with -p.",
        )
    account = {"MSGCTL_BASE_URL": spec.base_url, "MSGCTL_CLIENT": str(spec.client)}
    given = {name: context.environ[name].rstrip("/") for name in account if context.environ.get(name)}
    is_of_environment = spec.profile == profiles.ENVIRONMENT or (given and given.items() <= account.items())
    if not (is_named or is_of_environment):
        context.options.profile = spec.profile
    profile = context.profile
    if (profile.base_url, profile.client) != (spec.base_url, spec.client):
        raise ConfigurationError(
            f"The job uses client {spec.client} of {clean(spec.base_url)}, but profile {clean(profile.name)} uses "
            f"client {profile.client} of {clean(profile.base_url)}",
            "Choose a profile of the job's account with -p, or set the environment variables it was started with.",
        )


# --- msgctl job run-due


def run_due(context: Context, store: Store) -> OwnResult | None:
    """Send the jobs that are due, one by one, the longest due first.

    Return None without any, or if another process sends them.
    """
    documents: list[Any] = []
    failures: list[MsgctlError] = []
    since = {job: times for job in store.ids() if (times := _due(context, store, job))}
    jobs = sorted(since, key=since.__getitem__)
    if jobs:
        with suppress(ConfigurationError), store.locked("run-due"):
            for job in jobs:
                try:
                    if ended := _run(context, store, job):
                        documents.append(ended.documents)
                        failures += ended.failures
                except MsgctlError as error:
                    error.what = f"Job {job}: {error.what}"
                    failures.append(error)
                if any(isinstance(failure, Interrupted) for failure in failures):
                    break
    if not (documents or failures or context.options.format is Format.JSON):
        return None
    return OwnResult(documents, SUMMARY, view="jobs", failures=failures)


def _due(context: Context, store: Store, job: str) -> tuple[float, float] | None:
    """Return since when a job is due and when it was created, or None if it is not due."""
    with suppress(ConfigurationError):  # a damaged one must not keep the others from being sent; `job list` reports it
        _, created, due = facts(store.path(job))
        if due is not None and due <= context.clock() and not store.is_running(job):
            return due, created
    return None


def _run(context: Context, store: Store, job: str) -> OwnResult | None:
    """Send a job, or continue one whose process was killed. Return None if its window is closed."""
    with store.locked(job), closing(Ledger(store.path(job), clock=context.clock)) as ledger:
        if context.options.profile not in (None, ledger.spec.profile) or ledger.due is None:
            return None
        ledger.check()
        ledger.recover()
        respect_optouts(context, ledger)
        hours = SendingHours.of(ledger.spec, context.clock)
        if hours is not None and not {*hours.open_zones()} & {*ledger.pending_zones()}:
            return None
        if not ledger.totals.unsent:
            ledger.end_schedule()
            failure = _failure(job, ledger, None, interrupted=False, sent=False)
            return result(summary(job, ledger, running=False), failure)
        own = copy(context)  # with a profile and a client of its own
        own.options, own.stack = copy(context.options), ExitStack()
        with own.stack:
            check_account(own, ledger.spec)
            try:
                return send(own, job, ledger, waits=False)
            finally:
                context.carried_out |= own.carried_out
