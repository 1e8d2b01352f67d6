"""Turn results into rows of named values, and rows into csv, tsv and JSON Lines. Without Rich."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from msgctl import jsontext
from msgctl.errors import UsageError
from msgctl.http.response import Response
from msgctl.operations import Record, Shape
from msgctl.output.result import Document
from msgctl.text import clean, escape, nearest, shorten, storable

MAX_UNKNOWN = 64
"""Maximum undocumented fields of a record that a terminal shows."""
MAX_REPEATED = 200
"""Maximum characters of a dispatch's field, which is repeated in the row of each entry."""
METRIC_FIELDS = ("category", "property", "clicks", "percent", "date", "region", "countryIsoCode")
"""The columns of click statistics, one row per metric."""

_FORMULA = r"[=@\t\r]|[+-](?!\.?[0-9][0-9.]*(?:[eE][+-]?[0-9]+)?\Z|(?=.*[0-9] +[0-9(])[0-9 ().-]*\Z)"
"""A cell that a spreadsheet would run as a formula.

+57-300 and -e5 (a cell) are formulas, and +57300 is a number. +57 300 123-4567 is text, because a space separates two
of its numbers.
"""

_CONTROLS = {code: escape(chr(code)) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\t\r\n"}

_CONTROLS_OF_TSV = _CONTROLS | {ord(char): escape(char) for char in "\t\r\n"}


def cell(value: Any) -> str:
    """Return a value as one line of clean text: null is empty, numbers are unchanged, arrays and objects are JSON."""
    return clean(text_of(value))


def text_of(value: Any) -> str:
    """Return a value as text with its line ends: null is empty, arrays and objects are compact JSON."""
    if value is None:
        return ""
    if isinstance(value, str):  # includes a `Number` from the service
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (Mapping, list, tuple)):
        return jsontext.dump(value)
    return str(value)


def flat(document: Document) -> Document:
    """Return a document in which the fields of inner objects have dotted names, such as ``form.phone``."""
    columns: dict[str, Any] = {}
    for name, value in document.items():
        if isinstance(value, Mapping):
            columns |= {f"{name}.{inner}": content for inner, content in value.items()}
        else:
            columns[name] = value
    return columns


def of_record(record: Record) -> tuple[str, ...]:
    """Return the columns of an operation's responses: the fields of an entry, then the fields of its dispatch."""
    if record.shape is Shape.STATISTICS:
        return METRIC_FIELDS
    names = [field.name for field in record.fields]
    if not record.entries:
        return tuple(names)
    own = sorted((name for name in names if name != "data"), key=lambda name: (name != "id", name != "status"))
    return (*(field.name for field in record.entries), *map(_beside_entries, own))


def _last_state(row: Document, states: Mapping[tuple[str, str | None], str]) -> str | None:
    message = str(row.get("id"))
    return states.get((message, row.get("phone"))) or states.get((message, None))


def rows_of(response: Response) -> Iterator[Document]:
    """Return the rows of a response: one for each entry or metric, or one for a record without ``data``.

    An entry's row includes the fields of its dispatch: ``dispatch.id`` and ``dispatch.status``, and the others under
    their own names.
    """
    record, document = response.operation.record, response.document
    if record.shape is Shape.STATISTICS:
        metrics = [{"category": category, **values} for category, values in metrics_of(document)]
        own = {field.name: document[field.name] for field in record.fields if field.name in document}
        yield from ({**own, **metric} for metric in metrics or [{}])
    elif record.shape is Shape.STATES:
        yield from document.get("data", [document])
    elif not record.entries:
        yield document
    else:
        names = [field.name for field in record.fields if field.name in document and field.name != "data"]
        dispatch = {_beside_entries(name): _short(document[name]) for name in names}
        for entry in document.get("data") or ():
            yield {**dispatch, **entry}


def _short(value: Any) -> Any:
    """Truncate the text of a value that repeats in many rows, if it is long."""
    text = text_of(value)
    return value if len(text) <= MAX_REPEATED else f"{text[:MAX_REPEATED]}…"


def of_document(record: Record, document: Document) -> tuple[str, ...]:
    """Return the fields of a record without entries: the documented fields, then the fields that the service adds."""
    known = of_record(record)
    others = (name for name in document if name not in known and name not in ("data", "metrics"))
    return (*known, *islice(others, MAX_UNKNOWN))


