"""Read recipients from JSON Lines: one object per line, whose numbers keep every digit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, NoReturn

from msgctl.errors import UsageError
from msgctl.http.response import Number
from msgctl.jobs import columns
from msgctl.jobs.decode import Text
from msgctl.jobs.reader import SAMPLE, InvalidRow, Nested, PhoneCells, RecipientReader, Row, RowError
from msgctl.values import quote


class JsonReader(RecipientReader):
    """A JSON Lines file. Its columns are the fields of the first object; other fields are ignored."""

    def __init__(self, text: Text, phone_column: str | None, cells: PhoneCells) -> None:
        self._cells = cells
        self.encoding = text.encoding
        self._text = text
        self._names = tuple(self._first_object())
        self.columns = tuple(name.strip() for name in self._names)
        phone = columns.require_phone(self.columns, phone_column, text.name, self._sample())
        self.phone_column = self.columns[phone]
        self._phone_name = self._names[phone]

    def __iter__(self) -> Iterator[Row | InvalidRow]:
        self.blank = 0
        for number, line in self._filled_lines():
            try:
                found = _object(line)
                phone = self._phone(found.get(self._phone_name))
                yield Row(number, phone, tuple([_text(found.get(name)) for name in self._names]))
            except RowError as error:
                yield error.row(number)

    def _phone(self, value: Any) -> str:
        if isinstance(value, Number):
            return self._cells.read_number(value)
        if value is None or isinstance(value, str):
            return self._cells.read(value or "")
        raise RowError("the phone is neither text nor a number")

    def _sample(self) -> list[list[str]]:
        """Return the values of the first rows."""
        found = []
        for _, line in islice(self._filled_lines(), SAMPLE):
            with suppress(RowError):
                values = _object(line)
                found.append([str(values.get(name) or "") for name in self._names])
        return found

    def _filled_lines(self) -> Iterator[tuple[int, str]]:
        for number, line in enumerate(self._text.lines(), start=1):
            if line.isspace():
                self.blank += 1
            else:
                yield number, line

    def _first_object(self) -> dict[str, Any]:
        number, line = next(self._filled_lines())
        try:
            return _object(line)
        except RowError as error:
            raise UsageError(
                f"line {number} of {self._text.name} cannot be used: {error.reason}",
                'Each line must be one whole JSON object, for example: {"phone": "573001234567"}',
            ) from None


def _refuse_constant(name: str) -> NoReturn:
    raise RowError(f"{name} is not JSON")


def _unique(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(fields)
    if len(found) < len(fields):
        twice, _ = Counter(name for name, _ in fields).most_common(1)[0]
        raise RowError(f"the field {quote(twice)} appears more than once")
    return found


# Made once, since json.loads with these options makes one for each call.
_DECODER = json.JSONDecoder(
    parse_int=Number, parse_float=Number, parse_constant=_refuse_constant, object_pairs_hook=_unique
)


def _object(line: str) -> dict[str, Any]:
    """Return the object on a line, its numbers as `Number`. Raises RowError."""
    try:
        found = _DECODER.decode(line)
    except RowError:
        raise
    except RecursionError:
        raise RowError("the JSON is nested too deeply") from None
    except ValueError:
        raise RowError("not JSON") from None
    if not isinstance(found, dict):
        raise RowError("not a JSON object")
    if "\\u" in line:
        _refuse_lone_surrogates(found)
    return found


def _refuse_lone_surrogates(found: dict[str, Any]) -> None:
    """Raise RowError if an escape spells half of a surrogate pair, which no encoding can write."""
    try:
        "".join([*found, *(value for value in found.values() if isinstance(value, str))]).encode()
    except UnicodeEncodeError:
        raise RowError("half a character (a surrogate without its other half)") from None


def _text(value: Any) -> str:
    """Return a value as a template uses it: strings and numbers as written, null as an empty text."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return Nested()
