"""An output stream and its abilities: width and colour."""

from __future__ import annotations

import os
from typing import NamedTuple, TextIO

_USUAL_WIDTH = 80


class Screen(NamedTuple):
    """A stream: its ``width`` in columns (None if nothing is drawn for people), and whether it shows ``color``."""

    stream: TextIO
    width: int | None
    color: bool

    @classmethod
    def of(cls, stream: TextIO, color: bool) -> Screen:
        """Return the screen of a stream; the caller decides about colour, which FORCE_COLOR forces upon pipes."""
        return cls(stream, _terminal_width(stream) if stream.isatty() or color else None, color)

    @property
    def is_terminal(self) -> bool:
        return self.stream.isatty()

    @property
    def is_drawn(self) -> bool:
        """Whether results are drawn for people."""
        return self.width is not None

    def write(self, text: str) -> None:
        """Write clean text; characters that the stream cannot encode are replaced by its error handler."""
        self.stream.write(text)

    def write_bytes(self, data: bytes) -> None:
        """Write UTF-8 bytes exactly, whatever the encoding of the stream. A text-only stream gets them decoded."""
        buffer = getattr(self.stream, "buffer", None)
        if buffer is None:
            self.stream.write(data.decode("utf-8", "replace"))
            return
        self.stream.flush()
        left = memoryview(data)
        while left:  # an unbuffered stream (python -u) may write only a part
            left = left[buffer.write(left) :]

    def flush(self) -> None:
        """Write what is buffered, so that a closed pipe is noticed here and not at exit."""
        self.stream.flush()


def _terminal_width(stream: TextIO) -> int:
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isascii() and wanted.isdecimal() and len(wanted) < 6 and int(wanted) > 0:
        return int(wanted)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_WIDTH
    except (OSError, ValueError):  # a stream that claims to be a terminal but has no file descriptor
        return _USUAL_WIDTH
