"""Read recipients from a file, whatever its format: rows and invalid rows."""

from __future__ import annotations

import io
import re
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from itertools import chain, islice
from typing import NamedTuple

from msgctl import phones
from msgctl.errors import UsageError
from msgctl.jobs import formats
from msgctl.jobs.formats import Record
from msgctl.jsontext import Number
from msgctl.phones import InvalidPhoneError
from msgctl.text import shorten
from msgctl.values import quote

SAMPLE = 50
"""Rows whose values may tell which column has the phone numbers."""
LEAST_DIGITS = 7
"""The fewest digits of a phone number that is found by its content."""

_PHONE_NAMES = frozenset(
    """
    phone phones telephone tel mobile cell cellphone msisdn whatsapp telefono teléfono celular movil móvil telefone
    """.split()
)
_LONGEST_SHOWN = 40
_DECIMAL = re.compile(r"\+?[0-9]{5,}\.(?:0+|[0-9]{1,2})|[0-9]+(?:[.,][0-9]+)?[eE]\+?[0-9]+", re.ASCII)


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


class RowError(ValueError):
    """A row cannot be used; ``reason`` says why. Reading continues after it."""

    def __init__(self, reason: str, phone: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.phone = phone

    def row(self, line: int) -> InvalidRow:
        return InvalidRow(line, shorten(self.phone, _LONGEST_SHOWN), self.reason)


class PhoneCells:
    """Reads the phones of a file: national numbers by ``country``, and no fixed lines if it is for ``sms``.

    Without ``check`` the digits are used as they are, for short codes and test numbers.
    """

    def __init__(self, country: str | None = None, *, sms: bool = False, check: bool = True) -> None:
        self._reader = phones.Reader(country, sms=sms)
        self._check = check

    def read(self, text: str) -> str:
        """Return the international number in a cell. Raises RowError."""
        if self._check and text.isdigit() and (digits := self._reader.quick(text)) is not None:  # most of most files
            return digits
        if not text or text.isspace():
            raise RowError("no phone number")
        # Dots in a phone are ignored, so 573001234567.0 would become a number ten times as long.
        if _DECIMAL.fullmatch(text.strip()) or (isinstance(text, Number) and not text.isdigit()):
            raise RowError("the phone is not a whole number; format the phone column as text in the spreadsheet", text)
        try:
            found = self._reader.read(text) if self._check else phones.as_typed(text)
        except InvalidPhoneError as error:
            raise RowError(f"not a valid phone number: {error.reason}", text) from None
        if found.abroad:
            raise RowError(f"valid only in {found.abroad}; if that is right, write it with +", text)
        return found.digits


class RecipientReader(ABC):
    """The rows of an open file, to be read once.

    Iterating raises UsageError if the rest of the file cannot be read: an unclosed quotation mark, an endless line.
    """

    columns: tuple[str, ...]
    """Names in the order of the header; empty for a column without a name."""
    phone_column: str
    """The phone column, as the file spells it."""
    blank: int = 0
    """Rows without any text that were skipped so far."""

    @abstractmethod
    def __iter__(self) -> Iterator[Row | InvalidRow]: ...


class Table(RecipientReader):
    """The rows of a table whose first record is a header."""

    def __init__(self, name: str, records: Iterable[Record], phone_column: str | None, phones: PhoneCells) -> None:
        self._phones = phones
        filled = self._filled(records)
        line, header = next(filled, (0, []))
        if isinstance(header, str):
            hint = 'Each line must be a whole JSON object, for example: {"phone": "573001234567"}'
            raise UsageError(f"line {line} of {name} is {header}", hint)
        if not header:
            raise UsageError(f"{name} has no header", "Add a first line with the names of the columns.")
        sample = [*islice(filled, SAMPLE)]
        self._records = chain(sample, filled)
        self.columns = tuple(cell.strip() for cell in header)
        values = [cells for _, cells in sample if not isinstance(cells, str)]
        self._phone = _require_phone(self.columns, phone_column, name, values)
        self.phone_column = self.columns[self._phone]

    def __iter__(self) -> Iterator[Row | InvalidRow]:
        for line, cells in self._records:
            try:
                yield self._row(line, cells)
            except RowError as error:
                yield error.row(line)

    def _filled(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield the records that contain text."""
        for line, cells in records:
            if isinstance(cells, str) or "".join(cells).strip():
                yield line, cells
            else:
                self.blank += bool(cells)  # an empty line is not a row

    def _row(self, line: int, cells: list[str] | str) -> Row:
        if isinstance(cells, str):
            raise RowError(cells)
        missing = len(self.columns) - len(cells)
        if missing < 0:
            raise RowError(
                f"{len(cells)} cells, but the header has {len(self.columns)}: quote cells that contain the delimiter",
                cells[self._phone],
            )
        cells += [""] * missing
        return Row(line, self._phones.read(cells[self._phone]), tuple(cells))


class NumberList(RecipientReader):
    """A file of numbers, one per line."""

    columns = ("phone",)
    phone_column = "phone"

    def __init__(self, lines: formats.Lines, phones: PhoneCells) -> None:
        self._lines = lines
        self._phones = phones

    def __iter__(self) -> Iterator[Row | InvalidRow]:
        for line in self._lines:
            self._lines.size = 0
            try:
                if text := line.strip():
                    yield Row(self._lines.begin, self._phones.read(text), (text,))
            except RowError as error:
                yield error.row(self._lines.begin)


@contextmanager
def opened(
    source: io.BufferedReader,
    name: str,
    phone_column: str | None,
    phones: PhoneCells | None = None,
    *,
    may_be_list: bool = False,
    note: Callable[[str], None] = lambda _: None,
) -> Iterator[RecipientReader]:
    """Open the recipients in a source, which stays open; ``name`` is what messages call it.

    ``note`` tells the user of Windows-1252 at the end. Raises UsageError if the file is not text, or has no header or
    no phone column.
    """
    name = shorten(name)
    phones = phones or PhoneCells()
    try:
        head = source.peek(4)
    except OSError as error:
        raise formats.unreadable(name, error) from None
    if head.startswith(formats.ZIP_MARK):
        yield Table(name, formats.workbook_records(source, name), phone_column, phones)
        return
    with closing(formats.Lines(source, name, head)) as lines:
        if not lines.first:
            raise UsageError(f"{name} is empty", "It should hold recipients: CSV with a header, JSON Lines, or .xlsx.")
        if may_be_list and _is_phone(lines.first, least=1):
            yield NumberList(lines, phones)
        elif lines.first.lstrip().startswith("{"):
            yield Table(name, formats.json_records(lines), phone_column, phones)
        else:
            records = formats.csv_records(lines, lambda cells: _find_phone(cells, phone_column) is not None)
            yield Table(name, records, phone_column, phones)
        if lines.windows_1252:
            note(f"{name} is not UTF-8; reading it as Windows-1252")


def numbers_in(
    source: io.BufferedReader, name: str, country: str | None, phone_column: str | None = None
) -> Iterator[str]:
    """Yield the numbers in a file: one per line, or any file of recipients.

    ``name`` is what messages call the file, ``country`` is that of national numbers. Raises UsageError for a number
    that is not valid.
    """
    with opened(source, name, phone_column, PhoneCells(country), may_be_list=True) as rows:
        for row in rows:
            if isinstance(row, InvalidRow):
                raise UsageError(
                    f"Line {row.line} of {shorten(name)}: {row.phone}: {row.reason}",
                    "Fix or remove it. Name the country of national numbers with --country-code CO.",
                )
            yield row.phone


# --- columns, by the names that people type


def find_column(name: str, columns: Sequence[str]) -> int | None:
    """Return the index of the column of exactly this name, or else of the only one that differs only in case."""
    if name in columns:
        return columns.index(name) if name else None
    return _only(_key(column) == _key(name) for column in columns)


def listed(columns: Sequence[str]) -> str:
    """Return the names of columns for a message: ``Columns: phone, name``."""
    return f"Columns: {shorten(', '.join(filter(None, columns))) or 'none'}"


def _find_phone(columns: Sequence[str], asked: str | None, sample: Sequence[Sequence[str]] = ()) -> int | None:
    """Return the index of the phone column; None if it is not certain.

    If none was asked for, it is the one called "phone", or else the only one whose name, or all of whose values in the
    ``sample`` rows, are those of phone numbers.
    """
    found = find_column("phone" if asked is None else asked.strip(), columns)
    if found is None and asked is None:
        found = _only(_key(name) in _PHONE_NAMES for name in columns)
        if found is None:
            found = _only(_are_phones([row[at] for row in sample if at < len(row)]) for at in range(len(columns)))
    return found


def _require_phone(columns: Sequence[str], asked: str | None, file: str, sample: Sequence[Sequence[str]]) -> int:
    """Return the index of the phone column. Raises UsageError if it is not found or two columns share a name."""
    index = _find_phone(columns, asked, sample)
    if index is None:
        if any(map(_is_phone, columns)):
            raise UsageError(
                f"the first line of {file} contains a phone number, but must name the columns",
                "Add a header line, for example: phone,name",
            )
        raise UsageError(
            f"{file} has no column {quote('phone' if asked is None else asked)}. {listed(columns)}",
            "Name the column of the phone numbers: --phone-column NAME",
        )
    twice = next((name for name, count in Counter(columns).items() if name and count > 1), None)
    if twice is not None:
        raise UsageError(f"{file} has more than one column named {quote(twice)}", "Give each column its own name.")
    return index


def _only(found: Iterable[bool]) -> int | None:
    """Return the index of the only true value."""
    places = [place for place, is_found in enumerate(found) if is_found]
    return places[0] if len(places) == 1 else None


def _is_phone(text: str, least: int = LEAST_DIGITS) -> bool:
    try:
        return len(phones.as_typed(text).digits) >= least
    except InvalidPhoneError:
        return False


def _are_phones(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell.strip()]
    return bool(filled) and all(map(_is_phone, filled))


def _key(name: str) -> str:
    """Return a name in the form that is compared; systems may compose the same letters differently."""
    return unicodedata.normalize("NFC", name).casefold()
