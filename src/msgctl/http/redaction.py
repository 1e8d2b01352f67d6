"""Remove the account key from responses before msgctl shows or stores them.

Each character of the key is recognised as it is, percent-encoded or JSON-escaped, in any mixture: the libraries of
services escape different characters. Other encodings, such as base64 or HTML entities, are outside the threat model.
"""

from __future__ import annotations

import re
from functools import lru_cache

from msgctl.config.profiles import MIN_KEY
from msgctl.text import MASK

_ALONE = r"(?:(?<![0-9.])|(?<=\\u[0-9A-Fa-f]{4})|(?<=%[0-9A-Fa-f]{2}))"
"""Pattern before a key of digits: in a longer number, such as a phone, the same digits are not the key."""


def redact(text: str, key: str, *, is_cut: bool = False) -> str:
    """Return a text without the key; if it ``is_cut``, also without its end, which may be a beginning of the key."""
    if len(key) < MIN_KEY:
        # Only as the parameter ``key`` in a query, a form or JSON; its value is a group.
        return re.sub(
            r"""(?is)(?<![a-z0-9])key(?:=([^&\s"'<>;]*)|"\s*+:\s*+(?:"((?:[^"\\]|\\.)*+)"|([0-9]+)))""",
            lambda parameter: _without_key(parameter, key),
            text,
        )
    redacted = _pattern(key).sub(MASK, text)
    if is_cut:
        return redacted[: -_longest(key)]
    return redacted


def redact_body(body: bytes, key: str, *, is_cut: bool = False) -> bytes:
    """Return the body of a response without the key. A body without the key is unchanged, unless it ``is_cut``."""
    text = body.decode(errors="surrogateescape")
    redacted = redact(text, key, is_cut=is_cut)
    return body if redacted == text else redacted.encode(errors="surrogateescape")


def _without_key(parameter: re.Match[str], key: str) -> str:
    """Return a parameter; a value that is the key is masked."""
    group = parameter.lastindex or 1
    if not _pattern(key).fullmatch(parameter[group]):
        return parameter[0]
    start, end = (position - parameter.start() for position in parameter.span(group))
    mask = f'"{MASK}"' if group == 3 else MASK
    return parameter[0][:start] + mask + parameter[0][end:]


_BACKSLASH = r"(?:\\|%5[cC]|u005[cC])"


@lru_cache(maxsize=4)
def _pattern(key: str) -> re.Pattern[str]:
    """Return the pattern of a key.

    It takes linear time, since possessive quantifiers never give a backslash back. Any number of backslashes counts as
    one, because JSON in a string of JSON has several. Backslashes before the key are removed, too: a remaining
    backslash would escape the mask.
    """
    pattern = r"(?<!\\)"
    if key.startswith("\\"):
        pattern += r"(?<!%5[cC])(?<!u005[cC])"
    for backslashes, char in re.findall(r"(\\*)([^\\])", key, re.DOTALL):
        pattern += f"{_BACKSLASH}++" if backslashes else r"\\*+"
        pattern += _character(char)
    if at_end := len(key) - len(key.rstrip("\\")):
        # No more backslashes than necessary: the next one may escape a quotation mark.
        pattern += rf"(?:\\{{1,2}}u005[cC]|\\{{4}}|\\{{1,2}}|%5[cC]){{{at_end}}}"
    if key.isdecimal():
        pattern = rf"{_ALONE}{pattern}(?![0-9])"
    return re.compile(pattern)


def _character(char: str) -> str:
    """Return the pattern of a character: itself, percent-encoded (RFC 3986), or JSON-escaped, without backslashes."""
    percent = "".join(f"%{byte:02x}" for byte in char.encode())
    units = char.encode("utf-16-be").hex()
    escaped = r"\\*+".join(f"u{units[start : start + 4]}" for start in range(0, len(units), 4))
    spellings = [f"%(?i:{percent[1:]})", f"u(?i:{escaped[1:]})", re.escape(char)]  # the longest first
    if char == " ":
        spellings.append(r"\+")
    return f"(?:{'|'.join(spellings)})"


def _longest(key: str) -> int:
    """Return the length of the key with all its characters escaped, as in JSON within a string of JSON."""
    return sum(max(3 * len(char.encode()), 7 * len(char.encode("utf-16-be")) // 2) for char in key)
