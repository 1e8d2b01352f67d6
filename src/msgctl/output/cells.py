"""From values to the clean text of a cell, and times as a person reads them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from msgctl.text import clean

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
    """What is made of each of several documents, made anew at every walk, so that a long list is never held."""

    def __init__(self, documents: Collection[Any], row: Callable[[Any], Any]) -> None:
        self._documents = documents
        self._row = row

    def __len__(self) -> int:
        return len(self._documents)

    def __iter__(self) -> Iterator[Any]:
        return map(self._row, self._documents)

    def __contains__(self, row: object) -> bool:
        return any(row == each for each in self)
