"""A way to find the key of the tests, wherever it went."""

from __future__ import annotations

from pathlib import Path

TRACES = ("k3y", "awkward")
"""Pieces of conftest.KEY that no encoding changes: whoever shows the key in any spelling shows these."""


def shows_key(text: str | bytes) -> bool:
    """Whether a text holds the key, raw, percent-encoded, or escaped in any way."""
    content = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    return any(trace.encode() in content for trace in TRACES)


def files_with_key(folder: Path) -> set[str]:
    """The names of the files below a folder that hold the key."""
    return {path.name for path in folder.rglob("*") if path.is_file() and shows_key(path.read_bytes())}
