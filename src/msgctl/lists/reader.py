"""Read people from a file of any supported format: rows and invalid rows."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import BinaryIO, cast

from msgctl.lists import formats, header, kinds
from msgctl.lists.faults import Faults
from msgctl.lists.formats import FileError, Record
from msgctl.lists.header import NoTableError, PhoneSource
from msgctl.lists.rows import InvalidRow, PhoneCells, Row, is_phone
from msgctl.lists.table import ListTable, Reading, below_header, has_text
from msgctl.text import shorten
from msgctl.values import quote

PEEKED = 4096
"""The first bytes of a file, by which its kind is recognised."""


class Recipients:
    """The people in a file: its columns (some may have empty names) and its rows, which can be read once.

    A row without text is None. Reading raises UsageError if the rest of the file cannot be read, the phone column is
    not certain, or another sheet of a workbook has recipients, too.
    """

    def __init__(self, table: ListTable, rows: Iterator[Row | InvalidRow | None]) -> None:
        self._table = table
        self.rows = rows
        self.columns: Sequence[str] = table.columns
        self.phone_column = table.source.column
        """The heading of the phone column; of several, all headings. Empty if the file needs none."""

    @property
    def source(self) -> PhoneSource:
        """Where the phones are; complete when all rows were read."""
        return self._table.source

    @property
    def damaged(self) -> str:
        """The note about text that looks damaged; empty without any."""
        return self._table.damaged

    def counted(self, faults: Faults) -> Iterator[Row | InvalidRow]:
        """Yield the rows that are not blank, one per person, and add the invalid ones to ``faults``."""
        line = 0
        for row in self.rows:
            if row is None:
                faults.blank += 1
                continue
            faults.rows += row.line != line  # a row may have several people
            line = row.line
            if isinstance(row, InvalidRow):
                faults.add(row)
            yield row
        faults.without_country = self._table.without_country


@contextmanager
def opened(
    file: str,
    stdin: BinaryIO,
    reading: Reading,
    phones: PhoneCells | None = None,
    *,
    note: Callable[[str], None] = lambda _: None,
) -> Iterator[Recipients]:
    """Open a file of people; ``-`` is ``stdin``, which stays open.

    Without ``phones``, the file needs no phone column, and the phone of each row is empty. ``note`` is called with
    messages for the user. Raises UsageError if the file is unreadable or not a list, or has no header.
    """
    name = name_of(file)
    with ExitStack() as stack:
        try:
            source = cast(io.BufferedReader, stdin) if file == "-" else stack.enter_context(Path(file).open("rb"))
            head = source.peek(PEEKED)
        except (OSError, ValueError) as error:
            raise formats.unreadable(name if file == "-" else quote(file), error) from None
        kinds.refuse(name, source, head)
        if head.startswith(formats.ZIP_MARK):
            from msgctl.lists import workbook
            from msgctl.lists.sheets import Sheets

            sheets = stack.enter_context(workbook.sheets(source, name))
            recipients = Recipients(*Sheets(name, reading, phones, note).chosen(sheets))
            yield recipients
        else:
            lines = stack.enter_context(closing(formats.Lines(source, name, head)))
            if not lines.head:
                hint = "It must contain recipients: CSV with a header, JSON Lines, or .xlsx."
                if file == "-":
                    hint += " It can be read only once."
                raise FileError(f"{name} is empty", hint)
            table = _text_table(lines, reading, phones)
            recipients = Recipients(table, table.all_rows())
            yield recipients
            if lines.is_windows_1252:
                note(f"{name} is not UTF-8; reading it as Windows-1252")
        if recipients.damaged:
            note(recipients.damaged)


def _text_table(lines: formats.Lines, reading: Reading, phones: PhoneCells | None) -> ListTable:
    """Return the table in CSV, JSON Lines, or a list of numbers. Raises UsageError."""
    name, first = lines.name, lines.head[0].strip()
    if reading.sheet is not None:
        raise FileError(f"{name} is not a workbook, so it has no sheets", "Omit --sheet.")
    if reading.leaves_out and reading.header_row is None and is_phone(first.removeprefix("'"), least=1):
        table = ListTable(name, "", None, ["phone"], _listed_numbers(lines), reading, phones)
        table.has_headings = False
        return table
    if first.startswith(("{", "[")):
        if reading.header_row is not None:
            raise FileError(f"{name} is JSON Lines, which has no header", "Omit --header-row.")
        records = formats.json_records(lines)
        line, names = next(records)
        if isinstance(names, str):
            hint = 'Each line must be a whole JSON object, for example: {"phone": "573001234567"}'
            raise NoTableError(f"Line {line} of {name}: {names}", hint)
        return ListTable(name, "", None, names, records, reading, phones)

    def header_of(rows: Sequence[Record]) -> Sequence[str]:
        rows = [record for record in rows if has_text(record)]
        try:
            place = header.find_header(rows, name, reading.phone_column, (phones or PhoneCells()).number)
        except NoTableError:  # a phone is above it
            return max((cells for _, cells in rows), key=len)
        return rows[place][1] if rows else ()

    return below_header(formats.csv_records(lines, header_of), name, "", reading, phones)


def _listed_numbers(lines: formats.Lines) -> Iterator[Record]:
    """Yield the lines of a list of numbers as records of one cell."""
    for line in lines:
        lines.size = 0
        yield lines.begin, [text] if (text := line.strip()) else []


def name_of(file: str) -> str:
    """Return the name of a file for messages."""
    return "standard input" if file == "-" else shorten(Path(file).name)
