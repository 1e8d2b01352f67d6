"""The parts of views on a terminal, drawn by Rich from clean text: states, verdicts, hints, tables, records.

Colours are the 16 of the terminal's own theme.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Literal, NamedTuple, TextIO

from rich import box
from rich.bar import Bar
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from msgctl.jsontext import Number
from msgctl.outcomes.delivery import Delivery, classify
from msgctl.outcomes.words import NO_WORDS, AddedWords
from msgctl.output.fields import cell
from msgctl.output.result import Document
from msgctl.text import capitalized, clean, plural

THEME = Theme(
    {
        "ok": "green",
        "bad": "red",
        "warn": "yellow",
        "busy": "cyan",
        "off": "dim",
        "bar.back": "dim",
        "bar.complete": "green",
        "bar.finished": "green",
    }
)

SIGNS = {"ok": "✓", "bad": "✗", "warn": "!", "busy": "○", "off": "–"}
"""One sign for each style, so that states are distinct without colour."""

STYLES = {
    **dict.fromkeys(("accepted", "done", "ok"), "ok"),
    **dict.fromkeys(("refused", "invalid", "failed"), "bad"),
    **dict.fromkeys(("unknown", "paused", "warning"), "warn"),
    **dict.fromkeys(("running", "scheduled"), "busy"),
    **dict.fromkeys(("skipped", "pending", "cancelled", "duplicate", "blocked", "excluded"), "off"),
}
"""The style of an outcome, of a job's state, and of the result of a check."""
_DELIVERIES = {
    Delivery.DELIVERED: "ok",
    Delivery.ON_ITS_WAY: "busy",
    Delivery.NOT_ANSWERED: "bad",
    Delivery.FAILED: "bad",
}


def console(stream: TextIO, *, color: bool, width: int | None = None) -> Console:
    """Return a console that shows text unchanged: no markup, no emoji codes, no highlighting.

    Without a ``width``, it uses the terminal's width.
    """
    color_system: Literal["standard"] | None = "standard" if color else None
    return Console(
        file=stream,
        width=width,
        theme=THEME,
        markup=False,
        emoji=False,
        highlight=False,
        color_system=color_system,
        no_color=not color,
        force_terminal=True,
        legacy_windows=False,
    )


def state_text(word: str, number: int | None = None) -> Text:
    """Return a state of msgctl as a sign, a count and the word: ``✗ 4 refused``."""
    return _counted(STYLES.get(word), word, number)


def delivery(word: str, words: AddedWords, number: int | None = None) -> Text:
    """Return a delivery state as a sign, a count and the service's own word: ``✗ 4 rejected``."""
    style = _DELIVERIES[classify(word, words)] if word else None
    return _counted(style, word, number)


def _counted(style: str | None, word: str, number: int | None) -> Text:
    text = clean(word) if number is None else f"{number:,} {clean(word)}"
    return Text(text) if style is None else Text(f"{SIGNS[style]} {text}", style)


def verdict(style: str, *parts: str, aside: str = "") -> Table:
    """Return one line with the result and its counts."""
    content = [Text.assemble((" · ", "dim")).join(Text(clean(part)) for part in parts)]  # only the separator is dim
    if aside:
        content.append(Text(aside, "dim"))
    return signed(style, Flow(content))


def signed(style: str, content: RenderableType) -> Table:
    """Return content beside a sign."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(SIGNS[style], style), content)
    return grid


class Flow:
    """Parts side by side, as many as fit on a line; a part that fits on one line is never broken."""

    def __init__(self, parts: Sequence[Text], gap: str = "  ") -> None:
        self._parts = parts
        self._gap = gap

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Text]:
        line = Text()
        for part in self._parts:
            if line and line.cell_len + len(self._gap) + part.cell_len > options.max_width:
                yield line
                line = Text()
            line = Text.assemble(line, (self._gap, "dim"), part) if line else part
        yield line

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        longest = max(line.cell_len for line in self.__rich_console__(console, options))
        return Measurement(1, min(longest, options.max_width))


def hint(text: str) -> Text:
    """Return a hint for the next step. It is not wrapped, so that a command in it can be copied."""
    return Text(f"→ {clean(text)}", "dim")


# --- tables

TYPED = 20
"""Rows that determine whether a column has numbers."""
MIN_FOLDED = 8
"""Minimum width of the text column before other columns are folded, too."""
BLOCK = 100
"""Rows per block: a long table is drawn in blocks with the same widths, to limit memory."""
MIN_TEXT = 30
"""Minimum width of a text column that wraps; a column of shorter texts is narrower."""
GAP = 2

TITLES = {
    "id": "ID",
    "dispatch.id": "Dispatch",
    "dispatch_id": "Dispatch",
    "sms": "Message",
    "msg": "Message",
    "url": "URL",
    "operatingSystem": "Operating system",
    "lang": "Language",
    "urlShort": "Short URL",
    "urlLong": "Leads to",
    "minutes_to_expire": "Expires in (min)",
    "base_url": "Base URL",
    "not_gsm7": "Not in GSM-7",
}
KINDS = {
    "outcome": "state",
    **dict.fromkeys(("status", "state"), "delivery"),
    **dict.fromkeys(("id", "dispatch.id", "dispatch_id", "client"), "id"),
    **dict.fromkeys(("sms", "message", "text", "error", "found", "summary"), "text"),
    **dict.fromkeys(("time", "created_at", "updated"), "time"),
    **dict.fromkeys(("credits", "messages", "clicks"), "number"),
    "code": "strong",
}
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


class Viewer(NamedTuple):
    """The user who looks at a table: the time in their zone, the columns of their terminal, and their profile's words.

    The words determine the signs of delivery states.
    """

    now: datetime
    width: int
    words: AddedWords = NO_WORDS


class Column(NamedTuple):
    """A column: the ``name`` of the value, or the function that takes the ``value`` from a row, and its ``kind``.

    Kinds are number, id, state, delivery, time, ago, text (which wraps), strong and plain. By default, the kind and the
    ``title`` (the heading) follow from the name. If a table is too wide, columns with a ``drop_order`` are left out,
    the lowest first. A column with 0 is never left out.
    """

    name: str
    title: str | None = None
    kind: str = ""
    drop_order: int = 0
    value: Callable[[Document], Any] | None = None

    @property
    def heading(self) -> str:
        return title(self.name) if self.title is None else self.title

    def value_in(self, row: Document) -> Any:
        """Return the value of a row."""
        return self.value(row) if self.value else row.get(self.name)


def title(name: str) -> str:
    """Return the heading of a field; the service's fields may have any name."""
    words = clean(name).replace("_", " ").replace(".", " ")
    return TITLES.get(name) or capitalized(words)


