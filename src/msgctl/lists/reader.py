"""Read recipients from a file of any supported format: rows and invalid rows."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, cast

from msgctl.errors import UsageError
from msgctl.lists import formats
from msgctl.lists.formats import FileError, Record
from msgctl.lists.header import NoTableError, find_column, find_phone, require_phone
from msgctl.lists.rows import MAX_SHOWN, InvalidRow, PhoneCells, Row, is_phone
from msgctl.text import plural, shorten, some_of
from msgctl.values import quote

if TYPE_CHECKING:
    from msgctl.lists.workbook import Sheet

SAMPLE = 50
"""Rows that are examined to find the phone column."""
MAX_COLUMNS = 1000

_GUARDED = tuple(f"'{char}" for char in "=+-@\t\r")
"""The beginning of a cell to which a spreadsheet added a quotation mark, so that it is not a formula."""


class Recipients(NamedTuple):
    """The recipients in a file: its columns (some may have empty names) and its rows, which can be read once.

    A row without text is None. A file with one number per line has ``numbers`` instead of rows. Reading raises
    UsageError if the rest of the file cannot be read, or another sheet of a workbook has recipients, too.
    """

    columns: Sequence[str]
    phone_column: str
    rows: Iterator[Row | InvalidRow | None]
    numbers: formats.Lines | None = None


@contextmanager
def opened(
    file: str,
    stdin: BinaryIO,
    phone_column: str | None = None,
    phones: PhoneCells | None = None,
    *,
    may_be_list: bool = False,
    skip_hidden: bool | None = None,
    note: Callable[[str], None] = lambda _: None,
) -> Iterator[Recipients]:
    """Open a file of recipients; ``-`` is ``stdin``, which stays open.

    Without ``phones``, the file needs no phone column, and the phone of each row is empty. With ``may_be_list``, the
    file may have one number per line instead. ``skip_hidden`` leaves out the rows that Excel hides, which are an error
    otherwise; None means that the command has no such option. ``note`` is called with messages for the user. Raises
    UsageError if the file is unreadable or not text, or has no header or phone column.
    """
    name = name_of(file)

    def table(records: Iterator[Record]) -> _Table:
        return _Table(name, records, phone_column, phones)

    def is_header(cells: Sequence[str]) -> bool:
        return len(cells) <= MAX_COLUMNS and find_phone(cells, phone_column) is not None

    with ExitStack() as stack:
        try:
            source = cast(io.BufferedReader, stdin) if file == "-" else stack.enter_context(Path(file).open("rb"))
            head = source.peek(4)
        except (OSError, ValueError) as error:
            raise formats.unreadable(name if file == "-" else quote(file), error) from None
        if head.startswith(formats.ZIP_MARK):
            from msgctl.lists import workbook

            sheets = stack.enter_context(workbook.sheets(source, name))
            yield _in_workbook(name, sheets, table, skip_hidden, note)
            return
        lines = stack.enter_context(closing(formats.Lines(source, name, head)))
        if not lines.first:
            hint = "It must contain recipients: CSV with a header, JSON Lines, or .xlsx."
            if file == "-":
                hint += " It can be read only once."
            raise FileError(f"{name} is empty", hint)
        if may_be_list and is_phone(lines.first.removeprefix("'"), least=1):
            yield Recipients(("phone",), "phone", iter(()), lines)
        elif lines.first.lstrip().startswith(("{", "[")):
            yield table(formats.json_records(lines)).recipients()
        else:
            yield table(formats.csv_records(lines, is_header)).recipients()
        if lines.is_windows_1252:
            note(f"{name} is not UTF-8; reading it as Windows-1252")


def numbers_in(file: str, stdin: BinaryIO, country: str | None, phone_column: str | None = None) -> Iterator[str]:
    """Yield the numbers in a file with one per line, or in any file of recipients.

    National numbers belong to ``country``. Raises UsageError for an invalid number.
    """
    return (number for _, number, _ in values_in(None, file, stdin, country, phone_column))


def values_in(
    column: str | None, file: str, stdin: BinaryIO, country: str | None, phone_column: str | None
) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the number and the text in a column of each row of such a file. Without the column, the text is
    empty.
    """
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
        if text := line.strip().removeprefix("'"):
            try:
                yield phones.read(text)
            except UsageError as error:
                row = InvalidRow(lines.begin, shorten(text, MAX_SHOWN), error.message)
                raise _invalid(row, lines.name) from None


def _invalid(row: InvalidRow, name: str) -> FileError:
    parts = [f"Line {row.line} of {name}", row.phone, row.reason]
    return FileError(
        ": ".join(filter(None, parts)),
        "Fix or remove it. National numbers need a country, such as --country-code CO.",
    )


def name_of(file: str) -> str:
    """Return the name of a file for messages."""
    return "standard input" if file == "-" else shorten(Path(file).name)


