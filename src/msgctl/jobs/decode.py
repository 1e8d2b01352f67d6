"""Decode a file of recipients into lines of text.

A whole file is UTF-8, UTF-16 with a byte order mark, or Windows-1252 (as older spreadsheets write it). The encoding is
known only at its end, so the file is read twice. What can be read only once, such as a pipe, is copied to a temporary
file first.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import BinaryIO

from msgctl.errors import UsageError

LONGEST_LINE = 1024 * 1024
"""The longest line that is read, in characters."""

UTF8 = "UTF-8"
UTF16 = "UTF-16"
WINDOWS_1252 = "Windows-1252"

_CODECS = {UTF8: "utf-8-sig", UTF16: "utf-16", WINDOWS_1252: "cp1252"}
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF8_LETTER = re.compile(
    rb"[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}"
    rb"|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}"
    rb"|\xf4[\x80-\x8f][\x80-\xbf]{2}"
)
"""A character beyond ASCII (RFC 3629)."""
_BEYOND_ASCII = re.compile(rb"[\x80-\xff]")
_UNDEFINED_IN_1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")


class Text:
    """A file as lines. ``encoding`` is that of the whole file, ``name`` is what messages call it."""

    def __init__(self, stream: io.TextIOWrapper, name: str, encoding: str) -> None:
        self._stream = stream
        self.name = name
        self.encoding = encoding

    def lines(self) -> Iterator[str]:
        """Read every line from the first on, with its line end (LF, CR LF or CR). Raises UsageError."""
        number = 0
        try:
            self._stream.seek(0)
            while line := self._stream.readline(LONGEST_LINE):
                number += 1
                if len(line) == LONGEST_LINE:
                    raise UsageError(
                        f"line {number} of {self.name} is longer than {LONGEST_LINE:,} characters",
                        "The file should have one line per recipient. Is it another kind of file?",
                    )
                yield line
        except OSError as error:
            raise unreadable(self.name, error) from None
        except UnicodeDecodeError:
            raise UsageError(
                f"{self.name} is not valid {self.encoding}, or changed while it was read", "Save it as UTF-8."
            ) from None


@contextmanager
def decoded(source: BinaryIO, name: str) -> Iterator[Text]:
    """Find the encoding of a source, which stays open. Raises UsageError for one that is not text."""
    with ExitStack() as stack:
        try:
            if not (source.seekable() and source.tell() == 0):
                source = stack.enter_context(_copied(source, name))
            encoding = _encoding(source, name)
        except OSError as error:
            raise unreadable(name, error) from None
        stream = io.TextIOWrapper(source, _CODECS[encoding], newline="")
        stack.callback(stream.detach)  # otherwise it would close the source
        yield Text(stream, name, encoding)


@contextmanager
def _copied(source: BinaryIO, name: str) -> Iterator[BinaryIO]:
    from tempfile import TemporaryFile

    with suppress(OSError, AttributeError):
        os.set_blocking(source.fileno(), True)  # it may be shared with a process that wants it otherwise
    with TemporaryFile() as copy:
        first = source.readline(LONGEST_LINE)
        if b"\0" in first and not first.startswith(_UTF16_MARKS):
            raise _not_text(name)  # a device may have no end
        copy.write(first)
        shutil.copyfileobj(source, copy)
        copy.seek(0)
        yield copy


def _encoding(source: BinaryIO, name: str) -> str:
    """Return the encoding of a whole file. Raises UsageError if it has none that is known."""
    letters = stray = number = 0
    not_utf8 = not_1252 = None
    is_marked = False
    while line := source.readline(LONGEST_LINE):
        number += 1
        if number == 1:
            if line.startswith(_UTF16_MARKS) and not line.startswith(codecs.BOM_UTF32_LE):
                return UTF16
            is_marked = line.startswith(codecs.BOM_UTF8)
        if b"\0" in line:
            raise _not_text(name)
        if not line.isascii():
            # A letter of Windows-1252 seldom looks like one of UTF-8.
            found = _UTF8_LETTER.findall(line)
            letters += len(found)
            if lone := len(_BEYOND_ASCII.findall(line)) - sum(map(len, found)):
                stray += lone
                not_utf8 = not_utf8 or number
            if not_1252 is None and _UNDEFINED_IN_1252.search(line):
                not_1252 = number
    if not_utf8 is None:
        return UTF8
    if is_marked or letters > stray:
        raise UsageError(f"{name} is UTF-8, but line {not_utf8} is not", "Fix that line, or save the file as UTF-8.")
    if not_1252 is not None:
        raise UsageError(
            f"{name} is neither UTF-8 (line {not_utf8}) nor Windows-1252 (line {not_1252})",
            "Fix these lines, or save the file as UTF-8.",
        )
    return WINDOWS_1252


def _not_text(name: str) -> UsageError:
    return UsageError(
        f"{name} is not text, or UTF-16 without a mark: it contains NUL bytes",
        "Save it as CSV in UTF-8 and use that file.",
    )


def unreadable(name: str, error: Exception) -> UsageError:
    """Return the error for a file that cannot be opened or read."""
    return UsageError(
        f"Cannot read {name}: {getattr(error, 'strerror', None) or 'it is not a file of recipients'}",
        "Give a CSV, JSON Lines or .xlsx file, or - for standard input.",
    )
