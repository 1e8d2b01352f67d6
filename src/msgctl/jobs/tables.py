"""Recipients in CSV (RFC 4180) with a header, its cells separated by commas, semicolons or tabs."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from typing import NamedTuple

from msgctl import values
from msgctl.errors import UsageError
from msgctl.jobs import columns, rows
from msgctl.jobs.decoding import Text
from msgctl.jobs.rows import Fault, Recipients, Row, RowError
from msgctl.values import quote

DELIMITERS = (",", ";", "\t")
LONGEST_RECORD = 1024 * 1024
"""The longest record that is read, in characters, over all its lines."""

_DELIMITER_LINE = re.compile(r'("?)sep=(.)\1\r?\n?', re.IGNORECASE)
_STRAY_QUOTE = 'a quotation mark stands within a cell: in a cell in quotation marks it is written twice ("")'


class Record(NamedTuple):
    """The cells of a record and the line it begins on; None where its quotation marks make no sense."""

    line: int
    cells: list[str] | None


class Table(Recipients):
    """A CSV file. The delimiter is the one that its first line declares (``sep=;``), else the header's."""

    def __init__(self, text: Text, phone_column: str) -> None:
        self.encoding = text.encoding
        self._text = text
        declared = _declared_delimiter(text)
        self._skipped = 0 if declared is None else 1
        self._delimiter = declared or self._delimiter_of_header(phone_column)
        self.columns = self._header(self._delimiter)
        self._phone = self._phone_index(phone_column)
        self.phone_column = self.columns[self._phone]

    def __iter__(self) -> Iterator[Row | Fault]:
        records = self._filled_records(self._delimiter)
        next(records, None)
        for line, cells in records:
            try:
                yield self._row(line, cells)
            except RowError as error:
                yield error.fault(line)

    def _row(self, line: int, cells: list[str] | None) -> Row:
        if cells is None:
            raise RowError(_STRAY_QUOTE)
        missing = len(self.columns) - len(cells)
        if missing < 0:
            raise RowError(
                f"it has {len(cells)} cells and the header {len(self.columns)}: a cell that holds the delimiter has to "
                "stand in quotation marks",
                cells[self._phone],
            )
        if missing:
            cells += [""] * missing
        return Row(line, rows.phone(cells[self._phone]), tuple(cells))

    def _filled_records(self, delimiter: str) -> Iterator[Record]:
        """The records in which anything is written, the header first."""
        for record in _Records(self._text, delimiter, self._skipped):
            if record.cells is None or "".join(record.cells).strip():
                yield record

    def _header(self, delimiter: str) -> tuple[str, ...]:
        record = next(self._filled_records(delimiter), None)
        if record is None:
            raise UsageError(f"{self._text.name} has no header", "Its first line has to name the columns.")
        if record.cells is None:
            raise UsageError(f"line {record.line} of {self._text.name} is not usable as a header: {_STRAY_QUOTE}")
        return tuple(cell.strip() for cell in record.cells)

    def _delimiter_of_header(self, phone_column: str) -> str:
        """The delimiter that gives the header no stray quotation marks, the column of the phones, the most columns."""
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
        # Where a header is at fault, the delimiters that do not occur in it still give one cell: the whole line.
        if best is None or (faults and ranks[best][1:] == (False, 1)):
            raise faults[0]
        return best

    def _phone_index(self, phone_column: str) -> int:
        try:
            return columns.require_phone(self.columns, phone_column, self._text.name)
        except UsageError as error:
            raise self._explained(error) from None

    def _explained(self, error: UsageError) -> UsageError:
        """What a missing column comes from, where the first line is no header at all."""
        name = self._text.name
        if any(map(_is_phone, self.columns)):
            return UsageError(
                f"the first line of {name} holds a phone number: it has to name the columns",
                "Put a header before it, for example: phone,name",
            )
        if self.columns[0].startswith("["):
            return UsageError(
                f"{name} seems to be a JSON array, which is not read",
                "Write one object a line (JSON Lines), for example with: jq -c '.[]'",
            )
        return error


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
        reader = csv.reader(self._lines(), delimiter=self._delimiter, strict=True)
        while True:
            self._begin, self._size = self._skipped + reader.line_num + 1, 0
            try:
                cells = next(reader, None)
            except csv.Error:  # the reader goes on with the next line
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
            f"line {self._begin} of {self._text.name} begins a cell that does not end, or that is too long",
            "Each quotation mark that opens a cell needs one that closes it.",
        )


def _declared_delimiter(text: Text) -> str | None:
    """The delimiter in a first line such as ``sep=;``, which Excel reads and writes."""
    found = _DELIMITER_LINE.fullmatch(next(text.lines(), ""))
    if found is None:
        return None
    if found[2] not in DELIMITERS:
        raise UsageError(f"{text.name} declares the delimiter {quote(found[2])}: allowed are comma, semicolon and tab")
    return found[2]


def _is_phone(text: str) -> bool:
    try:
        values.phone(text)
    except UsageError:
        return False
    return True
