"""The columns of a file of recipients, by the names that people type."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgctl.lists.formats import FileError
from msgctl.lists.rows import is_phone
from msgctl.text import normalized, shorten
from msgctl.values import quote

_PHONE_NAME = re.compile(
    "(?:n[uú]mero(?:de)?)?"
    "(?:phones?|telephone|tel|mobile|cel|cell|msisdn|whatsapp|tel[eé]fono|celular|m[oó]vil|telefone)+"
    "(?:number|n[uú]mero)?"
)
"""A pattern for names of phone columns, with their words joined: mobile, phone_number, Teléfono móvil."""
_WITHOUT_PUNCTUATION = str.maketrans("", "", " _.-")


class NoTableError(FileError):
    """The first row with text is not a header that can be used."""


def find_column(name: str, columns: Sequence[str]) -> int | None:
    """Return the index of the column with this name, or else of the only one that differs only in case."""
    if name in columns:
        return columns.index(name) if name else None
    return _only(_key(column) == _key(name) for column in columns)


def listed(columns: Sequence[str]) -> str:
    """Return the names of columns for a message: ``Columns: phone, name``."""
    return f"Columns: {shorten(', '.join(filter(None, columns))) or 'none'}"


def find_phone(columns: Sequence[str], asked: str | None, sample: Sequence[Sequence[str]] = ()) -> int | None:
    """Return the index of the phone column; None if it is not certain.

    Without --phone-column, it is the column "phone"; or else the only column with a name for phone numbers; or else the
    only column with phone numbers in all ``sample`` rows.
    """
    found = find_column("phone" if asked is None else asked.strip(), columns)
    if found is None and asked is None:
        found = _only(_PHONE_NAME.fullmatch(_key(name).translate(_WITHOUT_PUNCTUATION)) is not None for name in columns)
        if found is None:
            found = _only(_are_phones([row[at] for row in sample if at < len(row)]) for at in range(len(columns)))
    return found


def require_phone(columns: Sequence[str], asked: str | None, file: str, sample: Sequence[Sequence[str]]) -> int:
    """Return the index of the phone column. Raises UsageError if it is not found.

    A header that contains a phone number is refused. Otherwise, this person would get no message, or would not be
    excluded.
    """
    index = find_phone(columns, asked, sample)
    if index is None or (asked is None and is_phone(columns[index])):
        if any(map(is_phone, columns)):
            raise NoTableError(
                f"The first line of {file} contains a phone number instead of column names",
                "Add a header line, for example: phone,name",
            )
        raise NoTableError(
            f"{file} has no column {quote('phone' if asked is None else asked)}. {listed(columns)}",
            'Rename the column with the phone numbers to "phone", or use --phone-column NAME.',
        )
    return index


def _only(found: Iterable[bool]) -> int | None:
    """Return the index of the only true value."""
    places = [place for place, is_found in enumerate(found) if is_found]
    return places[0] if len(places) == 1 else None


def _are_phones(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell.strip()]
    return bool(filled) and all(map(is_phone, filled))


def _key(name: str) -> str:
    """Return a name in a normal form for comparison, since systems may compose the same letters differently."""
    return normalized(name).casefold()
