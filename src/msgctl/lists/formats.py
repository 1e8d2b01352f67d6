"""The rows of a file in the text formats: CSV (RFC 4180) and JSON Lines.

A raw row is the number of its first line, with its cells or the reason why it cannot be read. A file is read once, from
beginning to end, so it can be a pipe.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, BinaryIO

from msgctl.errors import UsageError
from msgctl.jsontext import Fields, Raw, dump, load_text
from msgctl.values import quote

RawRow = tuple[int, "list[str] | str"]

ZIP_MARK = b"PK\x03\x04"
HEAD = 20
"""The number of lines of CSV that determine the delimiter, because titles may be above the header."""
DELIMITERS = (",", ";", "\t")
MAX_RECORD = 1024 * 1024
"""Maximum characters of a record, including all its lines."""

_SEPARATOR = re.compile(r"\ufeff?sep=([^\w\s\"]|\t)\s*", re.IGNORECASE)
"""A first line with which Excel chooses the delimiter."""
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class FileError(UsageError):
    """A file of recipients cannot be used."""

    def __init__(self, what: str, hint: str | None = None, *, consequence: str = "") -> None:
        super().__init__(what, hint, consequence=consequence, reason="invalid_file")


class Nested(Raw):
    """The JSON of an object or array in a column of JSON Lines, which cannot be used as text."""

    __slots__ = ()


class Lines:
    """The lines of a text from the first one that is not blank, with their line ends (LF, CR LF or CR).

    The text is UTF-8, UTF-16 with a byte order mark, or Windows-1252. ``begin`` is the first line of the current
    record. The reader of a record sets ``size`` to 0 at its end. Reading raises UsageError.
    """

    def __init__(self, source: BinaryIO, name: str, head: bytes) -> None:
        self.name = name
        self.begin = self.size = self._number = self._decoded_number = 0
        self._is_utf16 = head.startswith(_UTF16_MARKS)
        self._has_utf8 = head.startswith(codecs.BOM_UTF8)
        """Whether the text contains a character of several bytes in UTF-8."""
        self._position = len(codecs.BOM_UTF8) if self._has_utf8 else 0
        """The bytes before the current line."""
        self._wrong = ""
        """The first byte that is not UTF-8, for a message."""
        codec, errors = ("utf-16", "strict") if self._is_utf16 else ("utf-8-sig", "surrogateescape")
        self._stream = io.TextIOWrapper(source, codec, errors, newline="")
        self._ahead: deque[str] = deque()

    @cached_property
    def head(self) -> Sequence[str]:
        """The first lines, from the first one that is not blank; empty for an empty text."""
        while (line := self._next()) and line.isspace():
            self._number += 1
        while line and len(self._ahead) < HEAD:
            self._ahead.append(line)
            line = self._next()
        if line:
            self._ahead.append(line)
        return tuple(self._ahead)

    def __iter__(self) -> Iterator[str]:
        while line := self._ahead.popleft() if self._ahead else self._next():
            self._number += 1
            if not self.size:
                self.begin = self._number
            self.size += len(line)
            if self.size >= MAX_RECORD:
                raise FileError(
                    f"Line {self.begin} of {self.name} begins a record longer than {MAX_RECORD:,} characters",
                    "Close any open quotation mark, and check that the file is CSV or JSON Lines.",
                )
            yield line

    @property
    def is_windows_1252(self) -> bool:
        """Whether the lines so far are Windows-1252."""
        return bool(self._wrong)

    def close(self) -> None:
        """Close the text, but not the source."""
        self._stream.detach()

    def _next(self) -> str:
        """Return the next line, decoded; empty at the end."""
        try:
            line = self._stream.readline(MAX_RECORD)
        except OSError as error:
            raise unreadable(self.name, error) from None
        except UnicodeDecodeError:
            raise FileError(f"{self.name} is not valid UTF-16", "Save it as UTF-8.") from None
        self._decoded_number += 1
        if "\0" in line:
            raise FileError(
                f"{self.name} contains NUL bytes: it is not text, or it is UTF-16 without a byte order mark",
                "Save it as CSV or JSON Lines in UTF-8, or as an Excel workbook (.xlsx).",
            )
        if line.isascii():
            self._position += len(line)
        elif not self._is_utf16:
            line = self._decoded(line)
        return line

    def _decoded(self, line: str) -> str:
        """Return the text of a line in which bytes that are not UTF-8 are lone surrogates (PEP 383)."""
        content = line.encode(errors="surrogateescape")
        try:
            line.encode()
            self._has_utf8 = True
        except UnicodeEncodeError as error:
            if not self._wrong:
                start = len(line[: error.start].encode())
                self._wrong = f"byte {content[start]:#04x} at position {self._position + start + 1:,}"
                self._wrong += f", in line {self._decoded_number:,}"
            self._has_utf8 |= any(not (char.isascii() or "\udc80" <= char <= "\udcff") for char in line)
            line = content.decode("cp1252", errors="replace")
        if self._wrong and (self._has_utf8 or "\N{REPLACEMENT CHARACTER}" in line):
            raise FileError(f"{self.name} is not valid UTF-8: {self._wrong}", "Save it again as UTF-8.")
        self._position += len(content)
        return line


def csv_rows(lines: Lines, header_rank: Callable[[Sequence[RawRow]], tuple[int, ...]]) -> Iterator[RawRow]:
    """Read CSV.

    A first line such as ``sep=;`` determines the delimiter. Otherwise, it is the delimiter with which the first lines
    have the highest ``header_rank``.
    """

    def rank(delimiter: str) -> tuple[int, ...]:
        rows = [[unmarked(cell).strip() for cell in row] for row in csv.reader(lines.head, delimiter=delimiter)]
        return header_rank([*enumerate(rows, 1)])

    rest = iter(lines)
    if separator := _SEPARATOR.fullmatch(lines.head[0]):
        next(rest)
        lines.size = 0
        delimiter = separator[1]
    else:
        try:
            delimiter = max(DELIMITERS, key=rank)
        except csv.Error:  # a cell that is too long; the reader below reports its line
            delimiter = DELIMITERS[0]
    try:
        for cells in csv.reader(rest, delimiter=delimiter, strict=True):
            lines.size = 0
            yield lines.begin, cells
    except csv.Error:
        raise FileError(
            f"Line {lines.begin} of {lines.name} has a stray or unclosed quotation mark, or a cell that is too long",
            'Quote cells that contain quotation marks, and double each quotation mark ("").',
        ) from None


_FORMULA = re.compile(r'="((?:[^"]|"")*)"')
"""A text that a program wrote as a formula, so that Excel keeps all its digits."""
_GUARDED = tuple(f"'{char}" for char in "=+-@\t\r")
"""The beginning of a cell to which a spreadsheet added a quotation mark, so that it is not a formula."""


def unmarked(cell: str) -> str:
    """Return the text of a cell without the marks that programs add for spreadsheets: ``'+57``, ``="573001234567"``."""
    if cell.startswith(_GUARDED):
        return cell[1:]
    if cell.startswith('="') and (formula := _FORMULA.fullmatch(cell)):
        return formula[1].replace('""', '"')
    return cell


