"""A job at work in front of a person: progress, Ctrl-C, and how it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from msgctl.cli import signals
from msgctl.cli.context import Context
from msgctl.cli.progress import GLANCE, Progress, Standing
from msgctl.cli.terminal import is_terminal
from msgctl.errors import (
    ConditionError,
    Interrupted,
    MsgctlError,
    NotReachedError,
    OutcomeUnknownError,
    ServiceError,
)
from msgctl.jobs.delivery import Round
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.limits import FAILURES_IN_A_ROW
from msgctl.jobs.records import Totals
from msgctl.jobs.report import SHOWN, settled, summary
from msgctl.jobs.runner import Runner
from msgctl.output.screen import Screen

FINISHING = "Stopping: waiting for what is under way. Ctrl-C again stops at once, and leaves that unknown."


def show(context: Context, document: Mapping[str, Any]) -> None:
    """Print a job's summary, without what it does not have yet."""
    context.show(document, [name for name in SHOWN if name in document], SHOWN)


class Work(Protocol):
    """What runs in threads of its own: a `Runner`, or a round of questions."""

    def start(self) -> None: ...
    def wait(self, seconds: float) -> bool: ...
    def stop(self) -> None: ...
    def finish(self) -> MsgctlError | None: ...


def run_to_the_end(context: Context, job: str, ledger: Ledger) -> None:
    """Send what is pending in a job and print what came of it.

    Raises what stopped it, or ConditionError where not every recipient was accepted.
    """
    error = _send(context, job, ledger)
    show(context, summary(job, ledger, running=False))
    if error:
        raise error


def _send(context: Context, job: str, ledger: Ledger) -> MsgctlError | None:
    """Send what is pending; why it is not all done and accepted, or None."""
    runner = Runner(ledger, context.client.sibling)
    before = ledger.totals.requests
    go_on = f"Go on with: msgctl job resume {job}"
    try:
        error, stopped = attend(context, runner, lambda: _standing(runner.totals), go_on)
    finally:
        context.carried_out |= runner.totals.requests > before
    totals = settled(ledger.totals, running=False)
    if error:
        return _stopped_by(error, totals, f"{go_on}{_with_credits(error, ledger)}", job)
    if stopped and totals.pending:
        return Interrupted("interrupted", go_on, consequence=_told(totals))
    return _unfinished(totals, job)


def ask_for_states(context: Context, job: str, ledger: Ledger) -> None:
    """Ask for the delivery states of a job's messages and print how it stands then.

    Raises what stopped it, or the error of the first message whose state could not be had.
    """
    work = Round(ledger, context.client.sibling)
    again = f"Go on with: msgctl job states {job}"
    error, stopped = attend(context, work, lambda: Standing(work.asked, work.due, [("failed", work.failed)]), again)
    show(context, summary(job, ledger, running=False))
    if error:
        error.what = f"the questions stopped after {work.asked:,}: {error.what}"
        error.hint = f"{error.hint or ''} {again}".strip()
        raise error
    if stopped:
        raise Interrupted(f"interrupted after {work.asked:,} questions", again)
    if work.first_fault:
        states = "state" if work.failed == 1 else "states"
        work.first_fault.what = f"{work.failed:,} {states} could not be had; the first: {work.first_fault.what}"
        raise work.first_fault


def attend(
    context: Context, work: Work, standing: Callable[[], Standing], go_on: str
) -> tuple[MsgctlError | None, bool]:
    """Let something work to its end, and show how far it is; its error, and whether a person stopped it.

    The first Ctrl-C (or SIGTERM, or SIGHUP) lets what is under way finish; raises Interrupted, with ``go_on`` as its
    hint, at the second.
    """
    stopped = False
    try:
        with _interrupts() as interrupts, _Display(context) as display:
            work.start()
            while not work.wait(GLANCE):
                display.show(standing())
                if interrupts and not stopped:
                    stopped = True
                    work.stop()
                    display.clear()
                    context.note(FINISHING)
            return work.finish(), stopped
    except KeyboardInterrupt:
        raise Interrupted("interrupted at once; what was under way is unknown", go_on) from None


