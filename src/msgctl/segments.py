"""Count the segments of a text message, and rewrite it to need fewer.

The alphabet is the GSM 7-bit default alphabet with its extension table, 3GPP TS 23.038 sections 6.2.1 and 6.2.1.1. A
text with any other character is sent as UTF-16 ("UCS-2", section 6.2.3). The sizes of a single message, and of the
segments of a longer one, follow from 140 octets of user data, less the concatenation header (3GPP TS 23.040 section
9.2.3.24.1).
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from msgctl.errors import UsageError
from msgctl.text import clean, normalized, shorten

GSM7 = "GSM-7"
UCS2 = "UCS-2"

DEFAULT_ALPHABET = (
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?"
    "¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà"
)
"""The characters of one septet, in the order of their codes, without 0x1B, the escape to the extension table."""

EXTENSION = "\f^{}\\[~]|€"
"""The characters of two septets (the escape and a code), in the order of their codes."""

_ESCAPED = frozenset(EXTENSION)
_ALPHABET = frozenset(DEFAULT_ALPHABET) | _ESCAPED

# (units in a single message, units in each segment of several)
_CAPACITY = {GSM7: (160, 153), UCS2: (70, 67)}

# Characters without a useful decomposition: a spacing acute accent, for example, would become a space.
_NEAR = str.maketrans(
    {
        # quotation marks, primes and spacing accents
        **dict.fromkeys("‘’‚‛‹›′`´ʼʻʹˈ", "'"),
        **dict.fromkeys("“”„‟«»″¨˝", '"'),
        # hyphens, dashes, minus
        **dict.fromkeys("‐‑‒–—―−⁃", "-"),
        # bullets and dots
        **dict.fromkeys("•‣◦▪●■○□", "-"),
        **dict.fromkeys("·∙⋅", "."),
        # line ends and the tabulator; the other spaces are known by their category
        **dict.fromkeys("\v\x85\u2028\u2029", "\n"),
        "\t": " ",
        # soft hyphen, zero width space, joiners, left-to-right mark, word joiner, byte order mark: invisible
        **dict.fromkeys("\xad\u034f\u200b\u200c\u200d\u200e\u2060\ufeff", ""),
        # signs
        **{"…": "...", "°": "o", "№": "No", "©": "(c)", "®": "(r)", "¢": "c", "¦": "|", "ˆ": "^", "˜": "~"},
        **{"×": "x", "÷": "/", "⁄": "/", "∕": "/", "±": "+/-", "≤": "<=", "≥": ">=", "≠": "!=", "≈": "~"},
        **{"←": "<-", "→": "->", "⇒": "=>", "µ": "u", "μ": "u", "ƒ": "f"},
        # Latin letters without a decomposition
        **{"ł": "l", "Ł": "L", "đ": "d", "Đ": "D", "ð": "d", "Ð": "D", "þ": "th", "Þ": "Th", "ı": "i", "ȷ": "j"},
        **{"œ": "oe", "Œ": "OE", "ẞ": "SS", "ħ": "h", "Ħ": "H", "ŧ": "t", "Ŧ": "T", "ŋ": "n", "Ŋ": "N", "ĸ": "k"},
        **{"ə": "e", "Ə": "E", "ɛ": "e", "Ɛ": "E", "ɔ": "o", "Ɔ": "O", "ɓ": "b", "Ɓ": "B", "ɗ": "d", "Ɗ": "D"},
        **{"ƙ": "k", "Ƙ": "K", "ƴ": "y", "Ƴ": "Y", "ɲ": "n", "Ɲ": "N", "ɨ": "i", "Ɨ": "I", "ç": "c"},
        # Greek capitals that look like a Latin one; the others are in the alphabet
        **dict(zip("ΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABEZHIKMNOPTYX", strict=True)),
    }
)


@dataclass(frozen=True, slots=True)
class Count:
    """The size of a text as SMS.

    ``encoding`` is ``GSM-7`` or ``UCS-2``; ``characters`` counts code points; ``units`` counts septets (an extension
    character is two) or UTF-16 code units; ``segments`` counts messages; ``not_gsm7`` has the characters that forced
    UCS-2, each once, in the order of their first appearance.
    """

    encoding: str
    characters: int
    units: int
    segments: int
    not_gsm7: tuple[str, ...]


def count(text: str) -> Count:
    """Return the segments of a text; an empty text has none."""
    not_gsm7: tuple[str, ...] = ()
    if not _ALPHABET.issuperset(text):
        not_gsm7 = tuple(char for char in dict.fromkeys(text) if char not in _ALPHABET)
    encoding = UCS2 if not_gsm7 else GSM7
    units = _units(text, encoding)
    alone, joined = _CAPACITY[encoding]
    segments, room = 1, joined
    if units <= alone:
        segments = min(units, 1)
    elif units == len(text):
        segments = -(-units // joined)
    else:
        for char in text:  # a character of two units is not split between two segments
            width = _units(char, encoding)
            if width > room:
                segments, room = segments + 1, joined
            room -= width
    return Count(encoding, len(text), units, segments, not_gsm7)


MAX_SEGMENTS = 10
"""Segments of a message that needs no --max-segments. Many networks deliver no more, and each one costs a credit."""


def check_segments(count: Count, most: int = MAX_SEGMENTS) -> None:
    """Raise UsageError for a message of more than ``most`` segments."""
    if count.segments > most:
        raise UsageError(
            f"The message needs {count.segments:,} segments; the maximum is {most:,}",
            f"Shorten it, or allow it with --max-segments {count.segments}.",
        )


class Gsm7Text(NamedTuple):
    """A text in the GSM-7 alphabet, and the emoji and other symbols left out of it, each once."""

    text: str
    left_out: tuple[str, ...] = ()


def to_gsm7(text: str) -> Gsm7Text:
    """Return a text in the GSM-7 alphabet: other characters are replaced by similar ones, and symbols are left out.

    Raises UsageError if nothing is left, or for letters without a similar one; the error lists these letters.
    """
    if _ALPHABET.issuperset(text):
        return Gsm7Text(text)
    written: list[str | None] = []
    left_out: dict[str, None] = {}
    missing: dict[str, int] = {}
    previous = ""
    for position, char in enumerate(normalized(text), start=1):
        near = _near(char)
        if near is not None:
            written.append(_separator(previous, char, near) + near)
        elif _is_symbol(char):
            left_out[char] = None
            written.append(None)
        else:
            missing.setdefault(char, position)
        previous = char
    if missing:
        named = ", ".join(f"{_shown(char)} (U+{ord(char):04X}, position {at})" for char, at in missing.items())
        letters = "character" if len(missing) == 1 else "characters"
        raise UsageError(f"GSM-7 has no letter close to {named}", f"Send it without --gsm7, or remove the {letters}.")
    converted = _joined(written)
    if not converted.strip():
        raise UsageError(f'"{shorten(text)}" would be empty in GSM-7', "Send it without --gsm7.")
    return Gsm7Text(converted, tuple(char for char in left_out if not _is_joiner(char)))


def _shown(char: str) -> str:
    if unicodedata.category(char)[0] == "M":  # a combining mark is shown on a dotted circle (Unicode, section 2.11)
        char = f"◌{char}"
    return clean(char)


def _joined(pieces: list[str | None]) -> str:
    """Join the pieces of a text. None is a symbol that was left out; one of the spaces around it is removed, too."""
    text = [""]
    is_gap = False
    for piece in filter(lambda piece: piece != "", pieces):
        if piece is None:
            is_gap = True
            continue
        if is_gap and piece == "\n" and text[-1] == " ":
            text.pop()
        if not (is_gap and piece == " " and text[-1] in ("", " ", "\n")):
            text.append(piece)
        is_gap = False
    if is_gap and text[-1] == " ":
        text.pop()
    return "".join(text)


def saved_by_gsm7(text: str) -> int:
    """Return how many segments `to_gsm7` saves for a text; 0 if the text cannot be written in GSM-7."""
    size = count(text)
    if size.segments < 2:  # the usual case
        return 0
    if any(_near(char) is None and not _is_symbol(char) for char in size.not_gsm7):
        return 0
    try:
        return max(0, size.segments - count(to_gsm7(text).text).segments)
    except UsageError:
        return 0


def _units(text: str, encoding: str) -> int:
    """Septets, or UTF-16 code units; a lone surrogate is one unit."""
    if encoding == GSM7:
        return len(text) if _ESCAPED.isdisjoint(text) else len(text) + sum(map(text.count, EXTENSION))
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@lru_cache(maxsize=2048)
def _near(char: str) -> str | None:
    """Return the nearest characters in the alphabet: empty to leave the character out, None if none is near."""
    if char in _ALPHABET:
        return char
    if ord(char) in _NEAR:
        return char.translate(_NEAR)
    if unicodedata.category(char) == "Zs":
        return " "
    if _is_accent(char):
        return ""
    return _decomposed(char)


def _is_symbol(char: str) -> bool:
    """Return whether a character is an emoji or another symbol, or part of one."""
    return unicodedata.category(char)[0] in "SP" or _is_joiner(char)


def _is_joiner(char: str) -> bool:
    """Return whether a character is one of the invisible tags that make up some flags."""
    return "\U000e0020" <= char <= "\U000e007f"


def _decomposed(char: str) -> str | None:
    """Decompose one step at a time, so that ǘ becomes ü, which is in the alphabet, and not u."""
    parts = [chr(int(code, 16)) for code in unicodedata.decomposition(char).split() if not code.startswith("<")]
    near = [_near(part) for part in parts]
    written = "".join(part for part in near if part is not None)
    # A spacing accent decomposes to a space and a mark, and would become a space.
    return written if None not in near and written.strip() else None


def _is_accent(char: str) -> bool:
    """Return whether a mark only decorates its letter.

    Marks around the letter (canonical combining classes from 200), variation selectors and the key cap only decorate.
    Overlays (class 1) change the meaning: an unequal sign without its stroke is an equal sign.
    """
    return unicodedata.combining(char) >= 200 or "\ufe00" <= char <= "\ufe0f" or char == "\u20e3"


def _separator(previous: str, char: str, near: str) -> str:
    """Return the separator of a number and a replaced neighbour: 10² becomes 10^2, not 102; 1½ becomes 1 1/2."""
    if not previous.isdecimal() or char in _ALPHABET:
        return ""
    if unicodedata.decomposition(char).startswith("<super>") and not near.isalpha():
        return "^"
    return " " if unicodedata.category(char) == "No" else ""
