"""What is known of the terminal: colour, width, and whether there is one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TextIO


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal; false for a closed one."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def has_color(stream: TextIO | None, environ: Mapping[str, str], *, refused: bool) -> bool:
    """Whether to colour a stream: --no-color (``refused``) wins over NO_COLOR, FORCE_COLOR and TERM, in this order."""
    if refused or environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream) and environ.get("TERM", "") not in ("", "dumb", "unknown")
