"""Click statistics as bars, drawn by Rich: every day, every hour, and every category."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple

from rich.bar import Bar
from rich.console import Group, RenderableType
from rich.styled import Styled
from rich.table import Table
from rich.text import Text

from msgctl.operations import PLAIN_CATEGORIES, PREMIUM_CATEGORIES
from msgctl.output.fields import cell
from msgctl.output.theme import Flow
from msgctl.text import plural

MOST_WIDTH = 120
"""Columns of a chart, however wide the terminal is."""
TWO_COLUMNS = 92
"""Columns of a terminal from which charts are drawn beside each other."""
MOST_ROWS = 20
"""Properties of a category that are shown; the rest are summed up in one line."""
MOST_DAYS = 400
"""Days that are drawn one by one; a response can name the years 1 and 9999."""

_TITLES = {"date": "Days", "hour": "Hours", "operatingSystem": "Operating system", "lang": "Language"}
_COUNT = re.compile(r"[0-9]{1,15}")


class ClickCount(NamedTuple):
    """A bar: what is counted, and how many clicks it had."""

    label: str
    clicks: int


def statistics(document: Mapping[str, Any], width: int) -> Iterator[RenderableType]:
    """Return the parts of click statistics: the URL, the total, then the charts."""
    width = min(width, MOST_WIDTH)
    yield Text(cell(document.get("urlShort")), "bold")
    yield Text(f"→ {cell(document.get('urlLong'))}", "dim")
    yield Text("")
    metrics = _by_category(document)
    dated = metrics.pop("date", [])
    days = _days(dated)
    yield _total(document, days, _period(dated))
    if days:
        yield Text("")
        yield _titled("Days", chart(days, width))
    if hours := _hours(metrics.pop("hour", [])):
        yield Text("")
        yield _titled("Hours", _in_two(hours, width), aside=f"of all {plural(len(days), 'day')}" if days else "")
    parts = [(_title(name), _counts(found)) for name, found in metrics.items()]
    yield from _side_by_side([part for part in parts if part[1]], width)


def chart(counts: Sequence[ClickCount], width: int, of: Sequence[ClickCount] = ()) -> Table:
    """Return one line per count: label, number, percent, bar. ``of`` are all counts of which these are a part."""
    scale = max((each.clicks for each in of or counts), default=0) or 1
    whole = sum(each.clicks for each in of or counts) or 1
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.width = width
    grid.add_column(no_wrap=True, overflow="ellipsis", max_width=24)
    grid.add_column(justify="right", no_wrap=True, min_width=len(f"{scale:,}"))
    grid.add_column(justify="right", no_wrap=True, style="dim", min_width=4)
    grid.add_column(ratio=1, min_width=4)
    for each in counts:
        style = "" if each.clicks else "dim"
        length = max(each.clicks, scale / 100) if each.clicks else 0  # any click leaves a mark
        bar = Styled(Bar(scale, 0, length, color="cyan"), "bold" if each.clicks == scale else "")
        grid.add_row(Text(each.label, style), Text(f"{each.clicks:,}", style), _percent(each.clicks, whole), bar)
    return grid


def _percent(clicks: int, whole: int) -> str:
    share = clicks * 100 / whole
    return "<1%" if 0 < share < 1 else f"{share:.0f}%"


def _total(document: Mapping[str, Any], days: Sequence[ClickCount], period: str) -> Flow:
    clicks = cell(document.get("clicksNumber"))
    number = int(clicks) if _COUNT.fullmatch(clicks) else None
    parts = [Text(f"{clicks} clicks" if number is None else plural(number, "click"), "bold")]
    if len(days) > 1 and number and period:
        most = max(days, key=lambda each: each.clicks)
        parts += [Text(period), Text(f"{number // len(days):,} a day"), Text(f"most on {most.label}")]
    return Flow(parts, "   ")


def _period(dated: Sequence[Mapping[str, Any]]) -> str:
    """Return the first and the last day: ``13 – 21 Nov 2026``; empty if a date is malformed."""
    try:
        days = [date.fromisoformat(str(each.get("property"))) for each in dated]
    except ValueError:
        return ""
    if not days:
        return ""
    first, last = min(days), max(days)
    start = f"{first.day} {first:%b %Y}".removesuffix(f"{last: %Y}").removesuffix(f"{last: %b}")
    return f"{start} – {last.day} {last:%b %Y}"


def _by_category(document: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """Return the objects of ``metrics`` by category, in the interface's order, unknown ones last."""
    found: dict[str, list[Mapping[str, Any]]] = {name: [] for name in (*PLAIN_CATEGORIES, *PREMIUM_CATEGORIES)}
    for metric in document.get("metrics") or ():
        for name, members in metric.items():
            if isinstance(members, Mapping):
                found.setdefault(name, []).append(members)
    return found


