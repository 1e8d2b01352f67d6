"""Read recipients from a file, whatever its format: rows, invalid rows, and how to open a file."""

from __future__ import annotations

import io
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from typing import BinaryIO, NamedTuple

from msgctl import phones
from msgctl.errors import UsageError
from msgctl.jobs import columns
from msgctl.jobs.decode import UTF8, decoded
from msgctl.jsontext import Number
from msgctl.phones import InvalidPhoneError
from msgctl.text import shorten

SAMPLE = 50
"""Rows whose values may tell which column has the phone numbers."""

_HEAD = 4096
_ZIP_MARK = b"PK\x03\x04"
_LONGEST_SHOWN_PHONE = 40
_ROUNDED = "a spreadsheet has rounded the number; format the phone column as text and enter it again"
_NUMBER = re.compile(r"[\s+0-9().-]*[0-9][\s+0-9().-]*", re.ASCII)
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


class RowError(ValueError):
    """A row cannot be used; ``reason`` says why. Reading continues after it."""

    def __init__(self, reason: str, phone: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.phone = phone

    def row(self, line: int) -> InvalidRow:
        return InvalidRow(line, shorten(self.phone, _LONGEST_SHOWN_PHONE), self.reason)


Records = Iterator[tuple[int, "list[str] | RowError"]]


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
        if isinstance(text, Number) and not text.isdigit():  # a sign or a point in a JSON number is an error
            raise RowError(_ROUNDED if _EXPONENT.fullmatch(text) else "the phone is not a whole number", text)
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


class Table(RecipientReader):
    """The rows of a table with a header.

    ``records`` begins to read it: each record is its line and its cells, or the error in it. The first is the header.
    """

    def __init__(
        self, name: str, encoding: str, records: Callable[[], Records], phone_column: str | None, phones: PhoneCells
    ) -> None:
        self.encoding = encoding
        self._records = records
        self._phones = phones
        found = [cells for _, cells in islice(self._filled(), 1 + SAMPLE) if not isinstance(cells, RowError)]
        if not found:
            raise UsageError(f"{name} has no header", "Add a first line with the names of the columns.")
        self.columns = tuple(cell.strip() for cell in found[0])
        self._phone = columns.require_phone(self.columns, phone_column, name, found[1:])
        self.phone_column = self.columns[self._phone]

    def __iter__(self) -> Iterator[Row | InvalidRow]:
        for line, cells in islice(self._filled(), 1, None):
            try:
                yield self._row(line, cells)
            except RowError as error:
                yield error.row(line)

    def _filled(self) -> Records:
        """Read the records that contain text."""
        self.blank = 0
        for line, cells in self._records():
            if isinstance(cells, RowError) or "".join(cells).strip() or Nested in map(type, cells):
                yield line, cells
            else:
                self.blank += bool(cells)  # an empty line is not a row

    def _row(self, line: int, cells: list[str] | RowError) -> Row:
        if isinstance(cells, RowError):
            raise cells
        missing = len(self.columns) - len(cells)
        if missing < 0:
            raise RowError(
                f"{len(cells)} cells, but the header has {len(self.columns)}: quote cells that contain the delimiter",
                cells[self._phone],
            )
        cells += [""] * missing
        return Row(line, self._phones.read(cells[self._phone]), tuple(cells))


@contextmanager
def opened(
    source: BinaryIO, name: str, phone_column: str | None, phones: PhoneCells | None = None
) -> Iterator[RecipientReader]:
    """Open the recipients in a source, which stays open; ``name`` is what messages call it.

    Raises UsageError if the file is not text, or has no header or no phone column.
    """
    from msgctl.jobs import formats

    name = shorten(name)
    phones = phones or PhoneCells()
    if head_of(source).startswith(_ZIP_MARK):
        yield Table(name, UTF8, formats.of_workbook(source, name), phone_column, phones)
        return
    with decoded(source, name) as text:
        first = next((line for line in text.lines() if not line.isspace()), None)
        if first is None:
            raise UsageError(f"{name} is empty", "It should hold recipients: CSV with a header, JSON Lines, or .xlsx.")
        if first.lstrip().startswith("{"):
            records: Callable[[], Records] = partial(formats.json_records, text)
        else:
            records = formats.of_csv(text, phone_column)
        yield Table(name, text.encoding, records, phone_column, phones)


def numbers_in(source: BinaryIO, name: str, country: str | None, phone_column: str | None = None) -> Iterator[str]:
    """Yield the numbers in a file: one per line, or any file of recipients.

    ``name`` is what messages call the file, ``country`` is that of national numbers. Raises UsageError for a number
    that is not valid.
    """
    name = shorten(name)
    lines = head_of(source).decode("latin-1").removeprefix("\u00ef\u00bb\u00bf").splitlines()
    if not _NUMBER.fullmatch(next((line for line in lines if line.strip()), "")):
        with opened(source, name, phone_column, PhoneCells(country)) as rows:
            for row in rows:
                if isinstance(row, InvalidRow):
                    raise UsageError(f"Line {row.line} of {name}: {row.phone}: {row.reason}", "Fix or remove it.")
                yield row.phone
        return
    reader = phones.Reader(country)
    with decoded(source, name) as text:
        for line, content in enumerate(text.lines(), 1):
            digits = reader.quick(content)
            if digits is None and content.strip():
                try:
                    digits = reader.read(content.strip()).digits
                except InvalidPhoneError as error:
                    raise UsageError(f"Line {line} of {name}: {error.what}", error.hint) from None
            if digits is not None:
                yield digits


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
