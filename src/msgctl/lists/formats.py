"""The records of a file in the text formats: CSV (RFC 4180) and JSON Lines.

A record is the number of its first line, with its cells or the reason why it cannot be read. The first record contains
the names of the columns. A file is read once, from beginning to end, so it can be a pipe.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, BinaryIO, NoReturn

from msgctl.errors import UsageError
from msgctl.jsontext import Number
from msgctl.values import quote

Record = tuple[int, "list[str] | str"]

ZIP_MARK = b"PK\x03\x04"
DELIMITERS = (",", ";", "\t")
MAX_RECORD = 1024 * 1024
"""The longest record that is read, in characters over all its lines."""

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class FileError(UsageError):
    """A file of recipients cannot be used."""

    def __init__(self, what: str, hint: str | None = None, *, consequence: str = "") -> None:
        super().__init__(what, hint, consequence=consequence, reason="invalid_file")


class Nested(str):
    """An object or array in a column of JSON Lines, which cannot be used as text."""

    __slots__ = ()


class Lines:
    """The lines of a text from the first one that is not blank, with their line ends (LF, CR LF or CR).

    The text is UTF-8, UTF-16 with a byte order mark, or Windows-1252. ``begin`` is the first line of the current
    record. The reader of a record sets ``size`` to 0 at its end. Reading raises UsageError.
    """

    def __init__(self, source: BinaryIO, name: str, head: bytes) -> None:
        self.name = name
        self.begin = self.size = self._number = 0
        self._is_utf16 = head.startswith(_UTF16_MARKS)
        self._has_utf8 = head.startswith(codecs.BOM_UTF8)
        """Whether the text contains a character of several bytes in UTF-8."""
        self._position = len(codecs.BOM_UTF8) if self._has_utf8 else 0
        """The bytes before the current line."""
        self._wrong = ""
        """The first byte that is not UTF-8, for a message."""
        codec, errors = ("utf-16", "strict") if self._is_utf16 else ("utf-8-sig", "surrogateescape")
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

    @property
    def is_windows_1252(self) -> bool:
        """Whether the lines so far are Windows-1252."""
        return bool(self._wrong)

    def close(self) -> None:
        """Close the text, but not the source."""
        self._stream.detach()

    def _read(self) -> str:
        """Return the next line; empty at the end."""
        try:
            line = self._stream.readline(MAX_RECORD)
        except OSError as error:
            raise unreadable(self.name, error) from None
        except UnicodeDecodeError:
            raise FileError(f"{self.name} is not valid UTF-16", "Save it as UTF-8.") from None
        self._number += 1
        if not self.size:
            self.begin = self._number
        self.size += len(line)
        if "\0" in line:
            raise FileError(
                f"{self.name} is not text, or UTF-16 without a byte order mark: it contains NUL bytes",
                "Save it as CSV in UTF-8 and use that file.",
            )
        if line.isascii():
            self._position += len(line)
        elif not self._is_utf16:
            line = self._decoded(line)
        if self.size >= MAX_RECORD:
            raise FileError(
                f"Line {self.begin} of {self.name} begins a record longer than {MAX_RECORD:,} characters",
                "Is a quotation mark not closed, or is it another kind of file?",
            )
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
                self._wrong += f", in line {self._number:,}"
            self._has_utf8 |= any(not (char.isascii() or "\udc80" <= char <= "\udcff") for char in line)
            line = content.decode("cp1252", errors="replace")
        if self._wrong and (self._has_utf8 or "\N{REPLACEMENT CHARACTER}" in line):
            raise FileError(f"{self.name} is damaged, not UTF-8: {self._wrong}", "Save it as UTF-8 again.")
        self._position += len(content)
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
        raise FileError(
            f"Line {lines.begin} of {lines.name} has a stray or unclosed quotation mark, or a cell that is too long",
            'Quote cells that contain quotation marks, and double each quotation mark ("").',
        ) from None


def json_records(lines: Lines) -> Iterator[Record]:
    """Read one object per line, with all digits of its numbers. The columns are the fields of the first object."""
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
        if fields.repeated:
            yield lines.begin, f"the field {quote(fields.repeated)} occurs twice"
        else:
            yield lines.begin, [_json_text(fields.get(name)) for name in names]


class _Object(dict[str, Any]):
    """The fields of an object, and the repeated name, if any."""

    repeated = ""


def _object(pairs: list[tuple[str, Any]]) -> _Object:
    fields = _Object(pairs)
    if len(fields) < len(pairs):
        fields.repeated = Counter(name for name, _ in pairs).most_common(1)[0][0]
    return fields


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=Number, parse_float=Number, parse_constant=_refuse_constant
)


def _object_in(line: str) -> _Object | None:
    """Return the object in a line of JSON Lines, if it is one."""
    try:
        value = _DECODER.decode(line)
        if "\\u" in line:  # it may be half of a surrogate pair, which cannot be encoded
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, _Object) else None


def _json_text(value: Any) -> str:
    """Return a value for a template: strings and numbers as written, and null as an empty string."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return Nested("{…}")
    if isinstance(value, list):
        return Nested("[…]")
    return value or ""


def unreadable(name: str, error: Exception) -> FileError:
    """Return the error for a file that cannot be opened or read."""
    return FileError(
        f"Cannot read {name}: {getattr(error, 'strerror', None) or 'it is not a file of recipients'}",
        "Give a CSV, JSON Lines or .xlsx file, or - for standard input.",
    )
