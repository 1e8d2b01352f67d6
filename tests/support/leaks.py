"""Find the key of the tests in texts and files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import quote, quote_plus

from conftest import KEY

TRACES = ("k3y", "awkward")
"""Pieces of conftest.KEY that no escaping changes: every spelling of the key contains these."""


def _in_lower_case(quoted: str) -> str:
    return re.sub("%[0-9A-F]{2}", lambda match: match[0].lower(), quoted)


def spellings_of(key: str) -> dict[str, str]:
    """Return a key in each spelling that is redacted: as it is, percent-encoded, form-encoded and JSON-escaped."""
    in_json = json.dumps(key)[1:-1]
    return {
        "raw": key,
        "percent-encoded": quote(key),
        "percent-encoded whole": quote(key, safe=""),
        "percent-encoded in lower-case hex": _in_lower_case(quote(key, safe="")),
        "as in a form": quote_plus(key),
        "as in a form, in lower-case hex": _in_lower_case(quote_plus(key)),
        "in JSON": in_json,
        "in JSON with escaped slashes": in_json.replace("/", "\\/"),
        "in JSON beyond ASCII": json.dumps(key, ensure_ascii=False)[1:-1],
    }


_NEEDLES = tuple({each.encode() for each in (*TRACES, *spellings_of(KEY).values())})


def shows_key(text: str | bytes) -> bool:
    """Return whether a text contains the key of the tests in any spelling, or the part that no escaping changes."""
    content = text if isinstance(text, bytes) else text.encode("utf-8", "surrogateescape")
    return any(needle in content for needle in _NEEDLES)


def files_with_key(folder: Path) -> set[str]:
    """Return the names of files in a directory that contain the key in their content or name."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {path.name for path in files if shows_key(path.read_bytes()) or shows_key(path.name)}
