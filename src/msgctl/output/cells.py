"""From values to the clean text of a cell, and how many columns of a terminal that text takes."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from msgctl.output import jsontext
from msgctl.text import clean

_ZERO_WIDTH = {"Mn", "Me", "Cf"}


def cell(value: Any) -> str:
    """One line of clean text: null is empty, numbers are as they came, arrays and objects compact JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    return jsontext.escape(jsontext.dump(value))


def reach(value: Any, name: str) -> Any:
    """What a dotted name leads to, through members of objects and indexes of arrays; None where it leads nowhere."""
    rest: str | None = name
    while rest is not None:
        if isinstance(value, Mapping) and rest in value:  # a name may hold dots itself
            return value[rest]
        part, dot, after = rest.partition(".")
        rest = after if dot else None
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, (list, tuple)):
            value = _element(value, part)
        else:
            return None
    return value


def width_of(text: str) -> int:
    """Columns that clean text takes on a terminal (Unicode annex 11: wide characters take two, marks none)."""
    return len(text) if text.isascii() else sum(map(_char_width, text))


def fold(text: str, width: int) -> list[str]:
    """Text in lines of at most ``width`` columns, broken at spaces where there are any, else anywhere.

    Only the spaces at a break are left out. Linear in time.
    """
    lines: list[str] = []
    start = gap = used = 0
    for index, char in enumerate(text):
        size = _char_width(char)
        if char == " ":
            gap = index + 1
        while used + size > width and index > start:
            end = gap if gap > start else index
            lines.append(text[start:end].rstrip(" "))
            start, used = end, width_of(text[end:index])
        if start <= index:
            used += size
    return [line for line in (*lines, text[start:]) if line] or [""]


def shorten_middle(text: str, width: int, mark: str) -> str:
    """Text of at most ``width`` columns: beginning and end stay, ``mark`` stands for what is left out."""
    if width_of(text) <= width:
        return text
    room = max(width - len(mark), 0)
    return _take(text, room - room // 2) + mark + _take(text[::-1], room // 2)[::-1]


def _element(values: list[Any] | tuple[Any, ...], part: str) -> Any:
    if not (part.isascii() and part.isdecimal() and len(part) < 10):
        return None
    return values[int(part)] if int(part) < len(values) else None


def _char_width(char: str) -> int:
    if " " <= char <= "~":
        return 1
    if unicodedata.category(char) in _ZERO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _take(text: str, width: int) -> str:
    used = 0
    for index, char in enumerate(text):
        used += _char_width(char)
        if used > width:
            return text[:index]
    return text
