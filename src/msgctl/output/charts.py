"""Click statistics as bars, drawn by Rich: every day, every hour, and every category."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any

from rich.bar import Bar
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from msgctl.operations import PLAIN_CATEGORIES, PREMIUM_CATEGORIES
from msgctl.output.fields import Row, cell, metrics_of, text_of
from msgctl.output.tables import Flow
from msgctl.text import plural, shorten

MAX_WIDTH = 120
"""Maximum columns of a chart, even on a wider terminal."""
TWO_COLUMNS = 92
"""Minimum columns of a terminal for two charts side by side."""
GAP = 4
MAX_CATEGORIES = 40
"""Categories that are drawn; the API has 11."""
MAX_ROWS = 20
"""Maximum properties of a category that are shown; the others are summed up in one line."""
MAX_DAYS = 400
"""Maximum days in a chart; a response can contain the years 1 and 9999."""

_TITLES = {"operatingSystem": "Operating system", "lang": "Language"}
_COUNT = re.compile(r"[0-9]{1,15}")

Counts = Sequence[tuple[str, int]]
"""Labels with their numbers of clicks."""


def statistics(document: Mapping[str, Any], width: int) -> Iterator[RenderableType]:
    """Return the parts of click statistics: the URL, the total, and the charts, in two columns if they fit."""
    width = min(width, MAX_WIDTH)
    in_row = 2 if width >= TWO_COLUMNS else 1
    size = (width - GAP * (in_row - 1)) // in_row
    yield Text(cell(document.get("urlShort")), "bold")
    yield Text(f"→ {cell(document.get('urlLong'))}", "dim")
    yield Text("")
    metrics: dict[str, list[Row]] = {name: [] for name in (*PLAIN_CATEGORIES, *PREMIUM_CATEGORIES)}
    for name, values in metrics_of(document):
        if name in metrics or len(metrics) < MAX_CATEGORIES:
            metrics.setdefault(name, []).append(values)
    dated, hourly = metrics.pop("date"), metrics.pop("hour")
    by_day, by_hour = _summed(dated, date.fromisoformat), _summed(hourly, _hour)
    days = [(f"{day:%a} {day.day} {day:%b}", clicks) for day, clicks in _every(by_day)] or _counts(dated)
    yield _total(document, by_day, days)
    if days:
        yield Group("", Text("Days", "bold"), chart(days, width))
    parts: list[RenderableType] = []
    if by_hour and len(days) == 1 and not any(by_hour.values()):
        parts.append(Group("", Text.assemble(("Hours", "bold"), ("  no clicks", "dim"))))
    elif by_hour:
        hours = [(f"{hour:02}:00", by_hour.get(hour, 0)) for hour in range(24)]
        title = Text.assemble(("Hours", "bold"), (f"  of all {plural(len(days), 'day')}" if days else "", "dim"))
        for number in range(in_row):
            half = hours[number * 24 // in_row : (number + 1) * 24 // in_row]
            parts.append(Group("", Text("") if number else title, chart(half, size, hours)))
    elif hourly:
        metrics = {"hour": hourly, **metrics}
    for name, found in metrics.items():
        if found:
            title = Text(_TITLES.get(name) or name[:1].upper() + name[1:], "bold")
            parts.append(Group("", title, chart(_counts(found), size)))
    grid = Table.grid(padding=(0, GAP, 0, 0))
    for start in range(0, len(parts), in_row):
        grid.add_row(*parts[start : start + in_row])
    yield grid


def chart(counts: Counts, width: int, of: Counts = ()) -> Table:
    """Return one line per count: label, number, percent, bar. ``of`` contains all counts, if these are only a part."""
    scale = max((clicks for _, clicks in of or counts), default=0) or 1
    whole = sum(clicks for _, clicks in of or counts) or 1
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.width = width
    grid.add_column(overflow="fold", max_width=24)
    grid.add_column(justify="right", no_wrap=True, min_width=len(f"{scale:,}"))
    grid.add_column(justify="right", no_wrap=True, style="dim", min_width=4)
    grid.add_column(ratio=1, min_width=4)
    for label, clicks in counts:
        style = "" if clicks else "dim"
        length = max(clicks, scale / 100) if clicks else 0  # any click gets a visible bar
        share = clicks * 100 / whole
        percent = "<1%" if 0 < share < 1 else f"{share:.0f}%"
        grid.add_row(Text(label, style), Text(f"{clicks:,}", style), percent, Bar(scale, 0, length, color="cyan"))
    return grid


def _total(document: Mapping[str, Any], by_day: Mapping[date, int], days: Counts) -> Flow:
    clicks = cell(document.get("clicksNumber"))
    number = int(clicks) if _COUNT.fullmatch(clicks) else None
    parts = [Text(f"{clicks} clicks" if number is None else plural(number, "click"), "bold")]
    if len(by_day) > 1 and number:
        first, last = min(by_day), max(by_day)
        start = f"{first.day} {first:%b %Y}".removesuffix(f"{last: %Y}").removesuffix(f"{last: %b}")
        most, _ = max(days, key=lambda each: each[1])
        parts += [Text(f"{start} – {last.day} {last:%b %Y}"), Text(f"{number // len(days):,} a day")]
        parts.append(Text(f"most on {most}"))
    return Flow(parts, "   ")


def _summed(found: Sequence[Row], read: Callable[[str], Any]) -> dict[Any, int]:
    """Return the clicks by day or hour; empty if any of them is malformed."""
    clicks: dict[Any, int] = {}
    try:
        for each in found:
            at = read(str(each.get("property")))
            clicks[at] = clicks.get(at, 0) + _clicks(each)
    except ValueError:
        return {}
    return clicks


def _hour(text: str) -> int:
    hour = int(text.partition(":")[0])
    if hour not in range(24):
        raise ValueError(text)
    return hour


def _every(by_day: Mapping[date, int]) -> list[tuple[date, int]]:
    """Return every day from the first to the last, including days without clicks, unless there are too many."""
    days = sorted(by_day)
    if days and (span := (days[-1] - days[0]).days) <= MAX_DAYS:
        days = [days[0] + timedelta(days=number) for number in range(span + 1)]
    return [(day, by_day.get(day, 0)) for day in days]


def _counts(found: Sequence[Row]) -> Counts:
    counts = [(_label(each), _clicks(each)) for each in found[:MAX_ROWS]]
    rest = found[MAX_ROWS:]
    return [*counts, (f"{len(rest):,} others", sum(map(_clicks, rest)))] if rest else counts


def _label(each: Row) -> str:
    parts = [text_of(each.get(name)) for name in ("property", "region", "countryIsoCode")]
    return shorten(", ".join(filter(None, parts)), 60)


def _clicks(each: Row) -> int:
    text = str(each.get("clicks"))
    return int(text) if _COUNT.fullmatch(text) else 0
