"""A way to find the key of the tests, wherever it went."""

from __future__ import annotations

from base64 import b64encode, urlsafe_b64encode
from pathlib import Path

from conftest import KEY

TRACES = ("k3y", "awkward")
"""Pieces of conftest.KEY that no escaping changes: whoever shows the key in any spelling shows these."""


def _in_base64(key: bytes) -> set[bytes]:
    """What base64 makes of the key wherever it stands in a text: without the ends, which depend on its neighbours."""
    shifted = [bytes(shift) + key for shift in range(3)]
    return {encode(text)[4:-4] for text in shifted for encode in (b64encode, urlsafe_b64encode)}


_NEEDLES = tuple(
    {trace.encode(coding) for trace in TRACES for coding in ("ascii", "utf-16-le")}
    | {trace.encode().hex().encode() for trace in TRACES}
    | _in_base64(KEY.encode())
)


def shows_key(text: str | bytes) -> bool:
    """Whether a text holds the key: raw, percent-encoded, escaped or quoted in any way, in base64 or in hexadecimal."""
    content = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    return any(needle in content for needle in _NEEDLES)


def files_with_key(folder: Path) -> set[str]:
    """The names of the files below a folder that hold the key."""
    return {path.name for path in folder.rglob("*") if path.is_file() and shows_key(path.read_bytes())}
