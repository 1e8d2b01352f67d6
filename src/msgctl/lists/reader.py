"""Read people from a file of any supported format: rows and invalid rows."""

from __future__ import annotations

import io
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain, dropwhile, islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

from msgctl.lists import formats, header, kinds
from msgctl.lists.faults import Faults
from msgctl.lists.formats import FileError, Record, unmarked
from msgctl.lists.header import NoTableError, PhoneSource, find_column
from msgctl.lists.rows import MAX_SHOWN, InvalidRow, PhoneCells, Row, has_damage, is_phone, likely_text
from msgctl.text import plural, shorten, some_of
from msgctl.values import quote

if TYPE_CHECKING:
    from msgctl.lists.workbook import Sheet

MAX_COLUMNS = 1000
MAX_LISTED = 20
"""Maximum sheets, columns or rows that an error lists."""
PEEKED = 4096
"""The first bytes of a file, by which its kind is recognised."""


@dataclass(frozen=True)
class Reading:
    """How a file is read: the sheet, the row of the header and the phone column, unless they are found.

    ``skip_hidden`` leaves out the rows that Excel hides, which are an error otherwise; None means that the command has
    no such option. ``is_optional`` means that the file may lack the column ``phone_column``, which is then found.
    With ``leaves_out``, it is a file of people to leave out: every phone column counts, and every number in a cell.
    """

    sheet: str | None = None
    header_row: int | None = None
    phone_column: str | None = None
    skip_hidden: bool | None = None
    is_optional: bool = False
    leaves_out: bool = False


class Recipients:
    """The people in a file: its columns (some may have empty names) and its rows, which can be read once.

    A row without text is None. Reading raises UsageError if the rest of the file cannot be read, the phone column is
    not certain, or another sheet of a workbook has recipients, too.
    """

    def __init__(self, table: _Table, rows: Iterator[Row | InvalidRow | None]) -> None:
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
    reading: Reading = Reading(),
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

            sheets = stack.enter_context(workbook.sheets(source, name))
            recipients = _Workbook(name, reading, phones, note).recipients(sheets)
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


def _text_table(lines: formats.Lines, reading: Reading, phones: PhoneCells | None) -> _Table:
    """Return the table in CSV, JSON Lines, or a list of numbers. Raises UsageError."""
    name, first = lines.name, lines.head[0].strip()
    if reading.sheet is not None:
        raise FileError(f"{name} is not a workbook, so it has no sheets", "Omit --sheet.")
    if reading.leaves_out and reading.header_row is None and is_phone(first.removeprefix("'"), least=1):
        table = _Table(name, "", None, ["phone"], _listed_numbers(lines), reading, phones)
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
        return _Table(name, "", None, names, records, reading, phones)

    def header_of(rows: Sequence[Record]) -> Sequence[str]:
        rows = [record for record in rows if _has_text(record)]
        try:
            place = header.find_header(rows, name, reading.phone_column, (phones or PhoneCells()).number)
        except NoTableError:  # a phone is above it
            return max((cells for _, cells in rows), key=len)
        return rows[place][1] if rows else ()

    return _below_header(formats.csv_records(lines, header_of), name, "", reading, phones)


def _listed_numbers(lines: formats.Lines) -> Iterator[Record]:
    """Yield the lines of a list of numbers as records of one cell."""
    for line in lines:
        lines.size = 0
        yield lines.begin, [text] if (text := line.strip()) else []


def _below_header(
    records: Iterator[Record], name: str, sheet: str, reading: Reading, phones: PhoneCells | None
) -> _Table:
    """Return a table whose header is found in its records. Raises NoTableError."""
    (line, columns), rest = _with_header(records, name, reading, phones)
    return _Table(name, sheet, line, columns, rest, reading, phones)


