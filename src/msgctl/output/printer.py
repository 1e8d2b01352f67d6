"""Print results: as a table, JSON, csv, tsv or JSON Lines."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, TextIO

from msgctl import jsontext
from msgctl.jsontext import ShapeError, load_json
from msgctl.operations import Shape
from msgctl.outcomes.words import NO_WORDS, AddedWords
from msgctl.output import fields
from msgctl.output.result import (
    Document,
    Format,
    Item,
    Layout,
    OwnResult,
    RawResult,
    Result,
    ServiceResult,
    StoredRows,
    TextResult,
)
from msgctl.text import clean, shorten

if TYPE_CHECKING:
    from datetime import datetime

    from rich.console import Console, RenderableType

MAX_WRITTEN = 65_536
"""Characters written at once: a terminal's stream flushes each line."""
PIPE_WIDTH = 100
"""The width of a table in a pipe."""
UNFOLDED = 10_000
"""The width of standard error in a pipe, so that notes about a job are not folded."""
_USUAL_WIDTH = 80
_MIN_WIDTH = 10
"""Minimum width for wrapping; a narrower terminal folds the lines itself."""


class Screen(NamedTuple):
    """A stream: its ``width`` in columns (None if it is not a terminal), and whether it shows ``color``."""

    stream: TextIO
    width: int | None
    color: bool

    def write_bytes(self, data: bytes) -> None:
        """Write UTF-8 bytes unchanged, whatever the encoding of the stream."""
        self.stream.flush()
        remaining = memoryview(data)
        while remaining:  # an unbuffered stream (python -u) may write only a part
            remaining = remaining[self.stream.buffer.write(remaining) :]


