"""Tables, cards and records for terminals, drawn by Rich from rows of clean text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from msgctl.output import times
from msgctl.output.cells import cell
from msgctl.output.theme import state
from msgctl.text import plural

SAMPLE = 500
"""Rows that widths are taken from; a longer value in a later row is folded."""
BLOCK = 100
"""Rows drawn at once: a long table is drawn in blocks with the same widths, so that memory stays flat."""
LEAST_TEXT = 30
"""Columns of the terminal that a wrapping text gets at least, unless it needs fewer."""
GAP = 2

HEAD = box.Box(str(box.SIMPLE_HEAD), ascii=True)
"""Rich would change SIMPLE_HEAD in a locale without its line; ours is replaced sign by sign when it is written."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """A column: the ``name`` of the value, the ``title`` above it, and its ``kind``.

    Kinds are number, id, state, time, ago, text (the one that wraps), strong and plain. ``spare`` columns are left out
    of a table that is too wide, the lowest number first. ``unit`` is what a number counts in a card.
    """

    name: str
    title: str
    kind: str = "plain"
    spare: int = 0
    unit: str = ""


class Listing:
    """Rows on a terminal: as a table, or as one card per row if even the needed columns do not fit.

    A text that all rows share is printed once, below the table. ``now`` is the time in seconds since 1970.
    """

    def __init__(self, columns: Sequence[Column], rows: Sequence[Row], now: float, *, width: int) -> None:
        self._now = now
        self._rows = rows
        self._sample = list(islice(iter(rows), SAMPLE))
        filled = [column for column in columns if any(_is_filled(row.get(column.name)) for row in self._sample)]
        self._shared = [column for column in filled if self._is_shared(column)]
        self._columns = [column for column in filled if column not in self._shared]
        self._widths = self._fitting(width)

    def parts(self) -> Iterator[RenderableType]:
        """Return what to print, one part after the other."""
        rows, is_first = iter(self._rows), True
        while block := list(islice(rows, BLOCK)):
            if self._widths is None:
                yield from self._cards(block, is_first=is_first)
            else:
                yield self._table(block, self._widths, header=is_first)
            is_first = False
        for column in self._shared:
            yield Text("")
            yield record([(column.title, Text(cell(self._sample[0][column.name])))])

    def _is_shared(self, column: Column) -> bool:
        if column.kind != "text" or len(self._rows) > SAMPLE:
            return False
        return len({str(row.get(column.name)) for row in self._sample}) == 1

    def _cell(self, column: Column, row: Row) -> Text:
        return shown(row.get(column.name), column.kind, self._now)

    def _fitting(self, width: int) -> dict[Column, int] | None:
        """Return the columns that there is room for, each with its width; None if the needed ones do not fit."""
        sizes = {
            column: max([self._cell(column, row).cell_len for row in self._sample] + [cell_len(column.title)])
            for column in self._columns
        }
        wrapping = next((column for column in sizes if column.kind == "text"), None)
        longest = sizes[wrapping] if wrapping else 0
        spare = sorted((column for column in sizes if column.spare), key=lambda column: column.spare)
        for left_out in (None, *spare):
            if left_out:
                del sizes[left_out]
            room = width - sum(sizes.values()) - GAP * (len(sizes) - 1)
            if room + longest >= min(longest, LEAST_TEXT):
                if wrapping:
                    sizes[wrapping] = min(longest, longest + room)
                return sizes
        return None

    def _table(self, rows: Sequence[Row], widths: Mapping[Column, int], *, header: bool) -> Table:
        table = plain_table(header=header)
        for column, width in widths.items():
            right = column.kind in ("number", "ago")
            table.add_column(column.title, justify="right" if right else "left", width=width, overflow="fold")
        for row in rows:
            table.add_row(*(self._cell(column, row) for column in widths))
        return table

    def _cards(self, rows: Sequence[Row], *, is_first: bool) -> Iterator[RenderableType]:
        for number, row in enumerate(rows):
            if number or not is_first:
                yield Text("")
            yield from self._card(row)

    def _card(self, row: Row) -> Iterator[RenderableType]:
        """State and phone first, then the small print, then the text."""
        filled = [column for column in self._columns if _is_filled(row.get(column.name))]
        first = [column for column in filled if column.kind in ("state", "strong")]
        first += [column for column in filled if column.kind == "plain" and not column.spare][:1]
        yield Text("  ").join(self._cell(column, row) for column in first)
        small = [column for column in filled if column not in first and column.kind != "text"]
        if small:
            line = Text(" · ").join(Text(self._told(column, row)) for column in small)
            line.stylize("dim")
            yield Padding(line, (0, 0, 0, 2), expand=False)
        for column in filled:
            if column.kind == "text":
                yield Padding(self._cell(column, row), (0, 0, 0, 2), expand=False)

    def _told(self, column: Column, row: Row) -> str:
        """Return a value with what it is, for a card has no headings."""
        text = self._cell(column, row).plain
        value = str(row.get(column.name))
        if column.kind != "number":
            return text
        if column.unit:
            return plural(int(value), column.unit) if value.isdecimal() else f"{text} {column.unit}s"
        return f"{column.title.lower()} {text}"


def plain_table(*, header: bool = True) -> Table:
    """Return an empty table of the usual look: a bold header above a dim rule, no other lines."""
    return Table(
        box=HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, GAP - 1, 0, 0),
        show_header=header,
        header_style="heading",
        border_style="dim",
    )


def shown(value: Any, kind: str, now: float) -> Text:
    """Return a value as a cell of a kind."""
    if not _is_filled(value):
        return Text("")
    text = cell(value)
    if kind == "state":
        return state(text)
    if kind == "number":
        return Text(number(text), "zero" if text == "0" else "")
    if kind in ("time", "ago"):
        tell: Callable[[str, float], str] = times.local if kind == "time" else times.ago
        return Text(tell(text, now), "dim" if kind == "ago" else "")
    return Text(text, {"id": "id", "strong": "bold"}.get(kind, ""))


def number(text: str) -> str:
    """Return a whole number with separators; any other text unchanged."""
    return f"{int(text):,}" if text.isascii() and text.isdecimal() and len(text) < 16 else text


def record(pairs: Sequence[tuple[str, RenderableType]]) -> RenderableType:
    """Return names with their values beside them."""
    grid = Table.grid(padding=(0, 3, 0, 0))
    grid.add_column(style="name", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in pairs:
        grid.add_row(name, value)
    return grid


def stacked(parts: Sequence[RenderableType]) -> Group:
    """Return parts below each other."""
    return Group(*parts)


def _is_filled(value: Any) -> bool:
    return value is not None and value not in ("", [], {})