def counts(totals: Totals) -> list[tuple[str, int]]:
    """The outcomes of a job as its progress shows them."""
    return [
        ("accepted", totals.accepted),
        ("refused", totals.refused),
        ("unknown", totals.unknown),
        ("credits", totals.credits),
    ]


def _standing(totals: Totals) -> Standing:
    return Standing(totals.sendable - totals.pending, totals.sendable, counts(totals))


def _stopped_by(error: MsgctlError, totals: Totals, go_on: str, job: str) -> MsgctlError:
    """The error that stopped a job, with what that means for its recipients."""
    if isinstance(error, ConditionError):
        error.what, error.consequence = error.message, _told(totals)
    else:
        in_a_row = f"after {FAILURES_IN_A_ROW} requests in a row that failed; the last: "
        why = in_a_row if isinstance(error, (ServiceError, NotReachedError, OutcomeUnknownError)) else "because "
        error.what, error.consequence = f"the job stopped {why}{error.message}. In all, {_told(totals)}", ""
    again = f" (--resend-refused sends to the {totals.refused:,} refused ones again)" if totals.refused else ""
    unknown = f" What is unknown: msgctl job report {job} --only unknown" if totals.unknown else ""
    rest = f"{go_on}{again}." if totals.pending or totals.refused else ""
    error.hint = f"{error.hint or ''} {rest}{unknown}".strip()
    return error


def _with_credits(error: MsgctlError, ledger: Ledger) -> str:
    """What to add where the job came to its most credits: it would stop again at once."""
    is_spent = isinstance(error, ConditionError) and ledger.order.max_credits is not None
    return " --max-credits N, with a higher number" if is_spent else ""


def _unfinished(totals: Totals, job: str) -> MsgctlError | None:
    """What is wrong with a job that has nothing pending; None where every recipient was accepted."""
    others = {name: getattr(totals, name) for name in ("unknown", "refused", "invalid")}
    if not any(others.values()):
        return None
    named = ", ".join(f"{number:,} {name}" for name, number in others.items() if number)
    first = next(name for name, number in others.items() if number)
    return ConditionError(
        f"not every recipient was accepted: {named}", f"See which: msgctl job report {job} --only {first}"
    )


def _told(totals: Totals) -> str:
    """What became of all recipients, in a sentence whose numbers add up."""
    numbers = [("refused", totals.refused), ("unknown", totals.unknown), ("pending", totals.pending)]
    others = "".join(f", {number:,} {name}" for name, number in numbers if number)
    return f"{totals.accepted:,} of {totals.sendable:,} recipients were accepted{others}"


@contextmanager
def _interrupts() -> Iterator[list[int]]:
    """The signals that ask to stop: the first is put into a list, and from the second on they interrupt."""
    received: list[int] = []

    def receive(number: int, _: Any) -> None:
        received.append(number)
        if len(received) > 1:
            raise KeyboardInterrupt

    with signals.handled_by(receive):
        yield received


class _Display:
    """Shows progress on standard error: a line that is written over on a terminal, lines elsewhere."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._quiet = context.options.quiet
        self._redraws = is_terminal(context.stderr) and context.environ.get("TERM", "") not in ("", "dumb", "unknown")
        self._progress = Progress(context.monotonic())
        self._shown = ""

    def __enter__(self) -> _Display:
        return self

    def __exit__(self, *error: object) -> None:
        self.clear()

    def show(self, standing: Standing) -> None:
        line = None if self._quiet else self._progress.line(standing, self._context.monotonic(), self._width())
        if line is None or line == self._shown:
            return
        if self._redraws:
            self._write(f"\r{line}\x1b[K")
            self._shown = line
        else:
            self._context.say(line)

    def _width(self) -> int | None:
        """Columns of the terminal, which may change at any time; None where nothing is redrawn."""
        return Screen.of(self._context.stderr, color=False).width if self._redraws else None

    def clear(self) -> None:
        """Take the line away before something else is said."""
        if self._shown:
            self._write("\r\x1b[K")
            self._shown = ""

    def _write(self, text: str) -> None:
        self._context.stderr.write(text)
        self._context.stderr.flush()
