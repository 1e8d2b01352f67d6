"""Turn results into rows of named values, and values into clean text: for csv, tsv, pipes, tables and --fields."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgctl import operations
from msgctl.errors import UsageError
from msgctl.http.response import Response
from msgctl.operations import Record
from msgctl.text import clean, shorten

if TYPE_CHECKING:
    from datetime import datetime


_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def cell(value: Any) -> str:
    """Return one line of clean text: null is empty, numbers are as they came, arrays and objects compact JSON."""
    return clean(text_of(value))


def text_of(value: Any) -> str:
    """Return a value as text, with its line ends: null is empty, arrays and objects are compact JSON."""
    if value is None:
        return ""
    if isinstance(value, str):  # a number of the service is a string of digits, too
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (Mapping, list, tuple)):
        from msgctl.output import jsontext  # rare

        return jsontext.dump(value)
    return str(value)


def reach(value: Any, name: str) -> Any:
    """Return the value at a dotted name, through objects and indexes of arrays; None if it does not exist.

    A whole name wins over its parts: ``dispatch.id`` may be a name of its own, and ``x.y`` the name of a form field.
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


def local_time(stamp: str, now: float) -> str:
    """Return a time of msgctl (ISO 8601, UTC) as ``22:46:23`` today, ``14 Nov 22:46`` this year, else as the date.

    A text without a time zone is returned unchanged: it is the service's own.
    """
    at = _read(stamp)
    if at is None:
        return stamp
    from datetime import datetime

    there, today = at.astimezone(), datetime.fromtimestamp(now).astimezone()
    if there.date() == today.date():
        return f"{there:%H:%M:%S}"
    return f"{there.day} {there:%b %H:%M}" if there.year == today.year else f"{there:%Y-%m-%d}"


def time_ago(stamp: str, now: float) -> str:
    """Return how long ago a time of msgctl was: ``6 min ago``. Empty for a future time."""
    at = _read(stamp)
    seconds = -1 if at is None else int(now - at.timestamp())
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return "now" if seconds == 0 else ""


def _read(stamp: str) -> datetime | None:
    from datetime import datetime  # pipes have times as they are

    try:
        at = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return at if at.tzinfo else None


class Rows(Collection[Any]):
    """Documents converted one by one at every walk, so that a long list is never held in memory."""

    def __init__(self, documents: Collection[Any], row: Callable[[Any], Any]) -> None:
        self._documents = documents
        self._row = row

    def __len__(self) -> int:
        return len(self._documents)

    def __iter__(self) -> Iterator[Any]:
        return map(self._row, self._documents)

    def __contains__(self, row: object) -> bool:
        return any(row == each for each in self)


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


def select(row: Row, fields: Sequence[str]) -> dict[str, Any]:
    """Return just some fields of a row, by their dotted names."""
    return {field: reach(row, field) for field in fields}


def _names(record: Record) -> tuple[str, ...]:
    return tuple(member.name for member in record.members)


def _beside_entries(name: str) -> str:
    """Return the name of a dispatch's field beside those of its entries."""
    return f"dispatch.{name}" if name in ("id", "status") else name


def _metrics(document: Row) -> Iterator[Row]:
    for metric in document.get("metrics") or ():
        for category, members in metric.items():
            if isinstance(members, Mapping):
                yield {"category": category, **members}


def check(fields: Sequence[str], columns: Iterable[str]) -> None:
    """Check that the fields asked for are columns, or members of one. Raises UsageError."""
    known = dict.fromkeys(columns)
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
