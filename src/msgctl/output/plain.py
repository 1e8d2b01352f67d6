"""Rows and columns as lines of styled spans, and those lines written without Rich.

A table has a row a line where the terminal is wide enough. Where it is not, the text of a row goes on beneath it, and
where that does not help either, each row becomes a listing of names and values: nothing is cut. A pipe has no width,
and always gets columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeVar

from msgctl.output.cells import fold, width_of
from msgctl.output.views import state_style, wrapping_column

T = TypeVar("T")

GAP = 2
LEAST_TEXT = 12
"""The fewest columns of a terminal in which a wrapped text is readable …"""
MOST_WRAPPED = 4
"""… and the most lines."""


class Span(NamedTuple):
    """Clean text and the Rich style it is shown in."""

    text: str
    style: str = ""


Line = Sequence[Span]
Row = Sequence[str]
BLANK: Line = ()


def text_of(line: Line) -> str:
    """A line without its styles and its trailing spaces."""
    return "".join(span.text for span in line).rstrip(" ")


def table(columns: Sequence[str], rows: Iterable[Row], width: int | None) -> Iterator[Line]:
    """A header and a row a line, or what fits into ``width`` columns instead.

    ``rows`` is walked twice, so it is no iterator, and never held.
    """
    widths = _natural_widths(columns, rows)
    wrapping = wrapping_column(columns)
    room = 0 if width is None else width - sum(widths) - GAP * (len(widths) - 1)
    if width is None or room >= 0:
        return _columns(columns, rows, widths)
    if wrapping is None:
        return _stacked(columns, rows, width)
    text = widths[wrapping]
    if text + room >= LEAST_TEXT and text <= (text + room) * MOST_WRAPPED:
        widths[wrapping] = text + room
        return _columns(columns, rows, widths)
    if text + room >= -GAP:
        return _beneath(columns, rows, widths, wrapping, width)
    return _stacked(columns, rows, width)


def fitting(columns: Sequence[str], rows: Iterable[Row], spare: Sequence[str], width: int | None) -> Sequence[str]:
    """The columns without those of ``spare`` that a table has no room for; the first of them goes first."""
    if width is None:
        return columns
    sizes = dict(zip(columns, _natural_widths(columns, rows), strict=True))
    wrapping = wrapping_column(columns)
    text = None if wrapping is None else columns[wrapping]  # can stand beneath its row
    for name in spare:
        beside = [size for column, size in sizes.items() if column != text]
        if sum(beside) + GAP * (len(beside) - 1) <= width:
            break
        del sizes[name]
    return tuple(sizes)


def listing(pairs: Sequence[tuple[str, str]], width: int | None) -> Iterator[Line]:
    """A name and its value a line; a value that is too long goes on below, under its beginning.

    A word (an identifier, a URL) that fits on a line of its own is not broken.
    """
    most = None if width is None else width // 2 - GAP
    name_widths = [width_of(name) for name, _ in pairs]
    column = max((size for size in name_widths if most is None or size <= most), default=0)
    for (name, value), name_width in zip(pairs, name_widths, strict=True):
        style = state_style(name, value)
        if width is None or (name_width <= column and width_of(value) + column + GAP <= width):
            yield _pair(name, value, column + GAP - name_width, style)
        else:
            yield from _folded_pair(name, value, column + GAP, width, style)


def summary(pairs: Sequence[tuple[str, str]], width: int | None) -> Iterator[Line]:
    """A few names and values on one line, or a listing of them where that is too long."""
    line: list[Span] = []
    for name, value in pairs:
        line += (Span("   " if line else ""), Span(name, "dim"), Span(f" {value}"))
    if width is None or width_of(text_of(line)) <= width:
        yield line
    else:
        yield from listing(pairs, width)


def texts(lines: Iterable[Line]) -> Iterator[str]:
    """The lines as text, each with its line end."""
    return (text_of(line) + "\n" for line in lines)


def _natural_widths(columns: Sequence[str], rows: Iterable[Row]) -> list[int]:
    widths = [width_of(name) for name in columns]
    for row in rows:
        widths = [max(size, width_of(text)) for size, text in zip(widths, row, strict=True)]
    return widths


def _columns(columns: Sequence[str], rows: Iterable[Row], widths: Sequence[int]) -> Iterator[Line]:
    yield from _row_lines(columns, widths, ["bold"] * len(columns))
    for row in rows:
        yield from _row_lines(row, widths, list(map(state_style, columns, row)))


def _beneath(
    columns: Sequence[str], rows: Iterable[Row], widths: Sequence[int], text: int, width: int
) -> Iterator[Line]:
    """Columns without the one of text, which stands indented under each row."""
    names, sizes = _without(columns, text), _without(widths, text)
    yield from _row_lines(names, sizes, ["bold"] * len(names))
    yield (Span(" " * GAP), Span(columns[text], "bold"))
    for row in rows:
        cells = _without(row, text)
        yield from _row_lines(cells, sizes, list(map(state_style, names, cells)))
        for part in fold(row[text], max(width - GAP, 1)) if row[text] else ():
            yield (Span(" " * GAP), Span(part, state_style(columns[text], row[text])))


def _row_lines(row: Row, widths: Sequence[int], styles: Sequence[str]) -> Iterator[Line]:
    blocks = [[text] if width_of(text) <= size else fold(text, size) for text, size in zip(row, widths, strict=True)]
    for number in range(max(map(len, blocks), default=0)):
        line: list[Span] = []
        for block, size, style in zip(blocks, widths, styles, strict=True):
            text = block[number] if number < len(block) else ""
            line += (Span(text, style), Span(" " * (size - width_of(text) + GAP)))
        yield line


def _stacked(columns: Sequence[str], rows: Iterable[Row], width: int) -> Iterator[Line]:
    for number, row in enumerate(rows):
        if number:
            yield BLANK
        yield from listing(list(zip(columns, row, strict=True)), width)


def _pair(name: str, value: str, gap: int, style: str) -> Line:
    return (Span(name, "dim"), Span(" " * gap), Span(value, style))


def _folded_pair(name: str, value: str, margin: int, width: int, style: str) -> Iterator[Line]:
    if width_of(name) + GAP > margin or (" " not in value and width_of(value) > width - margin):
        for part in fold(name, max(width, 1)):
            yield (Span(part, "dim"),)
        name, margin = "", GAP
    for number, part in enumerate(fold(value, max(width - margin, 1))):
        shown = "" if number else name
        yield _pair(shown, part, margin - width_of(shown), style)


def _without(items: Sequence[T], index: int) -> list[T]:
    return [*items[:index], *items[index + 1 :]]


def growing(rows: Iterable[Row]) -> Iterator[str]:
    """Rows that are not known beforehand, each a line as it comes; a column is as wide as the widest so far."""
    widths: list[int] = []
    for row in rows:
        widths = [max(width_of(text), width) for text, width in zip(row, widths or [0] * len(row), strict=True)]
        cells = (text + " " * (width - width_of(text) + GAP) for text, width in zip(row, widths, strict=True))
        yield "".join(cells).rstrip(" ") + "\n"
