"""Where a result is written to, and what can be shown there."""

from __future__ import annotations

import os
from typing import NamedTuple, TextIO

_USUAL_WIDTH = 80


class Screen(NamedTuple):
    """An output stream: ``width`` in columns (None: not a terminal), ``color``, ``unicode`` (block characters fit)."""

    stream: TextIO
    width: int | None
    color: bool
    unicode: bool

    @classmethod
    def of(cls, stream: TextIO, color: bool) -> Screen:
        """The screen that a stream is; whether it is coloured is decided by the caller."""
        width = _terminal_width(stream) if stream.isatty() else None
        return cls(stream, width, color, _encodes_blocks(stream))

    @property
    def is_terminal(self) -> bool:
        return self.width is not None

    def write(self, text: str) -> None:
        """Write text that is clean already; what the encoding of the stream lacks is written as ``\\uXXXX``."""
        self.stream.write(_encodable(text, getattr(self.stream, "encoding", None)))

    def write_bytes(self, data: bytes) -> None:
        """Write UTF-8 bytes exactly, whatever the encoding of the stream. A text-only stream gets them decoded."""
        buffer = getattr(self.stream, "buffer", None)
        if buffer is None:
            self.stream.write(data.decode("utf-8", "replace"))
            return
        self.stream.flush()
        left = memoryview(data)
        while left:  # an unbuffered stream (python -u) may take a part only
            left = left[buffer.write(left) :]

    def flush(self) -> None:
        """Write what is still held back, so that a reader that has gone is noticed here and not at exit."""
        self.stream.flush()


def _terminal_width(stream: TextIO) -> int:
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isascii() and wanted.isdecimal() and len(wanted) < 6 and int(wanted) > 0:
        return int(wanted)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_WIDTH
    except (OSError, ValueError):  # a stream that says it is a terminal and has no file descriptor
        return _USUAL_WIDTH


def _encodes_blocks(stream: TextIO) -> bool:
    try:
        "█".encode(getattr(stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _encodable(text: str, encoding: str | None) -> str:
    if encoding is None or text.isascii() or encoding.lower().replace("_", "-").startswith("utf"):
        return text
    return text.encode(encoding, "backslashreplace").decode(encoding)