def kind_of_field(name: str, *values: Any) -> str:
    """Return the kind of a field: number for whole numbers, since IDs are strings in the API."""
    present = [value for value in values if value not in (None, "")]
    is_number = present and all(
        (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, Number) and len(value) < 9)
        for value in present
    )
    return KINDS.get(name) or ("number" if is_number else "plain")


def listing(columns: Iterable[Column], rows: Iterable[Document], viewer: Viewer) -> Iterator[RenderableType]:
    """Return rows as a table; a text that all rows share is printed once, below the table."""
    rows = list(rows) if isinstance(rows, Iterator) else rows
    first = list(islice(rows, TYPED))
    sizes = {}
    for column in columns:
        kind = column.kind or kind_of_field(column.name, *map(column.value_in, first))
        sizes[column._replace(kind=kind)] = _Size()
    for row in rows:
        for column, size in sizes.items():
            size.add(column, column.value_in(row), viewer)
    filled = {column: size for column, size in sizes.items() if size.is_filled}
    shared = [column for column, size in filled.items() if column.kind == "text" and size.is_same]
    needed = {
        column: max(size.widest, cell_len(column.heading)) for column, size in filled.items() if column not in shared
    }
    widths = _fitting(needed, viewer.width)
    remaining, header = iter(rows), True
    while widths and (block := list(islice(remaining, BLOCK))):
        yield _table(widths, block, viewer, header=header)
        header = False
    if hidden := len(needed) - len(widths):
        yield Text("")
        yield Text(f"{plural(hidden, 'column')} hidden: -o csv shows all", "dim")
    for column in shared:
        yield Text("")
        yield FieldList([(column.heading, Text(cell(column.value_in(first[0]))))])


class _Size:
    """The size of a column so far: the greatest width, whether any value is set, and whether all are the same."""

    def __init__(self) -> None:
        self.widest = 0
        self.is_filled = False
        self.is_same = True
        self._value: Any = self

    def add(self, column: Column, value: Any, viewer: Viewer) -> None:
        self.is_same = self.is_same and (self._value is self or value == self._value)
        self._value = value
        if _is_filled(value):
            self.is_filled = True
            self.widest = max(self.widest, styled(value, column.kind, viewer).cell_len)


def _fitting(sizes: Mapping[Column, int], width: int) -> dict[Column, int]:
    """Return the columns that a table has, each with its width.

    Optional columns are left out, in order, until the rest fits with at least `MIN_TEXT` for the text. If it never
    fits, the text is narrowed to `MIN_FOLDED`, and then the widest columns, which are folded.
    """
    widths = dict(sizes)
    texts = [column for column in widths if column.kind == "text"]
    optional = sorted((column for column in widths if column.drop_order), key=lambda column: column.drop_order)
    for column in optional:
        spare = sum(max(widths[text] - MIN_TEXT, 0) for text in texts if text in widths)
        if _total(widths) - spare <= width:
            break
        del widths[column]
    while widths and _total(widths) > width:
        candidates = [column for column in texts if widths.get(column, 0) > MIN_FOLDED] or list(widths)
        widest = max(candidates, key=lambda column: widths[column])
        if widths[widest] <= 1:
            break
        widths[widest] -= 1
    return widths


def _total(widths: Mapping[Column, int]) -> int:
    return sum(widths.values()) + GAP * (len(widths) - 1)