def json_rows(lines: Lines, is_needed: Callable[[str], bool]) -> Iterator[RawRow]:
    """Read one object per line, with all digits of its numbers. The columns are the fields of the first object.

    A new field with text makes its row invalid if the row has no other text, or if ``is_needed`` is true for the
    field's name.
    """
    names: list[str] | None = None
    for line in lines:
        lines.size = 0
        if line.isspace():
            continue
        fields = _object_in(line)
        if fields is None:
            yield lines.begin, "not a JSON object"
            continue
        if names is None:
            names = [*fields]
            yield lines.begin, names
        cells = [_json_text(fields.get(name)) for name in names]
        others = [name for name in fields if name not in names and _json_text(fields[name]).strip()]
        if any(cell.strip() for cell in cells):
            others = [*filter(is_needed, others)]
        if fields.repeated:
            yield lines.begin, f"the field {quote(fields.repeated)} occurs twice"
        elif others:
            yield lines.begin, f"the field {quote(others[0])} is not in the first object"
        else:
            yield lines.begin, cells


def _object_in(line: str) -> Fields | None:
    """Return the object in a line of JSON Lines, if it is one."""
    try:
        value = load_text(line, "mark")
        if "\\u" in line:  # it may be half of a surrogate pair, which cannot be encoded
            dump(value).encode()
    except ValueError:
        return None
    return value if isinstance(value, Fields) else None


def _json_text(value: Any) -> str:
    """Return a value for a template: strings and numbers as written, and null as an empty string."""
    if isinstance(value, bool):
        return Raw(dump(value))
    if isinstance(value, (dict, list)):
        return Nested(dump(value))
    return value or ""


def unreadable(name: str, error: Exception) -> FileError:
    """Return the error for a file that cannot be opened or read."""
    return FileError(
        f"Cannot read {name}: {getattr(error, 'strerror', None) or 'it is not a file of recipients'}",
        "Give a CSV, JSON Lines or .xlsx file, or - for standard input.",
    )
