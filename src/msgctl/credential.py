"""The account's credentials, and the one place that keeps them out of what is shown.

The interface ("Account credentials") knows a client identifier and a key; both travel with every request.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

MASK = "***"
LEAST_MASKED = 6
"""Shorter keys are no secrets, and to mask them would garble every text that holds their letters."""

_OTHERWISE = {" ": ("+",), "'": ("'\"'\"'", "'\\''")}
"""Characters as a form and a shell write them."""
LEAST_PLAIN = 3
_PLAIN = re.compile("[A-Za-z0-9]+", re.ASCII)

_HTML = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&apos;"}

_JSON_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)


class Secret:
    """A text that shows itself nowhere: not in a repr, a format, a log line or a traceback's locals. Not pickled."""

    __slots__ = ("_reveal",)

    def __init__(self, text: str) -> None:
        self._reveal: Callable[[], str] = lambda: text

    def reveal(self) -> str:
        return self._reveal()

    def __repr__(self) -> str:
        return MASK

    __str__ = __repr__

    def __reduce__(self) -> str:
        raise TypeError("a secret is not written anywhere")


class Credential(NamedTuple):
    """Client identifier (int64) and account key."""

    client: int
    key: Secret

    def parameters(self) -> tuple[tuple[str, str], ...]:
        """The parameters ``client`` and ``key`` as they travel."""
        return (("client", str(self.client)), ("key", self.key.reveal()))

    def mask(self, text: str) -> str:
        """``text`` without the key, however it is spelled: raw, percent-encoded, escaped in JSON or HTML, quoted."""
        key = self.key.reveal()
        if len(key) < LEAST_MASKED:
            return text
        return _pattern(key).sub(MASK, text)

    def may_be_in(self, body: bytes) -> bool:
        """Whether JSON could hold the key: a glance that costs a thousandth of masking it.

        Nobody escapes ASCII letters and digits but by ``\\u00``, so the longest row of them in the key is looked for.
        """
        longest = max(_PLAIN.findall(self.key.reveal()), key=len, default="")
        return len(longest) < LEAST_PLAIN or longest.encode() in body or b"\\u00" in body

    def mask_body(self, body: bytes) -> bytes:
        """A body of any kind without the key. Its encoding, which nothing tells reliably, may be one of the usual two.

        Strings of JSON are looked into one by one, since one may hold JSON itself.
        """
        for encoding in ("utf-8", "latin-1"):
            text = body.decode(encoding, "surrogateescape")
            text = self.mask(_JSON_STRING.sub(self._mask_string, text))
            body = text.encode(encoding, "surrogateescape")
        return body

    def _mask_string(self, string: re.Match[str]) -> str:
        try:
            text = json.loads(string[0])
        except ValueError:
            return string[0]
        masked = self.mask(text)
        return string[0] if masked == text else json.dumps(masked)


@lru_cache(maxsize=4)
def _pattern(key: str) -> re.Pattern[str]:
    """A pattern for a key in any spelling. It takes long to make, and an answer can hold a million texts."""
    return re.compile("".join(map(_spelled, key)))


def _spelled(char: str) -> str:
    """A pattern for the ways to write a character; encoders differ in which they escape, and in the case of digits."""
    utf8 = char.encode("utf-8", "surrogateescape")
    units = char.encode("utf-16-be", "surrogatepass").hex()
    escaped = "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
    exact = {char, json.dumps(char)[1:-1], _HTML.get(char, char), f"\\{char}", *_OTHERWISE.get(char, ())}
    exact.add(utf8.decode("latin-1"))  # how a header is read
    any_case = {escaped, f"&#{ord(char)};", f"&#x{ord(char):x};", f"&#x{ord(char):02x};"}
    exactly = "|".join(re.escape(each) for each in sorted(exact, key=len, reverse=True))
    in_any_case = "|".join([_percent(utf8), _percent(char.encode("latin-1", "ignore")), *map(re.escape, any_case)])
    return f"(?:(?i:{in_any_case})|{exactly})"


def _percent(encoded: bytes) -> str:
    """A pattern for percent-encoded bytes, encoded again any number of times, as in a URL within a URL."""
    return "".join(f"%(?:25)*{byte:02x}" for byte in encoded) or "(?!)"
