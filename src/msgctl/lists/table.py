"""The people in a file or sheet: its columns, and its rows."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from msgctl.lists import header
from msgctl.lists.damage import Damage
from msgctl.lists.faults import MAX_NAMED, Faults
from msgctl.lists.formats import FileError, RawRow, unmarked
from msgctl.lists.header import NoTableError, PhoneSource, Reading, has_text
from msgctl.lists.rows import MAX_SHOWN, InvalidRow, PhoneCells, Recipient
from msgctl.text import shorten
from msgctl.values import quote

MAX_COLUMNS = 1000
OWN_COLUMNS = (["line", "phone", "outcome"], ["phone", "channel", "added"])
"""The first columns of the lists that msgctl writes: of the recipients of a job, and of people who opted out."""


def below_header(raw_rows: Iterator[RawRow], name: str, sheet: str, reading: Reading) -> Recipients:
    """Return the people below the header that is found in these rows. Raises NoTableError."""
    (line, columns), rest = header.with_header(raw_rows, name, reading)
    return Recipients(name, sheet, line, columns, rest, reading)


class Recipients:
    """The people in a file or sheet: its columns (some may have empty names) and its rows, which can be read once.

    A row without text is None. Reading ``rows`` raises UsageError if the rest of the file cannot be read, the phone
    column is not certain, or another sheet of a workbook has recipients, too. `counted` adds invalid and blank rows to
    ``faults``. Raises NoTableError for columns that cannot be used.
    """

    def __init__(
        self,
        name: str,
        sheet: str,
        header_row: int | None,
        columns: Sequence[str],
        raw_rows: Iterator[RawRow],
        reading: Reading,
    ) -> None:
        self.columns = _headings(columns, name)
        self.rows = self._all_rows()
        self.damage = Damage(name)
        self._name = name
        self._phones = reading.phones
        self._own_phone = self.columns.index("phone") if self.columns[:3] in OWN_COLUMNS else None
        self._leaves_out = reading.leaves_out
        self.faults = Faults(name, header_row=header_row)
        if reading.leaves_out and reading.is_optional:  # a file of --exclude has no option for its header
            self.faults.header_row = None
        self._choice = header.phone_columns(self.columns, reading)
        self.source = PhoneSource(sheet, header_row, tuple(self.columns[index] for index in self._choice.indexes))
        for heading in self.source.columns:
            if header_row is not None and reading.phones and reading.phones.first_within(heading):
                raise header.without_header(name, header_row, heading)  # "Cel 300 123 4567" is a person
        self._firsts: dict[int, tuple[str, int]] = {}
        """The first phone of each column, and its line, if the phone column is not certain."""
        self._likely: dict[int, tuple[str, int]] = {}
        """Like `_firsts`, but with strings that would be phones if a country were known."""
        ahead = []
        for raw_row in raw_rows:
            ahead.append(raw_row)
            if has_text(raw_row):
                break
        self.is_empty = not ahead or not has_text(ahead[-1])
        """Whether no row has text."""
        self._raw_rows = chain(ahead, raw_rows)

    @property
    def is_list(self) -> bool:
        """Whether the headings show that it is a list of people."""
        return self._phones is None or self._choice.has_heading

    def counted(self) -> Iterator[Recipient | InvalidRow]:
        """Yield the rows that are not blank, one per person, and add the invalid ones to ``faults``."""
        line = 0
        for row in self.rows:
            if row is None:
                self.faults.blank += 1
                continue
            self.faults.rows += row.line != line  # a row may have several people
            line = row.line
            if isinstance(row, InvalidRow):
                self.faults.add(row)
            yield row
        if self._phones is not None:
            self.faults.without_country = self._phones.without_country
            self.faults.not_in_country = self._phones.not_in_country
            self.faults.country = self._phones.country

    def _all_rows(self) -> Iterator[Recipient | InvalidRow | None]:
        yield from self.read()
        self.check()

    def read(self) -> Iterator[Recipient | InvalidRow | None]:
        """Yield the rows; none if the phone column is not certain. Afterwards, call `check`."""
        phones, is_certain = self._phones, self._choice.is_certain
        for line, cells in self._raw_rows:
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
            if not text.isascii():
                self.damage.look_at(line, cells)
            if phones is not None and not is_certain:
                self._watch(phones, line, cells)
            for person in self._people(line, cells):
                if not self.source.first_line and isinstance(person, Recipient):
                    self.source.first, self.source.first_line = person.phone, line
                yield person

    def _people(self, line: int, cells: list[str]) -> Iterable[Recipient | InvalidRow]:
        """Return the person in a row; in a file of people to leave out, return all of them."""
        phones, columns, width = self._phones, self._choice.indexes, len(self.columns)
        if phones is not None and not columns:
            return ()
        if len(cells) != width:
            while len(cells) > width and not cells[-1].strip():
                del cells[-1]
            cells = cells + [""] * (width - len(cells))
        if len(cells) > width:
            phone = shorten(cells[columns[0]], MAX_SHOWN) if columns else ""
            reason = f"{len(cells)} cells, but the header has {width}: quote cells that contain the delimiter"
            return (InvalidRow(line, phone, reason),)
        if phones is None:
            return (Recipient(line, "", tuple(cells)),)
        own_phone = self._own_phone
        if own_phone is not None and cells[2] == "invalid":
            own_phone = None  # a report has the phone as it was typed
        if self._leaves_out:
            return phones.people(line, cells, columns, own_phone)
        return (phones.row(line, cells, columns[0], own_phone),)

    def check(self) -> None:
        """Raise UsageError if the phone column is not certain after all rows were read."""
        choice = self._choice
        if self._phones is None or choice.is_certain:
            return
        doubt = choice.doubt
        if choice.indexes:
            (index,) = choice.indexes
            if not (self._firsts.keys() | self._likely.keys()) - {index}:
                return
            heading = quote(header.on_one_line(self.columns[index]))
            doubt = f"{heading} only contains a word for phones, and other columns have phones, too"
        raise self._doubt(doubt)

    def _doubt(self, doubt: str) -> FileError:
        """Return the error for a phone column that is not certain. It lists the columns that have phones."""
        where = f"sheet {quote(self.source.sheet)} of {self._name}" if self.source.sheet else self._name
        hints = []
        if self._phones is not None and self._phones.country is None and not self._firsts:
            hints.append("National numbers need a country, such as --country-code CO.")
        what = f"Cannot determine the phone column of {where}: {doubt}"
        lines = self.listed_phones()
        if lines:
            what = "\n".join([what, "Columns with phones:", *lines])
            hints.insert(0, "Choose the phone column with --phone-column.")
        else:
            what += f". {header.in_words(self.columns)}"
            hints.insert(0, 'Rename the heading of the phone column to "phone", or use --phone-column NAME.')
        may_be_title = sum(map(bool, self.columns)) < 2 or not self._choice.has_heading
        if may_be_title and self.faults.header_row is not None:
            hints.append(f"If row {self.faults.header_row} is not the header, use --header-row N.")
        return FileError(what, " ".join(hints))

    def listed_phones(self) -> list[str]:
        """Return a line for each column that has phones, with the option that chooses it."""
        sheet = f"--sheet {shlex.quote(self.source.sheet)} " if self.source.sheet else ""
        lines = []
        for index, (phone, line) in sorted((self._likely | self._firsts).items())[:MAX_NAMED]:
            name = header.on_one_line(self.columns[index]) if index < len(self.columns) else ""
            if name:
                option = f"{sheet}--phone-column {shlex.quote(name)}"
                lines.append(f"  {quote(name)}, first {phone} (line {line:,}): {option}")
            else:
                lines.append(f"  column {index + 1} (no heading), first {phone} (line {line:,})")
        return lines

    def _watch(self, phones: PhoneCells, line: int, cells: Sequence[str]) -> None:
        """Remember the first phone of each column."""
        for index, cell in enumerate(cells):
            if not cell or index in self._firsts:
                continue
            if number := phones.first_within(cell):
                self._firsts[index] = number, line
            elif index not in self._likely and phones.may_be_number(cell):
                self._likely[index] = shorten(cell.strip(), MAX_SHOWN), line


def _headings(columns: Sequence[str], name: str) -> list[str]:
    """Return the headings of a table. Raises NoTableError for columns that cannot be used."""
    headings = [cell.strip() for cell in columns]
    if not any(headings):
        raise NoTableError(f"{name} has no header", "Add a first line with the names of the columns.")
    if len(headings) > MAX_COLUMNS:
        raise NoTableError(f"{name} has {len(headings):,} columns; the limit is {MAX_COLUMNS:,}")
    twice = next((heading for heading, count in Counter(headings).items() if heading and count > 1), None)
    if twice is not None:
        raise NoTableError(f"{name} has more than one column named {quote(twice)}", "Give each column its own name.")
    return headings