def _with_header(
    records: Iterator[Record], name: str, reading: Reading, phones: PhoneCells | None
) -> tuple[tuple[int, list[str]], Iterator[Record]]:
    """Return the header with its line, and the records below it. Raises NoTableError."""
    cells = phones or PhoneCells()
    records = dropwhile(lambda record: not _has_text(record), records)
    if reading.header_row is None:
        head = [*islice(records, header.MAX_ABOVE)]
        place = header.find_header([*map(_cleaned, head)], name, reading.phone_column, cells.number)
    else:
        head = []
        for record in records:
            head.append(record)
            if record[0] >= reading.header_row:
                break
        place = len(head) - 1
        if not head or head[-1][0] != reading.header_row or not _has_text(head[-1]):
            raise NoTableError(f"Row {reading.header_row:,} of {name} has no text", "Choose another --header-row.")
    if not head:
        raise NoTableError(f"{name} has no header", "Add a first line with the names of the columns.")
    line, names = _cleaned(head[place])
    if isinstance(names, str):
        raise NoTableError(f"Row {line:,} of {name} cannot be the header: {names}")
    if phone := next(filter(cells.may_be_number, names), None):
        what = f"{name} has no header: row {line:,} contains a phone number, {quote(phone)}"
        raise NoTableError(what, "Add a line with the names of the columns above it, for example: phone,name")
    for above, row in map(_cleaned, head[:place]):
        if not isinstance(row, str) and (phone := next(filter(cells.number, row), None)):
            raise header.phone_above(name, line, above, phone)
    return (line, names), chain(head[place + 1 :], records)


