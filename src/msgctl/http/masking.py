"""A key in every spelling, taken out of texts and of the bodies of answers."""

from __future__ import annotations

import json
import re
from functools import cached_property, lru_cache

MASK = "***"
LEAST_MASKED = 6
"""Shorter keys are no secrets, and to mask them would garble every text that holds their letters."""

LEAST_PLAIN = 3
_PLAIN = re.compile("[A-Za-z0-9]+")

# Patterns that few answers need: `re` compiles each when it is first asked for, and keeps it.
# ASCII letters and digits, escaped, which nobody needs to do.
_IN_JSON = r"\\u00(?:3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa])"
_IN_URL = r"%(?:25)*(?:3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa])"
# Also one without its end, and never given back: else an answer could have it begin anew at each of its quotes.
_STRING = r'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)'
_STRING_OR_NUMBER = rf"{_STRING}|[0-9.eE+-]+"
_NUMBER = r'"?[+-]?([0-9]+)[0-9.eE+-]*"?'
"""A number as it is or in a string, where it may be a phone number; its group is what stands before the point."""
_decoded = json.JSONDecoder().raw_decode

_OTHERWISE = {" ": ("+",), "'": ("'\"'\"'", "'\\''")}
"""Characters as a form and a shell write them."""
_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}


@lru_cache(maxsize=4)
def masker_of(key: str) -> Masker:
    """The masker of a key. Its pattern takes long to make, and a job asks for it with every answer."""
    return Masker(key)


class Masker:
    """Takes one key out of texts, however it is spelled there: raw, percent-encoded, escaped in JSON or HTML, quoted.

    What was encoded otherwise (base64, a hash) is no longer the key.
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._row = max(_PLAIN.findall(key), key=len, default="")
        self._is_long = len(key) >= LEAST_MASKED
        self._shows_little = len(self._row) < LEAST_PLAIN

    def text(self, text: str) -> str:
        """A text without the key."""
        return self._pattern.sub(MASK, text) if self._may_be_in(text) else text

    def body(self, body: bytes) -> bytes:
        """The body of an answer of any kind without the key; one that does not hold it is given back as it is."""
        if not self._may_be_in(body.decode("latin-1")):
            return body
        # Nothing tells the encoding reliably. It may be one of the usual two, which write ASCII alike.
        for encoding in ("utf-8",) if body.isascii() else ("utf-8", "latin-1"):
            body = self._document(body.decode(encoding, "surrogateescape")).encode(encoding, "surrogateescape")
        return body

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("".join(map(_spelled, self._key)))

    def _may_be_in(self, text: str) -> bool:
        """Whether a text could hold the key: a glance that costs a thousandth of masking it.

        The longest row of ASCII letters and digits in the key is looked for, and whatever could hide one of them.
        """
        if not self._is_long:
            return False
        return (
            self._row in text
            or self._shows_little
            or "&#" in text
            or ("\\u00" in text and re.search(_IN_JSON, text) is not None)
            or ("%" in text and re.search(_IN_URL, text) is not None)
        )

    def _document(self, text: str) -> str:
        if not _is_json(text):
            return self.text(re.sub(_STRING, self._string, text, flags=re.DOTALL))
        # Its strings one by one: what the key ends with may look like the escape of the character after it.
        if self._key.isdecimal():
            return re.sub(_STRING_OR_NUMBER, self._string_or_number, text, flags=re.DOTALL)
        return re.sub(_STRING, self._string, text, flags=re.DOTALL)

    def _string(self, string: re.Match[str]) -> str:
        """A JSON string without the key, also where it holds JSON itself, in which the key is escaped once more."""
        if not self._may_be_in(string[0]):
            return string[0]
        try:
            text = _decoded(string[0])[0]
        except ValueError:
            return string[0]
        masked = self._document(text) if self._may_be_in(text) else text
        return string[0] if masked == text else json.dumps(masked)

    def _string_or_number(self, value: re.Match[str]) -> str:
        """A JSON string or number without the key, where that is a number.

        A number is the key as a whole or not at all: that a phone number has the key's digits in it tells nothing.
        """
        number = re.fullmatch(_NUMBER, value[0])
        if number is None:
            return self._string(value)
        return f'"{MASK}"' if number[1] == self._key else value[0]


def _is_json(text: str) -> bool:
    try:
        json.loads(text.removeprefix("\ufeff"), parse_int=str)  # a number may have any length
    except (ValueError, RecursionError):
        return False
    return True


def _spelled(char: str) -> str:
    """A pattern for the ways to write a character; encoders differ in which they escape, and in the case of digits."""
    utf8 = char.encode("utf-8", "surrogateescape")
    units = char.encode("utf-16-be", "surrogatepass").hex()
    escaped = "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
    exact = {char, json.dumps(char)[1:-1], repr(char)[1:-1], _HTML.get(char, char), *_OTHERWISE.get(char, ())}
    exact.add(utf8.decode("latin-1"))  # how a header is read
    if not _PLAIN.fullmatch(char):
        exact.add(f"\\{char}")
    any_case = {escaped, f"&#{ord(char)};", f"&#x{ord(char):x};", f"&#x{ord(char):02x};"}
    exactly = "|".join(re.escape(each) for each in sorted(exact, key=len, reverse=True))
    in_any_case = "|".join([_percent(utf8), _percent(char.encode("latin-1", "ignore")), *map(re.escape, any_case)])
    return f"(?:(?i:{in_any_case})|{exactly})"


def _percent(encoded: bytes) -> str:
    """A pattern for percent-encoded bytes, encoded again any number of times, as in a URL within a URL."""
    return "".join(f"%(?:25)*{byte:02x}" for byte in encoded) or "(?!)"
