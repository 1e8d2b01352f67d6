"""How a terminal shows things: colours, states, verdicts, hints. Colours are the 16 of the terminal's own theme."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TextIO

from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text
from rich.theme import Theme

from msgctl.text import clean

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
        "json.key": "cyan",
        "json.str": "green",
        "json.number": "default",
        "json.bool_true": "yellow",
        "json.bool_false": "yellow",
        "json.null": "dim",
        "json.brace": "dim",
    }
)

SIGNS = {"ok": "✓", "bad": "✗", "warn": "!", "busy": "○", "off": "–"}
"""One sign for each kind of state, so that a state can be read without colour."""

_KINDS = {
    word: kind
    for kind, words in {
        "ok": "delivered verified answered accepted done ok read seen completed active created",
        "bad": "rejected undelivered failed busy not-answered refused invalid expired error missing",
        "warn": "unknown paused warning partial",
        "busy": "queued sent ringing running waiting scheduled",
        "off": "skipped not-sent pending duplicate blocked excluded",
    }.items()
    for word in words.split()
}


def kind_of(state: str) -> str | None:
    """Return the kind of a delivery state, an outcome or a job's state; None for a word that is not known."""
    return _KINDS.get(state.lower().replace("_", "-").replace(" ", "-"))


def console(stream: TextIO, *, color: bool, width: int | None = None) -> Console:
    """Return a console that shows text as it is: no markup, no emoji codes, no highlighting.

    Without a ``width`` it follows the terminal's.
    """
    return Console(
        file=stream,
        width=width,
        theme=THEME,
        markup=False,
        emoji=False,
        highlight=False,
        color_system="standard" if color else None,
        no_color=not color,
        force_terminal=True,
        legacy_windows=False,
    )


def state(word: str, number: int | None = None) -> Text:
    """Return a state as a sign and the service's own word, with how many are in it: ``✗ 4 rejected``."""
    kind = kind_of(word)
    shown = clean(word) if number is None else f"{number:,} {clean(word)}"
    return Text(shown) if kind is None else Text(f"{SIGNS[kind]} {shown}", kind)


def verdict(kind: str, *parts: str, aside: str = "") -> Table:
    """Return one line that says what happened, with its counts."""
    told = Text.assemble(*[each for part in parts for each in ((" · ", "dim"), clean(part))][1:])
    return signed(kind, Flow([told, Text(aside, "dim")] if aside else [told]))


def signed(kind: str, content: RenderableType) -> Table:
    """Return content beside a sign."""
    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    grid.add_row(Text(SIGNS[kind], kind), content)
    return grid


class Flow:
    """Parts beside each other, as many as fit on a line; a part that fits on one line is never broken."""

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
        longest = sum(part.cell_len + len(self._gap) for part in self._parts)
        return Measurement(1, min(longest, options.max_width))


def hint(text: str) -> Text:
    """Return what to do next. It is printed without wrapping, so that a command in it can be copied."""
    return Text(f"→ {clean(text)}", "dim")
