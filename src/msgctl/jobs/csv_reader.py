"""Read recipients from CSV (RFC 4180) with a header; cells are separated by commas, semicolons or tabs."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import islice

from msgctl.errors import UsageError
from msgctl.jobs import columns
from msgctl.jobs.decode import Text
from msgctl.jobs.reader import SAMPLE, InvalidRow, PhoneCells, RecipientReader, Row, RowError
from msgctl.values import quote

DELIMITERS = (",", ";", "\t")
LONGEST_RECORD = 1024 * 1024
"""The longest record that is read, in characters, over all its lines."""

_DELIMITER_LINE = re.compile(r'("?)sep=(.)\1\r?\n?', re.IGNORECASE)


class CsvReader(RecipientReader):
    """A CSV file. Its delimiter is declared by the first line (``sep=;``) or found from the header."""

    def __init__(self, text: Text, phone_column: str | None, cells: PhoneCells) -> None:
        self._cells = cells
        self.encoding = text.encoding
        self._text = text
        self._name = text.name
        declared = _declared_delimiter(text)
        self._skipped = 0 if declared is None else 1
        self._delimiter = declared or self._find_delimiter(phone_column)
        self._find_columns(phone_column)

    def _find_columns(self, phone_column: str | None) -> None:
        self.columns = self._header()
        self._phone = self._phone_index(phone_column)
        self.phone_column = self.columns[self._phone]

    def __iter__(self) -> Iterator[Row | InvalidRow]:
        records = self._records()
        next(records, None)
        for line, cells in records:
            try:
                yield self._row(line, cells)
            except RowError as error:
                yield error.row(line)

    def _row(self, line: int, cells: list[str]) -> Row:
        missing = len(self.columns) - len(cells)
        if missing < 0:
            raise RowError(
                f"{len(cells)} cells, but the header has {len(self.columns)}: quote cells that contain the delimiter",
                cells[self._phone],
            )
        cells += [""] * missing
        return Row(line, self._cells.read(cells[self._phone]), tuple(cells))

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        """Read the records that contain text, the header first, each with the line it begins on. Raises UsageError."""
        self.blank = 0
        lines = _Lines(self._text, self._skipped)
        records = csv.reader(lines, delimiter=self._delimiter, strict=True)
        begin = self._skipped + 1
        try:
            for cells in records:
                if "".join(cells).strip():
                    yield begin, cells
                else:
                    self.blank += bool(cells)  # an empty line is not a row
                begin, lines.size = self._skipped + records.line_num + 1, 0
        except csv.Error:
            raise UsageError(
                f"line {begin} of {self._name} has a stray or unclosed quotation mark, or a cell that is too long",
                'Quote cells that contain quotation marks, and double each quotation mark ("").',
            ) from None

    def _header(self) -> tuple[str, ...]:
        for _, cells in self._records():
            return tuple(cell.strip() for cell in cells)
        raise UsageError(f"{self._name} has no header", "Add a first line with the names of the columns.")

    def _find_delimiter(self, phone_column: str | None) -> str:
        """Return the delimiter that gives a header without stray quotes, with the phone column, with most columns."""
        ranks: dict[str, tuple[bool, bool, int]] = {}
        faults = []
        for delimiter in DELIMITERS:
            self._delimiter = delimiter
            try:
                header = self._header()
            except UsageError as error:
                faults.append(error)
            else:
                has_phone = (
                    any(map(columns.is_phone_name, header))
                    if phone_column is None
                    else columns.find(phone_column.strip(), header) is not None
                )
                ranks[delimiter] = ('"' not in "".join(header), has_phone, len(header))
        best = max(ranks, key=ranks.__getitem__, default=None)
        # Delimiters that do not occur in a broken header still give one cell: the whole line.
        if best is None or (faults and ranks[best][1:] == (False, 1)):
            raise faults[0]
        return best

    def _phone_index(self, phone_column: str | None) -> int:
        name = self._name
        try:
            sample = [cells for _, cells in islice(self._records(), 1, 1 + SAMPLE)]
            return columns.require_phone(self.columns, phone_column, name, sample)
        except UsageError:
            if any(map(columns.is_phone, self.columns)):
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


class _Lines:
    """The lines of a CSV file; ``size`` counts the characters of the current record."""

    def __init__(self, text: Text, skipped: int) -> None:
        self._lines = islice(text.lines(), skipped, None)
        self.size = 0

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.size += len(line)
        if self.size > LONGEST_RECORD:
            raise csv.Error
        return line


def _declared_delimiter(text: Text) -> str | None:
    """Return the delimiter in a first line such as ``sep=;``, which Excel reads and writes."""
    found = _DELIMITER_LINE.fullmatch(next(text.lines(), ""))
    if found is None:
        return None
    if found[2] not in DELIMITERS:
        raise UsageError(f"{text.name} declares the delimiter {quote(found[2])}; it must be comma, semicolon or tab")
    return found[2]
