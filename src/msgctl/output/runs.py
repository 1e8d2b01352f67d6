"""Clicks over time: what came as dates and hours, put in order, with the gaps between them as zero.

Nothing here grows with the time that a run spans: an answer may well name the years 1 and 9999.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

_COUNT = re.compile(r"[0-9]{1,18}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_HOUR = re.compile(r"([0-9]{1,2})(:00(:00)?)?")
_PERCENT = re.compile(r"[0-9]{1,3}(\.[0-9]{1,40})?")
_MARKS = "▁▂▃▄▅▆▇█"
_ASCII_MARKS = "_.:-=+*#"


@dataclass(frozen=True, slots=True)
class Run:
    """Clicks by slot; a slot is a day (proleptic Gregorian ordinal), an hour since day 0, or an hour of the day.

    ``unit`` is ``day`` or ``hour``.
    """

    clicks: Mapping[int, int]
    unit: str

    @property
    def first(self) -> int:
        return min(self.clicks)

    @property
    def last(self) -> int:
        return max(self.clicks)

    @property
    def span(self) -> int:
        """Slots from the first to the last, both counted."""
        return self.last - self.first + 1

    @property
    def most(self) -> int:
        return max(self.clicks.values())

    @property
    def peak(self) -> int:
        """The first slot with the most clicks."""
        return max(self.clicks, key=lambda slot: (self.clicks[slot], -slot))

    def label(self, slot: int) -> str:
        """``2024-05-01``, ``2024-05-01 14:00``, or ``14:00`` where hours came without their day."""
        if self.unit == "day":
            return date.fromordinal(slot).isoformat()
        day, hour = divmod(slot, 24)
        return f"{date.fromordinal(day).isoformat()} {hour:02}:00" if day else f"{hour:02}:00"

    def at(self, slot: int) -> str:
        return f"{'on' if self.unit == 'day' else 'at'} {self.label(slot)}"


def count(value: Any) -> int | None:
    """Clicks as a number; None for what is no count (negative, broken, or beyond 18 digits)."""
    return int(value) if isinstance(value, str) and _COUNT.fullmatch(value) else None


def percent(text: str) -> str:
    """A percentage with one decimal; empty for what is none."""
    return f"{float(text):.1f}%" if _PERCENT.fullmatch(text) else ""


def run_of(category: str, objects: Sequence[Mapping[str, Any]]) -> Run | None:
    """The run of the category ``date`` or ``hour``; None for others, and where a date, an hour or clicks are broken."""
    if category == "date":
        return _run([_day(each.get("property")) for each in objects], objects, "day")
    if category != "hour":
        return None
    if any(each.get("date") is not None for each in objects):
        return _run([_dated_hour(each) for each in objects], objects, "hour")
    return _run([_hour(each.get("property")) for each in objects], objects, "hour")


def sparkline(run: Run, width: int, unicode: bool) -> tuple[str, int]:
    """The run in at most ``width`` marks, and how many slots each mark adds up; zero is the lowest mark alone."""
    marks = _MARKS if unicode else _ASCII_MARKS
    size = -(-run.span // max(width, 1))
    totals = [0] * -(-run.span // size)
    for slot, clicks in run.clicks.items():
        totals[(slot - run.first) // size] += clicks
    most = max(totals) or 1
    return "".join(marks[-(-total * (len(marks) - 1) // most)] for total in totals), size


def _run(slots: Sequence[int | None], objects: Sequence[Mapping[str, Any]], unit: str) -> Run | None:
    clicks: dict[int, int] = {}
    for slot, each in zip(slots, objects, strict=True):
        counted = count(each.get("clicks"))
        if slot is None or counted is None:
            return None
        clicks[slot] = clicks.get(slot, 0) + counted
    return Run(clicks, unit)


def _day(value: Any) -> int | None:
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        return None
    try:
        return date.fromisoformat(value).toordinal()
    except ValueError:  # a day that no month has
        return None


def _hour(value: Any) -> int | None:
    found = _HOUR.fullmatch(value) if isinstance(value, str) else None
    return int(found[1]) if found and int(found[1]) < 24 else None


def _dated_hour(each: Mapping[str, Any]) -> int | None:
    day, hour = _day(each.get("date")), _hour(each.get("property"))
    return None if day is None or hour is None else day * 24 + hour
