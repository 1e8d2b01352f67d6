"""Read recipients from a file, whatever its format: rows and invalid rows."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, NamedTuple, cast

from msgctl import phones
from msgctl.errors import UsageError
from msgctl.jobs import formats
from msgctl.jobs.formats import Record
from msgctl.jsontext import Number
from msgctl.phones import InvalidPhoneError
from msgctl.text import normalized, shorten
from msgctl.values import quote

SAMPLE = 50
"""Rows that are examined to find the phone column."""
MIN_DIGITS = 7
"""Minimum digits of values in a phone column that is found by its content."""

_PHONE_NAME = re.compile(
    "(?:n[uú]mero(?:de)?)?"
    "(?:phones?|telephone|tel|mobile|cell|msisdn|whatsapp|tel[eé]fono|celular|m[oó]vil|telefone)+"
    "(?:number|n[uú]mero)?"
)
"""The name of a column of phone numbers, with its words joined: mobile, phone_number, Teléfono móvil."""
_MAX_SHOWN = 40
_JSON = re.compile(r"\s*(?:\{|\[\s*(?:\{|$))")
"""The beginning of JSON Lines, or of an array of objects, which has its own error."""
_DECIMAL = re.compile(r"\+?[0-9]{5,}\.(?:0+|[0-9]{1,2})|[0-9]+(?:[.,][0-9]+)?[eE]\+?[0-9]+", re.ASCII)


_BETWEEN_NUMBERS = re.compile(r"[/,;|&\n]|\s-\s|\s(?:y|e|o|u|or|and)\s|(?<=\d)\s*(?=\+)", re.IGNORECASE)


class Row(NamedTuple):
    """A recipient: its line (from 1), the phone's digits, and the values in the order of the columns."""

    line: int
    phone: str
    values: tuple[str, ...]


class InvalidRow(NamedTuple):
    """A row that cannot be used: its line, the phone as written (cleaned), the reason, and the values if known."""

    line: int
    phone: str
    reason: str
    values: tuple[str, ...] = ()


class Recipients(NamedTuple):
    """The recipients in a file: its columns (some may have empty names) and its rows, which can be read once.

    A row without text is None. A file with one number per line has ``numbers`` instead of rows. Reading raises
    UsageError if the rest of the file cannot be read.
    """

    columns: Sequence[str]
    phone_column: str
    rows: Iterator[Row | InvalidRow | None]
    numbers: formats.Lines | None = None


class PhoneCells:
    """Reads the phones in a file: national numbers belong to ``country``, and ``sms`` refuses fixed lines.

    Without ``check``, the digits are used unchanged, for short codes and test numbers.
    ``national`` finds the country of invalid numbers if no country is known.
    """

    def __init__(self, country: str | None = None, *, sms: bool = False, check: bool = True) -> None:
        self._reader = phones.Reader(country, sms=sms)
        self._check = check
        self.national = phones.CountryFinder(sms=sms) if check and country is None else None

    def read(self, text: str) -> str:
        """Return the international number in a cell. Raises UsageError."""
        if self._check and text.isdigit() and (digits := self._reader.quick(text)) is not None:  # the usual case
            return digits
        if not text or text.isspace():
            raise UsageError("no phone number")
        if len(numbers := _several(text)) > 1:
            raise UsageError(f"{'two' if len(numbers) == 2 else len(numbers)} numbers in one cell")
        # Dots in a phone are ignored, so 573001234567.0 would get an additional digit.
        if _DECIMAL.fullmatch(text.strip()) or (isinstance(text, Number) and not text.isdigit()):
            raise UsageError("the phone is not written as a whole number; format its column as text and enter it again")
        try:
            found = self._reader.read(text) if self._check else phones.as_typed(text)
        except InvalidPhoneError as error:
            raise UsageError(f"not a valid phone number: {error.problem}") from None
        if found.abroad:
            raise UsageError(f"valid only in {found.abroad}; if that is right, write it with +")
        return found.digits

    def row(self, line: int, cells: list[str], phone: int) -> Row | InvalidRow:
        """Return the recipient in a row's cells; ``phone`` is the index of its number."""
        try:
            return Row(line, self.read(cells[phone]), tuple(cells))
        except UsageError as error:
            if self.national is not None:
                self.national.add(cells[phone])
            return InvalidRow(line, shorten(cells[phone], _MAX_SHOWN), error.message, tuple(cells))


