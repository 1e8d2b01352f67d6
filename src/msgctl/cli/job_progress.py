"""Run a job in front of a person: its progress, Ctrl-C, and how it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from msgctl.cli import signals_handled_by
from msgctl.cli.context import Context
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
from msgctl.jobs import database
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.rate_limits import FAILURES_IN_A_ROW
from msgctl.jobs.report import SUMMARY, summary
from msgctl.jobs.runner import Runner, StatePoller
from msgctl.jobs.spec import JobSpec, Totals
from msgctl.jobs.states import Outcome
from msgctl.output.result import OwnResult
from msgctl.text import clean, plural

if TYPE_CHECKING:
    from msgctl.output.progress import JobProgress

REFRESH = 0.2
"""Seconds between two refreshes."""
MINUTE = 60.0
STATES_INTERVAL = 10.0
"""Seconds between two checks of delivery states with --follow."""

VARIABLES = ("MSGCTL_BASE_URL", "MSGCTL_CLIENT", "MSGCTL_KEY")
"""The variables that can take the place of a profile."""

FINISHING = (
    "Stopping: waiting for requests in flight. Press Ctrl-C again to stop at once; their outcome will be unknown."
)


class Progress(NamedTuple):
    """The progress of a run, and the counts to show beside it."""

    done: int
    of: int
    counts: list[tuple[str, int]]


class Work(Protocol):
    """Something that runs in threads of its own: a `Runner` or a `StatePoller`."""

    def start(self) -> None: ...
    def wait(self, seconds: float) -> bool: ...
    def stop(self) -> None: ...
    def finish(self) -> MsgctlError | None: ...


def result(document: Mapping[str, Any], failure: MsgctlError | None = None, view: str = "job") -> OwnResult:
    """Return a job's summary, without the fields that it does not have yet."""
    columns = [name for name in SUMMARY if name in document]
    return OwnResult(document, columns, view=view, failures=[failure] if failure else [])


def send(context: Context, job: str, ledger: Ledger, *, waits: bool = True) -> OwnResult:
    """Send what is pending in a job and return its summary, with what stopped it or kept recipients unaccepted.

    Without ``waits`` it ends when its window closes, and the next `msgctl job run-due` continues it.
    """
    runner = Runner(ledger, context.client.sibling, clock=context.clock, monotonic=context.monotonic, waits=waits)
    if waits and ledger.due is not None:
        ledger.end_schedule()
    before = ledger.totals.requests
    hint = resume_hint(job, ledger.spec)
    try:
        error, interrupted = _attend(
            context, runner, lambda: _sent(runner.totals), hint, lambda: _waiting(runner.waits_until)
        )
    finally:
        sent = runner.totals.requests > before
        context.carried_out |= sent
    outcomes = ledger.totals.outcomes(running=False)
    canary, done = ledger.spec.canary, ledger.totals.sent
    is_canary = canary is not None and not (error or interrupted) and (waits or done >= canary)
    is_canary = is_canary and outcomes[Outcome.PENDING] > 0
    is_for_later = not interrupted and not is_canary and (error is None or isinstance(error, NotReachedError))
    if ledger.due is not None and not (is_for_later and outcomes[Outcome.PENDING]):
        ledger.end_schedule()
    if error:
        error = _stopped(error, job, ledger, sent=sent)
    elif interrupted and outcomes[Outcome.PENDING]:
        error = Interrupted("interrupted", hint, consequence=_told(ledger.totals))
    else:
        error = _not_accepted(outcomes, job)
    if is_canary:
        context.note(f"Paused after {plural(done, 'recipient')}, because of --canary. {hint}")
    return result(summary(job, ledger, running=False), error, "job end")


def _not_accepted(outcomes: Mapping[Outcome, int], job: str) -> MsgctlError | None:
    found = [outcome for outcome in (Outcome.UNKNOWN, Outcome.REFUSED) if outcomes[outcome]]
    if not found:
        return None
    counts = ", ".join(f"{outcomes[outcome]:,} {outcome}" for outcome in found)
    return ConditionError(
        f"Not all recipients were accepted: {counts}", f"List them: msgctl job report {job} --only {found[0]}"
    )


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
        states = "delivery state" if poller.failed == 1 else "delivery states"
        error.what = f"{poller.failed:,} {states} could not be checked. The first: {error.what}"
    return result(summary(job, ledger, running=False), error)


def _checked(poller: StatePoller) -> Progress:
    return Progress(poller.checked, poller.due, [("failed", poller.failed)])


def resume_hint(job: str, spec: JobSpec) -> str:
    """Return how to resume a job; variables that held its account must be set again."""
    variables = ", with MSGCTL_BASE_URL, MSGCTL_CLIENT and MSGCTL_KEY set" * (spec.profile == profiles.ENVIRONMENT)
    return f"Resume{variables}: msgctl job resume {job}"


def _attend(
    context: Context,
    work: Work,
    progress: Callable[[], Progress],
    hint: str,
    waiting: Callable[[], str] = str,
) -> tuple[MsgctlError | None, bool]:
    """Run something to its end and show its progress. Return its error, and whether a person stopped it.

    ``waiting`` says what it waits for, if it does. The first Ctrl-C (or SIGTERM, or SIGHUP) lets requests in flight
    finish; the second raises Interrupted.
    """
    interrupted = False
    told = ""
    try:
        with _signals() as received, _Display(context) as display:
            work.start()
            while not work.wait(REFRESH):
                display.show(progress())
                if (wait := waiting()) != told:
                    told = wait or told
                    display.clear()
                    context.note(told)
                if received and not interrupted:
                    interrupted = True
                    work.stop()
                    display.clear()
                    context.note(FINISHING)
            return work.finish(), interrupted
    except KeyboardInterrupt:
        raise Interrupted("Interrupted; the outcome of requests in flight is unknown", hint) from None


