"""From an answer, or a document of msgctl's own, to the format that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgctl import operations
from msgctl.http.response import Response, ShapeError, load_json
from msgctl.output import jsontext, views
from msgctl.output.cells import cell, reach
from msgctl.output.fields import finder
from msgctl.output.form import Format
from msgctl.output.plain import BLANK, Line, Row, fitting, growing, listing, summary, table, texts
from msgctl.output.result import OwnResult, RawResult, Result, ServiceResult, StreamResult, TextResult
from msgctl.output.screen import Screen
from msgctl.text import clean

MOST_PAINTED = 200
"""Rows up to which a table is coloured; Rich takes 3 seconds for 10,000 of them."""

Document = Mapping[str, Any]


class _Rows:
    """Documents as rows of clean cells, made anew at every walk, so that a long table is never held twice."""

    def __init__(self, documents: Collection[Any], row: Callable[[Any], Row]) -> None:
        self._documents = documents
        self._row = row

    def __len__(self) -> int:
        return len(self._documents)

    def __iter__(self) -> Iterator[Row]:
        return map(self._row, self._documents)


class Printer:
    """Prints results to a screen in one format; ``fields`` are the columns asked for (empty: those of the result).

    Fields have been checked with `check_fields`; JSON is printed whole, whatever they are. Every method flushes.
    """

    def __init__(self, screen: Screen, format: Format, fields: Sequence[str] = ()) -> None:
        self.screen = screen
        self.format = format
        self.fields = tuple(fields)

    def print(self, result: Result) -> None:
        """Print what a command returned."""
        if isinstance(result, ServiceResult):
            if result.asked == 1 and result.responses:
                self.answer(result.responses[0])
            else:
                self.answers(result.responses)
        elif isinstance(result, OwnResult):
            self.own(result.documents, result.columns, spare=result.spare, all_fields=not result.has_fields)
        elif isinstance(result, StreamResult):
            if result.is_list:
                self.checklist(result.documents, result.columns)
            else:
                self.follow(result.documents, result.columns)
        elif isinstance(result, TextResult):
            self.text(result.document, result.text)
        elif isinstance(result, RawResult):
            self.body(result.body, result.head)

    def answer(self, answer: Response) -> None:
        """Print one answer. As JSON: the bytes as they came, or indented on a terminal."""
        if self.format is Format.JSON:
            self._body(answer.body)
        elif self.format is not Format.TABLE:
            self._delimited(*self._selection([answer]))
        elif answer.operation.answer.entries:
            self._entries([answer])
        else:
            self._record(answer)
        self.screen.flush()

    def answers(self, answers: Sequence[Response]) -> None:
        """Print answers to one and the same operation. As JSON: one document a line."""
        if self.format is Format.JSON:
            for each in answers:
                self._line(each.body)
        elif answers and self.format is not Format.TABLE:
            self._delimited(*self._selection(answers))
        elif answers and answers[0].operation.answer is operations.RESPONSE_STATISTIC and not self.fields:
            for number, each in enumerate(answers):
                self._draw([BLANK] * bool(number))
                self._record(each)
        elif answers:
            self._entries(answers)
        self.screen.flush()

    def value(self, name: str, text: str) -> None:
        """Print one value of msgctl's own: bare where a table was asked for, so that ``$(…)`` can use it."""
        if self.format is Format.TABLE:
            self.screen.write(clean(text) + "\n")
            self.screen.flush()
        else:
            self.own({name: text}, (name,))

    def own(
        self,
        document: Document | Collection[Document],
        columns: Sequence[str],
        *,
        spare: Sequence[str] = (),
        all_fields: bool = False,
    ) -> None:
        """Print a document of msgctl's own, or several; a collection is walked more than once, and never held.

        A narrow terminal's table does without the ``spare`` columns that it has no room for. With ``all_fields`` the
        columns asked for are those of something else.
        """
        if all_fields:
            Printer(self.screen, self.format).own(document, columns)
            return
        if self.format is Format.JSON:
            self._own_json(document)
        elif isinstance(document, Mapping) and self.format is Format.TABLE:
            self._draw(listing(self._pairs(document, columns), self.screen.width))
        else:
            documents = [document] if isinstance(document, Mapping) else document
            self._own_rows(documents, columns, spare)
        self.screen.flush()

    def follow(self, documents: Iterable[Document], columns: Sequence[str]) -> None:
        """Print documents of msgctl's own one after the other, each as soon as it comes; as JSON, one a line."""
        names = self.fields or tuple(columns)
        for line in self._followed(documents, list(names)):
            self.screen.write(line)
            self.screen.flush()

    def script(self, document: Document, lines: Sequence[str]) -> None:
        """Print what another program goes on with: a JSON object, or lines that a shell can read."""
        if self.format is Format.JSON:
            self.own(document, tuple(document))
            return
        for line in lines:
            self.screen.write(clean(line) + "\n")
        self.screen.flush()

    def text(self, document: Document, text: str) -> None:
        """Print a text of msgctl's own for another program, exactly and as UTF-8; as JSON, the document."""
        if self.format is Format.JSON:
            self.own(document, tuple(document))
            return
        self.screen.write_bytes(text.encode())
        self.screen.flush()

    def checklist(self, documents: Iterable[Document], columns: Sequence[str]) -> None:
        """Print what checks found, each as soon as it comes where a table was asked for, else all at the end.

        The columns are the check, how it ended, what it found, and what to do.
        """
        if self.format is not Format.TABLE or self.fields:
            self.own(list(documents), columns)
            return
        from msgctl.output import checklist  # of one command alone

        for document in documents:
            self._draw(checklist.lines(self._texts(document, columns), self.screen.width))
            self.screen.flush()

    def body(self, body: bytes, head: Sequence[str] = ()) -> None:
        """Print the body of an answer of any kind, exactly as it came, and before it the lines of its head, clean.

        On a terminal JSON is indented, and any other text is clean, too.
        """
        for line in head:
            self.screen.write(clean(line) + "\n")
        if not self.screen.is_terminal or _is_json(body):
            self._body(body)
        elif body:
            for text in body.decode("utf-8", "backslashreplace").removesuffix("\n").split("\n"):
                self.screen.write(clean(text.removesuffix("\r").expandtabs()) + "\n")
        self.screen.flush()

    def _followed(self, documents: Iterable[Document], names: Sequence[str]) -> Iterator[str]:
        if self.format is Format.JSON:
            return (jsontext.escape(jsontext.dump(document)) + "\n" for document in documents)
        rows = ([cell(reach(document, name)) for name in names] for document in documents)
        if self.format is Format.TABLE:
            return growing(rows)
        return self._separated(names, rows)

    def _body(self, body: bytes) -> None:
        if not self.screen.is_terminal:
            self.screen.write_bytes(body)
            return
        text = jsontext.escape(body.decode("utf-8-sig"), ascii_only=not self.screen.unicode)
        for piece in jsontext.indent(text):
            self.screen.write(piece)
        self.screen.write("\n")

    def _line(self, body: bytes) -> None:
        text = jsontext.compact(body.decode("utf-8-sig"))
        if self.screen.is_terminal:
            self.screen.write(jsontext.escape(text, ascii_only=not self.screen.unicode) + "\n")
        else:
            self.screen.write_bytes(text.encode() + b"\n")

    def _record(self, answer: Response) -> None:
        """A record without entries: names and values, or the chart of its clicks."""
        record = answer.operation.answer
        if record is operations.RESPONSE_STATISTIC and not self.fields:
            from msgctl.output.bars import statistics  # a chart is for one command alone

            self._draw(statistics(answer.document, self.screen.width, self.screen.unicode))
            return
        view = views.view_of(record)
        pairs = self._pairs(answer.document, views.with_unknown(view.columns, [answer.document]))
        if view.unit and not self.fields:
            pairs = [
                (name, views.counted(value, view.unit) if name == view.columns[0] else value) for name, value in pairs
            ]
        self._draw(listing(pairs, self.screen.width))

    def _entries(self, answers: Sequence[Response]) -> None:
        """A row an entry (a record where there are none), and above them what the entries of a dispatch share."""
        view = views.view_of(answers[0].operation.answer)
        known = view.columns
        if view.key in known:
            known = (view.key, *(name for name in known if name != view.key))
        for each in answers if view.summary and not self.fields else ():
            self._draw(summary(self._shared(each, view), self.screen.width))
        columns, rows = self._selection(answers, known)
        if not rows:
            return
        if view.summary and not self.fields:
            self._draw([BLANK])
        self._draw(table(columns, rows, self.screen.width), len(rows))

    def _shared(self, answer: Response, view: views.View) -> list[tuple[str, str]]:
        names = views.with_unknown(view.summary, [answer.document])
        return [(cell(name), cell(answer.document.get(name))) for name in names if name != "data"]

    def _selection(self, answers: Sequence[Response], known: Sequence[str] = ()) -> tuple[list[str], _Rows]:
        """The columns and rows of answers to one operation; ``known`` columns come first, else the interface's."""
        record = answers[0].operation.answer
        pairs = [(entry, each.document) for each in answers for entry in views.entries(each)]
        if self.fields:
            finders = [finder(field, record) for field in self.fields]
            rows = _Rows(pairs, lambda pair: [cell(find(*pair)) for find in finders])
            return list(map(cell, self.fields)), rows
        columns = views.with_unknown(known or views.names(record), (entry for entry, _ in pairs))
        return list(map(cell, columns)), _Rows(pairs, lambda pair: [cell(pair[0].get(name)) for name in columns])

    def _pairs(self, document: Document, columns: Sequence[str]) -> list[tuple[str, str]]:
        return [(cell(name), cell(reach(document, name))) for name in self.fields or columns]

    def _texts(self, document: Document, columns: Sequence[str]) -> list[str]:
        return [cell(reach(document, name)) for name in columns]

    def _own_json(self, document: Document | Collection[Document]) -> None:
        pieces = iter([jsontext.dump(document)]) if isinstance(document, Mapping) else _array(document)
        if not self.screen.is_terminal:
            for piece in pieces:
                self.screen.write_bytes(jsontext.escape(piece).encode())
            self.screen.write_bytes(b"\n")
            return
        self._body("".join(map(jsontext.escape, pieces)).encode())

    def _own_rows(self, documents: Collection[Document], columns: Sequence[str], spare: Sequence[str]) -> None:
        names: Sequence[str] = self.fields or tuple(columns)
        rows = _own_cells(documents, names)
        if self.format is not Format.TABLE:
            self._delimited(list(names), rows)
        elif rows:
            if spare and not self.fields:
                names = fitting(names, rows, spare, self.screen.width)
                rows = _own_cells(documents, names)
            self._draw(table(names, rows, self.screen.width), len(rows))

    def _delimited(self, columns: Sequence[str], rows: Iterable[Row]) -> None:
        for line in self._separated(columns, rows):
            self.screen.write(line)

    def _separated(self, columns: Sequence[str], rows: Iterable[Row]) -> Iterator[str]:
        from msgctl.output import delimited  # and with it csv

        return (delimited.csv_lines if self.format is Format.CSV else delimited.tsv_lines)(columns, rows)

    def _draw(self, lines: Iterable[Line], rows: int = 0) -> None:
        if self.screen.color and rows <= MOST_PAINTED:
            from msgctl.output.table import painted  # 25 ms that only colour needs

            drawn = painted(lines)
        else:
            drawn = texts(lines)
        for line in drawn:
            self.screen.write(line)


def _own_cells(documents: Collection[Document], names: Sequence[str]) -> _Rows:
    return _Rows(documents, lambda document: [cell(reach(document, name)) for name in names])


def _is_json(body: bytes) -> bool:
    try:
        load_json(body)
    except ShapeError:
        return False
    return True


def _array(documents: Collection[Document]) -> Iterator[str]:
    yield "["
    for number, document in enumerate(documents):
        yield ("," if number else "") + jsontext.dump(document)
    yield "]"