def _several(text: str) -> list[str]:
    """Return the numbers in a cell that contains several, such as ``300 123 4567 / 310 987 6543``."""
    if len(text) <= phones.MAX_DIGITS:
        return [text]
    parts = [part.strip() for part in _BETWEEN_NUMBERS.split(text)]
    found = [part for part in parts if sum(map(str.isdigit, part)) >= MIN_DIGITS]
    return found if len(found) == len([*filter(None, parts)]) else [text]


@contextmanager
def opened(
    file: str,
    stdin: BinaryIO,
    phone_column: str | None = None,
    phones: PhoneCells | None = None,
    *,
    may_be_list: bool = False,
    note: Callable[[str], None] = lambda _: None,
) -> Iterator[Recipients]:
    """Open a file of recipients; ``-`` is ``stdin``, which stays open.

    With ``may_be_list``, the file may have one number per line instead. ``note`` is called with a message at the end if
    the text was Windows-1252. Raises UsageError if the file is unreadable or not text, or has no header or phone
    column.
    """
    phones = phones or PhoneCells()
    name = name_of(file)
    with ExitStack() as stack:
        try:
            source = cast(io.BufferedReader, stdin) if file == "-" else stack.enter_context(Path(file).open("rb"))
            head = source.peek(4)
        except (OSError, ValueError) as error:
            raise formats.unreadable(name if file == "-" else quote(file), error) from None
        if head.startswith(formats.ZIP_MARK):
            from msgctl.jobs import workbook

            rows = stack.enter_context(closing(workbook.records(source, name)))
            yield _table(name, rows, phone_column, phones)
            return
        lines = stack.enter_context(closing(formats.Lines(source, name, head)))
        if not lines.first:
            once = " It can be read only once." * (file == "-")
            hint = f"It must contain recipients: CSV with a header, JSON Lines, or .xlsx.{once}"
            raise UsageError(f"{name} is empty", hint)
        if may_be_list and _is_phone(lines.first, least=1):
            yield Recipients(("phone",), "phone", iter(()), lines)
        elif _JSON.match(lines.first):
            yield _table(name, formats.json_records(lines), phone_column, phones)
        else:
            records = formats.csv_records(lines, lambda cells: _find_phone(cells, phone_column) is not None)
            yield _table(name, records, phone_column, phones)
        if lines.windows_1252:
            note(f"{name} is not UTF-8; reading it as Windows-1252")


def numbers_in(file: str, stdin: BinaryIO, country: str | None, phone_column: str | None = None) -> Iterator[str]:
    """Yield the numbers in a file with one per line, or in any file of recipients.

    National numbers belong to ``country``. Raises UsageError for an invalid number.
    """
    return (number for _, number, _ in values_in(None, file, stdin, country, phone_column))


