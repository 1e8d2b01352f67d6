"""The records of a file in the text formats: CSV (RFC 4180) and JSON Lines.

A record is its first line's number and its cells, or the reason why it has none. The first record contains the names of
the columns. A file is read once, from beginning to end, so it can be a pipe.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, BinaryIO

from msgctl.errors import UsageError
from msgctl.jsontext import ShapeError, load_json

Record = tuple[int, "list[str] | str"]

ZIP_MARK = b"PK\x03\x04"
DELIMITERS = (",", ";", "\t")
MAX_RECORD = 1024 * 1024
"""The longest record that is read, in characters over all its lines."""

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_STRAY_BYTE = re.compile(r"[\udc80-\udcff]")


class Nested(str):
    """An object or array in a column of JSON Lines, which cannot be used as text."""

    __slots__ = ()


class Lines:
    """The lines of a text from the first one that is not blank, with their line ends (LF, CR LF or CR).

    The text is UTF-8, UTF-16 with a byte order mark, or Windows-1252 (as older spreadsheets write it). A file with
    both UTF-8 and Windows-1252 lines is refused, because some would be misread. ``begin`` is the first line of the
    current record; its reader sets ``size`` to 0 at its end.
    """

    def __init__(self, source: BinaryIO, name: str, head: bytes) -> None:
        self.name = name
        self.begin = self.size = self._number = 0
        self.utf8 = int(head.startswith(codecs.BOM_UTF8))
        self.windows_1252 = 0
        """The first line of this encoding, like ``utf8``."""
        codec, errors = ("utf-16", "strict") if head.startswith(_UTF16_MARKS) else ("utf-8-sig", "surrogateescape")
        self._stream = io.TextIOWrapper(source, codec, errors, newline="")

    @cached_property
    def first(self) -> str:
        """The first line that is not blank, or an empty text."""
        while (line := self._read()).isspace():
            self.size = 0
        return line

    def __iter__(self) -> Iterator[str]:
        line = self.first
        while line:
            yield line
            line = self._read()

    def close(self) -> None:
        """Close the text, but not the source."""
        self._stream.detach()

    def _read(self) -> str:
        """Return the next line; empty at the end. Raises UsageError."""
        try:
            line = self._stream.readline(MAX_RECORD)
        except OSError as error:
            raise unreadable(self.name, error) from None
        except UnicodeDecodeError:
            raise UsageError(f"{self.name} is not valid UTF-16", "Save it as UTF-8.") from None
        self._number += 1
        if not self.size:
            self.begin = self._number
        self.size += len(line)
        if not line.isascii() or "\0" in line:
            line = self._decoded(line)
        if self.size >= MAX_RECORD:
            raise UsageError(
                f"line {self.begin} of {self.name} begins a record longer than {MAX_RECORD:,} characters",
                "Is a quotation mark not closed, or is it another kind of file?",
            )
        return line

    def _decoded(self, line: str) -> str:
        """Return the text of a line in which bytes that are not UTF-8 are lone surrogates (PEP 383)."""
        if "\0" in line:
            raise UsageError(
                f"{self.name} is not text, or UTF-16 without a byte order mark: it contains NUL bytes",
                "Save it as CSV in UTF-8 and use that file.",
            )
        try:
            line.encode()
            self.utf8 = self.utf8 or self._number
        except UnicodeEncodeError:
            # Windows-1252 text is rarely valid UTF-8. If the line has more valid characters than stray bytes, it is
            # UTF-8.
            if len(_BEYOND_ASCII.findall(line)) > 2 * len(_STRAY_BYTE.findall(line)):
                self.utf8 = self.utf8 or self._number
            self.windows_1252 = self.windows_1252 or self._number
            try:
                line = line.encode(errors="surrogateescape").decode("cp1252")
            except UnicodeDecodeError:
                raise UsageError(
                    f"line {self._number} of {self.name} is neither UTF-8 nor Windows-1252",
                    "Fix that line, or save the file as UTF-8.",
                ) from None
        if self.utf8 and self.windows_1252:
            other = "a part of it" if self.utf8 == self.windows_1252 else f"line {self.windows_1252}"
            raise UsageError(
                f"line {self.utf8} of {self.name} is UTF-8, but {other} is not",
                f"Fix line {self.windows_1252}, or save the file as UTF-8.",
            )
        return line


def csv_records(lines: Lines, is_header: Callable[[Sequence[str]], bool]) -> Iterator[Record]:
    """Read CSV.

    The delimiter is chosen by the cells of the first line: no stray quotes, then a header, then the most columns.
    """

    def rank(delimiter: str) -> tuple[bool, bool, int]:
        cells = [cell.strip() for cell in next(csv.reader([lines.first], delimiter=delimiter))]
        return '"' not in "".join(cells), is_header(cells), len(cells)

    try:
        for cells in csv.reader(lines, delimiter=max(DELIMITERS, key=rank), strict=True):
            lines.size = 0
            yield lines.begin, cells
    except csv.Error:
        raise UsageError(
            f"line {lines.begin} of {lines.name} has a stray or unclosed quotation mark, or a cell that is too long",
            'Quote cells that contain quotation marks, and double each quotation mark ("").',
        ) from None


def json_records(lines: Lines) -> Iterator[Record]:
    """Read one object per line, with all digits of its numbers. The columns are the fields of the first object."""
    names: list[str] | None = None
    for line in lines:
        lines.size = 0
        if line.isspace():
            continue
        try:
            found = load_json(line.encode())
            if "\\u" in line:  # it may be half of a surrogate pair, which cannot be encoded
                json.dumps(found, ensure_ascii=False).encode()
        except (ShapeError, UnicodeEncodeError):
            found = None
        if not isinstance(found, dict):
            yield lines.begin, "not a JSON object"
            continue
        if names is None:
            names = [*found]
            yield lines.begin, names
        yield lines.begin, [_json_text(found.get(name)) for name in names]


def _json_text(value: Any) -> str:
    """Return a value for a template: strings and numbers as written, and null as an empty string."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (dict, list)):
        return Nested("{…}" if isinstance(value, dict) else "[…]")
    return value or ""


def unreadable(name: str, error: Exception) -> UsageError:
    """Return the error for a file that cannot be opened or read."""
    return UsageError(
        f"Cannot read {name}: {getattr(error, 'strerror', None) or 'it is not a file of recipients'}",
        "Give a CSV, JSON Lines or .xlsx file, or - for standard input.",
    )
