"""Take the account key out of what the service sends back, before anything can show or store it.

The key is found as it is, percent-encoded, form-encoded and JSON-escaped; other encodings of it (base64, HTML
entities) are outside the threat model.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import NamedTuple
from urllib.parse import quote, quote_plus

MASK = "***"
LEAST_REDACTED = 6
"""Shorter keys are not secret, and redacting them would garble every text that contains their letters."""

_ESCAPED_ASCII = re.compile(r"\\u00[2-7]")
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[0-9.eE+-]+', re.DOTALL)
"""A string or a number of a JSON document."""


class _Search(NamedTuple):
    """How to find a key: ``row``, its longest row of letters and digits, shows cheaply that a text has no key."""

    key: str
    row: str
    pattern: re.Pattern[str]

    def __repr__(self) -> str:
        """Without the key."""
        return "_Search()"

    def may_be_in(self, text: str) -> bool:
        return self.row in text or ("\\u00" in text and _ESCAPED_ASCII.search(text) is not None)


def redact(text: str, key: str) -> str:
    """Return a text without the key."""
    if len(key) < LEAST_REDACTED:
        return text
    search = _search(key)
    return search.pattern.sub(MASK, text) if search.may_be_in(text) else text


def redact_body(body: bytes, key: str) -> bytes:
    """Return the body of a response without the key; JSON stays JSON. One without the key is returned unchanged."""
    text = body.decode("utf-8", "surrogateescape")
    search = _search(key)
    if len(key) < LEAST_REDACTED or not search.may_be_in(text):
        return body
    if _is_json(text):
        redacted = _TOKEN.sub(lambda token: _redacted_token(token[0], search), text)
    else:
        redacted = search.pattern.sub(MASK, text)
    return redacted.encode("utf-8", "surrogateescape")


@lru_cache(maxsize=4)
def _search(key: str) -> _Search:
    spellings = {key, json.dumps(key)[1:-1], json.dumps(key, ensure_ascii=False)[1:-1]}
    spellings |= {spelling.replace("/", "\\/") for spelling in spellings}
    for quoted in (quote(key, errors="replace"), quote(key, safe="", errors="replace"), quote_plus(key)):
        spellings |= {quoted, re.sub("%..", lambda escape: escape[0].lower(), quoted)}
    pattern = "|".join(re.escape(each) for each in sorted(spellings, key=len, reverse=True))
    if key.isdecimal():  # a phone number that contains the digits of a key is not the key
        pattern = rf"(?<![0-9.])(?:{pattern})(?![0-9])"
    rows: list[str] = re.findall("[A-Za-z0-9]+", key)
    return _Search(key, max(rows, key=len, default=""), re.compile(pattern))


def _is_json(text: str) -> bool:
    try:
        json.loads(text.removeprefix("\ufeff"), parse_int=str)  # a number may have any length
    except (ValueError, RecursionError):
        return False
    return True


def _redacted_token(token: str, search: _Search) -> str:
    """Return a string or number of a JSON document without the key; a number is the key as a whole or not at all."""
    if token[0] != '"':
        return f'"{MASK}"' if token.lstrip("-").partition(".")[0] == search.key else token
    if not search.may_be_in(token):
        return token
    text = json.loads(token, strict=False)
    redacted = search.pattern.sub(MASK, text)
    return token if redacted == text else json.dumps(redacted)
