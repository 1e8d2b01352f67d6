"""Options of the bulk commands that say whom not to send to, and when to send."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO

import typer

from msgctl import values
from msgctl.cli.context import Context
from msgctl.errors import Interrupted, UsageError
from msgctl.output.result import OwnResult
from msgctl.storage import paths

if TYPE_CHECKING:
    from msgctl.jobs.exclusions import Exclusions
    from msgctl.jobs.importer import Importer
    from msgctl.jobs.ledger import Ledger
    from msgctl.jobs.schedule import Window
    from msgctl.jobs.sending_hours import ZoneFinder
    from msgctl.jobs.store import Store

Exclude = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude",
        metavar="FILE",
        help="Leave out the numbers in this file: one per line, CSV, JSON Lines or .xlsx. Repeatable.",
    ),
]
WindowHours = Annotated[
    str | None,
    typer.Option(
        "--window", metavar="HOURS", help="Send only at these hours of the recipient's time zone: 08:00-19:00, or co."
    ),
]
Days = Annotated[
    str | None, typer.Option("--days", metavar="DAYS", help="With --window: only on these days, for example mon-sat.")
]
At = Annotated[
    str | None,
    typer.Option("--at", metavar="TIME", help="Send later, for example at 2026-12-01 09:00, by `msgctl job run-due`."),
]
Foreground = Annotated[bool, typer.Option("--foreground", help="With --at: wait in the foreground, then send.")]
Again = Annotated[bool, typer.Option("--again", help="Send even if another job sent the same to the same people.")]
Canary = Annotated[
    str | None,
    typer.Option("--canary", metavar="N", help="Pause after N recipients; `msgctl job resume` continues."),
]
TestTo = Annotated[
    str | None,
    typer.Option("--test-to", metavar="PHONE", help="First send the message of the first row to this number."),
]

OPTED_OUT = "opted out"


@dataclass(frozen=True, slots=True)
class Rules:
    """The options of this module, as they were typed."""

    exclude: list[str] | None = None
    window: str | None = None
    days: str | None = None
    at: str | None = None
    foreground: bool = False
    again: bool = False
    canary: str | None = None
    test_to: str | None = None

    def hours(self) -> Window | None:
        """Return the window in which the job may send. Raises UsageError, and ConfigurationError."""
        if self.window is None:
            if self.days is not None:
                raise UsageError("--days needs --window", "For example: --window 08:00-19:00 --days mon-sat")
            return None
        from msgctl.jobs.schedule import Window

        return Window.parse(self.window, self.days)

    def due(self, context: Context) -> float | None:
        """Return when the job is to be sent, in seconds since 1970; None for now. Raises UsageError."""
        if self.at is None:
            if self.foreground:
                raise UsageError("--foreground needs --at TIME")
            return None
        from msgctl.jobs.schedule import parse_at

        now = datetime.fromtimestamp(context.clock(), UTC)
        return parse_at(self.at, context.profile.timezone, now).timestamp()


@contextmanager
def exclusions(rules: Rules, country: str | None) -> Iterator[Exclusions]:
    """Yield the numbers that a job leaves out: those that opted out, and those of --exclude. Raises UsageError."""
    from msgctl.history import optouts
    from msgctl.jobs.exclusions import Exclusions, numbers_in

    found = Exclusions()
    try:
        if paths.state(paths.OPTOUTS).exists():
            found.add(OPTED_OUT, (each.phone for each in optouts.every()))
        for name in rules.exclude or []:
            with opened(name) as source:
                found.add(f"excluded by {Path(name).name}", numbers_in(source, name, country))
        yield found
    finally:
        found.close()


def zone_finder(context: Context, window: Window | None) -> ZoneFinder | None:
    """Return the finder of recipients' time zones, for a job with a window."""
    if window is None:
        return None
    from msgctl.jobs.sending_hours import ZoneFinder

    return ZoneFinder(window, context.profile.timezone, context.clock())


def refuse_repeat(context: Context, store: Store, importer: Importer, rules: Rules) -> None:
    """Raise UsageError if another job sends, or has just sent, the same message to most of the same people."""
    repeat = None if rules.again else importer.repeat(store, context.clock())
    if repeat is None:
        return
    people = f"{repeat.recipients:,} of {importer.tally.messages:,} recipients"
    if repeat.is_finished:
        raise UsageError(
            f"Job {repeat.job} sent this message to {people} in the last 24 hours",
            "To send it again, add --again.",
        )
    raise UsageError(
        f"Job {repeat.job} already sends this message to {people}, and is not finished",
        f"Resume it: msgctl job resume {repeat.job}. To send the message again, add --again.",
    )


@contextmanager
def opened(name: str) -> Iterator[BinaryIO]:
    """Open a file of numbers. Raises UsageError."""
    try:
        file = Path(name).open("rb")  # noqa: SIM115 (closed below)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "invalid file name"
        raise UsageError(f"Cannot read {values.quote(name)}: {reason}") from None
    with file:
        yield file


def scheduled(context: Context, job: str, ledger: Ledger) -> OwnResult:
    """Return a job that `msgctl job run-due` is to send."""
    from msgctl.cli import job_progress
    from msgctl.jobs.report import summary

    time = job_progress.local_time(ledger.due or 0)
    context.note(f"Scheduled for {time}. `msgctl job run-due` sends it; run that from cron every minute.")
    return job_progress.result(summary(job, ledger, running=False))


def wait_until(context: Context, job: str, due: float) -> None:
    """Wait here until a job is due. Raises Interrupted at Ctrl-C."""
    from msgctl.cli.job_progress import local_time

    context.note(f"Waiting until {local_time(due)}. Ctrl-C leaves the job to `msgctl job run-due`.")
    try:
        while (rest := due - context.clock()) > 0:
            context.sleep(min(rest, 1.0))  # the clock may be set
    except KeyboardInterrupt:
        raise Interrupted(
            f"Job {job} remains scheduled", "Send it now: msgctl job resume " + job, consequence="nothing was sent"
        ) from None
