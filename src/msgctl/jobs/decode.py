"""Decode a file of recipients into lines of text.

A whole file is UTF-8, UTF-16 with a byte order mark, or Windows-1252 (as older spreadsheets write it). The encoding is
known only at its end, so the file is read twice. What can be read only once, such as a pipe, is copied to a temporary
file first.
"""

from __future__ import annotations

import codecs
import io
import re
import select
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, BinaryIO

from msgctl.errors import UsageError

LONGEST_LINE = 1024 * 1024
"""The longest line that is read, in characters."""

UTF8 = "UTF-8"
UTF16 = "UTF-16"
WINDOWS_1252 = "Windows-1252"

_CHUNK = 256 * 1024
_CODECS = {UTF8: "utf-8-sig", UTF16: "utf-16", WINDOWS_1252: "cp1252"}
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_UTF32_MARK = codecs.BOM_UTF32_LE
_ASCII = bytes(range(128))
_UTF8_LETTER = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_UNDEFINED_IN_1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
_SAVE_AS_CSV = "Save it as CSV in UTF-8 and use that file."


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
            raise _unreadable(self.name, error) from None
        except UnicodeDecodeError:
            if self.encoding == UTF16:
                raise UsageError(f"{self.name} is not valid UTF-16", "Save it as UTF-8 and try again.") from None
            raise UsageError(f"{self.name} changed while it was read", "Try again when it is complete.") from None


@contextmanager
def decoded(source: BinaryIO, name: str, check: Callable[[bytes], bool] = lambda _: True) -> Iterator[Text]:
    """Find the encoding of a source, which stays open. Raises UsageError for one that is not text.

    ``check`` gets the beginning of what can be read only once, before all of it is copied: whole lines, more of them
    until it returns true.
    """
    with ExitStack() as stack:
        scan = _Scan(name)
        try:
            is_seekable = source.seekable() and source.tell() == 0
            kept = source if is_seekable else stack.enter_context(_temporary_file())
            head: bytes | None = None if is_seekable else b""
            for chunk in _chunks(source, whole=is_seekable):
                scan.feed(chunk)
                if not is_seekable:
                    _copy(chunk, kept, name)
                if head is not None:
                    head += chunk
                    if b"\n" in chunk and check(head[: head.rindex(b"\n") + 1]):
                        head = None
            encoding = scan.encoding()
        except OSError as error:
            raise _unreadable(name, error) from None
        stream = io.TextIOWrapper(kept, _CODECS[encoding], newline="")
        stack.callback(stream.detach)  # otherwise it would close the source
        yield Text(stream, name, encoding)


def _temporary_file() -> IO[bytes]:
    from tempfile import TemporaryFile

    return TemporaryFile()


def _chunks(source: IO[bytes], *, whole: bool) -> Iterator[bytes]:
    """Read a source in ``whole`` chunks, or else whatever has arrived."""
    read = source.read if whole else getattr(source, "read1", source.read)
    while True:
        chunk: bytes | None = read(_CHUNK)
        if chunk:
            yield chunk
        elif chunk is None:
            select.select([source], [], [])  # another process made the descriptor non-blocking
        else:
            return


def _copy(chunk: bytes, copy: IO[bytes], name: str) -> None:
    try:
        copy.write(chunk)
    except OSError as error:
        raise UsageError(
            f"Cannot copy {name} to a temporary file: {error.strerror or error}",
            "Give a file, or set TMPDIR to a folder with enough space.",
        ) from None


class _Scan:
    """Finds the encoding of a file from its chunks."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._is_first = True
        self._is_marked = False
        self._is_utf16 = False
        self._letters = 0
        self._stray = 0
        self._lines = 1
        self._not_utf8: int | None = None
        self._not_1252: int | None = None

    def feed(self, chunk: bytes) -> None:
        if self._is_first:
            self._check_beginning(chunk)
        if self._is_utf16:
            return
        if b"\0" in chunk:
            raise UsageError(f"{self._name} is not text, or UTF-16 without a mark: it contains NUL bytes", _SAVE_AS_CSV)
        if not chunk.isascii():
            letters = _UTF8_LETTER.findall(chunk)
            self._letters += len(letters)
            self._stray += len(chunk.translate(None, _ASCII)) - sum(map(len, letters))
        if self._not_utf8 is None and not (chunk.isascii() and not self._decoder.getstate()[0]):
            self._decode(chunk)
        if self._not_1252 is None and (found := _UNDEFINED_IN_1252.search(chunk)):
            self._not_1252 = self._line(chunk, found.start())
        self._lines = self._line(chunk, len(chunk))

    def encoding(self) -> str:
        """Return the encoding of the whole file. Raises UsageError if it has none that is known."""
        if self._is_utf16:
            return UTF16
        if self._not_utf8 is None:
            self._decode(b"", final=True)
        if self._not_utf8 is None:
            return UTF8
        if self._is_marked or self._letters > self._stray:
            raise UsageError(
                f"{self._name} is UTF-8, but line {self._not_utf8} is not", "Fix that line, or save the file as UTF-8."
            )
        if self._not_1252 is not None:
            raise UsageError(
                f"{self._name} is neither UTF-8 (line {self._not_utf8}) nor Windows-1252 (line {self._not_1252})",
                "Fix these lines, or save the file as UTF-8.",
            )
        return WINDOWS_1252

    def _check_beginning(self, chunk: bytes) -> None:
        self._is_first = False
        self._is_marked = chunk.startswith(codecs.BOM_UTF8)
        self._is_utf16 = chunk.startswith(_UTF16_MARKS) and not chunk.startswith(_UTF32_MARK)

    def _decode(self, chunk: bytes, final: bool = False) -> None:
        try:
            self._decoder.decode(chunk, final)
        except UnicodeDecodeError as error:
            held_back = len(error.object) - len(chunk)
            self._not_utf8 = self._line(chunk, max(0, error.start - held_back))

    def _line(self, chunk: bytes, offset: int) -> int:
        """Return the number of the line that a byte of the current chunk is on."""
        return self._lines + chunk.count(b"\n", 0, offset)


def _unreadable(name: str, error: OSError) -> UsageError:
    return UsageError(
        f"Cannot read {name}: {error.strerror or 'it is not a file of recipients'}",
        "Give a CSV, JSON Lines or .xlsx file, or - for standard input.",
    )
