"""Run a job in the foreground: its progress, Ctrl-C, and its result. `run_due` runs the jobs that are due."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, closing, suppress
from copy import copy
from functools import partial
from signal import SIGINT
from threading import Lock
from typing import TYPE_CHECKING, Any

from msgctl.cli.context import Context
from msgctl.cli.process import signals_handled_by
from msgctl.config import profiles
from msgctl.errors import (
    ConditionError,
    ConfigurationError,
    Interrupted,
    MsgctlError,
    NotReachedError,
    OutcomeUnknownError,
    RefusedError,
    ServiceError,
    StoreNotReachedError,
)
from msgctl.history import contacts, once
from msgctl.jobs import resends, schema
from msgctl.jobs.frequency import Frequency
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.model import JobSpec
from msgctl.jobs.pollers import StatePoller
from msgctl.jobs.rate_limits import FAILURES_IN_A_ROW
from msgctl.jobs.report import JOB_FIELDS, PAUSED, RUNNING, SCHEDULED, WAITING, is_undelivered, summary
from msgctl.jobs.runner import Runner
from msgctl.jobs.schedule import SendingHours, time_in
from msgctl.jobs.states import Outcome
from msgctl.jobs.store import AlreadyRunningError, Store
from msgctl.jobs.workers import Workers
from msgctl.outcomes.judge import is_final
from msgctl.output.result import Document, Format, OwnResult
from msgctl.storage.records import RECORD_ERRORS
from msgctl.store import people
from msgctl.store.store import Store as OneStore
from msgctl.text import clean, day_and_time, plural

if TYPE_CHECKING:
    from msgctl.output.progress import JobProgress

REFRESH = 0.2
"""Seconds between two refreshes."""
MINUTE = 60.0
STATES_INTERVAL = 10.0
"""Seconds between two checks of delivery states with --follow."""

VARIABLES = ("MSGCTL_BASE_URL", "MSGCTL_CLIENT", "MSGCTL_KEY")
"""The variables that can replace a profile."""

Progress = tuple[int, int, Sequence[tuple[str, int]]]
"""The number of finished items, the total, and the counts to show beside it."""


def result(
    document: Document, failure: MsgctlError | None = None, view: str = "job", *, reference: str = ""
) -> OwnResult:
    """Return a job's summary, without the fields that it does not have yet, and the next steps for its `reference`."""
    columns = [name for name in JOB_FIELDS if name in document]
    hints = next_steps(document, reference) if reference else ()
    return OwnResult(document, columns, view=view, failures=[failure] if failure else [], hints=hints)


def reference(store: Store, job: str, name: str | None) -> str:
    """Return how a command line names a job: by its name, unless a newer job has the same one."""
    if name and not name.startswith("-"):
        with suppress(MsgctlError):
            if store.find(name) == job:
                return shlex.quote(name)
    return job


def next_steps(job: Document, reference: str) -> list[str]:
    """Return what a person can do next with a job."""
    if job["state"] == SCHEDULED:
        return ["To send it when it is due, run from cron: msgctl job run-due"]
    if job["state"] in (RUNNING, WAITING):
        return [f"Check it again: msgctl job show {reference}"]
    steps = [_resume_hint(reference, job["profile"])] if job["state"] == PAUSED else []
    if job["unknown"]:
        steps.append(f"List unknown recipients: msgctl job report {reference} --only unknown")
        steps.append("Before you use --resend-unknown, read UNKNOWN OUTCOMES in: man msgctl-job")
    if job["command"] in ("sms bulk", "call bulk"):
        states = job.get("states") or {}
        if job["accepted"] > sum(number for state, number in states.items() if is_final(state)):
            steps.append(f"Check the delivery: msgctl job states {reference}")
        if any(map(is_undelivered, states)):
            steps.append(f"Resend to them: msgctl job resend {reference} --only undelivered")
    return steps or [f"List the recipients: msgctl job report {reference}"]


