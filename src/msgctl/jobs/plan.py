"""The summary of a job before it is sent, which is also the result of a dry run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from decimal import Decimal
from typing import Any, NamedTuple

from msgctl.jobs.importer import Example, Tally
from msgctl.jobs.settings import Settings
from msgctl.operations import SEND_SMS
from msgctl.text import timestamp


class LeftOut(NamedTuple):
    """The rows of a file that are left out for the same reason: their number, and the first of them."""

    number: int
    rows: Sequence[tuple[int, str | None, str]]


@dataclass(frozen=True)
class Plan:
    """The summary of a job before it is sent. ``recipients`` is the sum of the four counts that follow.

    ``excluded`` includes the people who opted out, repeats, and people over the limit of --at-most. Times are ISO 8601.
    """

    command: str
    file: str
    profile: str
    recipients: int
    invalid: int
    duplicate: int
    excluded: int
    messages: int
    segments: int | None
    credits: int
    countries: Mapping[str, int]
    balance: int | float | None
    first: Mapping[str, Any] | None
    most_expensive: Mapping[str, Any] | None
    opted_out: int
    repeats: int
    over_limit: int
    blank: int
    at_most: str | None
    window: str | None
    due: str | None
    invalid_rows: Sequence[Mapping[str, Any]]
    duplicate_rows: Sequence[Mapping[str, Any]]
    excluded_rows: Sequence[Mapping[str, Any]]

    @property
    def columns(self) -> list[str]:
        """The columns of a table, without lists of rows and without empty values."""
        optional = {"opted_out", "repeats", "over_limit", "blank", "at_most", "window", "due", "most_expensive"}
        return [name for name in COLUMNS if name not in optional or getattr(self, name)]

    def document(self) -> dict[str, Any]:
        """Return the plan as JSON."""
        return asdict(self)


COLUMNS = [field.name for field in fields(Plan) if not field.name.endswith("_rows")]


def plan(
    settings: Settings,
    tally: Tally,
    left_out: Mapping[str, LeftOut],
    *,
    blank: int,
    balance: Decimal | None,
    due: float | None,
) -> Plan:
    """Return the summary of a job; ``left_out`` are the rows that are left out, by outcome."""
    numbers = {outcome: rows.number for outcome, rows in left_out.items()}
    numbers["excluded"] += tally.left_out
    return Plan(
        command=settings.command,
        file=settings.file,
        profile=settings.profile,
        recipients=sum(numbers.values()) + tally.messages,
        invalid=numbers["invalid"],
        duplicate=numbers["duplicate"],
        excluded=numbers["excluded"],
        messages=tally.messages,
        segments=tally.credits if settings.performs is SEND_SMS else None,
        credits=tally.credits,
        countries=dict(tally.countries.most_common()),
        balance=None if balance is None else _number(balance),
        first=tally.first and tally.first.parameters,
        most_expensive=tally.most_expensive and _described(tally.most_expensive),
        opted_out=tally.opted_out,
        repeats=tally.repeats,
        over_limit=tally.over_limit,
        blank=blank,
        at_most=settings.at_most,
        window=settings.window_in_words,
        due=None if due is None else timestamp(due),
        invalid_rows=_listed(left_out["invalid"].rows),
        duplicate_rows=_listed(left_out["duplicate"].rows),
        excluded_rows=_listed(left_out["excluded"].rows),
    )


def _number(amount: Decimal) -> int | float:
    return int(amount) if amount == amount.to_integral_value() else float(amount)


def _described(example: Example) -> dict[str, Any]:
    about = {"line": example.line, "phone": example.phone, "segments": example.cost, "credits": example.cost}
    return {**about, **example.parameters}


def _listed(rows: Sequence[tuple[int, str | None, str]]) -> list[dict[str, Any]]:
    return [{"line": line, "phone": phone, "reason": reason} for line, phone, reason in rows]
