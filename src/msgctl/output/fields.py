"""Turn results into rows of named values, and rows into clean text: columns for pipes, csv, tsv. Without Rich."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgctl import jsontext, operations
from msgctl.errors import UsageError
from msgctl.http.response import Response
from msgctl.operations import Record
from msgctl.text import clean, shorten

MAX_UNKNOWN = 64
"""Maximum undocumented fields that get a column; a hostile response could have a new field in every entry."""
MAX_REPEATED = 200
"""Characters of a dispatch's field that is repeated beside each of its entries; a hostile response has a megabyte."""
METRIC_FIELDS = ("category", "property", "clicks", "percent", "date", "region", "countryIsoCode")
"""The columns of click statistics, one row per metric."""

GAP = "  "
_FORMULA = re.compile(r"[=@\t\r]|[+-](?![0-9.]*\Z|(?=.*[0-9] +[0-9(])[0-9 ().-]*\Z)")
"""A cell that a spreadsheet would run as a formula. +57-300 is a formula; +57300 is a number; +57 300 123-4567 is text,
because only a space separates two of its numbers."""

Row = Mapping[str, Any]


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


def reach(value: Any, name: str) -> Any:
    """Return the value at a dotted name, through objects and indexes of arrays; None if it does not exist.

    A whole name takes precedence: ``dispatch.id`` may be a field, and ``x.y`` may be the name of a form field.
    """
    rest = name
    while rest:
        if isinstance(value, Mapping) and rest in value:
            return value[rest]
        part, _, rest = rest.partition(".")
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, (list, tuple)):
            value = value[int(part)] if part.isdecimal() and len(part) < 8 and int(part) < len(value) else None
        else:
            return None
    return value


def of_record(record: Record) -> tuple[str, ...]:
    """Return the columns of an operation's responses: the fields of an entry, then the fields of its dispatch."""
    if record is operations.RESPONSE_STATISTIC:
        return METRIC_FIELDS
    names = [field.name for field in record.fields]
    if not record.entries:
        return tuple(names)
    own = sorted((name for name in names if name != "data"), key=lambda name: (name != "id", name != "status"))
    return (*(field.name for field in record.entries), *map(_beside_entries, own))


def rows_of(response: Response) -> Iterator[Row]:
    """Return the rows of a response: one for each entry or metric, or one for a record without ``data``.

    An entry's row includes the fields of its dispatch: ``dispatch.id`` and ``dispatch.status``, and the others under
    their own names.
    """
    record, document = response.operation.record, response.document
    if record is operations.RESPONSE_STATISTIC:
        metrics = [{"category": category, **values} for category, values in metrics_of(document)]
        own = {field.name: document[field.name] for field in record.fields if field.name in document}
        yield from ({**own, **metric} for metric in metrics or [{}])
    elif record is operations.RESPONSE_STATE:
        yield from document.get("data", [document])
    elif not record.entries:
        yield document
    else:
        status = "state" if any(field.name == "state" for field in record.entries) else "status"
        entries = document.get("data") or [{"id": document.get("id"), status: document.get("status")}]
        dispatch = {_beside_entries(name): _short(value) for name, value in document.items() if name != "data"}
        for entry in entries:
            yield {**dispatch, **entry, "data": entries}


def _short(value: Any) -> Any:
    """Return a value that is repeated in many rows; one that is not plain becomes text, so that it is written once."""
    if value is None or isinstance(value, bool):
        return value
    text = text_of(value)
    return text if len(text) <= MAX_REPEATED else f"{text[:MAX_REPEATED]}…"


def columns_of(record: Record, rows: Iterable[Row]) -> tuple[str, ...]:
    """Return the columns of rows, with undocumented fields last."""
    known = of_record(record)
    hidden = {"data", "metrics", "urlShort", "urlLong", "clicksNumber"}
    unknown: dict[str, None] = {}
    for row in rows:
        for name in row:
            if name not in known and name not in hidden and len(unknown) < MAX_UNKNOWN:
                unknown[name] = None
    return (*known, *unknown)


