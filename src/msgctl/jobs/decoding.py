"""The bytes of a file of recipients as lines of text.

A file is UTF-8 as a whole, with or without a mark, or it is Windows-1252 as a whole, as older spreadsheets write it.
Which of them is known only at its end, so it is read twice; what can be read only once, a pipe, is kept in between.
"""

from __future__ import annotations

import codecs
import io
import re
import select
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, BinaryIO

from msgctl.errors import UsageError

LONGEST_LINE = 1024 * 1024
"""The longest line that is read, in characters."""

UTF8 = "UTF-8"
WINDOWS_1252 = "Windows-1252"

_CHUNK = 256 * 1024
_CODECS = {UTF8: "utf-8-sig", WINDOWS_1252: "cp1252"}
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ZIP_MARK = b"PK\x03\x04"
_UNDEFINED_IN_1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
_SAVE_AS_CSV = "Save it as CSV, in UTF-8, and give that file."


class Text:
    """A file as lines. ``encoding`` is that of the whole file, ``name`` what messages call it."""

    def __init__(self, stream: io.TextIOWrapper, name: str, encoding: str) -> None:
        self._stream = stream
        self.name = name
        self.encoding = encoding

    def lines(self) -> Iterator[str]:
        """Every line from the first on, with its line end (LF, CR LF or CR). Raises UsageError."""
        number = 0
        try:
            self._stream.seek(0)
            while line := self._stream.readline(LONGEST_LINE):
                number += 1
                if len(line) == LONGEST_LINE:
                    raise _too_long(self.name, number)
                yield line
        except OSError as error:
            raise _unreadable(self.name, error) from None
        except UnicodeDecodeError:
            raise UsageError(f"{self.name} has changed while it was read", "Try again when it is complete.") from None


@contextmanager
def decoded(source: BinaryIO, name: str) -> Iterator[Text]:
    """Find out the encoding of a source, which stays open. Raises UsageError for one that is not text.

    A source that cannot be read again from its beginning is copied to a file without a name, gone with the process.
    """
    with ExitStack() as stack:
        try:
            again = source.seekable() and source.tell() == 0
            kept = source if again else stack.enter_context(_nameless_file())
            chunks = _chunks(source)
            encoding = _encoding(chunks if again else _copied(chunks, kept, name), kept, name)
        except OSError as error:
            raise _unreadable(name, error) from None
        stream = io.TextIOWrapper(kept, _CODECS[encoding], newline="")
        stack.callback(stream.detach)  # it would close the source
        yield Text(stream, name, encoding)


def _nameless_file() -> IO[bytes]:
    from tempfile import TemporaryFile

    return TemporaryFile()


def _chunks(source: IO[bytes]) -> Iterator[bytes]:
    while True:
        chunk: bytes | None = source.read(_CHUNK)
        if chunk:
            yield chunk
        elif chunk is None:
            select.select([source], [], [])  # somebody else has made the descriptor non-blocking
        else:
            return


def _copied(chunks: Iterable[bytes], copy: IO[bytes], name: str) -> Iterator[bytes]:
    try:
        for chunk in chunks:
            copy.write(chunk)
            yield chunk
        copy.flush()
    except OSError as error:
        raise UsageError(
            f"{name} cannot be read, or not be kept to be read again: {error.strerror or error}",
            "Give a file, or let TMPDIR name a folder with enough room.",
        ) from None


def _encoding(chunks: Iterable[bytes], kept: IO[bytes], name: str) -> str:
    """The encoding of a whole file, from its chunks; ``kept`` is the same file, to count its lines when it is bad."""
    scan = _Scan(name)
    for chunk in chunks:
        scan.take(chunk)
    scan.end()
    if scan.not_utf8 is None:
        return UTF8
    line = _line_at(kept, scan.not_utf8)
    if scan.marked:
        raise UsageError(
            f"{name} has the mark of UTF-8, but its line {line} is not UTF-8 text", "Save it as UTF-8 and try again."
        )
    if scan.not_1252 is not None:
        other = _line_at(kept, scan.not_1252)
        raise UsageError(
            f"{name} is neither UTF-8 (see its line {line}) nor Windows-1252 (see its line {other})",
            "Mend these lines, or save the file as UTF-8.",
        )
    return WINDOWS_1252


class _Scan:
    """Where a file stops being UTF-8, and where Windows-1252, as offsets in bytes; None while it may be."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._offset = 0
        self.marked = False
        self.not_utf8: int | None = None
        self.not_1252: int | None = None

    def take(self, chunk: bytes) -> None:
        if self._offset == 0:
            self._look_at_beginning(chunk)
        if b"\0" in chunk:
            raise UsageError(f"{self._name} is not text, or is UTF-16 text: it holds NUL bytes", _SAVE_AS_CSV)
        self._decode(chunk)
        if self.not_1252 is None and (found := _UNDEFINED_IN_1252.search(chunk)):
            self.not_1252 = self._offset + found.start()
        self._offset += len(chunk)

    def end(self) -> None:
        self._decode(b"", final=True)

    def _look_at_beginning(self, chunk: bytes) -> None:
        self.marked = chunk.startswith(codecs.BOM_UTF8)
        if chunk.startswith(_UTF16_MARKS):
            raise UsageError(f"{self._name} is UTF-16 text, which is not read", _SAVE_AS_CSV)
        if chunk.startswith(_ZIP_MARK):
            raise UsageError(f"{self._name} is a workbook or an archive, not text", _SAVE_AS_CSV)

    def _decode(self, chunk: bytes, final: bool = False) -> None:
        if self.not_utf8 is not None:
            return
        try:
            self._decoder.decode(chunk, final)
        except UnicodeDecodeError as error:
            held_back = len(error.object) - len(chunk)
            self.not_utf8 = self._offset - held_back + error.start


def _line_at(file: IO[bytes], offset: int) -> int:
    """The number of the line that a byte is on."""
    file.seek(0)
    lines, last = 1, b""
    while offset > 0 and (chunk := file.read(min(offset, _CHUNK))):
        offset -= len(chunk)
        lines += chunk.count(b"\n") + chunk.count(b"\r") - (last + chunk).count(b"\r\n")
        last = chunk[-1:]
    return lines


def _too_long(name: str, line: int) -> UsageError:
    return UsageError(
        f"line {line} of {name} is longer than {LONGEST_LINE} characters, the most that is read",
        "Is it another kind of file? It should have one line for each recipient.",
    )


def _unreadable(name: str, error: OSError) -> UsageError:
    return UsageError(
        f"{name} cannot be read: {error.strerror or 'it is not a file of recipients'}",
        "Give a CSV or JSON Lines file, or - for standard input.",
    )
