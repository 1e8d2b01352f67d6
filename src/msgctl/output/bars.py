"""Click statistics drawn: bars for every category, and the date and hour as a run over time.

Sources: interface sections "URL statistics" and "POST /url/short-statistic". What a service sends as clicks or as a
date may be anything; a category with something else in it is listed as it came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from msgctl.operations import PLAIN_CATEGORIES, PREMIUM_CATEGORIES
from msgctl.output import runs
from msgctl.output.cells import cell, fold, shorten_middle, width_of
from msgctl.output.plain import BLANK, GAP, Line, Span, listing
from msgctl.output.views import with_unknown

MOST_ROWS = 20
"""Rows of a category that are shown."""
MOST_SLOTS = 14
"""Days or hours, up to which a run has a bar for each, too."""

_USUAL_WIDTH = 80
_MOST_WIDTH = 100
_LEAST_BAR = 4
_LEAST_LABEL = 16
_EIGHTHS = " ▏▎▍▌▋▊▉"
_HEADER = ("urlShort", "urlLong", "clicksNumber")
_CATEGORIES = (*PLAIN_CATEGORIES, *PREMIUM_CATEGORIES)


@dataclass(frozen=True, slots=True)
class Pen:
    """The columns there are to draw in, and whether block characters can be shown."""

    width: int
    unicode: bool

    def bar(self, clicks: int, most: int, length: int) -> str:
        """A bar in proportion to the longest, which takes ``length`` columns; any click at all leaves a mark."""
        eighths = max(clicks * length * 8 // most, 1) if clicks else 0
        if not self.unicode:
            return "#" * -(-eighths // 8)
        return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8]).rstrip()

    def label(self, text: str, width: int) -> str:
        return shorten_middle(text, width, "…" if self.unicode else "...")


@dataclass(frozen=True, slots=True)
class Bar:
    """One row of a chart."""

    label: str
    clicks: int
    percent: str = ""


def statistics(document: Mapping[str, Any], width: int | None, unicode: bool) -> Iterator[Line]:
    """The lines of a ResponseStatistic, for ``width`` columns (80 where there is no terminal)."""
    names = with_unknown(_HEADER, [document])
    header = [(cell(name), cell(document.get(name))) for name in names if name != "metrics"]
    yield from listing(header, width)
    pen = Pen(min(width or _USUAL_WIDTH, _MOST_WIDTH), unicode)
    categories = _categories(document)
    if not categories:
        yield from (BLANK, (Span(_nothing(document)),))
    for name, objects in categories.items():
        yield from (BLANK, (Span(cell(name), "bold"),))
        yield from _category(name, objects, pen)


def _categories(document: Mapping[str, Any]) -> dict[str, list[Mapping[str, Any]]]:
    """The objects of ``metrics`` by category, in the interface's order, unknown ones last."""
    found: dict[str, list[Mapping[str, Any]]] = {name: [] for name in _CATEGORIES}
    for element in document.get("metrics") or ():
        for name, value in element.items():
            if isinstance(value, Mapping):
                found.setdefault(name, []).append(value)
    return {name: objects for name, objects in found.items() if objects}


def _nothing(document: Mapping[str, Any]) -> str:
    clicks = runs.count(document.get("clicksNumber"))
    return "no metrics in the answer" if clicks else "no clicks"


def _category(name: str, objects: Sequence[Mapping[str, Any]], pen: Pen) -> Iterator[Line]:
    run = runs.run_of(name, objects)
    if run:
        yield from _run_lines(run, pen)
        return
    counts = [runs.count(each.get("clicks")) for each in objects]
    bars = [
        Bar(_label(each), clicks, _percent(each))
        for each, clicks in zip(objects, counts, strict=True)
        if clicks is not None
    ]
    if len(bars) < len(objects):
        yield from listing([(_label(each), cell(each.get("clicks"))) for each in objects[:MOST_ROWS]], pen.width)
    else:
        bars.sort(key=lambda bar: -bar.clicks)
        yield from _chart(bars[:MOST_ROWS], pen)
    if len(objects) > MOST_ROWS:
        yield (
            Span(f"{'…' if pen.unicode else '...'} and {len(objects) - MOST_ROWS} more; --json has them all", "dim"),
        )


def _run_lines(run: runs.Run, pen: Pen) -> Iterator[Line]:
    """The sparkline with its ends beneath and its peak named, and a bar for each day or hour where they are few."""
    marks, size = runs.sparkline(run, pen.width, pen.unicode)
    first, last = run.label(run.first), run.label(run.last)
    gap = len(marks) - len(first) - len(last)
    ends = first if first == last else first + (" " * gap if gap > 0 else " to ") + last
    yield (Span(marks, "cyan"),)
    notes = [(ends, "dim"), (f"peak {run.most} {run.at(run.peak)}" if run.most else "no clicks", "")]
    if size > 1:
        notes.append((f"one mark is {size} {run.unit}s", "dim"))
    for note, style in notes:
        for part in fold(note, pen.width):
            yield (Span(part, style),)
    if 1 < run.span <= MOST_SLOTS:
        slots = range(run.first, run.last + 1)
        yield from _chart([Bar(run.label(slot), run.clicks.get(slot, 0)) for slot in slots], pen)


def _chart(bars: Sequence[Bar], pen: Pen) -> Iterator[Line]:
    """Label, bar, clicks and percent a line; on a narrow terminal the bar goes first, then the label's middle."""
    numbers = max(len(str(bar.clicks)) for bar in bars)
    percents = max(len(bar.percent) for bar in bars)
    figures = GAP + numbers + (GAP + percents if percents else 0)
    room = max(pen.width - figures, _LEAST_BAR)
    labels = min(max(width_of(bar.label) for bar in bars), max(_LEAST_LABEL, room // 2), room)
    length = room - labels - GAP
    most = max((bar.clicks for bar in bars if bar.clicks), default=1)
    for bar in bars:
        label = pen.label(bar.label, labels)
        drawn = pen.bar(bar.clicks, most, length) if length >= _LEAST_BAR else ""
        column = length + GAP if length >= _LEAST_BAR else 0
        yield (
            Span(label),
            Span(" " * (labels - width_of(label) + (GAP if column else 0))),
            Span(drawn, "cyan"),
            Span(" " * (column - len(drawn) - (GAP if column else 0))),
            Span(f"  {bar.clicks:>{numbers}}"),
            Span(f"  {bar.percent:>{percents}}" if percents else "", "dim"),
        )


def _label(each: Mapping[str, Any]) -> str:
    """The property, and what tells it from others of its name: the day of an hour, the region and country of a city."""
    parts = (cell(each.get(name)) for name in ("date", "property", "region", "countryIsoCode"))
    return ", ".join(part for part in parts if part)


def _percent(each: Mapping[str, Any]) -> str:
    return runs.percent(cell(each.get("percent")))
