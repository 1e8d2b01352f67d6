"""Find columns by the names that people type."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from msgctl import phones
from msgctl.errors import UsageError
from msgctl.text import shorten
from msgctl.values import quote

_MOST_LISTED = 12
_MOST_COMPARED = 200
_LONGEST_SHOWN_NAME = 40
_LEAST_DIGITS = 7
"""The fewest digits of a phone number that is found by its content."""
_PHONE_NAMES = frozenset(
    """
    phone phones telephone tel mobile cell cellphone msisdn whatsapp telefono teléfono celular movil móvil telefone
    """.split()
)


def find(name: str, columns: Sequence[str]) -> int | None:
    """Return the index of the column of exactly this name, or else of the only one that differs only in case."""
    if name in columns:
        return columns.index(name) if name else None
    return _only(_key(column) == _key(name) for column in columns)


def nearest(name: str, columns: Sequence[str]) -> str | None:
    """Return the column whose name is closest to one that does not exist, ready to be shown."""
    shown = {_key(text): text for text in map(shown_name, columns[:_MOST_COMPARED]) if text}
    near = get_close_matches(_key(shown_name(name)), shown)
    return shown[near[0]] if near else None


def listed(columns: Sequence[str]) -> str:
    """Return the names of columns for a message: ``Columns: phone, name``."""
    names = [shown_name(column) for column in columns if column]
    rest = len(names) - _MOST_LISTED
    more = f" and {rest} more" if rest > 0 else ""
    return f"Columns: {', '.join(names[:_MOST_LISTED]) or 'none'}{more}"


def shown_name(column: str) -> str:
    """Return a column's name, cleaned and shortened."""
    return shorten(column, _LONGEST_SHOWN_NAME)


def find_phone(columns: Sequence[str], asked: str | None, sample: Sequence[Sequence[str]] = ()) -> int | None:
    """Return the index of the phone column; None if it is not certain.

    If none was asked for, it is the one called "phone", or else the only one whose name, or all of whose values in the
    ``sample`` rows, are those of phone numbers.
    """
    found = find("phone" if asked is None else asked.strip(), columns)
    if found is None and asked is None:
        found = _only(_key(name) in _PHONE_NAMES for name in columns)
        if found is None:
            found = _only(_are_phones([row[at] for row in sample if at < len(row)]) for at in range(len(columns)))
    return found


def require_phone(columns: Sequence[str], asked: str | None, file: str, sample: Sequence[Sequence[str]]) -> int:
    """Return the index of the phone column. Raises UsageError if it is not found or two columns share a name."""
    index = find_phone(columns, asked, sample)
    if index is None:
        if any(map(_is_phone, columns)):
            raise UsageError(
                f"the first line of {file} contains a phone number, but must name the columns",
                "Add a header line, for example: phone,name",
            )
        if columns[0].startswith("["):
            raise UsageError(
                f"{file} looks like a JSON array, which is not supported",
                "Write one object per line (JSON Lines), for example with: jq -c '.[]'",
            )
        name = "phone" if asked is None else asked
        near = nearest(name, columns)
        raise UsageError(
            f"{file} has no column {quote(name)}. {listed(columns)}",
            f"Name the column of the phone numbers: --phone-column {repr(near) if near else 'NAME'}",
        )
    twice = next((name for name, count in Counter(columns).items() if name and count > 1), None)
    if twice is not None:
        raise UsageError(f"{file} has more than one column named {quote(twice)}", "Give each column its own name.")
    return index


def _only(found: Iterable[bool]) -> int | None:
    """Return the index of the only true value."""
    places = [place for place, is_found in enumerate(found) if is_found]
    return places[0] if len(places) == 1 else None


def _is_phone(text: str) -> bool:
    try:
        return len(phones.as_typed(text).digits) >= 5
    except UsageError:
        return False


def _are_phones(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell.strip()]
    return bool(filled) and all(sum(map(str.isdigit, cell)) >= _LEAST_DIGITS and _is_phone(cell) for cell in filled)


def _key(name: str) -> str:
    """Return a name in the form that is compared; systems may compose the same letters differently."""
    return unicodedata.normalize("NFC", name).casefold()
