"""Results as rows of named values: what csv, tsv, pipes and --fields work with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgctl import operations
from msgctl.errors import UsageError
from msgctl.http.response import Response
from msgctl.operations import Record
from msgctl.output.cells import reach
from msgctl.text import shorten

MOST_UNKNOWN = 64
"""Fields beyond the interface's that get a column; a hostile response could name another one in every entry."""
METRIC_FIELDS = ("category", "property", "clicks", "percent", "date", "region", "countryIsoCode")
"""The columns of click statistics, one row per metric."""

Row = Mapping[str, Any]


def of_record(record: Record) -> tuple[str, ...]:
    """Return the columns of an operation's responses: those of an entry, then those of the dispatch around it."""
    if record is operations.RESPONSE_STATISTIC:
        return METRIC_FIELDS
    if not record.entries:
        return _names(record)
    own = sorted((name for name in _names(record) if name != "data"), key=lambda name: (name != "id", name != "status"))
    return (*(member.name for member in record.entries), *map(_beside_entries, own))


def rows_of(response: Response) -> Iterator[Row]:
    """Return the rows of a response: one for each entry or metric, or one for a record without ``data``.

    An entry's row has the fields of its dispatch too: ``dispatch.id`` and ``dispatch.status``, the others as they are.
    """
    record, document = response.operation.answer, response.document
    if record is operations.RESPONSE_STATISTIC:
        for metric in list(_metrics(document)) or [{}]:
            yield {**document, **metric}
    elif not record.entries:
        yield document
    else:
        entries = document.get("data") or [{}]
        dispatch = {_beside_entries(name): value for name, value in document.items() if name != "data"}
        for entry in [entries] if isinstance(entries, Mapping) else entries:
            yield {**dispatch, **entry, "data": entries}


def columns_of(record: Record, rows: Iterable[Row]) -> tuple[str, ...]:
    """Return the columns of rows, with what the service sent beyond the interface last."""
    known = of_record(record)
    hidden = {"data", "metrics", "urlShort", "urlLong", "clicksNumber"}
    unknown: dict[str, None] = {}
    for row in rows:
        for name in row:
            if name not in known and name not in hidden and len(unknown) < MOST_UNKNOWN:
                unknown[name] = None
    return (*known, *unknown)


def place_in_pipe(name: str) -> tuple[bool, bool]:
    """Return the sort key of a column in a pipe's table: the phone first, the texts last."""
    return name != "phone", name in ("sms", "message")


def check_fields(fields: Sequence[str], record: Record) -> None:
    """Check the fields asked for before a request is sent. Raises UsageError."""
    _check_all(fields, dict.fromkeys((*of_record(record), *_names(record))))


def check_own_fields(fields: Sequence[str], columns: Sequence[str]) -> None:
    """Check the fields asked for of one of msgctl's own documents. Raises UsageError."""
    _check_all(fields, dict.fromkeys(columns))


def select(row: Row, fields: Sequence[str]) -> dict[str, Any]:
    """Return just some fields of a row, by their dotted names."""
    return {field: reach(row, field) for field in fields}


def _names(record: Record) -> tuple[str, ...]:
    return tuple(member.name for member in record.members)


def _beside_entries(name: str) -> str:
    """Return what a field of a dispatch is called beside those of its entries."""
    return f"dispatch.{name}" if name in ("id", "status") else name


def _metrics(document: Row) -> Iterator[Row]:
    for metric in document.get("metrics") or ():
        for category, members in metric.items():
            if isinstance(members, Mapping):
                yield {"category": category, **members}


def _check_all(fields: Sequence[str], known: Mapping[str, None]) -> None:
    for field in fields:
        names = {field, field.partition(".")[0], field.removeprefix("data.").partition(".")[0]}
        if not names & known.keys():
            raise _unknown(field, list(known))


def _unknown(field: str, known: Sequence[str]) -> UsageError:
    if not known:
        return UsageError("--fields: this command prints no fields", "Leave --fields out.")
    import difflib  # rare

    near = difflib.get_close_matches(field, known, n=1)
    return UsageError(
        f'--fields: unknown field "{shorten(field)}". Fields: {", ".join(known)}',
        f"Did you mean {near[0]}?" if near else None,
    )