def send(context: Context, job: str, ledger: Ledger, *, waits: bool = True) -> OwnResult:
    """Send a job's pending messages and return its summary, with the error if it stopped or some were not accepted.

    Without ``waits``, it ends when its window closes, and the next `msgctl job run-due` resumes it.
    """
    watch = OptOutWatch(context.new_store(), ledger.spec.performs.channel)
    store = Store(ledger.path.parent)
    recorded = _contacts(context, job, ledger)
    finish = context.stack.enter_context(once.running(context.records, context.profile.account, job))
    resends.begin(store, job, ledger)
    runner = Runner(
        ledger,
        context.client.sibling,
        clock=context.clock,
        monotonic=context.monotonic,
        opted_out=watch.among,
        contacts=recorded,
        waits=waits,
    )
    before = ledger.totals.requests
    known_as = reference(store, job, ledger.spec.name)
    hint = _resume_hint(known_as, ledger.spec.profile)
    signals: list[int] = []
    try:
        error, interrupted = _run_with_progress(
            context, runner, partial(_sent, runner), hint, lambda: runner.waits_until, signals
        )
    except Interrupted:
        if _is_for_user(ledger, None, signals):
            ledger.end_schedule()
        raise
    finally:
        if recorded:
            recorded.close()
            if recorded.error:
                context.warn(
                    f"Later jobs with --at-most cannot count all messages of this one: {recorded.error.message}."
                )
        sent = runner.totals.requests > before
        context.carried_out |= sent
    if runner.budget and runner.budget.excess and not isinstance(error, ConditionError):
        context.warn(f"{runner.budget.excess}.")
    canary, done = ledger.spec.canary, ledger.totals.sent
    is_pending = ledger.totals.outcomes(running=False)[Outcome.PENDING] > 0
    is_canary = canary is not None and done >= canary and is_pending and not (error or interrupted)
    is_for_later = is_pending and not (is_canary or _is_for_user(ledger, error, signals))
    if ledger.due is not None and not is_for_later:
        ledger.end_schedule()
    interrupted, zone = interrupted and is_pending, context.profile.timezone
    error = _failure(known_as, ledger, error, interrupted=interrupted, sent=sent, zone=zone)
    if is_canary:
        paused = f"Paused after {plural(done, 'recipient')}, because of --canary."
        context.note(paused if waits else f"{paused} {hint}")
    document = summary(job, ledger, running=False)
    try:
        finish(_stored(job, ledger), json.dumps(document))
    except RECORD_ERRORS as failure:
        context.warn(f"The result is not stored under --once: {failure.what}.")
    return result(document, error, "job end", reference=known_as)


def _stored(job: str, ledger: Ledger) -> once.StoredResult:
    """Return the result of a job that other machines repeat."""
    error = ended(job, ledger)
    if error is None:
        return once.StoredResult(0)
    return once.StoredResult(error.exit_code, what=error.message, hint=error.hint or "")


def _sent(runner: Runner) -> Progress:
    outcomes = runner.totals.outcomes(running=True)
    counts = [(str(each), outcomes[each]) for each in (Outcome.ACCEPTED, Outcome.REFUSED, Outcome.UNKNOWN)]
    of = runner.totals.sendable
    return of - outcomes[Outcome.PENDING], of, [*counts, ("credits", runner.totals.credits)]


def correct_contacts(context: Context, job: str, ledger: Ledger) -> None:
    """Take back the contacts of people to whom an interrupted job has not sent. The caller holds the job's lock."""
    _contacts(context, job, ledger).close()


def _contacts(context: Context, job: str, ledger: Ledger) -> contacts.Contacts:
    """Open the record of who gets a message, for a run of a job."""
    limit = limit_of(context, ledger.spec)
    recorded = contacts.Contacts(context.records, context.profile.account, job, limit, context.clock)
    context.stack.callback(recorded.close)
    recorded.open(ledger)
    return recorded