class _Table:
    """A table whose first record with text is its header. Raises UsageError if it has no header or phone column."""

    def __init__(
        self, name: str, records: Iterator[Record], phone_column: str | None, phones: PhoneCells | None
    ) -> None:
        records = map(_unguarded, records)
        line, header = next(filter(_has_text, records), (0, []))
        if isinstance(header, str):
            hint = 'Each line must be a whole JSON object, for example: {"phone": "573001234567"}'
            raise NoTableError(f"Line {line} of {name}: {header}", hint)
        if not header:
            raise NoTableError(f"{name} has no header", "Add a first line with the names of the columns.")
        if len(header) > MAX_COLUMNS:
            raise NoTableError(f"{name} has {len(header):,} columns; the limit is {MAX_COLUMNS:,}")
        self._columns = [cell.strip() for cell in header]
        twice = next((name for name, count in Counter(self._columns).items() if name and count > 1), None)
        if twice is not None:
            raise NoTableError(
                f"{name} has more than one column named {quote(twice)}", "Give each column its own name."
            )
        self._records = records
        self._sample = [*islice(records, SAMPLE)]
        self._phones = phones
        self._phone = 0
        if phones is not None:
            sample = [cells for _, cells in self._sample if not isinstance(cells, str)]
            self._phone = require_phone(self._columns, phone_column, name, sample)

    @property
    def is_empty(self) -> bool:
        """Whether the table has only a header."""
        return not any(map(_has_text, self._sample))

    def recipients(self) -> Recipients:
        phone_column = "" if self._phones is None else self._columns[self._phone]
        return Recipients(self._columns, phone_column, self._rows())

    def _rows(self) -> Iterator[Row | InvalidRow | None]:
        columns, phone = len(self._columns), self._phone
        for line, cells in chain(self._sample, self._records):
            if isinstance(cells, str):
                yield InvalidRow(line, "", cells)
            elif len(cells) > columns:
                reason = f"{len(cells)} cells, but the header has {columns}: quote cells that contain the delimiter"
                yield InvalidRow(line, shorten(cells[phone], MAX_SHOWN), reason)
            elif "".join(cells).strip():
                filled = cells + [""] * (columns - len(cells))
                yield Row(line, "", tuple(filled)) if self._phones is None else self._phones.row(line, filled, phone)
            elif cells:  # an empty line is not a row
                yield None


def _in_workbook(
    name: str,
    sheets: Iterator[Sheet],
    table: Callable[[Iterator[Record]], _Table],
    skip_hidden: bool | None,
    note: Callable[[str], None],
) -> Recipients:
    """Return the rows of the only visible sheet with recipients. Raises UsageError."""
    names: list[str] = []
    only: _Table | FileError = FileError(f"{name} has no visible sheet")
    for sheet in sheets:
        names.append(sheet.name)
        try:
            only = table(_visible(sheet, skip_hidden))
        except NoTableError as error:
            only = error
            continue
        if only.is_empty:
            continue
        if sheet.hidden and not skip_hidden:
            raise FileError(
                f"{name} has {plural(len(sheet.hidden), 'row')} that Excel hides, by hand or by a filter",
                "Show hidden rows in Excel, or delete them."
                if skip_hidden is None
                else "Show hidden rows in Excel, or leave them out with --skip-hidden.",
            )
        if sheet.hidden:
            note(f"Left out {plural(len(sheet.hidden), 'hidden row')} of {name}")
        recipients = only.recipients()
        return recipients._replace(rows=chain(recipients.rows, _refuse_others(name, sheet.name, sheets, table)))
    if len(names) > 1:
        what = f"None of the visible sheets of {name} has recipients: {some_of([*map(quote, names)], 20)}"
        raise FileError(what, "One sheet must have a header with a phone column, and rows.")
    if isinstance(only, FileError):
        raise only
    return only.recipients()


def _visible(sheet: Sheet, skip_hidden: bool | None) -> Iterator[Record]:
    if not skip_hidden:
        return sheet.rows
    return (record for record in sheet.rows if record[0] not in sheet.hidden)


def _refuse_others(
    name: str, first: str, sheets: Iterator[Sheet], table: Callable[[Iterator[Record]], _Table]
) -> Iterator[None]:
    """Yield nothing. Raises UsageError if another sheet has recipients, too."""
    names = [first]
    for sheet in sheets:
        with suppress(NoTableError):
            if not table(sheet.rows).is_empty:
                names.append(sheet.name)
    if len(names) > 1:
        what = f"{len(names)} visible sheets of {name} have recipients: {some_of([*map(quote, names)], 20)}"
        raise FileError(what, "Hide or delete all but one of them.")
    yield from ()


def _has_text(record: Record) -> bool:
    """Return whether a record has an error or a cell that is not blank."""
    _, cells = record
    return bool("".join(cells).strip())


def _unguarded(record: Record) -> Record:
    """Return a record without the quotation marks that spreadsheets add before characters such as ``=``."""
    line, cells = record
    if isinstance(cells, str):
        return record
    return line, [cell[1:] if cell.startswith(_GUARDED) else cell for cell in cells]
