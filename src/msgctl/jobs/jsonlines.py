"""Recipients in JSON Lines: an object on each line, in which numbers keep every digit."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, NoReturn

from msgctl.errors import UsageError
from msgctl.http.response import Number
from msgctl.jobs import columns, rows
from msgctl.jobs.decoding import Text
from msgctl.jobs.rows import Fault, Nested, Recipients, Row, RowError
from msgctl.values import quote


class JsonLines(Recipients):
    """A JSON Lines file. Its columns are the members of the first object; other members are left unread."""

    def __init__(self, text: Text, phone_column: str) -> None:
        self.encoding = text.encoding
        self._text = text
        self._members = tuple(self._first_object())
        self.columns = tuple(name.strip() for name in self._members)
        phone = columns.require_phone(self.columns, phone_column, text.name)
        self.phone_column = self.columns[phone]
        self._phone_member = self._members[phone]

    def __iter__(self) -> Iterator[Row | Fault]:
        for number, line in self._filled_lines():
            try:
                yield self._row(number, line)
            except RowError as error:
                yield error.fault(number)

    def _row(self, number: int, line: str) -> Row:
        found = _object(line)
        phone = _phone(found.get(self._phone_member))
        return Row(number, phone, tuple([_text(found.get(name)) for name in self._members]))

    def _filled_lines(self) -> Iterator[tuple[int, str]]:
        for number, line in enumerate(self._text.lines(), start=1):
            if not line.isspace():
                yield number, line

    def _first_object(self) -> dict[str, Any]:
        number, line = next(self._filled_lines())
        try:
            return _object(line)
        except RowError as error:
            raise UsageError(
                f"line {number} of {self._text.name} is not usable: {error.reason}",
                'Each line has to hold one whole JSON object, for example: {"phone": "573001234567"}',
            ) from None


def _refuse_constant(name: str) -> NoReturn:
    raise RowError(f"it holds {name}, which is not JSON")


def _named_once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(members)
    if len(found) < len(members):
        twice, _ = Counter(name for name, _ in members).most_common(1)[0]
        raise RowError(f"it has more than one member {quote(twice)}")
    return found


# Made once: json.loads with these options makes one for each call.
_DECODER = json.JSONDecoder(
    parse_int=Number, parse_float=Number, parse_constant=_refuse_constant, object_pairs_hook=_named_once
)


def _object(line: str) -> dict[str, Any]:
    """The members of an object on a line, numbers as `Number`. Raises RowError."""
    try:
        found = _DECODER.decode(line)
    except RowError:
        raise
    except RecursionError:
        raise RowError("its JSON is nested too deeply") from None
    except ValueError:
        raise RowError("it is not JSON") from None
    if not isinstance(found, dict):
        raise RowError("it is JSON, but not an object")
    if "\\u" in line:
        _refuse_half_characters(found)
    return found


def _refuse_half_characters(found: dict[str, Any]) -> None:
    """An escape can write half of a surrogate pair, which no encoding can."""
    try:
        "".join([*found, *(value for value in found.values() if isinstance(value, str))]).encode()
    except UnicodeEncodeError:
        raise RowError("it holds half a character (a surrogate without its other half)") from None


def _phone(value: Any) -> str:
    if isinstance(value, Number):
        return rows.phone_of_number(value)
    if value is None or isinstance(value, str):
        return rows.phone(value or "")
    raise RowError("its phone is neither text nor a number")


def _text(value: Any) -> str:
    """A value as it is filled in: text and numbers as they are written, null as nothing."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return Nested()