def limit_of(context: Context, spec: JobSpec) -> Frequency | None:
    """Return the limit of --at-most."""
    if spec.at_most is None:
        return None
    return Frequency.parse(spec.at_most, context.profile.timezone)


def _is_for_user(ledger: Ledger, error: MsgctlError | None, signals: Sequence[int]) -> bool:
    """Return whether a stopped scheduled job is paused, instead of left to `msgctl job run-due`.

    An error of the service, --max-credits, and Ctrl-C after the scheduled time pause it: otherwise cron would
    immediately resume a job that the user has stopped.
    """
    is_due = ledger.due is not None and ledger.due <= ledger.clock()
    return (is_due and SIGINT in signals) or not isinstance(
        error, NotReachedError | StoreNotReachedError | ConfigurationError | None
    )


class OptOutWatch:
    """The opt-outs of one channel; any thread may read them."""

    def __init__(self, store: OneStore, channel: str) -> None:
        self._store = store
        self._channel = channel
        self._lock = Lock()

    def among(self, phones: Collection[str]) -> set[str]:
        """Return the numbers in ``phones`` that have opted out. Raises StoreNotReachedError and ConfigurationError."""
        with self._lock:
            return people.opted_out(self._store, phones, self._channel)


def opted_out(context: Context, channel: str) -> Iterator[str]:
    """Yield the numbers that have opted out of a channel, or of all."""
    return (each.phone for each in people.optouts(context.store) if each.channel in (channel, people.ALL))


def respect_optouts(context: Context, ledger: Ledger) -> None:
    """Leave out recipients who opted out after the job was created."""
    with ledger.transaction():
        number = ledger.leave_out(opted_out(context, ledger.spec.performs.channel), schema.OPTED_OUT)
    if number:
        context.note(f"{plural(number, 'recipient')} opted out after the job was created: nothing is sent to them")


def poll_states(
    context: Context,
    job: str,
    ledger: Ledger,
    *,
    follow: bool = False,
    until: Sequence[str] = (),
    max_wait: float | None = None,
) -> OwnResult:
    """Check the delivery states of a job's messages and return its summary, with its errors.

    With ``follow``, repeat the check for at most ``max_wait`` seconds, until each message is in a final state or
    in one of ``until``.
    """
    known_as = reference(Store(ledger.path.parent), job, ledger.spec.name)
    hint = f"Continue: msgctl job states {known_as}{' --follow' * follow}"
    new_poller = partial(StatePoller, ledger, context.client.sibling, until=until, monotonic=context.monotonic)
    error, late = _poll(context, new_poller, STATES_INTERVAL if follow else None, max_wait, hint)
    if late:
        wanted = " or ".join(clean(state) for state in until) or "a final state"
        what = f"{plural(late, 'message')} did not reach {wanted} in time"
        error = ConditionError(what, hint, reason="state_not_reached")
    return result(summary(job, ledger, running=False), error, "job polled", reference=known_as)


def _poll(
    context: Context, new_poller: Callable[[], StatePoller], interval: float | None, max_wait: float | None, hint: str
) -> tuple[MsgctlError | None, int]:
    """Poll once; with an ``interval``, poll again until no state is missing, for at most ``max_wait`` seconds.

    Return the error, if any, and the number of states that are still missing.
    """
    deadline = None if max_wait is None else context.monotonic() + max_wait
    shown = ""
    while True:
        poller = new_poller()
        error, interrupted = _run_with_progress(context, poller, partial(_checked, poller), hint, deadline=deadline)
        is_over = error or interrupted or (poller.first_error and not poller.first_error.retryable)
        missing = 0 if is_over or interval is None else poller.missing()
        if interval is None or not missing:
            break
        left = interval if deadline is None else deadline - context.monotonic()
        if left <= 0:
            break
        if (status := poller.status()) != shown:
            shown = status
            context.note(status)
        try:
            context.sleep(min(left, interval))
        except KeyboardInterrupt:
            interrupted, missing = True, 0
            break
    checked = f"after checking {plural(poller.checked, 'message')}"
    if error:
        error = error.within(f"Stopped {checked}")
        error = error.replaced(hint=f"{error.hint or ''}\n{hint}".strip())
    elif interrupted:
        error = Interrupted(f"Interrupted {checked}", hint)
    elif poller.first_error:
        failed = plural(poller.failed, "delivery state")
        error = poller.first_error.within(f"{failed} could not be checked. The first")
    return error, missing


