"""Options of the bulk commands, as they are typed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from msgctl import values
from msgctl.cli.context import Context
from msgctl.errors import UsageError

if TYPE_CHECKING:
    from msgctl.jobs.spec import JobSpec

MOST_CREDITS = 10**15
MOST_CANARY = 10**9
_LIMITS: dict[str, Callable[[str, str], Any]] = {
    "concurrency": partial(values.whole_number, least=1, most=256),
    "rate": partial(values.decimal, least=0.001, most=100_000.0),
    "max_credits": partial(values.whole_number, least=0, most=MOST_CREDITS),
    "batch_size": partial(values.whole_number, least=1, most=1000),
}

PhoneColumn = Annotated[
    str | None,
    typer.Option("--phone-column", metavar="NAME", help="Column with the phone numbers; detected if omitted."),
]


@dataclass(eq=False, repr=False)
class Source:
    """A file of recipients."""

    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="Recipients: CSV with a header, JSON Lines, or .xlsx; - is standard input."
        ),
    ]
    phone_column: PhoneColumn = None
    first_number: Annotated[
        bool,
        typer.Option("--first-number", help="If a cell has several numbers, use the first that can get the message."),
    ] = False
    skip_invalid: Annotated[bool, typer.Option("--skip-invalid", help="Skip invalid rows.")] = False


@dataclass(eq=False, repr=False)
class Pace:
    """How fast a job is."""

    concurrency: Annotated[
        str | None,
        typer.Option(
            "--concurrency",
            metavar="N",
            help="Maximum simultaneous requests; a resumed job keeps its own. [default: 8]",
        ),
    ] = None
    rate: Annotated[str | None, typer.Option("--rate", metavar="N", help="Maximum recipients per second.")] = None

    def apply(self, spec: JobSpec) -> JobSpec:
        """Return a spec with the limits that were given. Raises UsageError."""
        given = {name: text for name in _LIMITS if (text := getattr(self, name, None)) is not None}
        return replace(
            spec, **{name: _LIMITS[name](text, f"--{name.replace('_', '-')}") for name, text in given.items()}
        )


@dataclass(eq=False, repr=False)
class Limits(Pace):
    """How fast a job is, and what it may cost."""

    max_credits: Annotated[
        str | None,
        typer.Option(
            "--max-credits",
            metavar="N",
            help="Stop before the job costs more than N credits. "
            "Until the price in a country is known, messages go there one at a time.",
        ),
    ] = None


@dataclass(eq=False, repr=False)
class BatchLimits(Limits):
    """The limits of a job whose requests may have several numbers."""

    batch_size: Annotated[
        str,
        typer.Option("--batch-size", metavar="N", help="Maximum numbers per request, for recipients of the same text."),
    ] = "100"


@dataclass(eq=False, repr=False)
class Rules:
    """What a job is called, whom it does not send to, and when it sends."""

    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Name for the job, to use in place of its ID.")
    ] = None
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude",
            metavar="FILE",
            help="Leave out the numbers in this file: one per line, CSV, JSON Lines or .xlsx. Repeatable.",
        ),
    ] = None
    window: Annotated[
        str | None,
        typer.Option(
            "--window",
            metavar="HOURS",
            help="Send only at these hours, in the recipient's time zone: 08:00-19:00, or co (Colombian law).",
        ),
    ] = None
    days: Annotated[
        str | None,
        typer.Option("--days", metavar="DAYS", help="With --window: only on these days, for example mon-sat."),
    ] = None
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="TIME",
            help="Schedule the job: 2026-12-01 09:00, tomorrow 09:00 or 09:00. `msgctl job run-due` sends it.",
        ),
    ] = None
    foreground: Annotated[bool, typer.Option("--foreground", help="With --at: wait in the foreground, then send.")] = (
        False
    )
    again: Annotated[
        bool,
        typer.Option("--again", help="Send even if most people got the same message in the last 24 hours, or will."),
    ] = False
    exclude_repeats: Annotated[
        bool,
        typer.Option(
            "--exclude-repeats", help="Leave out people who got the same message in the last 24 hours, or will."
        ),
    ] = False
    canary: Annotated[
        str | None,
        typer.Option("--canary", metavar="N", help="Pause after N recipients; `msgctl job resume` continues."),
    ] = None
    test_to: Annotated[
        list[str] | None,
        typer.Option(
            "--test-to", metavar="PHONE", help="First send the message of the first row to this number. Repeatable."
        ),
    ] = None

    def apply(self, context: Context, spec: JobSpec) -> JobSpec:
        """Return a spec that keeps to these rules. Raises UsageError."""
        from msgctl.jobs.schedule import parse_at

        if self.foreground and self.at is None:
            raise UsageError("--foreground needs --at TIME")
        if self.again and self.exclude_repeats:
            raise UsageError("Use either --again or --exclude-repeats, not both")
        if self.days is not None and self.window is None:
            raise UsageError("--days needs --window", "For example: --window 08:00-19:00 --days mon-sat")
        now = datetime.fromtimestamp(context.clock(), UTC)
        return replace(
            spec,
            name=None if self.name is None else values.short_text(self.name, "--name"),
            window=self.window,
            days=self.days,
            at=None if self.at is None else parse_at(self.at, context.profile.timezone, now).timestamp(),
            canary=None if self.canary is None else values.whole_number(self.canary, "--canary", 1, MOST_CANARY),
        )
