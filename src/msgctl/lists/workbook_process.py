"""The child process that reads an Excel workbook, with limited memory and processor time.

It gets the workbook on standard input, and writes a line of JSON for each visible sheet, followed by lines with its
rows: arrays of rows, each an array with the text of each cell, or a string with the reason why the row is invalid.
`null` ends a sheet, and `{"error": "…", "hint": "…"}` refuses the workbook.
"""

from __future__ import annotations

import gc
import io
import json
import resource
import signal
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import datetime, time, timedelta
from itertools import islice
from string import ascii_letters, ascii_uppercase
from typing import Any, BinaryIO, NamedTuple
from xml.parsers import expat

from msgctl.lists import kinds
from msgctl.lists.formats import MAX_RECORD

MAX_MEMORY = 2**30
MAX_CPU_SECONDS = 60
MAX_UNPACKED = 2**29
"""Maximum sum of the sizes of all parts of a workbook. A million rows with ten columns need about 500 MB."""
MAX_ROW = 2**20
"""The last row of a sheet in Excel."""
MAX_TAG = 2**22
"""Maximum bytes of an element's tag or of the text in it."""
MAX_DIGITS = 15
"""The digits of a number that Excel keeps."""
_TOO_MANY = 10**MAX_DIGITS

UNREADABLE = "is not a readable workbook"
OUT_OF_MEMORY = f"needs more memory than the limit of {MAX_MEMORY // 2**20:,} MiB"
OUT_OF_TIME = f"needs more processor time than the limit of {MAX_CPU_SECONDS} seconds"

_CHUNK = 2**20
_ROWS = 500
"""The rows in a line, because a line for each row takes twice as long."""
_SCANNED = (b"hidden", b'"e"', b"'e'", b"f></c>", b"f></x:c>", b"</f><v></v>", b"</f><v/>", b"</f><v />")
"""Bytes of a sheet that may have hidden rows, error values, or formulas without a result.

A pattern would take most of the time of the check.
"""
_OVERLAP = max(map(len, (b"<!DOCTYPE", *_SCANNED)))


class WorkbookError(Exception):
    """A workbook is refused. The message follows the name of the workbook. ``hint`` shows the fix, if it is known."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def main() -> None:
    """Print the rows of the workbook on standard input."""
    _limit(resource.RLIMIT_AS, MAX_MEMORY)
    _limit(resource.RLIMIT_CPU, MAX_CPU_SECONDS)
    _limit(resource.RLIMIT_CORE, 0)
    gc.disable()  # rows are no cycles, and looking for some takes a fifth of the time
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # after Ctrl-C, the parent process ends this one
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)

    def write(message: object) -> None:
        sys.stdout.buffer.write(json.dumps(message, ensure_ascii=False).encode() + b"\n")

    try:
        for message in sheets_of(io.BytesIO(sys.stdin.buffer.read())):
            write(message)
    except WorkbookError as error:
        write({"error": str(error), "hint": error.hint})
    except MemoryError:
        write({"error": OUT_OF_MEMORY})
    sys.stdout.buffer.flush()


def _limit(kind: int, most: int) -> None:
    _, hard = resource.getrlimit(kind)
    with suppress(ValueError, OSError):  # macOS does not limit memory
        resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def sheets_of(content: BinaryIO) -> Iterator[object]:
    """Yield the messages about a workbook's visible sheets and their rows. Raises WorkbookError and MemoryError."""
    from python_calamine import CalamineWorkbook

    try:
        with zipfile.ZipFile(content) as archive:
            parts, to_scan = checked_parts(archive)
            content.seek(0)
            book = CalamineWorkbook.from_filelike(content)
            for index, sheet in enumerate(_sheet_parts(archive, parts, book.sheet_names)):
                if not sheet.is_visible:
                    continue
                scan = Scan()
                if sheet.path in to_scan:
                    scan.read(archive, parts[sheet.path])
                formulas = {"formulas": scan.formulas, "first_formula": scan.first_formula}
                yield {"sheet": sheet.name, "hidden": sorted(scan.hidden), **formulas}
                content_of = book.get_sheet_by_index(index)
                first_column = content_of.start[1] + 1 if content_of.start else 1
                rows = enumerate(content_of.iter_rows(), 1)
                while chunk := [*islice(rows, _ROWS)]:
                    yield [_texts(row, number, first_column, scan.errors.get(number, {})) for number, row in chunk]
                yield None
    except (MemoryError, WorkbookError, GeneratorExit):
        raise
    except BaseException:  # noqa: BLE001 (a panic of Rust is not an Exception)
        raise WorkbookError(UNREADABLE) from None