def _checked(poller: StatePoller) -> Progress:
    return poller.checked, poller.due, [("failed", poller.failed)]


def _run_with_progress(
    context: Context,
    work: Workers,
    progress: Callable[[], Progress],
    hint: str,
    waits_until: Callable[[], float | None] = lambda: None,
    received: list[int] | None = None,
    deadline: float | None = None,
) -> tuple[MsgctlError | None, bool]:
    """Run ``work`` to its end and show its progress. Return its error, and whether the user stopped it.

    Progress is a bar on a terminal, one line a minute elsewhere. The first Ctrl-C (or SIGTERM, or SIGHUP) lets requests
    in flight finish; the second raises Interrupted. Signals are added to ``received``. The work stops at the
    ``deadline``, in seconds on the monotonic clock.
    """
    received = [] if received is None else received

    def receive(number: int, _: object) -> None:
        received.append(number)
        if len(received) > 1:
            raise KeyboardInterrupt

    bar = _bar(context)
    next_line = context.monotonic() + MINUTE
    announced, interrupted = None, False
    try:
        with signals_handled_by(receive), ExitStack() as stack:
            if bar:
                stack.callback(bar.stop)
            work.start()
            while not work.wait(REFRESH):
                if deadline is not None and context.monotonic() >= deadline:
                    work.stop()
                done, of, counts = progress()
                until = waits_until()
                if bar and of:
                    bar.show(done, of, counts, until)
                elif of and (now := context.monotonic()) >= next_line:
                    next_line = now + MINUTE
                    context.note(f"{done:,} of {of:,}{''.join(f', {number:,} {name}' for name, number in counts)}")
                if not (bar or until in (None, announced)):
                    announced = until
                    context.note(f"Waiting for the sending window until {day_and_time(until)}. Ctrl-C pauses the job.")
                if received and not interrupted:
                    interrupted = True
                    work.stop()
                    if bar:
                        bar.stop()
                    again = "Press Ctrl-C" if SIGINT in received else "Send the signal"
                    context.note(
                        f"Stopping: waiting for requests in flight. {again} again to stop at once; "
                        "their outcome will be unknown."
                    )
            return work.finish(), bool(received)  # a signal may arrive when the work has ended
    except KeyboardInterrupt:
        work.stop()  # the second signal may arrive before the first is handled
        raise Interrupted("Interrupted; the outcome of requests in flight is unknown", hint) from None


def _bar(context: Context) -> JobProgress | None:
    is_dumb = context.environ.get("TERM", "") in ("", "dumb", "unknown")
    if context.options.quiet or is_dumb or not context.stderr.isatty():
        return None
    from msgctl.output.progress import JobProgress

    return JobProgress(context.stderr, color=context.screen(context.stderr).color, monotonic=context.monotonic)