def values_in(
    column: str | None, file: str, stdin: BinaryIO, country: str | None, phone_column: str | None
) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the number and the text in a column of each row of such a file; without the column, no text."""
    phones = PhoneCells(country)
    with opened(file, stdin, phone_column, phones, may_be_list=True) as found:
        if found.numbers is not None:
            yield from ((0, number, "") for number in _numbers(found.numbers, phones))
        place = None if column is None else find_column(column, found.columns)
        for row in found.rows:
            if isinstance(row, InvalidRow):
                raise _invalid(row, name_of(file))
            if row is not None:
                yield row.line, row.phone, "" if place is None else row.values[place]


def _numbers(lines: formats.Lines, phones: PhoneCells) -> Iterator[str]:
    """Yield the numbers of a file with one per line, without a `Row` for each, since there can be millions."""
    for line in lines:
        lines.size = 0
        if text := line.strip():
            try:
                yield phones.read(text)
            except UsageError as error:
                row = InvalidRow(lines.begin, shorten(text, _MAX_SHOWN), error.message)
                raise _invalid(row, lines.name) from None


def _invalid(row: InvalidRow, name: str) -> UsageError:
    return UsageError(
        f"Line {row.line} of {name}: {row.phone}: {row.reason}",
        "Fix or remove it. Name the country of national numbers with --country-code CO.",
    )


def name_of(file: str) -> str:
    """Return the name of a file for messages."""
    return "standard input" if file == "-" else shorten(Path(file).name)


def _table(name: str, records: Iterator[Record], phone_column: str | None, phones: PhoneCells) -> Recipients:
    """Return the rows of a table whose first record with text is its header. Raises UsageError."""
    line, header = next((each for each in records if isinstance(each[1], str) or "".join(each[1]).strip()), (0, []))
    if isinstance(header, str):
        hint = 'Each line must be a whole JSON object, for example: {"phone": "573001234567"}'
        raise UsageError(f"line {line} of {name} is {header}", hint)
    if not header:
        raise UsageError(f"{name} has no header", "Add a first line with the names of the columns.")
    columns = [cell.strip() for cell in header]
    sample = [*islice(records, SAMPLE)]
    phone = _require_phone(columns, phone_column, name, [cells for _, cells in sample if not isinstance(cells, str)])

    def rows() -> Iterator[Row | InvalidRow | None]:
        for line, cells in chain(sample, records):
            if isinstance(cells, str):
                yield InvalidRow(line, "", cells)
            elif len(cells) > len(columns):
                reason = (
                    f"{len(cells)} cells, but the header has {len(columns)}: quote cells that contain the delimiter"
                )
                yield InvalidRow(line, shorten(cells[phone], _MAX_SHOWN), reason)
            elif "".join(cells).strip():
                yield phones.row(line, cells + [""] * (len(columns) - len(cells)), phone)
            elif cells:  # an empty line is not a row
                yield None

    return Recipients(columns, columns[phone], rows())


# --- columns, by the names that people type


def find_column(name: str, columns: Sequence[str]) -> int | None:
    """Return the index of the column with this name, or else of the only one that differs just in case."""
    if name in columns:
        return columns.index(name) if name else None
    return _only(_key(column) == _key(name) for column in columns)


def listed(columns: Sequence[str]) -> str:
    """Return the names of columns for a message: ``Columns: phone, name``."""
    return f"Columns: {shorten(', '.join(filter(None, columns))) or 'none'}"


def _find_phone(columns: Sequence[str], asked: str | None, sample: Sequence[Sequence[str]] = ()) -> int | None:
    """Return the index of the phone column; None if it is not certain.

    Without --phone-column, it is the column "phone"; or else the only column with a name for phone numbers; or else the
    only column with phone numbers in all ``sample`` rows.
    """
    found = find_column("phone" if asked is None else asked.strip(), columns)
    if found is None and asked is None:
        found = _only(_PHONE_NAME.fullmatch(re.sub("[ _.-]", "", _key(name))) is not None for name in columns)
        if found is None:
            found = _only(_are_phones([row[at] for row in sample if at < len(row)]) for at in range(len(columns)))
    return found


def _require_phone(columns: Sequence[str], asked: str | None, file: str, sample: Sequence[Sequence[str]]) -> int:
    """Return the index of the phone column. Raises UsageError if it is not found or two columns share a name.

    A header that contains a phone number is refused, because this person would be left out, or not excluded.
    """
    index = _find_phone(columns, asked, sample)
    if index is None or (asked is None and _is_phone(columns[index])):
        if any(map(_is_phone, columns)):
            raise UsageError(
                f"the first line of {file} contains a phone number, but must name the columns",
                "Add a header line, for example: phone,name",
            )
        raise UsageError(
            f"{file} has no column {quote('phone' if asked is None else asked)}. {listed(columns)}",
            'Rename the column of the phone numbers to "phone", or name it with --phone-column NAME.',
        )
    twice = next((name for name, count in Counter(columns).items() if name and count > 1), None)
    if twice is not None:
        raise UsageError(f"{file} has more than one column named {quote(twice)}", "Give each column its own name.")
    return index


def _only(found: Iterable[bool]) -> int | None:
    """Return the index of the only true value."""
    places = [place for place, is_found in enumerate(found) if is_found]
    return places[0] if len(places) == 1 else None


def _is_phone(text: str, least: int = MIN_DIGITS) -> bool:
    """Return whether a text is a phone number of this length, or several of them."""
    try:
        return all(len(phones.as_typed(each).digits) >= least for each in _several(text))
    except InvalidPhoneError:
        return False


def _are_phones(cells: Sequence[str]) -> bool:
    filled = [cell for cell in cells if cell.strip()]
    return bool(filled) and all(map(_is_phone, filled))


def _key(name: str) -> str:
    """Return a name in a normal form for comparison, since systems may compose the same letters differently."""
    return normalized(name).casefold()