Parts = dict[str, zipfile.ZipInfo]
"""The parts of a workbook by their lowercase names, because their case does not matter (ECMA-376, part 2)."""


def checked_parts(archive: zipfile.ZipFile) -> tuple[Parts, set[str]]:
    """Return the parts of a workbook after checking their sizes, and those that may have hidden rows or error values.

    Raises WorkbookError.
    """
    parts = {part.filename.lower(): part for part in archive.infolist()}
    if other := kinds.in_archive(parts):
        raise WorkbookError(*other)
    if len(parts) < len(archive.infolist()):
        # Of two parts with the same name, some readers use the first and others the last.
        raise WorkbookError(UNREADABLE)
    to_scan = set()
    size = 0
    for name, part in parts.items():
        part.file_size = sys.maxsize  # the stated size may be wrong, so read to the end
        end = b""
        without = {b"<": 0, b">": 0}  # the bytes since the last one
        with archive.open(part) as stream:
            while chunk := stream.read(_CHUNK):
                size += len(chunk)
                if size > MAX_UNPACKED:
                    raise WorkbookError(f"unpacks to more than the limit of {MAX_UNPACKED // 2**20} MiB")
                if not name.endswith((".xml", ".rels")):
                    continue
                text, end = end + chunk, chunk[-_OVERLAP:]
                if b"<!DOCTYPE" in text:  # python-calamine leaves out the entities that it defines
                    raise WorkbookError(UNREADABLE)
                # python-calamine reads a tag as a whole, so a long one would need as much memory.
                for bracket, before in without.items():
                    last = chunk.rfind(bracket)
                    without[bracket] = len(chunk) - last if last >= 0 else before + len(chunk)
                if max(without.values()) > MAX_TAG:
                    raise WorkbookError(f"has a tag or cell larger than the limit of {MAX_TAG // 2**20} MiB")
                if any(mark in text for mark in _SCANNED):
                    to_scan.add(name)
    return parts, to_scan


class SheetPart(NamedTuple):
    """A sheet, and the part of the workbook that contains it."""

    name: str
    path: str
    is_visible: bool


def _sheet_parts(archive: zipfile.ZipFile, parts: Parts, names: list[str]) -> list[SheetPart]:
    """Return all sheets in order; python-calamine must have found the same ``names``.

    Charts are not visible. Raises WorkbookError.
    """
    targets: dict[str, str] = {}
    sheets: list[tuple[str, str, str]] = []

    def relationship(name: str, attributes: dict[str, str]) -> None:
        if name == "Relationship" and attributes["Type"].endswith("/worksheet"):
            targets[attributes["Id"]] = attributes["Target"]

    def sheet(name: str, attributes: dict[str, str]) -> None:
        if name == "sheet":
            number = next(value for key, value in attributes.items() if key.endswith(":id"))
            sheets.append((attributes["name"], number, attributes.get("state", "visible")))

    _parse(archive, parts["xl/_rels/workbook.xml.rels"], relationship)
    _parse(archive, parts["xl/workbook.xml"], sheet)
    if [name for name, _, _ in sheets] != names:
        raise WorkbookError(UNREADABLE)
    return [
        SheetPart(name, _path(targets.get(number, "")), state == "visible" and number in targets)
        for name, number, state in sheets
    ]


def _path(target: str) -> str:
    """Return the lowercase path of a part from the target of a relationship, as python-calamine finds it."""
    path = target.removeprefix("/").lower()
    return path if path.startswith("xl/") else f"xl/{path}"


