"""The one place that makes text of others fit to be shown.

What came over the wire, out of a file or from the command line may hold escape sequences that move the cursor,
retitle the window or write to the clipboard, and characters that change the direction of what stands around them.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

# Zero-width joiner and non-joiner: emoji and several scripts are spelled with them, and they move nothing.
_HARMLESS_FORMATS = "\u200c\u200d"
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def is_unsafe(char: str) -> bool:
    """Whether a character could act on a terminal instead of being shown.

    True for controls (Unicode category Cc: C0, DEL, C1), formats (Cf: direction marks, tags), lone surrogates (Cs),
    and the line and paragraph separators (Zl, Zp).
    """
    if " " <= char <= "~":
        return False
    return unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and char not in _HARMLESS_FORMATS


@lru_cache(maxsize=1024)  # an answer can hold millions of them
def escape(char: str) -> str:
    """A character written visibly: ``\\n``, ``\\x1b``, ``\\u202e``, ``\\U000e0001``."""
    named = _NAMED.get(char)
    if named:
        return named
    code = ord(char)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def clean(text: str) -> str:
    """One line of text in which every character that could act on a terminal is written visibly."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(escape(char) if is_unsafe(char) else char for char in text)


def storable(text: str) -> str:
    """Text that UTF-8 can hold: half of a surrogate pair, which JSON can spell, is written visibly."""
    return text.encode("utf-8", "backslashreplace").decode()


def shorten(text: str, limit: int = 200) -> str:
    """Clean text of at most ``limit`` characters, for a message that quotes something of unknown length."""
    cleaned = clean(text[: limit + 1])
    return cleaned if len(cleaned) <= limit else cleaned[: limit - 1] + "…"