def _failure(
    reference: str,
    ledger: Ledger,
    error: MsgctlError | None,
    *,
    interrupted: bool = False,
    sent: bool = False,
    zone: str | None = None,
) -> MsgctlError | None:
    """Return the final error of a run: the error that stopped it, or that some recipients were not accepted.

    The time of the next run is in the time zone ``zone``.
    """
    totals, outcomes = ledger.totals, ledger.totals.outcomes(running=False)
    found = [each for each in (Outcome.REFUSED, Outcome.UNKNOWN, Outcome.PENDING) if outcomes[each]]
    summary = ", ".join(
        [f"{outcomes[Outcome.ACCEPTED]:,} of {plural(totals.sendable, 'recipient')} accepted"]
        + [f"{outcomes[each]:,} {each}" for each in found]
    )
    is_over_limit = error is not None and error.reason == "credit_limit"
    resume = _resume_hint(reference, ledger.spec.profile) + " --max-credits N" * is_over_limit
    if (due := ledger.due) is not None:
        when = "The next run" if due <= ledger.clock() else f"On {time_in(zone, due)}, the next run"
        resume = f"{when} of `msgctl job run-due` resumes it. {resume}"
    hints = {
        Outcome.PENDING: resume,
        Outcome.REFUSED: f"Resend to refused recipients: msgctl job resume {reference} --resend-refused",
        Outcome.UNKNOWN: f"List unknown recipients: msgctl job report {reference} --only unknown",
    }
    if error is None:
        if interrupted:
            return Interrupted("Interrupted", hints[Outcome.PENDING], consequence=summary)
        bad = next((each for each in (Outcome.UNKNOWN, Outcome.REFUSED) if each in found), None)
        hint = f"List them: msgctl job report {reference} --only {bad}"
        if bad is Outcome.REFUSED:
            hint += f"\n{hints[bad]}"
        if Outcome.PENDING in found:
            hint += f"\n{resume}"
        return ConditionError(summary, hint, reason="not_accepted") if bad else None
    what = error.what if isinstance(error, StoreNotReachedError) else error.message
    if isinstance(error, ServiceError | NotReachedError | OutcomeUnknownError):
        what = f"Stopped after {FAILURES_IN_A_ROW} failed requests in a row. The last: {what}"
    if isinstance(error, OutcomeUnknownError) or (isinstance(error, NotReachedError) and sent):
        error = ConditionError(what, error.hint, reason="not_accepted")
    hint = "\n".join([*filter(None, [error.hint]), *(hint for each, hint in hints.items() if each in found)])
    return error.replaced(what=f"{what.rstrip('.')}. {summary}", hint=hint, consequence="")


def ended(job: str, ledger: Ledger) -> MsgctlError | None:
    """Return the error that a job ended with, as far as its ledger shows it; None for success."""
    error: MsgctlError | None = None
    outcomes, canary = ledger.totals.outcomes(running=False), ledger.spec.canary
    is_canary = canary is not None and ledger.totals.sent >= canary
    if outcomes[Outcome.PENDING] and ledger.due is None:
        refusal = schema.refusals_at_the_end(ledger.db, FAILURES_IN_A_ROW)
        if refusal is not None:
            error = RefusedError(refusal)
        elif not is_canary:
            error = ConditionError(f"Job {job} is paused", reason="not_accepted")
    return _failure(job, ledger, error)


def _resume_hint(reference: str, profile: str) -> str:
    """Return the hint to resume a job; if its account came from variables, they must be set again."""
    variables = ", with MSGCTL_BASE_URL, MSGCTL_CLIENT and MSGCTL_KEY set" * (profile == profiles.ENVIRONMENT)
    return f"Resume{variables}: msgctl job resume {reference}"


def check_account(context: Context, spec: JobSpec) -> None:
    """Use a job's profile, unless another is selected or the three variables are the job's account.

    Raises ConfigurationError if the account is different.
    """
    is_named = context.options.profile is not None
    is_environment = spec.profile == profiles.ENVIRONMENT
    base_url, client, key = map(context.environ.get, VARIABLES)
    if is_environment and not (is_named or (base_url and client and key)):
        raise ConfigurationError(
            f"The job was started with the environment variables {', '.join(VARIABLES)}",
            "Set them again, or choose a profile of the same account with -p.",
        )
    account = profiles.account(spec.base_url, spec.client)
    is_given = base_url and client and key and profiles.account(base_url, client) == account
    if not (is_named or is_given or is_environment):
        context.options.profile = spec.profile
    profile = context.profile
    if profile.account != account:
        raise ConfigurationError(
            f"The job uses client {spec.client} of {clean(spec.base_url)}, but profile {clean(profile.name)} uses "
            f"client {profile.client} of {clean(profile.base_url)}",
            "Choose a profile of the job's account with -p, or set the environment variables it was started with.",
        )


