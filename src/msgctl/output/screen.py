"""An output stream and its abilities: width, colour, and the signs that it can show. Without Rich."""

from __future__ import annotations

import codecs
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


def _terminal_width(stream: TextIO) -> int:
    wanted = os.environ.get("COLUMNS", "")
    if wanted.isascii() and wanted.isdecimal() and len(wanted) < 6 and int(wanted) > 0:
        return int(wanted)
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_WIDTH
    except (OSError, ValueError):  # a stream that claims to be a terminal but has no file descriptor
        return _USUAL_WIDTH


SIGNS = {"ok": "✓", "bad": "✗", "warn": "!", "busy": "○", "off": "–"}
"""One sign for each kind of state, so that a state can be read without colour."""

_ASCII = {**dict(zip("✓✗○–·→━╸╺…─", "+xo-,>===.-", strict=True)), **dict.fromkeys("█▉▊▋▌▍▎▏", "#"), "⠋": "*", "●": "*"}
"""One ASCII character for each sign, so that the layout stays the same in a locale without them."""

_KINDS = {
    word: kind
    for kind, words in {
        "ok": "delivered verified answered accepted done ok read seen completed active created",
        "bad": "rejected undelivered failed busy not-answered refused invalid expired error missing",
        "warn": "unknown paused warning partial",
        "busy": "queued sent ringing running waiting scheduled",
        "off": "skipped not-sent pending duplicate blocked excluded",
    }.items()
    for word in words.split()
}


def kind_of(state: str) -> str | None:
    """Return the kind of a delivery state, an outcome or a job's state; None for a word that is not known."""
    return _KINDS.get(state.lower().replace("_", "-").replace(" ", "-"))


def tolerate_any_encoding(stream: TextIO) -> None:
    """Make a stream write characters that its encoding lacks: as escapes, or on a terminal in the same width.

    Python writes UTF-8 in a C locale, which such a terminal does not show; pipes keep it.
    """
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is None:
        return
    locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_CTYPE", "LANG"))), "")
    if not stream.isatty():
        reconfigure(errors="backslashreplace")
    elif locale in ("C", "POSIX"):
        reconfigure(encoding="ascii", errors="msgctl")
    else:
        reconfigure(errors="msgctl")


def _stand_in(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return the ASCII for one of msgctl's signs, and question marks as wide as any other character."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    char = error.object[error.start]
    if char in _ASCII:
        return _ASCII[char], error.start + 1
    from rich.cells import cell_len

    return "?" * cell_len(char), error.start + 1


codecs.register_error("msgctl", _stand_in)
