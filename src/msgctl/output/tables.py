"""Tables, cards and records for terminals, drawn by Rich from rows of clean text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from msgctl.output.fields import cell, local_time, time_ago
from msgctl.output.theme import Flow, state
from msgctl.text import plural

SAMPLE = 500
"""Rows that widths are taken from; a longer value in a later row is folded."""
BLOCK = 100
"""Rows drawn at once: a long table is drawn in blocks with the same widths, so that memory stays flat."""
LEAST_TEXT = 30
"""The least width of a wrapping text, unless it needs less."""
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

    def __init__(self, columns: Sequence[Column], rows: Collection[Row], now: float, *, width: int) -> None:
        self._now = now
        self._rows = rows
        self._sample = list(islice(iter(rows), SAMPLE))
        filled = [column for column in columns if any(_is_filled(row.get(column.name)) for row in self._sample)]
        self._shared = [column for column in filled if self._is_shared(column)]
        self._columns = [column for column in filled if column not in self._shared]
        self._widths = self._fitting(width)

    @property
    def fits(self) -> bool:
        """Whether there is room for a table."""
        return self._widths is not None

    def parts(self) -> Iterator[RenderableType]:
        """Return what to print, one part after the other."""
        rows, is_first = iter(self._rows), True
        while block := list(islice(rows, BLOCK)):
            if self._widths is None:
                for number, row in enumerate(block):
                    if number or not is_first:
                        yield Text("")
                    yield card(self._columns, row, self._now)
            else:
                yield table(self._widths, block, self._now, header=is_first)
            is_first = False
        for column in self._shared:
            yield Text("")
            yield record([(column.title, Text(cell(self._sample[0][column.name])))])

    def _is_shared(self, column: Column) -> bool:
        if column.kind != "text" or len(self._rows) > SAMPLE:
            return False
        return len({str(row.get(column.name)) for row in self._sample}) == 1

    def _fitting(self, width: int) -> dict[Column, int] | None:
        """Return the columns that there is room for, each with its width; None if the needed ones do not fit."""
        sizes = {column: self._natural_width(column) for column in self._columns}
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

    def _natural_width(self, column: Column) -> int:
        cells = (shown(row.get(column.name), column.kind, self._now) for row in self._sample)
        return max(cell_len(column.title), *(each.cell_len for each in cells))


def table(widths: Mapping[Column, int], rows: Iterable[Row], now: float, *, header: bool = True) -> Table:
    """Return rows below each other, in columns of the given widths."""
    made = plain_table(header=header)
    for column, width in widths.items():
        right = column.kind in ("number", "ago")
        made.add_column(column.title, justify="right" if right else "left", width=width, overflow="fold")
    for row in rows:
        made.add_row(*(shown(row.get(column.name), column.kind, now) for column in widths))
    return made


def card(columns: Iterable[Column], row: Row, now: float) -> RenderableType:
    """Return a row for a narrow terminal: state and phone first, then the details, then the text."""
    cells = {each: shown(row.get(each.name), each.kind, now) for each in columns if _is_filled(row.get(each.name))}
    first = [column for column in cells if column.kind in ("state", "strong")]
    first += [column for column in cells if column.kind == "plain" and not column.spare][:1]
    texts = [column for column in cells if column.kind == "text"]
    small = sorted((each for each in cells if each not in first + texts), key=lambda each: each.kind == "plain")
    details: list[RenderableType] = [cells[column] for column in texts]
    if small:
        details.insert(0, Flow([Text(_told(each, row, cells[each].plain), "dim") for each in small], " · "))
    return Group(Flow([cells[column] for column in first]), *(Padding(each, (0, 0, 0, 2)) for each in details))


def _told(column: Column, row: Row, text: str) -> str:
    """Return a value with its name or unit, since a card has no headings."""
    if column.unit:
        value = str(row.get(column.name))
        return plural(int(value), column.unit) if value.isdecimal() and len(value) < 16 else f"{text} {column.unit}s"
    is_named = column.kind == "number" or (column.kind == "id" and column.title != "ID")
    return f"{column.title[:1].lower()}{column.title[1:]} {text}" if is_named else text


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
    if isinstance(value, Text):
        return value
    if isinstance(value, bool):
        return Text("yes" if value else "no")
    text = cell(value)
    if kind == "state":
        return state(text)
    if kind == "number":
        return Text(number(text), "zero" if text == "0" else "")
    if kind in ("time", "ago"):
        tell: Callable[[str, float], str] = local_time if kind == "time" else time_ago
        return Text(tell(text, now), "dim" if kind == "ago" else "")
    return Text(text, {"id": "id", "strong": "bold"}.get(kind, ""))


def number(text: str) -> str:
    """Return a whole number with separators; any other text unchanged."""
    return f"{int(text):,}" if text.isascii() and text.isdecimal() and len(text) < 16 else text


class FieldList:
    """Names with their values beside them, or below them if a word would be broken."""

    def __init__(self, pairs: Sequence[tuple[str, Text]]) -> None:
        self._pairs = pairs

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        names = max((cell_len(name) for name, _ in self._pairs), default=0) + 3
        words = [word for _, value in self._pairs for word in value.plain.split()]
        if names + max(map(cell_len, words), default=0) > options.max_width:
            for name, value in self._pairs:
                yield Text(name, "name")
                yield Padding(value, (0, 0, 0, 2))
            return
        grid = Table.grid(padding=(0, 3, 0, 0))
        grid.add_column(style="name", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, value in self._pairs:
            grid.add_row(name, value)
        yield grid


def record(pairs: Sequence[tuple[str, Text]]) -> RenderableType:
    """Return names with their values."""
    return FieldList(pairs)


def _is_filled(value: Any) -> bool:
    return value is not None and value not in ("", [], {})
