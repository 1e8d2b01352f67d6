"""Read recipients from a file, whatever its format: rows, invalid rows, and how to open a file."""

from __future__ import annotations

import io
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO, NamedTuple

from msgctl import phones
from msgctl.errors import UsageError
from msgctl.http.response import Number
from msgctl.jobs.decode import Text, decoded
from msgctl.phones import InvalidPhoneError
from msgctl.text import shorten

SAMPLE = 50
"""Rows whose values may tell which column has the phone numbers."""

_HEAD = 4096
_ZIP_MARK = b"PK\x03\x04"
_LONGEST_SHOWN_PHONE = 40
_ROUNDED = "a spreadsheet has rounded the number; format the phone column as text and enter it again"
_EXPONENT = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)?[eE][+-]?[0-9]+", re.ASCII)
# Dots in a number are ignored, so 573001234567.0 would become a number ten times as long.
_DECIMAL = re.compile(r"\+?[0-9]{5,}\.(?:0+|[0-9]{1,2})", re.ASCII)


class Row(NamedTuple):
    """A recipient: its line (from 1), the phone's digits, and the values in the order of the columns."""

    line: int
    phone: str
    values: tuple[str, ...]


class InvalidRow(NamedTuple):
    """A row that cannot be used: its line, the phone as written (cleaned), and the reason."""

    line: int
    phone: str
    reason: str


class Nested(str):
    """The value of a column that is an object or an array. It is empty, since it is not text."""

    __slots__ = ()


class RecipientReader(ABC):
    """The rows of an open file. Each iteration reads the file from its beginning, one iteration at a time.

    Iterating raises UsageError if the rest of the file cannot be read: an unclosed quotation mark, an endless line.
    """

    columns: tuple[str, ...]
    """Names in the order of the header; empty for a column without a name."""
    phone_column: str
    """The phone column, as the file spells it."""
    encoding: str
    """``UTF-8``, ``UTF-16`` or ``Windows-1252``."""
    blank: int = 0
    """Rows without any text that were skipped in the last iteration."""

    @abstractmethod
    def __iter__(self) -> Iterator[Row | InvalidRow]: ...


class RowError(ValueError):
    """A row cannot be used; ``reason`` says why. Reading continues after it."""

    def __init__(self, reason: str, phone: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.phone = phone

    def row(self, line: int) -> InvalidRow:
        return InvalidRow(line, shorten(self.phone, _LONGEST_SHOWN_PHONE), self.reason)


class PhoneCells:
    """Reads the phones of a file: national numbers by ``country``, and no fixed lines if it is for ``sms``.

    Without ``check`` the digits are used as they are, for short codes and test numbers.
    """

    def __init__(self, country: str | None = None, *, sms: bool = False, check: bool = True) -> None:
        self._reader = phones.Reader(country, sms=sms)
        self._check = check

    def read(self, text: str) -> str:
        """Return the international number in a cell. Raises RowError."""
        if not text or text.isspace():
            raise RowError("no phone number")
        if _EXPONENT.fullmatch(text.strip()):
            raise RowError(_ROUNDED, text)
        if "." in text and _DECIMAL.fullmatch(text.strip()):
            raise RowError("the phone is a decimal number; format the phone column as text in the spreadsheet", text)
        try:
            found = self._reader.read(text) if self._check else phones.as_typed(text)
        except InvalidPhoneError as error:
            raise RowError(f"not a valid phone number: {error.reason}", text) from None
        if found.abroad:
            raise RowError(f"valid only in {found.abroad}; if that is right, write it with +", text)
        return found.digits

    def read_number(self, number: Number) -> str:
        """Return a phone that is a JSON number, in which a sign or a point is an error. Raises RowError."""
        if number.isdigit():
            return self.read(number)
        raise RowError(_ROUNDED if _EXPONENT.fullmatch(number) else "the phone is not a whole number", number)


@contextmanager
def opened(
    source: BinaryIO, name: str, phone_column: str | None, cells: PhoneCells | None = None
) -> Iterator[RecipientReader]:
    """Open the recipients in a source, which stays open; ``name`` is what messages call it.

    Raises UsageError if the file is not text, or has no header or no phone column.
    """
    cells = cells or PhoneCells()
    if head_of(source).startswith(_ZIP_MARK):
        from msgctl.jobs.xlsx_reader import XlsxReader

        yield XlsxReader(source, shorten(name), phone_column, cells)
        return

    def check(head: bytes) -> bool:
        """Refuse a wrong header before the rest of the source is read."""
        if phone_column is None and head.count(b"\n") < 2:
            return False  # the values may show the phone column
        with opened(io.BytesIO(head), name, phone_column, cells):
            return True

    with decoded(source, shorten(name), check) as text:
        yield _reader(text, phone_column, cells)


def head_of(source: BinaryIO) -> bytes:
    """Return the beginning of a source, which stays unread; nothing for a pipe without a buffer."""
    with suppress(OSError):  # reading the source again says what is wrong
        if isinstance(source, io.BufferedReader):
            return source.peek(_HEAD)
        if source.seekable():
            place = source.tell()
            head = source.read(_HEAD)
            source.seek(place)
            return head
    return b""


def _reader(text: Text, phone_column: str | None, cells: PhoneCells) -> RecipientReader:
    from msgctl.jobs.csv_reader import CsvReader
    from msgctl.jobs.json_reader import JsonReader

    for line in text.lines():
        if not line.isspace():
            kind = JsonReader if line.lstrip().startswith("{") else CsvReader
            return kind(text, phone_column, cells)
    raise UsageError(f"{text.name} is empty", "It should hold recipients: CSV with a header, JSON Lines, or .xlsx.")
