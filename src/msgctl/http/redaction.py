"""Remove the account key from responses before msgctl shows or stores them.

The key is recognised as it is, percent-encoded (with ``+`` for a space, too) and JSON-escaped. Other encodings, such as
base64, HTML entities or a mixture of these, are outside the threat model.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from urllib.parse import quote, quote_plus

from msgctl.config.profiles import MIN_KEY

MASK = "***"
MIN_CUT = 3
"""The shortest beginning of the key that is redacted at the end of a truncated text."""

_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_JSON_STRING = r'"(?:[^"\\]|\\.)*+"'
_PARAMETER = re.compile(
    r"""(?i)(?<![a-z0-9])key(?:=([^&\s"'<>;]*)|"\s*+:\s*+(?:"((?:[^"\\]|\\.)*+)"|([0-9]+)))""", re.DOTALL
)
"""The parameter ``key`` in a query, a form or JSON; its value is a group."""
_ALONE = r"(?:(?<![0-9.])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2}))"
"""Pattern before a key of digits, since the same digits in a longer number, such as a phone, are not the key."""
_IN_PATH = "/:@!$&'()*+,;="
"""Characters that a path may contain without an escape (RFC 3986)."""
_HEX = re.compile(r"(?<=%)[0-9A-F]{2}|(?<=\\u)[0-9a-f]{4}")
_CUT_CHARACTER = re.compile("[\udc80-\udcff]{1,3}\\Z")
"""An incomplete UTF-8 character at the end of a text."""


def redact(text: str, key: str, *, is_cut: bool = False) -> str:
    """Return a text without the key; ``is_cut`` also removes a beginning of the key at the end of the text."""
    if len(key) < MIN_KEY:
        return _PARAMETER.sub(lambda parameter: _without_key(parameter, key), text)
    redacted = _pattern(key).sub(MASK, text)
    return _without_beginning(redacted, key) if is_cut else redacted


def redact_parameters(text: str, *names: str) -> str:
    """Return a query, a form or JSON without the values of these parameters, whatever they are."""
    return _parameters(names).sub(rf"\1{MASK}", text)


@lru_cache(maxsize=4)
def _parameters(names: tuple[str, ...]) -> re.Pattern[str]:
    """Return the pattern of the parameters; the group is the part before the value."""
    return re.compile(rf"""(?i)((?<![a-z0-9])(?:{"|".join(names)})(?:=|"\s*+:\s*+"?))(?:[^&\s"'<>;\\]|\\.)*""")


def redact_body(body: bytes, key: str, *, is_cut: bool = False) -> bytes:
    """Return the body of a response without the key; JSON stays valid. A body without the key is unchanged."""
    text = body.decode(errors="surrogateescape")
    redacted = redact(text, key, is_cut=is_cut)
    if redacted == text:
        return body
    if len(key) >= MIN_KEY and _NUMBER.fullmatch(key) and _is_json(text):
        # A number becomes a string.
        redacted = _number_pattern(key).sub(lambda token: redact(token[1], key) if token[1] else f'"{MASK}"', text)
    return redacted.encode(errors="surrogateescape")


def _is_json(text: str) -> bool:
    try:
        json.loads(text.removeprefix("\ufeff"), parse_int=bool, parse_float=bool)
    except (ValueError, RecursionError):
        return False
    return True


def _without_key(parameter: re.Match[str], key: str) -> str:
    """Return a parameter; a value that is the key is masked."""
    group = parameter.lastindex or 1
    if not _pattern(key).fullmatch(parameter[group]):
        return parameter[0]
    start, end = (position - parameter.start() for position in parameter.span(group))
    mask = f'"{MASK}"' if group == 3 else MASK
    return parameter[0][:start] + mask + parameter[0][end:]


def _without_beginning(text: str, key: str) -> str:
    """Return a text without the beginning of the key at its end."""
    whole = _CUT_CHARACTER.sub("", text)
    longest = 0
    for spelling in _spellings(key):
        for length in range(len(spelling) - 1, max(longest, MIN_CUT - 1), -1):
            if whole.endswith(spelling[:length]):
                longest = length
                break
    return whole[:-longest] + MASK if longest else text


@lru_cache(maxsize=4)
def _pattern(key: str) -> re.Pattern[str]:
    """Return the pattern of a key in any of its spellings."""
    if key.isdecimal():
        return re.compile(rf"{_ALONE}{key}(?![0-9])")
    return re.compile("|".join(map(re.escape, _spellings(key))))


@lru_cache(maxsize=4)
def _number_pattern(key: str) -> re.Pattern[str]:
    """Return the pattern of the strings of a JSON document, and of a number that is the key."""
    return re.compile(rf"({_JSON_STRING})|(?<![0-9.eE+-]){re.escape(key)}(?![0-9.eE+-])", re.DOTALL)


@lru_cache(maxsize=4)
def _spellings(key: str) -> list[str]:
    """Return the spellings of a key, the longest first."""
    units = key.encode("utf-16-be", "surrogatepass").hex()
    plain = json.dumps(key, ensure_ascii=False)[1:-1]
    escaped = json.dumps(key)[1:-1]
    spellings = {
        key,
        *(quote(key, safe, errors="replace") for safe in ("", "/", _IN_PATH)),
        quote_plus(key, errors="replace"),
        *(text.replace("/", slash) for text in (plain, escaped) for slash in ("/", r"\/")),
        "".join(rf"\u{units[start : start + 4]}" for start in range(0, len(units), 4)),
    }
    spellings |= {_HEX.sub(lambda digits: digits[0].swapcase(), spelling) for spelling in spellings}
    spellings |= {json.dumps(spelling)[1:-1] for spelling in spellings}  # a JSON document in a string of another
    return sorted(spellings, key=len, reverse=True)
