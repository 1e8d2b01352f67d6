"""Signs and the states that they mean, without Rich: errors and pipes use them too."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import Any, TextIO

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
        "busy": "queued sent ringing pending running waiting scheduled",
        "off": "skipped not-sent duplicate blocked excluded",
    }.items()
    for word in words.split()
}


def kind_of(state: str) -> str | None:
    """Return the kind of a delivery state, an outcome or a job's state; None for a word that is not known."""
    return _KINDS.get(state.lower().replace("_", "-").replace(" ", "-"))


def tolerate_any_encoding(stream: TextIO) -> None:
    """Make a stream write characters that its encoding lacks: msgctl's signs as ASCII, others as escapes."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="msgctl")


def writable(value: Any, stream: TextIO) -> Any:
    """Return a document without characters that the stream cannot encode, so that widths are right in tables."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return value if encoding.lower().replace("_", "-").startswith("utf") else _encodable(value, encoding)


def _encodable(value: Any, encoding: str) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode(encoding, "msgctl").decode(encoding)
    if isinstance(value, Mapping):
        return {name: _encodable(each, encoding) for name, each in value.items()}
    return [_encodable(each, encoding) for each in value] if isinstance(value, (list, tuple)) else value


def _stand_in(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    char = error.object[error.start]
    return _ASCII.get(char) or char.encode("ascii", "backslashreplace").decode(), error.start + 1


codecs.register_error("msgctl", _stand_in)
