"""The records of a file in each of its formats: CSV (RFC 4180), JSON Lines, and Excel (.xlsx).

Each record has the line it begins on. The first has the names of the columns.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, time
from functools import partial
from itertools import islice
from typing import Any, BinaryIO, NoReturn

from msgctl.errors import UsageError
from msgctl.jobs import columns
from msgctl.jobs.decode import Text
from msgctl.jobs.reader import Nested, Records, RowError
from msgctl.jobs.schedule import INSTALL
from msgctl.jsontext import Number
from msgctl.values import quote

DELIMITERS = (",", ";", "\t")
LONGEST_RECORD = 1024 * 1024
"""The longest record of CSV that is read, in characters, over all its lines."""
MOST_DIGITS = 15
"""The digits of a number that Excel keeps."""

_DELIMITER_LINE = re.compile(r'("?)sep=(.)\1\r?\n?', re.IGNORECASE)


# --- CSV


def of_csv(text: Text, phone_column: str | None) -> Callable[[], Records]:
    """Return how to read a CSV file. Raises UsageError if its header cannot be read.

    Its delimiter is declared by the first line (``sep=;``, which Excel reads and writes), or else the one that gives a
    header without stray quotes, with the phone column, with most columns.
    """
    declared = _DELIMITER_LINE.fullmatch(next(text.lines(), ""))
    if declared is not None:
        if declared[2] not in DELIMITERS:
            raise UsageError(
                f"{text.name} declares the delimiter {quote(declared[2])}; it must be comma, semicolon or tab"
            )
        return partial(_csv_records, text, declared[2], 1)
    ranks: dict[str, tuple[bool, bool, int]] = {}
    faults = []
    for delimiter in DELIMITERS:
        try:
            header = next((cells for _, cells in _csv_records(text, delimiter) if "".join(cells).strip()), [""])
        except UsageError as error:
            faults.append(error)
        else:
            names = [cell.strip() for cell in header]
            has_phone = columns.find_phone(names, phone_column) is not None
            ranks[delimiter] = ('"' not in "".join(header), has_phone, len(header))
    best = max(ranks, key=ranks.__getitem__, default=None)
    # Delimiters that do not occur in a broken header still give one cell: the whole line.
    if best is None or (faults and ranks[best][1:] == (False, 1)):
        raise faults[0]
    return partial(_csv_records, text, best)


def _csv_records(text: Text, delimiter: str, skipped: int = 0) -> Iterator[tuple[int, list[str]]]:
    begin, size = skipped + 1, 0

    def lines() -> Iterator[str]:
        nonlocal size
        for line in islice(text.lines(), skipped, None):
            size += len(line)
            if size > LONGEST_RECORD:
                raise csv.Error
            yield line

    records = csv.reader(lines(), delimiter=delimiter, strict=True)
    try:
        for cells in records:
            yield begin, cells
            begin, size = skipped + records.line_num + 1, 0
    except csv.Error:
        raise UsageError(
            f"line {begin} of {text.name} has a stray or unclosed quotation mark, or a cell that is too long",
            'Quote cells that contain quotation marks, and double each quotation mark ("").',
        ) from None


# --- JSON Lines


def json_records(text: Text) -> Records:
    """Read one object per line, its numbers with every digit. The columns are the fields of the first one."""
    names: list[str] | None = None
    for number, line in enumerate(text.lines(), start=1):
        if line.isspace():
            continue
        try:
            found = _object(line)
        except RowError as error:
            if names is None:
                raise UsageError(
                    f"line {number} of {text.name} cannot be used: {error.reason}",
                    'Each line must be one whole JSON object, for example: {"phone": "573001234567"}',
                ) from None
            yield number, error
            continue
        if names is None:
            names = [*found]
            yield number, names or [" "]
        yield number, [_json_text(found.get(name)) for name in names]


def _refuse_constant(name: str) -> NoReturn:
    raise RowError(f"{name} is not JSON")


def _unique(fields: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(fields)
    if len(found) < len(fields):
        twice, _ = Counter(name for name, _ in fields).most_common()[0]
        raise RowError(f"the field {quote(twice)} appears more than once")
    return found


# Made once, since json.loads with these options makes one for each call.
_DECODER = json.JSONDecoder(
    parse_int=Number, parse_float=Number, parse_constant=_refuse_constant, object_pairs_hook=_unique
)


def _object(line: str) -> dict[str, Any]:
    """Return the object on a line, its numbers as `Number`. Raises RowError."""
    try:
        found = _DECODER.decode(line)
    except RowError:
        raise
    except RecursionError:
        raise RowError("the JSON is nested too deeply") from None
    except ValueError:
        raise RowError("not JSON") from None
    if not isinstance(found, dict):
        raise RowError("not a JSON object")
    if "\\u" in line:
        try:
            "".join([*found, *(value for value in found.values() if isinstance(value, str))]).encode()
        except UnicodeEncodeError:
            raise RowError("half a character (a surrogate without its other half)") from None
    return found


def _json_text(value: Any) -> str:
    """Return a value as a template uses it: strings and numbers as written, null as an empty text."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return Nested()


# --- Excel


def of_workbook(source: BinaryIO, name: str) -> Callable[[], Records]:
    """Return how to read the first sheet of a workbook.

    Raises UsageError if it cannot be read, or if the package python-calamine is missing.
    """
    try:
        from python_calamine import CalamineError, CalamineWorkbook
    except ImportError:
        raise UsageError(
            f"{name} is an Excel workbook, and the package python-calamine, which reads them, is not installed",
            f"{INSTALL}, or save the file as CSV in UTF-8.",
        ) from None
    try:
        sheet = CalamineWorkbook.from_filelike(io.BytesIO(source.read())).get_sheet_by_index(0)
    except (CalamineError, OSError, ValueError, IndexError):
        raise UsageError(
            f"{name} is not a workbook that can be read", "Save it as .xlsx without a password, or as CSV in UTF-8."
        ) from None

    def records() -> Records:
        for line, row in enumerate(sheet.iter_rows(), 1):
            yield line, [_cell_text(cell) for cell in row]

    return records


def _cell_text(cell: object) -> str:
    """Return a cell as people see it: whole numbers without a decimal point, dates as 2026-12-01."""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float):
        return f"{cell:.{MOST_DIGITS}g}"
    if isinstance(cell, datetime):
        return cell.date().isoformat() if cell.time() == time() else cell.isoformat(" ")
    return str(cell)