def _table(widths: Mapping[Column, int], rows: Iterable[Document], viewer: Viewer, *, header: bool) -> Table:
    """Return rows in columns of the given widths, with a bold header above a dim rule, and no other lines."""
    table = _empty_table(header=header)
    for column, width in widths.items():
        justify: Literal["left", "right"] = "right" if column.kind in ("number", "ago") else "left"
        table.add_column(column.heading, justify=justify, width=width, overflow="fold")
    for row in rows:
        table.add_row(*(styled(column.value_in(row), column.kind, viewer) for column in widths))
    return table


def _empty_table(*, header: bool = True) -> Table:
    return Table(
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, GAP - 1, 0, 0),
        show_header=header,
        header_style="bold",
        border_style="dim",
    )


def bars(name: str, counts: Sequence[tuple[str, int]], width: int) -> Table:
    """Return labels with their counts, percentages and bars."""
    table = _empty_table()
    table.width = width
    table.add_column(title(name), overflow="fold", max_width=width // 3)
    table.add_column("Clicks", justify="right", no_wrap=True)
    table.add_column("", justify="right", no_wrap=True, style="dim")
    table.add_column("", ratio=1, min_width=4)
    most = max((count for _, count in counts), default=0) or 1
    whole = sum(count for _, count in counts) or 1
    for label, count in counts:
        style = "" if count else "dim"
        table.add_row(
            Text(label, style), Text(f"{count:,}", style), percentage(count, whole), Bar(most, 0, count, color="cyan")
        )
    return table


def percentage(part: int, whole: int) -> str:
    """Return a share as a percentage, which is 0% only for none and 100% only for all."""
    share = part * 100 / whole
    if 0 < share < 1:
        return "<1%"
    return "100%" if part == whole else f"{min(round(share), 99)}%"


def styled(value: Any, kind: str, viewer: Viewer) -> Text:
    """Return a value as a cell of a kind."""
    if isinstance(value, Text):
        return value
    if isinstance(value, bool):
        answer = "yes" if value else "no"
        return Text(answer)
    if isinstance(value, list) and all(isinstance(element, str) for element in value):
        return Text(", ".join(map(cell, value)))
    text = cell(value) if _is_filled(value) else ""
    if kind == "state":
        return state_text(text)
    if kind == "delivery":
        return delivery(text, viewer.words)
    if kind == "number":
        style = "dim" if text == "0" else ""
        return Text(number(text), style)
    if kind == "time":
        return Text(local_time(text, viewer.now))
    if kind == "ago":
        return Text(time_ago(text, viewer.now), "dim")
    return Text(text, {"id": "dim", "strong": "bold"}.get(kind, ""))


def whole(text: str) -> int | None:
    """Return a whole number of at most 15 digits; None for any other text."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else None


def number(text: str) -> str:
    """Return a whole number with separators; any other text unchanged."""
    value = whole(text)
    return text if value is None else f"{value:,}"


def local_time(stamp: str, now: datetime) -> str:
    """Return a time of msgctl (ISO 8601, UTC): ``22:46:23`` today, ``14 Nov 22:46`` this year, or else the date.

    The result is in the time zone of ``now``, or else of this machine. A text without a time zone comes from the
    service, and is returned unchanged.
    """
    at = _read(stamp)
    if at is None:
        return stamp
    there = at.astimezone(now.tzinfo)
    if there.date() == now.date():
        return f"{there:%H:%M:%S}"
    return f"{there.day} {there:%b %H:%M}" if there.year == now.year else f"{there:%Y-%m-%d}"


def day_and_time(seconds: float, now: datetime) -> str:
    """Return a time in the zone of ``now``, or else this machine's: ``Mon 23 Nov 07:00 UTC``."""
    there = datetime.fromtimestamp(seconds, UTC).astimezone(now.tzinfo)
    year = "" if there.year == now.year else f" {there.year}"
    return f"{there:%a} {there.day} {there:%b}{year} {there:%H:%M} {now.tzinfo or there.tzname()}"


def time_ago(stamp: str, now: datetime) -> str:
    """Return the age of a time of msgctl: ``6 min ago``. Empty for a future time."""
    at = _read(stamp)
    seconds = -1 if at is None else int(now.timestamp() - at.timestamp())
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return "now" if seconds == 0 else ""


def _read(stamp: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return at if at.tzinfo else None


class FieldList:
    """Names with their values beside them, or below if a word would be broken."""

    def __init__(self, pairs: Sequence[tuple[str, Text]]) -> None:
        self._pairs = pairs

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        names = max((cell_len(name) for name, _ in self._pairs), default=0) + 3
        words = [word for _, value in self._pairs for word in value.plain.split()]
        if names + max(map(cell_len, words), default=0) > options.max_width:
            for name, value in self._pairs:
                yield Text(name, "dim")
                yield Padding(value, (0, 0, 0, 2))
            return
        grid = Table.grid(padding=(0, 3, 0, 0))
        grid.add_column(style="dim", no_wrap=True)
        grid.add_column(overflow="fold")
        for name, value in self._pairs:
            grid.add_row(name, value)
        yield grid


def _is_filled(value: Any) -> bool:
    return value is not None and value not in ("", [], {})
