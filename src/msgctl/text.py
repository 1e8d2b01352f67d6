"""Make untrusted text safe to print, and put numbers, times and lists into words.

Text from the service, a file or the command line may contain escape sequences that move the cursor, retitle the window
or write to the clipboard. It may contain characters that change the direction of the text around them.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal

MASK = "***"
"""The text in place of a key."""

MAX_MARKS = 30
"""Combining marks in a row that are kept: the limit of the Stream-Safe Text Format (UAX #15, section 13)."""

# Zero-width joiner and non-joiner: emoji and several scripts need them, and they are harmless.
_HARMLESS_FORMATS = "\u200c\u200d"


def is_unsafe(char: str) -> bool:
    """Return whether a character could act on a terminal instead of being shown.

    True for controls (Unicode category Cc: C0, DEL, C1), formats (Cf: direction marks, tags), lone surrogates (Cs),
    and the line and paragraph separators (Zl, Zp).
    """
    if " " <= char <= "~":
        return False
    return unicodedata.category(char) in {"Cc", "Cf", "Cs", "Zl", "Zp"} and char not in _HARMLESS_FORMATS


def escape(char: str) -> str:
    """Return the visible escape of a character: ``\\n``, ``\\x1b``, ``\\u202e``, ``\\U000e0001``."""
    return char.encode("unicode_escape").decode("ascii")


def clean(text: str) -> str:
    """Return one line of text in which every character that could act on a terminal is escaped visibly."""
    if text.isascii() and text.isprintable():
        return text
    return text.translate({ord(char): escape(char) for char in set(text) if is_unsafe(char)})


def normalized(text: str, form: Literal["NFC", "NFKD"] = "NFC") -> str:
    """Return text in a Unicode normal form, without the marks after `MAX_MARKS` in a row.

    `unicodedata.normalize` sorts marks in a row, which takes quadratic time.
    """
    if text.isascii():
        return text
    kept: list[str] = []
    marks = 0
    for char in text:
        marks = marks + 1 if unicodedata.combining(char) else 0
        if marks <= MAX_MARKS:
            kept.append(char)
    return unicodedata.normalize(form, "".join(kept))


def storable(text: str) -> str:
    """Return text that UTF-8 can encode: half of a surrogate pair, which JSON allows, is escaped visibly."""
    return text.encode("utf-8", "backslashreplace").decode()


def shorten(text: str, limit: int = 200) -> str:
    """Return clean text of at most ``limit`` characters, to quote text of unknown length in a message."""
    cleaned = clean(text[: limit + 1])
    return cleaned if len(cleaned) <= limit else cleaned[: limit - 1] + "…"


def in_seconds(number: float) -> str:
    """Return a time with its unit: ``1 second``, ``0.25 seconds``."""
    rounded = round(number, 2)
    return f"{rounded:g} {'second' if rounded == 1 else 'seconds'}"


def capitalized(text: str) -> str:
    """Return a text with its first letter in upper case; unlike `str.capitalize`, the rest is unchanged."""
    return text[:1].upper() + text[1:]


def plural(number: float, one: str, many: str = "") -> str:
    """Return a number with its noun: ``1 credit``, ``2,000 credits``."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def timestamp(seconds: float) -> str:
    """Return seconds since 1970 as ``YYYY-MM-DDTHH:MM:SSZ``, in UTC (ISO 8601, RFC 3339).

    Raises ValueError and OverflowError for a time outside the calendar.
    """
    return datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def joined(names: Iterable[str], word: str = "and") -> str:
    """Return a list of names in words: ``A, B and C``."""
    *others, last = names
    return f"{', '.join(others)} {word} {last}" if others else last


def some_of(names: Sequence[str], most: int = 5) -> str:
    """Return a list of at most ``most`` names, and the number of the others."""
    return ", ".join(names[:most]) + (f" and {len(names) - most:,} more" if len(names) > most else "")


def without_parameters(text: str, names: str) -> str:
    """Return a path, query, form or JSON with `MASK` for the values of some parameters: ``key`` or ``client|key``."""
    return re.sub(rf"""(?i)((?<![a-z0-9])(?:{names})(?:=|"\s*+:\s*+"?))(?:[^&\s"'<>;\\]|\\.)*""", rf"\1{MASK}", text)


def nearest(text: str, choices: Iterable[str], min_likeness: float = 0.6) -> str | None:
    """Return the choice that is most like a text, to suggest it; None if none is similar."""
    from difflib import get_close_matches  # rare

    return next(iter(get_close_matches(text, [*choices], n=1, cutoff=min_likeness)), None)