# --- msgctl job run-due


def run_due(context: Context, store: Store) -> OwnResult | None:
    """Send the due jobs one by one, the longest overdue first.

    Return None if no job is due, or if another run-due is running. If a job cannot be sent, the error is a failure of
    the result, and the other jobs are still sent.
    """
    documents: list[Any] = []
    failures: list[MsgctlError] = []
    if jobs := _due_jobs(context, store, failures):
        try:
            with store.locked("run-due"):
                _run_all(context, store, jobs, documents, failures)
        except AlreadyRunningError:
            pass
        except ConfigurationError as error:
            failures.append(error)
    if not (documents or failures or context.options.format is Format.JSON):
        return None
    return OwnResult(documents, JOB_FIELDS, view="jobs", failures=failures)


def _due_jobs(context: Context, store: Store, failures: list[MsgctlError]) -> list[str]:
    """Return the due jobs, the longest overdue first; add the errors of unreadable jobs to ``failures``."""
    since: dict[str, tuple[float, float]] = {}
    with store.index() as index:
        for job in index.jobs:
            try:
                known = index.facts(job)
                if known.due is not None and known.due <= context.clock() and not store.is_running(job):
                    since[job] = known.due, known.created
            except ConfigurationError as error:
                if os.path.lexists(store.path(job)):  # another process may have deleted it
                    failures.append(error)
    return sorted(since, key=since.__getitem__)


def _run_all(
    context: Context, store: Store, jobs: Sequence[str], documents: list[Any], failures: list[MsgctlError]
) -> None:
    """Send jobs until one is interrupted, and add their summaries and failures to the lists."""
    for job in jobs:
        try:
            if ended := _run(context, store, job):
                documents.append(ended.documents)
                failures += ended.failures
        except AlreadyRunningError:  # the user has just resumed it
            continue
        except MsgctlError as error:
            failures.append(error.within(f"Job {job}"))
        if any(isinstance(failure, Interrupted) for failure in failures):
            break


def _run(context: Context, store: Store, job: str) -> OwnResult | None:
    """Send a job, or continue a job after its process was killed. Return None if its window is closed.

    Ctrl-C pauses the job, even while it is being prepared.
    """
    with store.locked(job), closing(Ledger(store.path(job), clock=context.clock)) as ledger:
        if context.options.profile not in (None, ledger.spec.profile) or ledger.due is None:
            return None
        try:
            return _run_locked(context, job, ledger)
        except KeyboardInterrupt as interrupt:
            if SIGINT not in interrupt.args:
                raise
            ledger.end_schedule()
            raise Interrupted("Interrupted", _resume_hint(job, ledger.spec.profile)) from None


def _run_locked(context: Context, job: str, ledger: Ledger) -> OwnResult | None:
    ledger.recover()
    hours = SendingHours.of(ledger.spec, context.clock)
    if hours is not None and not {*hours.open_zones()} & {*ledger.pending_zones()}:
        return None
    own = copy(context)  # a separate profile, records and client
    own.options, own.stack = copy(context.options), ExitStack()
    with own.stack:
        check_account(own, ledger.spec)
        respect_optouts(own, ledger)
        if not ledger.totals.unsent:
            ledger.end_schedule()
            failure = _failure(job, ledger, None)
            return result(summary(job, ledger, running=False), failure)
        try:
            return send(own, job, ledger, waits=False)
        finally:
            context.carried_out |= own.carried_out