def table(responses: Sequence[Response], chosen: Sequence[str]) -> tuple[Sequence[str], list[Row]]:
    """Return the columns and rows of responses to one operation; ``chosen`` are the columns of --fields, if any."""
    record = responses[0].operation.record
    rows = [row for response in responses for row in rows_of(response)]
    for name in chosen:
        if name.startswith("data.") and not name[5:6].isdecimal():  # data.id is the same as id, the id of each entry
            rows = [{name: reach(row, name[5:]), **row} for row in rows]
    columns = chosen or columns_of(record, rows)
    if record is operations.RESPONSE_STATISTIC:  # no row without metrics, unless other fields are chosen
        rows = [row for row in rows if any(reach(row, name) is not None for name in columns)]
    return columns, rows


def metrics_of(document: Row) -> Iterator[tuple[str, Row]]:
    """Return the metrics of click statistics, each with its category."""
    for metric in document.get("metrics") or ():
        for category, values in metric.items():
            if isinstance(values, Mapping):
                yield category, values


def _beside_entries(name: str) -> str:
    """Return the column name of a dispatch's field."""
    return f"dispatch.{name}" if name in ("id", "status") else name


def check(fields: Sequence[str], columns: Iterable[str]) -> None:
    """Check that the chosen fields are columns, or parts of columns. Raises UsageError."""
    known = list(dict.fromkeys(columns))
    for field in fields:
        if {field, field.partition(".")[0], field.removeprefix("data.").partition(".")[0]}.isdisjoint(known):
            if not known:
                raise UsageError("--fields: this command prints no fields", "Leave --fields out.")
            import difflib  # rare

            near = difflib.get_close_matches(field, known, n=1)
            raise UsageError(
                f'--fields: unknown field "{shorten(field)}". Fields: {", ".join(known)}',
                f"Did you mean {near[0]}?" if near else None,
            )


def check_parts(fields: Sequence[str], record: Record) -> None:
    """Check that chosen parts are of arrays and objects, and not of texts or numbers. Raises UsageError."""
    containers = (operations.Kind.ARRAY, operations.Kind.OBJECT)
    plain = {field.name for field in (*record.fields, *record.entries) if field.kind not in containers}
    for field in fields:
        whole, dot, _ = field.removeprefix("data.").partition(".")
        if dot and whole in plain:
            raise UsageError(f'--fields: unknown field "{shorten(field)}". {whole} has no parts', f"Give {whole}.")


# --- lines that are never folded or cut


def aligned(columns: Sequence[str], documents: Iterable[Any]) -> Iterator[str]:
    """Return a header line and one line per document. ``documents`` is iterated twice."""
    header = [*map(cell, columns)]
    widths = [width_of(name) for name in header]
    for document in documents:
        widths = [max(width, width_of(text)) for width, text in zip(widths, cells(columns, document), strict=True)]
    yield padded(header, widths)
    for document in documents:
        yield padded(cells(columns, document), widths)


def listing(names: Sequence[str], document: Mapping[str, Any]) -> Iterator[str]:
    """Return one line for each field and its value."""
    width = max((width_of(cell(name)) for name in names), default=0)
    for name in names:
        yield padded([cell(name), cell(reach(document, name))], (width, 0))


def cells(columns: Sequence[str], document: Any) -> list[str]:
    """Return the clean values of the columns."""
    return [cell(reach(document, name)) for name in columns]


def padded(row: Sequence[str], widths: Sequence[int]) -> str:
    """Return a line of cells, each padded to the width of its column."""
    texts = [text + " " * (width - width_of(text)) for text, width in zip(row, widths, strict=True)]
    return GAP.join(texts).rstrip() + "\n"


def width_of(text: str) -> int:
    """Return the width of clean text on a terminal, in columns."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len  # a small part of Rich, only loaded for text with wide characters

    return cell_len(text)


def csv_line(row: Iterable[str]) -> str:
    """Return a row quoted according to RFC 4180, but with a bare line feed. Newlines in a cell stay newlines."""
    import csv  # not needed for tables

    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow([_guard(clean_lines(text)) for text in row])
    return line.getvalue()


def clean_lines(text: str) -> str:
    """Return clean text with its line ends, as line feeds."""
    return "\n".join(map(clean, text.replace("\r\n", "\n").replace("\r", "\n").split("\n")))


def tsv_line(row: Iterable[str]) -> str:
    """Return cells separated by tabs, without quotes; a tab or newline in a cell becomes ``\\t`` or ``\\n``."""
    return "\t".join(_guard(clean(text)) for text in row) + "\n"


def _guard(text: str) -> str:
    return "'" + text if _FORMULA.match(text) else text