class _Table:
    """The columns and rows of a file or sheet. Raises NoTableError for columns that cannot be used."""

    def __init__(
        self,
        name: str,
        sheet: str,
        header_row: int | None,
        columns: Sequence[str],
        records: Iterator[Record],
        reading: Reading,
        phones: PhoneCells | None,
    ) -> None:
        self.columns = [cell.strip() for cell in columns]
        if not any(self.columns):
            raise NoTableError(f"{name} has no header", "Add a first line with the names of the columns.")
        if len(columns) > MAX_COLUMNS:
            raise NoTableError(f"{name} has {len(columns):,} columns; the limit is {MAX_COLUMNS:,}")
        twice = next((name for name, count in Counter(self.columns).items() if name and count > 1), None)
        if twice is not None:
            raise NoTableError(
                f"{name} has more than one column named {quote(twice)}", "Give each column its own name."
            )
        self._name = name
        self._sheet = sheet
        self._header_row = header_row
        self._phones = phones
        self._leaves_out = reading.leaves_out
        self._choice = self._chosen(reading)
        self._firsts: dict[int, tuple[str, int]] = {}
        """The first phone of each column, and its line, if the phone column is not certain."""
        self._likely: dict[int, tuple[str, int]] = {}
        """The same with texts that would be phones if a country were known."""
        self._first = ("", 0)
        self.has_headings = True
        self._damaged = 0
        self._damage = ""
        ahead = []
        for record in records:
            ahead.append(record)
            if _has_text(record):
                break
        self.is_empty = not ahead or not _has_text(ahead[-1])
        """Whether no row has text."""
        self._records = chain(ahead, records)

    def _chosen(self, reading: Reading) -> header.PhoneColumns:
        chosen = reading.phone_column
        if self._phones is None:
            return header.PhoneColumns()
        if reading.is_optional and chosen is not None and find_column(chosen.strip(), self.columns) is None:
            chosen = None
        if reading.leaves_out:
            return header.all_phone_columns(self.columns, chosen, only_chosen=not reading.is_optional)
        return header.phone_columns(self.columns, chosen)

    @property
    def is_list(self) -> bool:
        """Whether the headings show that it is a list of people."""
        return self._phones is None or self._choice.has_heading

    @property
    def without_country(self) -> int:
        """The rows that are invalid only because no country is known."""
        return 0 if self._phones is None else self._phones.without_country

    @property
    def source(self) -> PhoneSource:
        """Where the phones are, with the first number of the rows that were read."""
        names = tuple(self.columns[index] for index in self._choice.indexes if self.has_headings)
        return PhoneSource(self._sheet, self._header_row, names, *self._first)

    @property
    def damaged(self) -> str:
        """The note about text that looks damaged; empty without any."""
        if not self._damaged:
            return ""
        rows = "" if self._damaged == 1 else f" ({self._damaged:,} such rows)"
        return f"{self._name} has text that looks damaged: {self._damage}{rows}. Nothing is repaired"

    def rows(self) -> Iterator[Row | InvalidRow | None]:
        """Yield the rows; none if the phone column is not certain. Afterwards, call `check`."""
        columns = self._choice.indexes
        watches = self._phones is not None and (not columns or self._choice.is_only_a_part)
        width = len(self.columns)
        is_usual = self._phones is not None and not self._leaves_out and not watches
        for line, cells in self._records:
            if isinstance(cells, str):
                yield InvalidRow(line, "", cells)
                continue
            text = "".join(cells)
            if not text or text.isspace():
                if cells:  # an empty line is not a row
                    yield None
                continue
            if "'" in text or '="' in text:
                cells = [*map(unmarked, cells)]  # noqa: PLW2901
            if not text.isascii() and has_damage(text):
                self._note_damage(line, cells)
            if is_usual and len(cells) == width:  # without a generator for each row, it takes half the time
                row = self._phones.row(line, cells, columns[0])  # type: ignore[union-attr]
                if not self._first[1] and isinstance(row, Row):
                    self._first = (row.phone, line)
                yield row
                continue
            if watches:
                self._watch(line, cells)
            if columns or self._phones is None:
                while len(cells) > width and not cells[-1].strip():
                    del cells[-1]
                yield from self._people(line, cells + [""] * (width - len(cells)))

    def _people(self, line: int, cells: list[str]) -> Iterator[Row | InvalidRow]:
        """Yield the person in a row, or of people to leave out, each one."""
        columns, width = self._choice.indexes, len(self.columns)
        if len(cells) > width:
            phone = shorten(cells[columns[0]], MAX_SHOWN) if columns else ""
            reason = f"{len(cells)} cells, but the header has {width}: quote cells that contain the delimiter"
            yield InvalidRow(line, phone, reason)
            return
        if self._phones is None:
            yield Row(line, "", tuple(cells))
            return
        people: Iterable[Row | InvalidRow]
        if self._leaves_out:
            people = self._phones.people(line, cells, columns)
        else:
            people = (self._phones.row(line, cells, columns[0]),)
        for person in people:
            if not self._first[1] and isinstance(person, Row):
                self._first = (person.phone, line)
            yield person

    def all_rows(self) -> Iterator[Row | InvalidRow | None]:
        """Yield the rows. Raises UsageError at the end if the phone column is not certain."""
        yield from self.rows()
        self.check()

    def check(self) -> None:
        """Raise UsageError if the phone column is not certain after all rows were read."""
        choice = self._choice
        if self._phones is None or (choice.indexes and not choice.is_only_a_part):
            return
        (own,) = choice.indexes or (None,)
        if own is not None and not self._firsts.keys() - {own}:
            return
        doubt = choice.doubt
        if own is not None:
            heading = quote(header.shown(self.columns[own]))
            doubt = f"{heading} only contains a word for phones, and other columns have phones, too"
        raise self._doubt(doubt)

    def _doubt(self, doubt: str) -> FileError:
        """Return the error for a phone column that is not certain. It lists the columns that have phones."""
        where = f"sheet {quote(self._sheet)} of {self._name}" if self._sheet else self._name
        hints = []
        if self._phones is not None and self._phones.country is None and not self._firsts:
            hints.append("National numbers need a country, such as --country-code CO.")
        what = f"The phone column of {where} is not certain: {doubt}"
        lines = self.listed_phones()
        if lines:
            what = "\n".join([what, "Columns with phones:", *lines])
            hints.insert(0, "Choose the phone column with --phone-column.")
        else:
            what += f". {header.in_words(self.columns)}"
            hints.insert(0, 'Rename the heading of the phones to "phone", or use --phone-column NAME.')
        if self._header_row is not None and sum(map(bool, self.columns)) < 2:  # perhaps it is a title
            hints.append(f"If row {self._header_row} is not the header, use --header-row N.")
        return FileError(what, " ".join(hints))

    def listed_phones(self) -> list[str]:
        """Return a line for each column that has phones, with the option that chooses it."""
        sheet = f"--sheet {shlex.quote(self._sheet)} " if self._sheet else ""
        lines = []
        for index, (phone, line) in sorted((self._firsts or self._likely).items())[:MAX_LISTED]:
            name = header.shown(self.columns[index]) if index < len(self.columns) else ""
            if name:
                option = f"{sheet}--phone-column {shlex.quote(name)}"
                lines.append(f"  {quote(name)}, first {phone} (line {line:,}): {option}")
            else:
                lines.append(f"  column {index + 1} (no heading), first {phone} (line {line:,})")
        return lines

    def _watch(self, line: int, cells: Sequence[str]) -> None:
        """Remember the first phone of each column."""
        phones = cast(PhoneCells, self._phones)
        for index, cell in enumerate(cells):
            if not cell or index in self._firsts:
                continue
            if number := phones.number(cell):
                self._firsts[index] = number, line
            elif index not in self._likely and phones.may_be_number(cell):
                self._likely[index] = shorten(cell.strip(), MAX_SHOWN), line

    def _note_damage(self, line: int, cells: Sequence[str]) -> None:
        """Remember the first text that looks damaged."""
        for cell in cells:
            if not cell.isascii() and (likely := likely_text(cell)) != cell:
                self._damaged += 1
                if not self._damage:
                    self._damage = f"line {line:,} has {quote(cell)}, probably {quote(likely)}"
                return


