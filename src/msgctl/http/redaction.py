"""Remove the account key from responses before msgctl shows or stores them.

Each character of the key may appear as itself, as ``%XX`` or as ``\\uXXXX``, in any mixture; a space may also appear as
``+``. JSON may write backslashes before ``"``, ``/`` and a backslash. Other encodings (base64, HTML entities, double
encodings) are outside the threat model.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache

from msgctl.config.profiles import MIN_KEY

MASK = "***"
MIN_CUT = 3
"""The shortest beginning of the key that is redacted at the end of a truncated text."""

_CHUNK = 32
"""The beginning of a longer key that is redacted even without the rest, in characters. Otherwise, a response that
repeats it could take seconds for a key like "aaa…ab"."""
_MAX_OPTIONAL = 100
"""Maximum depth of nested groups in a pattern, because Python's pattern parser is recursive."""
_MAX_SPELLING = 14
"""Length of the longest spelling of a character: a surrogate pair as two escapes, each with a second backslash."""
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_JSON_STRING = r'"(?:[^"\\]|\\.)*+"'
_ALONE = r"(?:(?<![0-9.])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2}))"
"""Pattern before a key of digits, since the same digits in a phone number are not the key."""
_CUT_ESCAPE = r"(?:[%\\][%\\u0-9A-Fa-f]{0,12}|[\udc80-\udcff]{1,3})?"
"""An incomplete escape or UTF-8 character at the end of a text."""
_PARAMETER = re.compile(
    r"""(?i)(?<![a-z0-9])key(?:=([^&\s"'<>;]*)|"\s*+:\s*+(?:"((?:[^"\\]|\\.)*+)"|([0-9]+)))""", re.DOTALL
)
"""The parameter ``key`` in a query, a form or JSON; its value is a group."""


def redact(text: str, key: str, *, is_cut: bool = False) -> str:
    """Return a text without the key; ``is_cut`` also removes the beginning of the key at its end."""
    if len(key) < MIN_KEY:
        return _PARAMETER.sub(lambda found: _without_key(found, key), text)
    if is_cut:
        start = max(0, len(text) - _MAX_SPELLING * (len(key) + 1))
        if found := _beginning(key).search(text, start):
            text = text[: found.start()] + MASK
    return _pattern(key).sub(MASK, text)


def redact_body(body: bytes, key: str, *, is_cut: bool = False) -> bytes:
    """Return the body of a response without the key; JSON stays valid. A body without the key is unchanged."""
    text = body.decode(errors="surrogateescape")
    redacted = redact(text, key, is_cut=is_cut)
    if redacted == text:
        return body
    if len(key) >= MIN_KEY and _is_json(text):
        # A key that contains quotes must not match across two strings. A number becomes a string.
        redacted = _json_pattern(key).sub(lambda token: _redacted_token(token, key), text)
    return redacted.encode(errors="surrogateescape")


def _is_json(text: str) -> bool:
    try:
        json.loads(text.removeprefix("\ufeff"), parse_int=bool, parse_float=bool)
    except (ValueError, RecursionError):
        return False
    return True


def _redacted_token(token: re.Match[str], key: str) -> str:
    """Return a string of a JSON document without the key, or the mask for a number that is the key."""
    return f'"{_pattern(key).sub(MASK, token[1][1:-1])}"' if token[1] else f'"{MASK}"'


def _without_key(parameter: re.Match[str], key: str) -> str:
    """Return a parameter; a value that is the key is masked."""
    group = parameter.lastindex or 1
    if not re.fullmatch(_spelled(key), parameter[group]):
        return parameter[0]
    start, end = (each - parameter.start() for each in parameter.span(group))
    mask = f'"{MASK}"' if group == 3 else MASK
    return parameter[0][:start] + mask + parameter[0][end:]


# --- patterns


@lru_cache(maxsize=16)
def _pattern(key: str) -> re.Pattern[str]:
    if key.isdecimal():
        return re.compile(rf"{_ALONE}{_spelled(key)}(?![0-9])")
    chunks = [_spelled(key[start : start + _CHUNK]) for start in range(0, len(key), _CHUNK)]
    return re.compile("(?:".join(chunks) + ")?" * (len(chunks) - 1))


@lru_cache(maxsize=4)
def _json_pattern(key: str) -> re.Pattern[str]:
    """Return the pattern of the strings of a JSON document, and of a number that is the key."""
    number = rf"|(?<![0-9.eE+-]){re.escape(key)}(?![0-9.eE+-])" if _NUMBER.fullmatch(key) else ""
    return re.compile(f"({_JSON_STRING}){number}", re.DOTALL)


@lru_cache(maxsize=4)
def _beginning(key: str) -> re.Pattern[str]:
    """Return the pattern of the beginning of a key at the end of a text."""
    first, rest, more = key[:MIN_CUT], key[MIN_CUT:_MAX_OPTIONAL], key[_MAX_OPTIONAL:]
    optional = "".join(f"(?:{_spelled(char)}" for char in rest) + "(?s:.*)" * bool(more) + ")?" * len(rest)
    return re.compile(rf"{_ALONE if key.isdecimal() else ''}{_spelled(first)}{optional}{_CUT_ESCAPE}\Z")


def _spelled(text: str) -> str:
    """Return the pattern of a text, with each character in any of its spellings."""
    return "".join(_spelled_run(run[0], len(run)) for run in re.findall(r"\\+|[^\\]", text))


@lru_cache(maxsize=128)
def _spelled_run(char: str, number: int) -> str:
    """Return the pattern of a repeated character; only backslashes occur more than once."""
    if number == 1:
        return f"(?:{'|'.join(_spellings(char))})"
    # JSON doubles all of them or none. If each could be doubled, matching would take exponential time.
    ways = ["|".join([*_spellings(char)[:2], r"\\" * times]) for times in (4, 2, 1)]
    return f"(?:{'|'.join(f'(?:{way}){{{number}}}' for way in ways)})"


@lru_cache(maxsize=128)
def _spellings(char: str) -> list[str]:
    units = char.encode("utf-16-be", "surrogatepass").hex()
    escaped = "".join(rf"\\{{1,2}}u{_any_case(units[at : at + 4])}" for at in range(0, len(units), 4))
    percent = "".join(f"%{_any_case(f'{byte:02x}')}" for byte in char.encode("utf-8", "surrogatepass"))
    found = [escaped, percent, re.escape(char)]
    if char in '"/\\':  # JSON, possibly inside a JSON string
        found = [escaped, percent, r"\\{4}|\\{2}|\\" if char == "\\" else rf"\\{{0,3}}{char}"]
    if char in " +":
        found += ["%20", "%2[bB]", r"\+", " "]
    if "\xa0" <= char <= "\xff":  # also one byte in Latin-1
        found += [f"%{_any_case(f'{ord(char):02x}')}", re.escape(chr(0xDC00 + ord(char)))]
    return found


def _any_case(digits: str) -> str:
    return "".join(f"[{each}{each.upper()}]" for each in digits)