def terminal_width(stream: TextIO) -> int:
    """Return the columns of a terminal: COLUMNS, or else the terminal's width; at least `_MIN_WIDTH`."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isascii() and columns.isdecimal() and len(columns) < 6 and int(columns) > 0:
        return max(int(columns), _MIN_WIDTH)
    try:
        return max(os.get_terminal_size(stream.fileno()).columns or _USUAL_WIDTH, _MIN_WIDTH)
    except (OSError, ValueError):  # a stream that reports a terminal but has no file descriptor
        return _USUAL_WIDTH


class Printer:
    """Prints results in one format; ``chosen`` are the fields to print (none: all).

    ``errors`` is the screen for the verdict above a table and the hints below it. ``aside`` is printed beside the next
    verdict, or below a result without one. ``now`` returns the time in the user's zone, and ``words`` the words of the
    profile. ``for_profile`` adds the run's profile to the commands of a hint.
    """

    def __init__(
        self,
        screen: Screen,
        errors: Screen,
        format: Format,
        chosen: Sequence[str] = (),
        *,
        header: bool = True,
        quiet: bool = False,
        now: Callable[[], datetime],
        for_profile: Callable[[str], str] = str,
        words: Callable[[], AddedWords] = lambda: NO_WORDS,
    ) -> None:
        self._screen = screen
        self._errors = errors
        self._format = format
        self._chosen = tuple(chosen)
        self._header = header
        self._now = now
        self._for_profile = for_profile
        self._words = words
        self._is_drawn = format is Format.TABLE
        is_terminal = screen.width is not None and errors.width is not None
        self.shows_verdicts = not quiet and self._is_drawn and is_terminal
        self.aside = ""

    def print(self, result: Result) -> None:
        """Print the result of a command, and flush."""
        if isinstance(result, RawResult):
            self._raw(result.body)
        elif isinstance(result, TextResult):
            self._text(result)
        elif isinstance(result, ServiceResult):
            if result.responses:  # otherwise, the failures explain why
                self._service(result)
        else:
            self._own(result)
        self._screen.stream.flush()
        self._print_aside()

    def explain(self, parts: Iterable[RenderableType]) -> None:
        """Print details for the user before a question."""
        _draw(self._error_console(), parts)

    def print_states(self, states: Iterable[tuple[str, str]]) -> None:
        """Print new delivery states on standard error, each after its phone: ``573001234567  ✓ delivered``."""
        from rich.text import Text

        from msgctl.output.tables import delivery

        words = self._words()
        self.explain(
            Text.assemble(shorten(name, 60), "  ", delivery(shorten(state, 60), words)) for name, state in states
        )

    def print_last_states(self, rows: Sequence[Document]) -> None:
        """Print the last states of tracked messages on a terminal: rows with ``phone`` and ``state``."""
        if self.shows_verdicts:
            from msgctl.output.tables import Column, Viewer, listing

            viewer = Viewer(self._now(), self._error_console().width)
            self.explain(listing([Column("phone"), Column("state")], rows, viewer))

    def _print_aside(self) -> None:
        """Print the text that no verdict has shown."""
        if self.aside:
            self._error_console().print(self.aside, style="dim")
            self.aside = ""

    # --- tables

    def _error_console(self) -> Console:
        from msgctl.output.tables import console

        return console(self._errors.stream, width=self._errors.width or UNFOLDED, color=self._errors.color)

    def _show(self, result: ServiceResult | OwnResult) -> None:
        from msgctl.output import tables, views

        out = tables.console(self._screen.stream, width=self._screen.width or PIPE_WIDTH, color=self._screen.color)
        errors = self._error_console()
        viewer = tables.Viewer(self._now(), out.width, self._words())
        if isinstance(result, ServiceResult):
            view = views.service_view(result, viewer, with_verdict=self.shows_verdicts)
        else:
            view = views.own_view(result, viewer, with_verdict=self.shows_verdicts)
        if view.verdict:
            errors.print(tables.verdict(*view.verdict, aside=self.aside))
            self.aside = ""
        _draw(out, view.parts)
        if view.hints:
            self._print_aside()
            out.print()
            for hint in view.hints:
                errors.print(tables.hint(self._for_profile(hint)), soft_wrap=True)

    def _service(self, result: ServiceResult) -> None:
        if self._format is Format.JSON:
            for response in result.responses:
                self._json(response.body)
        elif self._is_drawn and (not self._chosen or result.responses[0].operation.record.shape is Shape.BALANCE):
            self._show(result)  # the only field of a balance has a separate view
        else:
            columns, rows = fields.table(result.responses, self._chosen, result.states)
            self._rows(columns, rows)

    def _own(self, result: OwnResult) -> None:
        if self._is_drawn and (not self._chosen or result.layout is Layout.REQUEST):
            self._show(result)
            return
        documents = _documents(result.content)
        if self._format is Format.JSON:
            self._own_json(documents)
            return
        rows = [documents] if isinstance(documents, Mapping) else documents
        columns = result.columns
        if self._chosen and result.layout is not Layout.REQUEST:
            columns = self._chosen
        if not result.failures or rows != []:  # a list that could not be read is not an empty list
            self._rows(columns, rows)

    def _rows(self, columns: Sequence[str], documents: Iterable[Document]) -> None:
        """Print these columns of rows."""
        if self._is_drawn:
            self._show(OwnResult(documents, columns))
            return
        if self._format is Format.JSONL:
            self._write(fields.jsonl_line(columns, document) for document in documents)
            return
        as_line = fields.tsv_line if self._format is Format.TSV else fields.csv_line
        is_terminal = self._screen.stream.isatty()
        self._write(fields.lines(as_line, columns, documents, header=self._header, is_terminal=is_terminal))

    # --- texts

    def _text(self, result: TextResult) -> None:
        if self._format in (Format.JSON, Format.JSONL):
            self._own_json(result.document)
        else:
            self._screen.write_bytes(result.text.encode())

    def _raw(self, body: bytes) -> None:
        """Print the body of a response unchanged, or cleaned on a terminal."""
        if not body:
            return
        if not self._screen.stream.isatty():
            if self._format is Format.JSON:
                self._json(body)
            else:
                self._screen.write_bytes(body)
            return
        try:
            load_json(body)
        except ShapeError:
            lines = body.decode("utf-8", "backslashreplace").removesuffix("\n").split("\n")
            self._write(clean(line.removesuffix("\r").expandtabs()) + "\n" for line in lines)
        else:
            self._json(body)

    # --- JSON

    def _json(self, body: bytes) -> None:
        """Print JSON: the exact bytes and a final newline.

        On a terminal, control characters in strings are escaped, and CR between tokens is a newline.
        """
        if self._screen.stream.isatty():
            is_unicode = self._screen.stream.encoding.lower().startswith("utf")
            text = jsontext.escape_json(body.decode("utf-8-sig"), ascii_only=not is_unicode)
            text = text.replace("\r\n", "\n").replace("\r", "\n")
            self._screen.stream.write(text.removesuffix("\n") + "\n")
        else:
            self._screen.write_bytes(body.removesuffix(b"\n") + b"\n")

    def _own_json(self, documents: Document | Iterable[Document]) -> None:
        pieces = [jsontext.dump(documents)] if isinstance(documents, Mapping) else _array(documents)
        for piece in chain(pieces, "\n"):
            self._screen.write_bytes(jsontext.escape_json(piece).encode())

    def _write(self, lines: Iterable[str]) -> None:
        waiting, size = [], 0
        for line in lines:
            waiting.append(line)
            size += len(line)
            if size >= MAX_WRITTEN:
                self._screen.stream.write("".join(waiting))
                waiting, size = [], 0
        self._screen.stream.write("".join(waiting))


def _draw(console: Console, parts: Iterable[RenderableType]) -> None:
    """Print parts without the blanks that Rich adds at the end of lines."""
    for part in parts:
        with console.capture() as drawn:
            console.print(part)
        console.file.write("".join(f"{line.rstrip()}\n" for line in drawn.get().splitlines()))


def _documents(content: Item | Iterable[Item]) -> Document | Iterable[Document]:
    """Return the documents of msgctl's own results."""
    if isinstance(content, StoredRows):
        return content
    if isinstance(content, Iterable) and not isinstance(content, Mapping):
        return [_document(item) for item in content]
    return _document(content)


def _document(item: Item) -> Document:
    return item if isinstance(item, Mapping) else item.document()


def _array(documents: Iterable[Any]) -> Iterator[str]:
    before = "["  # printed with the first document, since a store may fail before it
    for document in documents:
        yield before + jsontext.dump(document)
        before = ","
    yield "]" if before == "," else "[]"