def _counts(found: Sequence[Mapping[str, Any]]) -> list[ClickCount]:
    counts = [ClickCount(_label(each), _clicks(each)) for each in found[:MOST_ROWS]]
    rest = found[MOST_ROWS:]
    return [*counts, ClickCount(f"{len(rest):,} others", sum(map(_clicks, rest)))] if rest else counts


def _label(each: Mapping[str, Any]) -> str:
    parts = [cell(each.get(name)) for name in ("property", "region", "countryIsoCode")]
    return ", ".join(part for part in parts if part)


def _clicks(each: Mapping[str, Any]) -> int:
    text = str(each.get("clicks"))
    return int(text) if _COUNT.fullmatch(text) else 0


def _days(found: Sequence[Mapping[str, Any]]) -> list[ClickCount]:
    """Return every day from the first to the last, even those without clicks; as they came if a date is malformed."""
    clicks: dict[date, int] = {}
    for each in found:
        try:
            day = date.fromisoformat(str(each.get("property")))
        except ValueError:
            return _counts(found)
        clicks[day] = clicks.get(day, 0) + _clicks(each)
    if not clicks:
        return []
    first, last = min(clicks), max(clicks)
    if (last - first).days > MOST_DAYS:
        return [ClickCount(day.isoformat(), clicks[day]) for day in sorted(clicks)]
    days = (first + timedelta(days=number) for number in range((last - first).days + 1))
    return [ClickCount(f"{day:%a} {day.day} {day:%b}", clicks.get(day, 0)) for day in days]


def _hours(found: Sequence[Mapping[str, Any]]) -> list[ClickCount]:
    """Return the 24 hours of the day; as they came if an hour is malformed."""
    clicks = dict.fromkeys(range(24), 0)
    for each in found:
        hour = str(each.get("property")).partition(":")[0]
        if not (hour.isdecimal() and len(hour) < 3 and int(hour) < 24):
            return _counts(found)
        clicks[int(hour)] += _clicks(each)
    return [ClickCount(f"{hour:02}:00", number) for hour, number in clicks.items()] if found else []


def _title(name: str) -> str:
    return _TITLES.get(name) or name[:1].upper() + name[1:]


def _titled(title: str, body: RenderableType, aside: str = "") -> Group:
    return Group(Text.assemble((title, "bold"), (f"  {aside}" if aside else "", "dim")), body)


def _in_two(counts: Sequence[ClickCount], width: int) -> RenderableType:
    """Return a chart in two columns of the same scale if there is room."""
    if width < TWO_COLUMNS or len(counts) != 24:
        return chart(counts, width)
    half = (width - 4) // 2
    return _pair([chart(counts[:12], half, counts), chart(counts[12:], half, counts)])


def _side_by_side(parts: Sequence[tuple[str, list[ClickCount]]], width: int) -> Iterator[RenderableType]:
    """Return charts in pairs if there is room, else below each other."""
    paired = width >= TWO_COLUMNS
    size = (width - 4) // 2 if paired else width
    for start in range(0, len(parts), 2 if paired else 1):
        yield Text("")
        group = [_titled(name, chart(counts, size)) for name, counts in parts[start : start + (2 if paired else 1)]]
        yield _pair(group) if len(group) > 1 else group[0]


def _pair(parts: Sequence[RenderableType]) -> Table:
    grid = Table.grid(padding=(0, 4, 0, 0))
    grid.add_row(*parts)
    return grid
