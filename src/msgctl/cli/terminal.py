"""What is known of the terminal: colour, width, and whether there is one."""

from __future__ import annotations

import os
from typing import Any, TextIO


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a stream is a terminal; false for a closed one."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def has_color(stream: TextIO | None, app: Any = None) -> bool:
    """Whether to colour a stream: --no-color, NO_COLOR, FORCE_COLOR and TERM=dumb are asked in this order."""
    options = getattr(app, "options", None)
    if getattr(options, "no_color", False) or os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream) and os.environ.get("TERM", "") not in ("", "dumb", "unknown")