class _Workbook:
    """Chooses the sheet of a workbook: the only visible one with recipients, or the one of --sheet."""

    def __init__(self, name: str, reading: Reading, phones: PhoneCells | None, note: Callable[[str], None]) -> None:
        self._name = name
        self._reading = reading
        self._phones = phones
        self._note = note

    def recipients(self, sheets: Iterator[Sheet]) -> Recipients:
        """Return the rows of the sheet. Raises UsageError."""
        names: list[str] = []
        unsure: list[_Table] = []
        only: _Table | FileError | None = None
        for sheet in sheets:
            names.append(sheet.name)
            if self._reading.sheet is not None and find_column(self._reading.sheet, [sheet.name]) is None:
                continue
            try:
                only = table = self._table(sheet)
            except NoTableError as error:
                only = error
                continue
            if table.is_empty:
                continue
            if not table.is_list and self._reading.sheet is None:
                for _ in table.rows():  # it may be the only sheet with phones
                    pass
                unsure.append(table)
                continue
            self._refuse_hidden(sheet)
            return Recipients(table, self._rows(table, sheet.name, sheets))
        if self._reading.sheet is not None and only is None:
            what = f"{self._name} has no visible sheet {quote(self._reading.sheet)}"
            raise FileError(what, f"Its sheets: {_quoted(names)}")
        if len(unsure) == 1 and (len(names) == 1 or unsure[0].listed_phones()):
            unsure[0].check()
        if len(names) > 1 and self._reading.sheet is None:
            listed = [line for table in unsure for line in table.listed_phones()]
            what = f"None of the visible sheets of {self._name} has recipients: {_quoted(names)}"
            raise FileError(
                "\n".join([what, *listed]),
                "One sheet must have a heading for phones, and rows. Otherwise, use --sheet and --phone-column.",
            )
        if only is None:
            raise FileError(f"{self._name} has no visible sheet")
        if isinstance(only, FileError):
            raise only
        return Recipients(only, only.all_rows())

    def _table(self, sheet: Sheet) -> _Table:
        records = sheet.rows
        if self._reading.skip_hidden:
            records = (record for record in records if record[0] not in sheet.hidden)
        return _below_header(records, self._name, sheet.name, self._reading, self._phones)

    def _refuse_hidden(self, sheet: Sheet) -> None:
        """Raise FileError for rows that Excel hides, or print a note if they are left out."""
        if not sheet.hidden:
            return
        rows = plural(len(sheet.hidden), "row")
        if self._reading.skip_hidden:
            self._note(f"Left out {plural(len(sheet.hidden), 'hidden row')} of {self._name}")
            return
        hint = "Show hidden rows in Excel, or leave them out with --skip-hidden."
        if self._reading.skip_hidden is None:
            hint = "Show hidden rows in Excel: without them, a person would get the message."
        raise FileError(f"{self._name} has {rows} that Excel hides, by hand or by a filter", hint)

    def _rows(self, table: _Table, chosen: str, others: Iterator[Sheet]) -> Iterator[Row | InvalidRow | None]:
        """Yield the rows. Raises UsageError if another sheet has recipients, too."""
        yield from table.rows()
        names = [chosen]
        if self._reading.sheet is None:
            for sheet in others:
                with suppress(NoTableError):
                    other = self._table(sheet)
                    if other.is_list and not other.is_empty:
                        names.append(sheet.name)
        if len(names) > 1:
            what = f"{len(names)} visible sheets of {self._name} have recipients: {_quoted(names)}"
            raise FileError(what, f"Choose one of them, for example: --sheet {shlex.quote(names[0])}")
        table.check()


def _quoted(names: Sequence[str]) -> str:
    return some_of([*map(quote, names)], MAX_LISTED)


def _has_text(record: Record) -> bool:
    """Return whether a record has an error or a cell that is not blank."""
    return bool("".join(record[1]).strip())


def _cleaned(record: Record) -> Record:
    """Return a record without the marks that programs add for spreadsheets."""
    line, cells = record
    if isinstance(cells, str) or not ("'" in (text := "".join(cells)) or '="' in text):  # the usual case
        return record
    return line, [*map(unmarked, cells)]


def name_of(file: str) -> str:
    """Return the name of a file for messages."""
    return "standard input" if file == "-" else shorten(Path(file).name)
