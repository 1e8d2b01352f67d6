"""Text that was saved as UTF-8 and read as Windows-1252, such as ``MarÃ­a`` for ``María``. Nothing is repaired."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgctl.values import quote

_CONTINUATION = "".join(bytes([code]).decode("cp1252", errors="ignore") or chr(code) for code in range(0x80, 0xC0))
_ONE = f"[{re.escape(_CONTINUATION)}]"
_DAMAGED = re.compile(f"[Â-ß]{_ONE}|[à-ï]{_ONE}{{2}}|[ð-ô]{_ONE}{{3}}")


class Damage:
    """The rows of a file with text that looks damaged: their number, and the first text."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._rows = 0
        self._first = ""

    def look_at(self, line: int, cells: Sequence[str]) -> None:
        """Count a row if one of its cells looks damaged."""
        for cell in cells:
            if not cell.isascii() and (likely := _DAMAGED.sub(_repaired, cell)) != cell:
                self._rows += 1
                self._first = self._first or f"line {line:,} has {quote(cell)}, probably {quote(likely)}"
                return

    @property
    def note(self) -> str:
        """The note about these rows, if any; otherwise empty."""
        if not self._rows:
            return ""
        rows = "" if self._rows == 1 else f" ({self._rows:,} such rows)"
        return f"{self._name} has text that looks damaged: {self._first}{rows}. Nothing is repaired"


def _repaired(damaged: re.Match[str]) -> str:
    """Return the likely text, or the same text if it is not UTF-8."""
    content = b"".join(
        char.encode("latin-1") if char <= "\xff" else char.encode("cp1252", errors="replace") for char in damaged[0]
    )
    try:
        return content.decode()
    except UnicodeDecodeError:
        return damaged[0]
