"""Print results: as a table, as JSON, as csv or tsv. Nothing else writes to standard output."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from msgctl import operations
from msgctl.http.response import Response, ShapeError, load_json
from msgctl.output import fields, jsontext, plain
from msgctl.output.fields import Rows, cell, reach, text_of
from msgctl.output.result import Document, Format, OwnResult, RawResult, Result, ServiceResult, StreamResult, TextResult
from msgctl.output.screen import writable
from msgctl.text import clean

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from msgctl.output.screen import Screen
    from msgctl.output.views import Verdict

MOST_HIGHLIGHTED = 100_000
"""Characters of JSON up to which it is coloured: Rich takes 2 ms per KB."""


class Printer:
    """Prints results in one format; ``chosen`` are the fields asked for (none: all of them).

    ``errors`` is the screen for verdicts and hints, which people see above and below a table. ``aside`` is printed
    beside the next verdict, or below a result without one. ``clock`` gives seconds since 1970.
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
        clock: Callable[[], float],
    ) -> None:
        self._screen = screen
        self._errors = errors
        self._format = format
        self._chosen = tuple(chosen)
        self._header = header
        self._clock = clock
        self.shows_verdicts = not quiet and format is Format.TABLE and screen.is_drawn and errors.is_terminal
        self.aside = ""

    def print(self, result: Result) -> None:
        """Print what a command returned, and flush."""
        if isinstance(result, ServiceResult):
            self._service(result)
        elif isinstance(result, OwnResult):
            self._own(result)
        elif isinstance(result, StreamResult):
            self._stream(result)
        elif isinstance(result, TextResult):
            self._text(result)
        elif isinstance(result, RawResult):
            self._raw(result)
        self._screen.flush()
        if self.aside:
            self._console(self._errors).print(self.aside, style="hint")
            self.aside = ""

    # --- responses of the service

    def _service(self, result: ServiceResult) -> None:
        if self._format is Format.JSON and not self._chosen:
            for response in result.responses:
                self._json(response.body, compact=result.asked > 1)
        elif not result.responses:
            return
        elif self._rows_only:
            self._rows(*self._table(result.responses))
        elif self._screen.is_drawn:
            self._show_service(result)
        else:
            self._pipe_service(result.responses)

    @property
    def _rows_only(self) -> bool:
        return bool(self._chosen) or self._format is not Format.TABLE

    def _table(self, responses: Sequence[Response]) -> tuple[Sequence[str], list[Document]]:
        answer = responses[0].operation.answer
        rows = [row for response in responses for row in fields.rows_of(response)]
        columns = self._chosen or fields.columns_of(answer, rows)
        if answer is operations.RESPONSE_STATISTIC:  # without metrics there is no row, unless other fields are chosen
            rows = [row for row in rows if any(reach(row, name) is not None for name in columns)]
        return columns, rows

    def _show_service(self, result: ServiceResult) -> None:
        from msgctl.output import views

        now, out = self._clock(), self._console(self._screen)
        verdict = views.verdict_of(result, now) if self.shows_verdicts else None
        if verdict:
            self._verdict(verdict)
        written = [each._replace(document=writable(each.document, self._screen.stream)) for each in result.responses]
        parts = list(views.parts_of(written, now, out.width))
        if verdict and parts:
            out.print()
        self._draw(out, parts)
        self._hint(out, views.hints_of(result) if verdict and not result.failures else [])

    def _pipe_service(self, responses: Sequence[Response]) -> None:
        answer = responses[0].operation.answer
        columns, rows = self._table(responses)
        columns = sorted(columns, key=fields.place_in_pipe)
        if answer is operations.RESPONSE_STATISTIC:
            for response in responses:
                names = [name for name in response.document if name != "metrics"]
                self._lines(plain.listing([(cell(name), cell(response.document[name])) for name in names]))
        if answer.entries or len(responses) > 1 or answer is operations.RESPONSE_STATISTIC:
            if rows:
                self._lines(plain.aligned([*map(cell, columns)], [[cell(row.get(n)) for n in columns] for row in rows]))
        else:
            self._lines(plain.listing([(cell(name), cell(rows[0].get(name))) for name in columns]))

    # --- documents of msgctl's own

    def _own(self, result: OwnResult) -> None:
        columns = self._chosen if self._chosen and result.has_fields else result.columns
        is_one = isinstance(result.documents, Mapping)
        if self._format is Format.JSON and columns is result.columns:
            self._own_json(result.documents)
        elif self._format is not Format.TABLE:
            self._rows(columns, [result.documents] if is_one else result.documents)
        elif self._screen.is_drawn:
            self._show_own(result, columns)
        elif isinstance(result.documents, Mapping):
            self._lines(plain.listing([(cell(name), cell(reach(result.documents, name))) for name in columns]))
        elif result.documents:
            self._lines(plain.aligned([*map(cell, columns)], _cells(result.documents, columns)))

    def _show_own(self, result: OwnResult, columns: Sequence[str]) -> None:
        from msgctl.output import views

        out = self._console(self._screen)
        documents = writable(result.documents, self._screen.stream)
        view = result.view if columns is result.columns else ""
        shown = OwnResult(documents, columns, spare=result.spare, view=view, failures=result.failures)
        verdict, hints = views.own_verdict(shown) if self.shows_verdicts else (None, [])
        if verdict:
            self._verdict(verdict)
        elif view == "job end":  # the end of a job without a verdict above it
            shown.view = "job"
        self._draw(out, views.own_parts(shown, self._clock(), out.width))
        self._hint(out, hints)

    def explain(self, parts: Iterable[RenderableType]) -> None:
        """Print something for a person to read before a question."""
        self._draw(self._console(self._errors), parts)
        self._errors.flush()

    def _verdict(self, verdict: Verdict) -> None:
        from msgctl.output import theme

        errors = self._console(self._errors)
        errors.print(theme.verdict(verdict.kind, *verdict.parts, aside=self.aside))
        self.aside = ""
        self._errors.flush()

    def _hint(self, out: Console, hints: list[str]) -> None:
        from msgctl.output import theme

        if hints:
            out.print()
            self._screen.flush()
            theme.print_hints(self._console(self._errors), hints)

    def _stream(self, result: StreamResult) -> None:
        columns = self._chosen or tuple(result.columns)
        if self._screen.is_terminal and not self._rows_only and result.view in ("inbox",):
            self._show_stream(result)
        elif result.view == "doctor" and not self._rows_only:
            self._show_checks(result.documents)
        elif result.is_list:
            self._own(OwnResult(list(result.documents), result.columns))
        elif self._format is Format.JSON:
            for document in result.documents:
                chosen = fields.select(document, self._chosen) if self._chosen else document
                self._screen.write(jsontext.escape(jsontext.dump(chosen)) + "\n")
                self._screen.flush()
        else:
            self._follow(columns, result.documents)

    def _show_stream(self, result: StreamResult) -> None:
        from msgctl.output import views

        out = self._console(self._screen)
        for part in views.stream_parts(result, self._clock, out.width):
            out.print(part)
            self._screen.flush()

    def _follow(self, columns: Sequence[str], documents: Iterable[Document]) -> None:
        """Print rows as they come, in columns of their usual width."""
        if self._format is not Format.TABLE:
            for line in self._delimited(columns, documents):
                self._screen.write(line)
                self._screen.flush()
            return
        widths = [max(len(name), plain.USUAL_WIDTHS.get(name, 0)) for name in columns]
        self._screen.write(plain.padded(columns, widths))
        self._screen.flush()
        for document in documents:
            self._screen.write(plain.padded([cell(reach(document, name)) for name in columns], widths))
            self._screen.flush()

    def _show_checks(self, documents: Iterable[Document]) -> None:
        if not self._screen.is_drawn:
            self._lines(plain.checks(documents))
            return
        from msgctl.output import checks

        out = self._console(self._screen)
        for part in checks.parts(documents, out.width):
            out.print(part)
            self._screen.flush()

    # --- texts

    def _text(self, result: TextResult) -> None:
        if self._format is Format.JSON:
            self._own_json(result.document)
        elif self._screen.is_terminal:
            self._screen.write(result.text)
        else:
            self._screen.write_bytes(result.text.encode())

    def _raw(self, result: RawResult) -> None:
        for line in result.head:
            self._screen.write(clean(line) + "\n")
        if self._screen.is_terminal and _is_json(result.body):
            self._json(result.body)
        elif not self._screen.is_terminal:
            self._screen.write_bytes(result.body)
        elif result.body:
            for text in result.body.decode("utf-8", "backslashreplace").removesuffix("\n").split("\n"):
                self._screen.write(clean(text.removesuffix("\r").expandtabs()) + "\n")

    # --- how each format is written

    def _json(self, body: bytes, *, compact: bool = False) -> None:
        """Print JSON: the exact bytes and a final newline, or indented and coloured on a terminal."""
        if not self._screen.is_terminal:
            document = jsontext.compact(body.decode("utf-8-sig")).encode() if compact else body
            self._screen.write_bytes(document if document.endswith(b"\n") else document + b"\n")
            return
        text = jsontext.escape(body.decode("utf-8-sig"), ascii_only=not _is_unicode(self._screen))
        if len(text) > MOST_HIGHLIGHTED or not self._screen.color:
            for piece in chain(jsontext.indent(text), "\n"):
                self._screen.write(piece)
            return
        from rich.highlighter import JSONHighlighter
        from rich.text import Text

        self._console(self._screen).print(JSONHighlighter()(Text("".join(jsontext.indent(text)))), soft_wrap=True)

    def _own_json(self, documents: Document | Collection[Document]) -> None:
        pieces = [jsontext.dump(documents)] if isinstance(documents, Mapping) else _array(documents)
        if self._screen.is_terminal:
            self._json("".join(pieces).encode("utf-8", "surrogatepass"))
            return
        for piece in chain(pieces, "\n"):
            self._screen.write_bytes(jsontext.escape(piece).encode())

    def _rows(self, columns: Sequence[str], documents: Collection[Any]) -> None:
        """Print rows in a format that has only these columns: csv, tsv, or what --fields chose."""
        if self._format is Format.JSON:
            self._own_json([fields.select(document, columns) for document in documents])
        elif self._format is not Format.TABLE:
            self._lines(self._delimited(columns, documents))
        elif not documents:
            return
        elif self._screen.is_drawn:
            self._show_own(OwnResult(documents, columns), columns)
        else:
            self._lines(plain.aligned([*map(cell, columns)], _cells(documents, columns)))

    def _delimited(self, columns: Sequence[str], documents: Iterable[Document]) -> Iterator[str]:
        values = ([text_of(reach(document, name)) for name in columns] for document in documents)
        rows = chain([list(columns)], values) if self._header else values
        return (plain.csv_lines if self._format is Format.CSV else plain.tsv_lines)(rows)

    def _lines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self._screen.write(line)

    def _draw(self, out: Console, parts: Iterable[RenderableType]) -> None:
        for part in parts:
            out.print(part)

    @staticmethod
    def _console(screen: Screen) -> Console:
        from msgctl.output.theme import console

        return console(screen.stream, width=screen.width or 80, color=screen.color)


def _cells(documents: Collection[Document], columns: Sequence[str]) -> Rows:
    return Rows(documents, lambda document: [cell(reach(document, name)) for name in columns])


def _is_json(body: bytes) -> bool:
    try:
        load_json(body)
    except ShapeError:
        return False
    return True


def _is_unicode(screen: Screen) -> bool:
    return (getattr(screen.stream, "encoding", None) or "utf-8").lower().replace("_", "-").startswith("utf")


def _array(documents: Iterable[Document]) -> Iterator[str]:
    yield "["
    for number, document in enumerate(documents):
        yield ("," if number else "") + jsontext.dump(document)
    yield "]"
