"""Read recipients from the first sheet of an Excel workbook (.xlsx), through the package python-calamine."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import date, datetime, time
from typing import Any, BinaryIO

from msgctl.errors import UsageError
from msgctl.jobs.csv_reader import CsvReader
from msgctl.jobs.decode import UTF8
from msgctl.jobs.reader import PhoneCells

MOST_DIGITS = 15
"""The digits of a number that Excel keeps."""


class XlsxReader(CsvReader):
    """The first sheet of a workbook, with a header. Cells are texts as in a CSV file that Excel writes."""

    encoding = UTF8

    def __init__(self, source: BinaryIO, name: str, phone_column: str | None, cells: PhoneCells) -> None:
        self._cells = cells
        self._name = name
        self._sheet = _first_sheet(source, name)
        self._find_columns(phone_column)

    def _records(self) -> Iterator[tuple[int, list[str]]]:
        self.blank = 0
        first = (self._sheet.start or (0, 0))[0] + 1
        for line, row in enumerate(self._sheet.to_python(), first):
            cells = [_text(cell) for cell in row]
            if "".join(cells).strip():
                yield line, cells
            else:
                self.blank += 1


def _first_sheet(source: BinaryIO, name: str) -> Any:
    """Open a workbook. Raises UsageError if it cannot be read, or if the package is missing."""
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        from msgctl.jobs.schedule import INSTALL

        raise UsageError(
            f"{name} is an Excel workbook, and the package python-calamine, which reads them, is not installed",
            f"{INSTALL}, or save the file as CSV in UTF-8.",
        ) from None
    try:
        return CalamineWorkbook.from_filelike(io.BytesIO(source.read())).get_sheet_by_index(0)
    except (CalamineError, OSError, ValueError, IndexError):
        raise UsageError(
            f"{name} is not a workbook that can be read", "Save it as .xlsx without a password, or as CSV in UTF-8."
        ) from None


def _text(cell: object) -> str:
    """Return a cell as people see it: whole numbers without a decimal point, dates as 2026-12-01."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return f"{cell:.{MOST_DIGITS}g}"
    if isinstance(cell, datetime):
        return cell.date().isoformat() if cell.time() == time() else cell.isoformat(" ")
    return cell.isoformat() if isinstance(cell, date) else str(cell)
