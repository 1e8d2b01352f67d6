"""The places of a call where parameters travel: query string, form body and JSON body, read without forgiveness.

A source is what was found at a place: for each name, all values that it was sent with.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn
from urllib.parse import unquote_to_bytes

from msgctl.operations import Place
from msgctl.sandbox.wire import Call, Refusal, invalid

Source = Mapping[str, list[Any]]

MOST_BODY = 1024 * 1024
"""The largest request body, in bytes."""

FORM_TYPE = "application/x-www-form-urlencoded"
JSON_TYPE = "application/json"

_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def check_size(call: Call) -> None:
    """Raise Refusal for a body that is too large."""
    if len(call.body) > MOST_BODY:
        raise invalid("the body", f"must not be larger than {MOST_BODY} bytes")


def source(place: Place, call: Call) -> Source:
    """What a call has at a place. Raises Refusal where that cannot be read."""
    if place is Place.QUERY:
        return _pairs("the query string", call.query)
    if place is Place.FORM:
        _check_type(call, FORM_TYPE)
        return _pairs("the body", _text(call.body))
    _check_type(call, JSON_TYPE)
    return _members(_text(call.body))


def _check_type(call: Call, expected: str) -> None:
    kind, _, parameters = call.headers.get("content-type", "").partition(";")
    if kind.strip().lower() != expected:
        raise invalid("Content-Type", f"must be {expected}")
    for parameter in parameters.lower().split(";"):
        name, _, charset = parameter.partition("=")
        if name.strip() == "charset" and charset.strip(' "') not in {"utf-8", "utf8"}:
            raise invalid("Content-Type", "must have no charset other than utf-8")


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError:
        raise invalid("the body", "must be UTF-8 text") from None


def _pairs(where: str, text: str) -> Source:
    """Read ``name=value&name=value`` as the WHATWG URL standard has it, refusing what that would mend."""
    found: dict[str, list[str]] = {}
    for pair in filter(None, text.split("&")):
        spelled, _, value = pair.partition("=")
        name = _unquoted(where, spelled)
        found.setdefault(name, []).append(_unquoted(name[:40] or where, value))
    return found


def _unquoted(what: str, text: str) -> str:
    """A name or a value without its percent signs; ``what`` is what a refusal names."""
    if _BROKEN_ESCAPE.search(text):
        raise invalid(what, "has a % without two hexadecimal digits after it")
    try:
        return unquote_to_bytes(text.replace("+", " ")).decode()
    except UnicodeError:
        raise invalid(what, "must be UTF-8 text behind its percent signs") from None


def _members(text: str) -> Source:
    """Read a JSON object (RFC 8259); a member that stands there twice has two values."""
    try:
        # An object becomes the list of its pairs, so that a repeated member is seen. The digits of a number do not
        # matter, since no parameter is one, and reading very many of them as an integer fails.
        document = json.loads(text, object_pairs_hook=_Pairs, parse_int=float, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise invalid("the body", "must be JSON") from None
    if not isinstance(document, _Pairs):
        raise invalid("the body", "must be a JSON object")
    found: dict[str, list[Any]] = {}
    for name, value in document:
        found.setdefault(name, []).append(value)
    return found


class _Pairs(list[tuple[str, Any]]):
    """The members of a JSON object, in their order."""


def _refuse_constant(name: str) -> NoReturn:
    raise Refusal("INVALID_PARAMETER", f"the body must be JSON, which has no {name}")
