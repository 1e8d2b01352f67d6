"""What a file of recipients consists of, whatever its format."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import NamedTuple

from msgctl import values
from msgctl.errors import UsageError
from msgctl.http.response import Number
from msgctl.text import shorten

_LONGEST_SHOWN_PHONE = 40
_ROUNDED = "a spreadsheet has rounded the number; format the column of phones as text there and enter it again"
_EXPONENT = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)?[eE][+-]?[0-9]+", re.ASCII)
# Dots are reading aids, and 573001234567.0 would be taken for a number that is ten times as long.
_DECIMAL = re.compile(r"\+?[0-9]{5,}\.(?:0+|[0-9]{1,2})", re.ASCII)


class Row(NamedTuple):
    """A recipient: the line it begins on (from 1), the phone's digits, and the values in the order of the columns."""

    line: int
    phone: str
    values: tuple[str, ...]


class Fault(NamedTuple):
    """A row nobody can send to: its line, the phone as it is written (fit to be shown), and what is wrong."""

    line: int
    phone: str
    reason: str


class Nested(str):
    """The value of a column that is an object or an array, and so no text. It is empty."""

    __slots__ = ()


class Recipients(ABC):
    """The rows of an open file. Each iteration reads the file from its beginning; one at a time.

    Iterating raises UsageError where the rest of the file cannot be made out: a quotation mark that is not closed, a
    line without an end, a read that fails.
    """

    columns: tuple[str, ...]
    """Names in the order of the header; empty for a column that has none."""
    phone_column: str
    """The column of the phones, as the file spells it."""
    encoding: str
    """``UTF-8`` or ``Windows-1252``."""

    @abstractmethod
    def __iter__(self) -> Iterator[Row | Fault]: ...


class RowError(ValueError):
    """A row that cannot be used; ``reason`` says why. Reading goes on after it."""

    def __init__(self, reason: str, phone: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.phone = phone

    def fault(self, line: int) -> Fault:
        return Fault(line, shorten(self.phone, _LONGEST_SHOWN_PHONE), self.reason)


def phone(text: str) -> str:
    """The digits of a phone number in a file. Raises RowError."""
    if "." in text and _DECIMAL.fullmatch(text.strip()):
        raise RowError("it is a decimal number; format the column of phones as text in the spreadsheet", text)
    try:
        return values.phone(text)
    except UsageError:
        raise RowError(_why_not_a_phone(text.strip()), text) from None


def phone_of_number(number: Number) -> str:
    """The digits of a phone that is a JSON number, in which a sign or a point is no reading aid. Raises RowError."""
    if number.isdigit():
        return phone(number)
    raise RowError(_ROUNDED if _EXPONENT.fullmatch(number) else "it is not a whole number", number)


def _why_not_a_phone(text: str) -> str:
    if not text:
        return "it has no phone number"
    if _EXPONENT.fullmatch(text):
        return _ROUNDED
    return "it is not a phone number: allowed are 5 to 15 digits, with an optional + before them"
