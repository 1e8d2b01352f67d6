"""Read recipients from CSV (RFC 4180) with a header; cells are separated by commas, semicolons or tabs."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import NamedTuple

from msgctl import values
from msgctl.errors import UsageError
from msgctl.jobs import columns, reader
from msgctl.jobs.decode import Text
from msgctl.jobs.reader import InvalidRow, RecipientReader, Row, RowError
from msgctl.values import quote

DELIMITERS = (",", ";", "\t")
LONGEST_RECORD = 1024 * 1024
"""The longest record that is read, in characters, over all its lines."""

_DELIMITER_LINE = re.compile(r'("?)sep=(.)\1\r?\n?', re.IGNORECASE)
_STRAY_QUOTE = 'stray quotation mark: inside a quoted cell, write it twice ("")'


class Record(NamedTuple):
    """The line that a record begins on, and its cells; None if its quotation marks make no sense."""

    line: int
    cells: list[str] | None


class CsvReader(RecipientReader):
    """A CSV file. Its delimiter is declared by the first line (``sep=;``) or found from the header."""

    def __init__(self, text: Text, phone_column: str) -> None:
        self.encoding = text.encoding
        self._text = text
        declared = _declared_delimiter(text)
        self._skipped = 0 if declared is None else 1
        self._delimiter = declared or self._find_delimiter(phone_column)
        self.columns = self._header(self._delimiter)
        self._phone = self._phone_index(phone_column)
        self.phone_column = self.columns[self._phone]

    def __iter__(self) -> Iterator[Row | InvalidRow]:
        records = self._filled_records(self._delimiter)
        next(records, None)
        for line, cells in records:
            try:
                yield self._row(line, cells)
            except RowError as error:
                yield error.row(line)

    def _row(self, line: int, cells: list[str] | None) -> Row:
        if cells is None:
            raise RowError(_STRAY_QUOTE)
        missing = len(self.columns) - len(cells)
        if missing < 0:
            raise RowError(
                f"{len(cells)} cells, but the header has {len(self.columns)}: quote cells that contain the delimiter",
                cells[self._phone],
            )
        cells += [""] * missing
        return Row(line, reader.phone(cells[self._phone]), tuple(cells))

    def _filled_records(self, delimiter: str) -> Iterator[Record]:
        """Read the records that contain text, the header first."""
        self.blank = 0
        for record in _Records(self._text, delimiter, self._skipped):
            if record.cells is None or "".join(record.cells).strip():
                yield record
            else:
                self.blank += bool(record.cells)  # an empty line is not a row

    def _header(self, delimiter: str) -> tuple[str, ...]:
        record = next(self._filled_records(delimiter), None)
        if record is None:
            raise UsageError(f"{self._text.name} has no header", "Its first line must name the columns.")
        if record.cells is None:
            raise UsageError(f"line {record.line} of {self._text.name} cannot be used as a header: {_STRAY_QUOTE}")
        return tuple(cell.strip() for cell in record.cells)

    def _find_delimiter(self, phone_column: str) -> str:
        """Return the delimiter that gives a header without stray quotes, with the phone column, with most columns."""
        ranks: dict[str, tuple[bool, bool, int]] = {}
        faults = []
        for delimiter in DELIMITERS:
            try:
                header = self._header(delimiter)
            except UsageError as error:
                faults.append(error)
            else:
                has_phone = columns.find(phone_column.strip(), header) is not None
                ranks[delimiter] = ('"' not in "".join(header), has_phone, len(header))
        best = max(ranks, key=ranks.__getitem__, default=None)
        # Delimiters that do not occur in a broken header still give one cell: the whole line.
        if best is None or (faults and ranks[best][1:] == (False, 1)):
            raise faults[0]
        return best

    def _phone_index(self, phone_column: str) -> int:
        name = self._text.name
        try:
            return columns.require_phone(self.columns, phone_column, name)
        except UsageError:
            if any(map(_is_phone, self.columns)):
                raise UsageError(
                    f"the first line of {name} contains a phone number, but must name the columns",
                    "Add a header line, for example: phone,name",
                ) from None
            if self.columns[0].startswith("["):
                raise UsageError(
                    f"{name} looks like a JSON array, which is not supported",
                    "Write one object per line (JSON Lines), for example with: jq -c '.[]'",
                ) from None
            raise


class _Records:
    """The records of a CSV file. Raises UsageError for a quotation mark that is not closed."""

    def __init__(self, text: Text, delimiter: str, skipped: int) -> None:
        self._text = text
        self._delimiter = delimiter
        self._skipped = skipped
        self._begin = 1
        self._size = 0
        self._at_end = False

    def __iter__(self) -> Iterator[Record]:
        records = csv.reader(self._lines(), delimiter=self._delimiter, strict=True)
        while True:
            self._begin, self._size = self._skipped + records.line_num + 1, 0
            try:
                cells = next(records, None)
            except csv.Error:  # reading continues with the next line
                if self._at_end or self._size > csv.field_size_limit():
                    raise self._unclosed() from None
                yield Record(self._begin, None)
                continue
            if cells is None:
                return
            yield Record(self._begin, cells)

    def _lines(self) -> Iterator[str]:
        lines = self._text.lines()
        for _ in range(self._skipped):
            next(lines, None)
        for line in lines:
            self._size += len(line)
            if self._size > LONGEST_RECORD:
                raise self._unclosed()
            yield line
        self._at_end = True

    def _unclosed(self) -> UsageError:
        return UsageError(
            f"line {self._begin} of {self._text.name} begins a cell that is not closed, or is too long",
            "Each quotation mark that opens a cell needs one that closes it.",
        )


def _declared_delimiter(text: Text) -> str | None:
    """Return the delimiter in a first line such as ``sep=;``, which Excel reads and writes."""
    found = _DELIMITER_LINE.fullmatch(next(text.lines(), ""))
    if found is None:
        return None
    if found[2] not in DELIMITERS:
        raise UsageError(f"{text.name} declares the delimiter {quote(found[2])}; it must be comma, semicolon or tab")
    return found[2]


def _is_phone(text: str) -> bool:
    try:
        values.phone(text)
    except UsageError:
        return False
    return True
