"""Take the account key out of what the service sends back, before anything can show or store it.

The key is found as it is, percent-encoded, form-encoded and JSON-escaped; other encodings of it (base64, HTML
entities) are outside the threat model.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from urllib.parse import quote, quote_plus

MASK = "***"
LEAST_REDACTED = 6
"""Shorter keys are not secret, and redacting them would garble every text that contains their letters."""

_ESCAPED_ASCII = re.compile(r"\\u00[2-7]")
_TOKEN = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[0-9.eE+-]+', re.DOTALL)
"""A string or a number of a JSON document."""


def redact(text: str, key: str) -> str:
    """Return a text without the key."""
    return _pattern(key).sub(MASK, text) if _may_hold(text, key) else text


def redact_body(body: bytes, key: str) -> bytes:
    """Return the body of a response without the key; JSON stays JSON. One without the key is returned unchanged."""
    text = body.decode(errors="surrogateescape")
    if not _may_hold(text, key):
        return body
    try:
        json.loads(text.removeprefix("\ufeff"), parse_int=str)  # a number may have any length
    except (ValueError, RecursionError):
        redacted = redact(text, key)
    else:
        redacted = _TOKEN.sub(lambda token: _redacted_token(token[0], key), text)
    return redacted.encode(errors="surrogateescape")


def _may_hold(text: str, key: str) -> bool:
    """Tell cheaply whether a text can contain the key: it has the longest row of its letters and digits, or escapes."""
    if len(key) < LEAST_REDACTED:
        return False
    return _longest_row(key) in text or ("\\" in text and _ESCAPED_ASCII.search(text) is not None)


@lru_cache(maxsize=4)
def _longest_row(key: str) -> str:
    rows: list[str] = re.findall("[A-Za-z0-9]*", key)
    return max(rows, key=len)


@lru_cache(maxsize=4)
def _pattern(key: str) -> re.Pattern[str]:
    spellings = {key, json.dumps(key)[1:-1], json.dumps(key, ensure_ascii=False)[1:-1]}
    spellings |= {spelling.replace("/", "\\/") for spelling in spellings}
    for quoted in (quote(key, errors="replace"), quote(key, safe="", errors="replace"), quote_plus(key)):
        spellings |= {quoted, re.sub("%..", lambda escape: escape[0].lower(), quoted)}
    pattern = "|".join(re.escape(each) for each in sorted(spellings, key=len, reverse=True))
    # A phone number that contains the digits of a key is not the key.
    return re.compile(rf"(?<![0-9.])(?:{pattern})(?![0-9])" if key.isdecimal() else pattern)


def _redacted_token(token: str, key: str) -> str:
    """Return a string or number of a JSON document without the key; a number is the key as a whole or not at all."""
    if token[0] != '"':
        return f'"{MASK}"' if token == key else token
    if not _may_hold(token, key):
        return token
    text = json.loads(token)
    redacted = redact(text, key)
    return token if redacted == text else json.dumps(redacted)