class Scan:
    """The hidden rows of a sheet that have content, its error values, and its formulas without a result.

    python-calamine reports none of them. ``errors`` are by row, and then by column, both from 1; python-calamine
    returns an empty cell for them, and for the ``formulas``, which are counted.
    """

    def __init__(self) -> None:
        self.hidden: set[int] = set()
        self.errors: dict[int, dict[int, str]] = {}
        self.formulas = 0
        self.first_formula = ""
        self._row = self._column = 0
        self._is_hidden = self._is_error = self._is_value = self._is_text = self._lacks_result = False

    def read(self, archive: zipfile.ZipFile, part: zipfile.ZipInfo) -> None:
        _parse(archive, part, self._start, self._text)
        self._end_cell()

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._is_value = name == "v"
        if name in ("row", "c"):
            self._end_cell()
        if name == "row":
            self._row, self._column = int(attributes.get("r", self._row + 1)), 0
            self._is_hidden = attributes.get("hidden") in ("1", "true")
        elif name == "c":
            reference = attributes.get("r", "")
            self._is_error = attributes.get("t") == "e"
            self._is_text = attributes.get("t") == "str"
            self._column += 1
            if number := reference.lstrip(ascii_letters):
                self._row = int(number)  # python-calamine believes the cell
                self._column = _number(reference.removesuffix(number))
        elif name in ("v", "is") and self._is_hidden:  # a value, or text in the cell; other cells only have a format
            self.hidden.add(self._row)
        elif name == "f":
            self._lacks_result = not self._is_text  # the text may be empty

    def _end_cell(self) -> None:
        if self._lacks_result:
            self.formulas += 1
            self.first_formula = self.first_formula or f"{_letters(self._column)}{self._row}"
            self._lacks_result = False

    def _text(self, text: str) -> None:
        if self._is_value and self._lacks_result and not text.isspace():
            self._lacks_result = False
        if self._is_error and self._is_value:
            cells = self.errors.setdefault(self._row, {})
            cells[self._column] = cells.get(self._column, "") + text


def _number(column: str) -> int:
    """Return the number of a column: 1 for A, 28 for AB."""
    number = 0
    for letter in column.upper():
        number = number * 26 + ord(letter) - ord("A") + 1
    return number


def _letters(column: int) -> str:
    """Return the letters of a column: A for 1, AB for 28."""
    letters = ""
    while column:
        column, letter = divmod(column - 1, 26)
        letters = ascii_uppercase[letter] + letters
    return letters


def _parse(
    archive: zipfile.ZipFile,
    part: zipfile.ZipInfo,
    start: Callable[[str, dict[str, str]], None],
    text: Callable[[str], None] | None = None,
) -> None:
    """Parse XML: call ``start`` with the name (without prefix) and attributes of an element, and ``text`` with text."""
    parser = expat.ParserCreate()

    def start_element(name: str, attributes: dict[str, str]) -> None:
        start(name.rpartition(":")[2], attributes)

    parser.StartElementHandler = start_element
    parser.CharacterDataHandler = text
    with archive.open(part) as stream:
        parser.ParseFile(stream)


def _texts(row: list[Any], number: int, first_column: int, errors: dict[int, str]) -> list[str] | str:
    """Return the text of each cell of a row, or why it is invalid. Raises WorkbookError."""
    if number > MAX_ROW:
        raise WorkbookError(f"has row {number:,}; a sheet has at most {MAX_ROW:,} rows")
    for column, text in errors.items():
        if 0 <= column - first_column < len(row):
            row[column - first_column] = text
    try:
        cells = [cell if isinstance(cell, str) else _cell_text(cell) for cell in row]
    except OverflowError as error:
        numbers = ((column, cell) for column, cell in enumerate(row, first_column) if isinstance(cell, float))
        column = next(column for column, number in numbers if not abs(number) < _TOO_MANY)
        return (
            f"the number {error} in cell {_letters(column)}{number} has more than {MAX_DIGITS} digits, so it has lost "
            "digits in Excel; enter it again as text"
        )
    if sum(map(len, cells)) > MAX_RECORD:
        raise WorkbookError(f"has more characters in row {number:,} than the limit of {MAX_RECORD:,}")
    return cells


def _cell_text(cell: object) -> str:
    """Return the value of a cell: 0.15 for 15 %, 2026-12-01 for a date, 26:30:00 for a duration.

    Raises OverflowError with a number of more than 15 digits.
    """
    if isinstance(cell, float):
        if not abs(cell) < _TOO_MANY:  # NaN is not less than any number
            raise OverflowError(f"{cell:.{MAX_DIGITS}G}")
        return str(int(cell)) if cell.is_integer() else f"{cell:.{MAX_DIGITS}g}"
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, datetime):
        return cell.date().isoformat() if cell.time() == time() else cell.isoformat(" ")
    if isinstance(cell, timedelta):
        seconds = round(abs(cell.total_seconds()))
        text = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}"
        return f"-{text}" if cell < timedelta() else text
    return str(cell)