def table(
    responses: Sequence[Response], chosen: Sequence[str] = (), states: Mapping[tuple[str, str | None], str] = {}
) -> tuple[Sequence[str], list[Document]]:
    """Return the columns and rows of responses to one operation; ``chosen`` are the columns of --fields, if any.

    The columns are only the documented fields, so fields that a service adds do not change them. ``states`` replace the
    states in the responses. A key of ``states`` is an ID and a phone, or an ID and None.
    """
    record = responses[0].operation.record
    rows = [row for response in responses for row in rows_of(response)]
    if states:
        name = "state" if any(field.name == "state" for field in record.entries) else "status"
        rows = [{**row, name: _last_state(row, states) or row.get(name)} for row in rows]
    columns = chosen or of_record(record)
    if record.shape is Shape.STATISTICS:  # no row without metrics, unless other fields are chosen
        rows = [row for row in rows if any(row.get(name) is not None for name in columns)]
    return columns, rows


def metrics_of(document: Document) -> Iterator[tuple[str, Document]]:
    """Return the metrics of click statistics, each with its category."""
    for metric in document.get("metrics") or ():
        for category, values in metric.items():
            if isinstance(values, Mapping):
                yield category, values


def _beside_entries(name: str) -> str:
    """Return the column name of a dispatch's field."""
    return f"dispatch.{name}" if name in ("id", "status") else name


def check_names(fields: Sequence[str], columns: Iterable[str]) -> None:
    """Check that the chosen fields are columns. Raises UsageError."""
    known = list(dict.fromkeys(columns))
    if not known:
        raise UsageError("--fields: this command prints no fields", "Leave --fields out.")
    for field in fields:
        if field not in known:
            near = nearest(field, known)
            hint = near and f"Did you mean {near}?"
            raise UsageError(f'--fields: unknown field "{shorten(field)}". Fields: {", ".join(known)}', hint)


def lines(
    as_line: Callable[..., str],
    columns: Sequence[str],
    rows: Iterable[Document],
    *,
    header: bool,
    is_terminal: bool = False,
) -> Iterator[str]:
    """Yield the lines of a table; ``as_line`` is `csv_line` or `tsv_line`."""
    if header:
        yield as_line(columns, is_terminal=is_terminal)
    for row in rows:
        yield as_line((text_of(row.get(name)) for name in columns), is_terminal=is_terminal)


def csv_line(row: Iterable[str], *, is_terminal: bool) -> str:
    """Return a row quoted according to RFC 4180, but with a bare line feed. Newlines in a cell stay newlines.

    In a pipe, only control characters other than white space are escaped. So a file that msgctl copies and reads again
    keeps its cells: phones copied from a chat have direction marks, and names have soft hyphens and joiners.
    """
    import csv  # not needed for tables

    cells = map(_guard, row)
    if is_terminal:
        cells = map(clean_lines, cells)
    line = io.StringIO()
    # csv quotes a cell with a carriage return only if the line ends with one.
    csv.writer(line, lineterminator="\r\n").writerow(cells)
    return storable(line.getvalue().translate(_CONTROLS)).removesuffix("\r\n") + "\n"


def clean_lines(text: str) -> str:
    """Return clean text with its line ends, as line feeds."""
    return "\n".join(map(clean, text.replace("\r\n", "\n").replace("\r", "\n").split("\n")))


def tsv_line(row: Iterable[str], *, is_terminal: bool) -> str:
    """Return cells separated by tabs, without quotes; backslash, tab and line ends in a cell are escaped.

    On a terminal, `clean` escapes every unsafe character, too. In a pipe, control characters are escaped, as in csv.
    """
    cells = [text.replace("\\", "\\\\") for text in row]
    if is_terminal:
        return "\t".join(map(clean, cells)) + "\n"
    return storable("\t".join([cell.translate(_CONTROLS_OF_TSV) for cell in cells])) + "\n"


def jsonl_line(columns: Iterable[str], document: Document) -> str:
    """Return these columns of a document as a line of JSON; an empty cell is null."""
    values = {name: None if document.get(name) == "" else document.get(name) for name in columns}
    return jsontext.escape_json(jsontext.dump(values)) + "\n"


def _guard(text: str) -> str:
    return "'" + text if re.match(_FORMULA, text) else text
