"""Turn values into the clean text of cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgctl.text import clean


def cell(value: Any) -> str:
    """Return one line of clean text: null is empty, numbers are as they came, arrays and objects compact JSON."""
    return clean(text_of(value))


def text_of(value: Any) -> str:
    """Return a value as text, with its line ends: null is empty, arrays and objects are compact JSON."""
    if value is None:
        return ""
    if isinstance(value, str):  # a number of the service is a string of digits, too
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (Mapping, list, tuple)):
        from msgctl.output import jsontext  # rare

        return jsontext.dump(value)
    return str(value)


def reach(value: Any, name: str) -> Any:
    """Return the value at a dotted name, through objects and indexes of arrays; None if there is none.

    A whole name wins over its parts: ``dispatch.id`` may be a name of its own.
    """
    if isinstance(value, Mapping) and name in value:
        return value[name]
    for part in name.split("."):
        if isinstance(value, Mapping):
            value = value.get(part)
        elif isinstance(value, (list, tuple)):
            value = value[int(part)] if part.isdecimal() and len(part) < 8 and int(part) < len(value) else None
        else:
            return None
    return value