def _waiting(until: float | None) -> str:
    return "" if until is None else f"Waiting for the sending window until {local_time(until)}. Ctrl-C pauses the job."


def local_time(seconds: float) -> str:
    """Return a time in this machine's time zone: 2026-12-01 09:00."""
    return f"{datetime.fromtimestamp(seconds).astimezone():%Y-%m-%d %H:%M}"


def check_account(context: Context, ledger: Ledger, job: str) -> None:
    """Use the profile of the job. Raises ConfigurationError if it leads to another account."""
    spec = ledger.spec
    if spec.profile == profiles.ENVIRONMENT and not (
        context.options.profile or all(map(context.environ.get, VARIABLES))
    ):
        raise ConfigurationError(
            f"Job {job} was started with the environment variables {', '.join(VARIABLES)}",
            "Set them again, or choose a profile for the same service with -p.",
        )
    named = spec.profile != profiles.ENVIRONMENT and not _is_of_environment(context, spec)
    if context.options.profile is None and named:
        context.options.profile = spec.profile
    profile = context.profile
    if (profile.base_url, profile.client) == (spec.base_url, spec.client):
        return
    if profile.base_url == spec.base_url:
        ours, theirs = f"client {spec.client}", f"client {profile.client}"
    else:
        ours, theirs = clean(spec.base_url), clean(profile.base_url)
    raise ConfigurationError(
        f"The job uses {ours}, but profile {clean(profile.name)} uses {theirs}",
        "Choose a profile of the job's account with -p, or set the environment variables it was started with."
        if profile.name == spec.profile
        else f"Choose the job's profile: -p {clean(spec.profile)}",
    )


def _is_of_environment(context: Context, spec: JobSpec) -> bool:
    """Tell whether the environment names the account of the job, and nothing else."""
    named = {"MSGCTL_BASE_URL": spec.base_url, "MSGCTL_CLIENT": str(spec.client)}
    given = {name: context.environ[name].rstrip("/") for name in named if context.environ.get(name)}
    return bool(given) and all(named[name] == value for name, value in given.items())


def _sent(totals: Totals) -> Progress:
    outcomes = totals.outcomes(running=True)
    counts = [(str(each), outcomes[each]) for each in (Outcome.ACCEPTED, Outcome.REFUSED, Outcome.UNKNOWN)]
    return Progress(
        totals.sendable - outcomes[Outcome.PENDING], totals.sendable, [*counts, ("credits", totals.credits)]
    )


def _stopped(error: MsgctlError, job: str, ledger: Ledger, *, sent: bool) -> MsgctlError:
    """Return the error for a job that was stopped, with the outcomes of its recipients."""
    totals, outcomes = ledger.totals, ledger.totals.outcomes(running=False)
    resume = resume_hint(job, ledger.spec)
    what = error.message
    if isinstance(error, (ServiceError, NotReachedError, OutcomeUnknownError)):
        what = f"Stopped after {FAILURES_IN_A_ROW} failed requests in a row. The last: {error.message}"
    elif isinstance(error, ConditionError):
        resume += " --max-credits N"
    hints = [error.hint, resume if outcomes[Outcome.PENDING] else None]
    if outcomes[Outcome.REFUSED]:
        hints.append(f"Send to refused recipients again: msgctl job resume {job} --resend-refused")
    if outcomes[Outcome.UNKNOWN]:
        hints.append(f"List unknown recipients: msgctl job report {job} --only unknown")
    if isinstance(error, OutcomeUnknownError) or (isinstance(error, NotReachedError) and sent):
        error = ConditionError(what)
    error.what, error.consequence = f"{what.rstrip('.')}. {_told(totals)}", ""
    error.hint = "\n".join(hint for hint in hints if hint)
    return error


def _told(totals: Totals) -> str:
    """Return the outcomes of all recipients in words."""
    outcomes = totals.outcomes(running=False)
    others = [each for each in (Outcome.REFUSED, Outcome.UNKNOWN, Outcome.PENDING) if outcomes[each]]
    return ", ".join(
        [f"{outcomes[Outcome.ACCEPTED]:,} of {plural(totals.sendable, 'recipient')} accepted"]
        + [f"{outcomes[each]:,} {each}" for each in others]
    )


@contextmanager
def _signals() -> Iterator[list[int]]:
    """Collect the signals that ask to stop; from the second on they interrupt."""
    received: list[int] = []

    def receive(number: int, _: Any) -> None:
        received.append(number)
        if len(received) > 1:
            raise KeyboardInterrupt

    with signals_handled_by(receive):
        yield received


class _Display:
    """Shows progress on standard error: a bar on a terminal, one line a minute elsewhere."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._next_line = context.monotonic() + MINUTE
        self._bar: JobProgress | None = None
        if context.stderr.isatty() and context.environ.get("TERM", "") not in ("", "dumb", "unknown"):
            from msgctl.output.progress import JobProgress

            self._bar = JobProgress(
                context.stderr, color=context.screen(context.stderr).color, monotonic=context.monotonic
            )

    def __enter__(self) -> _Display:
        return self

    def __exit__(self, *error: object) -> None:
        self.clear()

    def show(self, progress: Progress) -> None:
        if self._context.options.quiet or not progress.of:
            return
        if self._bar:
            self._bar.show(*progress)
        elif (now := self._context.monotonic()) >= self._next_line:
            self._next_line = now + MINUTE
            counts = "".join(f", {number:,} {name}" for name, number in progress.counts)
            self._context.say(f"{progress.done:,} of {progress.of:,}{counts}")

    def clear(self) -> None:
        """Remove the bar before something else is printed."""
        if self._bar:
            self._bar.stop()
