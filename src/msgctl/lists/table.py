"""The table of people in a file or sheet: its header, its phone columns and its rows."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, dropwhile, islice
from typing import cast

from msgctl.lists import header
from msgctl.lists.formats import FileError, Record, unmarked
from msgctl.lists.header import NoTableError, PhoneSource, find_column
from msgctl.lists.rows import MAX_SHOWN, InvalidRow, PhoneCells, Row, has_damage, likely_text
from msgctl.text import shorten
from msgctl.values import quote

MAX_COLUMNS = 1000

MAX_LISTED = 20
"""Maximum sheets, columns or rows that an error lists."""


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


def below_header(
    records: Iterator[Record], name: str, sheet: str, reading: Reading, phones: PhoneCells | None
) -> ListTable:
    """Return a table whose header is found in its records. Raises NoTableError."""
    (line, columns), rest = _with_header(records, name, reading, phones)
    return ListTable(name, sheet, line, columns, rest, reading, phones)


def _with_header(
    records: Iterator[Record], name: str, reading: Reading, phones: PhoneCells | None
) -> tuple[tuple[int, list[str]], Iterator[Record]]:
    """Return the header with its line, and the records below it. Raises NoTableError."""
    cells = phones or PhoneCells()
    records = dropwhile(lambda record: not has_text(record), records)
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
        if not head or head[-1][0] != reading.header_row or not has_text(head[-1]):
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


class ListTable:
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
            if has_text(record):
                break
        self.is_empty = not ahead or not has_text(ahead[-1])
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


def has_text(record: Record) -> bool:
    """Return whether a record has an error or a cell that is not blank."""
    return bool("".join(record[1]).strip())


def _cleaned(record: Record) -> Record:
    """Return a record without the marks that programs add for spreadsheets."""
    line, cells = record
    if isinstance(cells, str) or not ("'" in (text := "".join(cells)) or '="' in text):  # the usual case
        return record
    return line, [*map(unmarked, cells)]
