"""Columns by the names that people type for them."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches

from msgctl.errors import UsageError
from msgctl.text import shorten
from msgctl.values import quote

_MOST_LISTED = 12
_MOST_COMPARED = 200
_LONGEST_SHOWN_NAME = 40


def find(name: str, columns: Sequence[str]) -> int | None:
    """Where a column is: the one of exactly this name, else the only one when case does not matter."""
    if name in columns:
        return columns.index(name) if name else None
    key = _key(name)
    alike = [index for index, column in enumerate(columns) if _key(column) == key]
    return alike[0] if len(alike) == 1 else None


def nearest(name: str, columns: Sequence[str]) -> str | None:
    """The column whose name comes nearest to one that does not exist, fit to be shown."""
    shown = {_key(text): text for text in (shown_name(column) for column in columns[:_MOST_COMPARED]) if text}
    near = get_close_matches(_key(shown_name(name)), shown, n=1)
    return shown[near[0]] if near else None


def listed(columns: Sequence[str]) -> str:
    """The names of columns for a message: ``its columns are phone, name``."""
    names = [shown_name(column) for column in columns if column]
    if not names:
        return "it names no columns"
    rest = len(names) - _MOST_LISTED
    more = f" and {rest} more" if rest > 0 else ""
    return f"its columns are {', '.join(names[:_MOST_LISTED])}{more}"


def shown_name(column: str) -> str:
    """A column's name, fit to be shown and not too long."""
    return shorten(column, _LONGEST_SHOWN_NAME)


def require_phone(columns: Sequence[str], phone_column: str, file: str) -> int:
    """Where the column of the phones is, in columns that are each named once. Raises UsageError."""
    index = find(phone_column.strip(), columns)
    if index is None:
        near = nearest(phone_column, columns)
        example = f"--phone-column '{near}'" if near else "--phone-column NAME"
        raise UsageError(
            f"{file} has no column {quote(phone_column)}: {listed(columns)}",
            f"Name the column that holds the phone numbers with {example}.",
        )
    twice = next((name for name, count in Counter(columns).items() if name and count > 1), None)
    if twice is not None:
        raise UsageError(f"{file} has more than one column named {quote(twice)}", "Give each column its own name.")
    return index


def _key(name: str) -> str:
    """What two spellings of a name have in common; the same letters may be composed differently on other systems."""
    return unicodedata.normalize("NFC", name).casefold()
