"""Reading and checking the parameters of a request against the fields of its operation.

Everything is read strictly. Of the formats, the interface gives only that of dates (``YYYY-MM-DD``); the other rules
are the emulator's.
"""

from __future__ import annotations

import hmac
import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import Any, NoReturn
from urllib.parse import unquote_to_bytes, urlsplit

from msgctl.operations import Field, Kind, Operation, Place
from msgctl.sandbox.protocol import Refusal, SandboxRequest, invalid, missing, quoted

Pairs = Mapping[str, list[Any]]
"""What was sent in the query or the body: each name with all its values."""

MAX_BODY = 1024 * 1024
"""The largest request body, in bytes."""

FORM_TYPE = "application/x-www-form-urlencoded"
JSON_TYPE = "application/json"

WHERE = {Place.QUERY: "in the query string", Place.FORM: "in the form body", Place.JSON: "in the JSON body"}

_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_CLIENT = re.compile(r"-?[0-9]{1,19}")
_NUMBER = re.compile(r"[0-9]{1,9}")
_BOOLEANS = {"true": True, "false": False}


def read(operation: Operation, request: SandboxRequest, client: int, key: str) -> dict[str, Any]:
    """Return the parameters of an operation's request by their names, checked and converted.

    An optional parameter that was not sent is missing. Raises Refusal for the first that breaks a rule.
    """
    if len(request.body) > MAX_BODY:
        raise invalid("the body", f"must not be larger than {MAX_BODY} bytes")
    sources = {operation.credentials: _source(operation.credentials, request)}
    _check_credentials(sources[operation.credentials], operation.credentials, client, key)
    values: dict[str, Any] = {}
    for field in operation.fields:
        if field.place not in sources:
            sources[field.place] = _source(field.place, request)
        value = _single(sources[field.place], field.name)
        if value is not None:
            values[field.name] = _checked(field, value)
        elif field.required:
            raise missing(field.name, WHERE[field.place])
    return values


def _check_credentials(source: Pairs, place: Place, client: int, key: str) -> None:
    sent_client = _single(source, "client")
    if sent_client is None:
        raise missing("client", WHERE[place])
    if not _CLIENT.fullmatch(sent_client) or not -(2**63) <= int(sent_client) < 2**63:
        raise invalid("client", "must be a 64-bit integer")
    sent_key = _single(source, "key")
    if sent_key is None:
        raise missing("key", WHERE[place])
    if int(sent_client) != client or not hmac.compare_digest(sent_key.encode(), key.encode()):
        raise Refusal("UNAUTHORIZED", "client or key is wrong")


def _source(place: Place, request: SandboxRequest) -> Pairs:
    if place is Place.QUERY:
        return _pairs("the query string", request.query)
    _check_type(request, FORM_TYPE if place is Place.FORM else JSON_TYPE)
    try:
        text = request.body.decode()
    except UnicodeDecodeError:
        raise invalid("the body", "must be UTF-8 text") from None
    return _pairs("the body", text) if place is Place.FORM else _json_fields(text)


def _check_type(request: SandboxRequest, expected: str) -> None:
    if request.media_type() != expected:
        raise invalid("Content-Type", f"must be {expected}")
    for parameter in request.headers["content-type"].lower().split(";")[1:]:
        name, _, charset = parameter.partition("=")
        if name.strip() == "charset" and charset.strip(' "') not in {"utf-8", "utf8"}:
            raise invalid("Content-Type", "must have no charset other than utf-8")


def _pairs(where: str, text: str) -> Pairs:
    """Read ``name=value&name=value`` (WHATWG URL standard), refusing what a browser would silently repair."""
    pairs = []
    for pair in filter(None, text.split("&")):
        encoded, _, value = pair.partition("=")
        name = _unquoted(where, encoded)
        pairs.append((name, _unquoted(name[:40] or where, value)))
    return _fields(pairs)


def _unquoted(what: str, text: str) -> str:
    """Decode percent-encoding; ``what`` is named in a refusal."""
    if text.isascii() and "%" not in text and "+" not in text:
        return text
    if _BROKEN_ESCAPE.search(text):
        raise invalid(what, "has a % without two hexadecimal digits after it")
    try:
        return unquote_to_bytes(text.replace("+", " ")).decode()
    except UnicodeError:
        raise invalid(what, "must be percent-encoded UTF-8") from None


def _json_fields(text: str) -> Pairs:
    """Read a JSON object (RFC 8259); a repeated field has several values."""
    try:
        # No parameter is a number, and converting a very long one to an integer fails: read them all as floats.
        document = json.loads(text, object_pairs_hook=_fields, parse_int=float, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        raise invalid("the body", "must be JSON") from None
    if not isinstance(document, dict):
        raise invalid("the body", "must be a JSON object")
    return document


def _fields(pairs: Iterable[tuple[str, Any]]) -> dict[str, list[Any]]:
    """Return each name with all its values, so that a repeated one is seen."""
    found: dict[str, list[Any]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise invalid("the body", f"must be JSON, which has no {name}")


def _single(source: Pairs, name: str) -> Any:
    """Return the value of a parameter, or None if it was not sent or is empty."""
    values = source.get(name, [])
    if len(values) > 1:
        raise invalid(name, "must not be sent more than once")
    return values[0] if values and values[0] != "" else None


def _checked(field: Field, value: object) -> object:
    if field.kind is Kind.ARRAY:
        return _strings(field.name, value)
    text = _string(field.name, value)
    if field.kind is Kind.BOOLEAN:
        if text not in _BOOLEANS:
            raise invalid(field.name, f"must be true or false, not {quoted(text)}")
        return _BOOLEANS[text]
    if field.choices and text not in field.choices:
        raise invalid(field.name, f"must be one of {', '.join(field.choices)}, not {quoted(text)}")
    if field.least is not None or field.most is not None:
        _check_number(field, text)
    if field.several:
        return tuple(_formatted(field.name, part) for part in text.split(","))
    return _formatted(field.name, text)


def _string(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise invalid(name, "must be a string")
    try:
        value.encode()
    except UnicodeEncodeError:  # JSON can hold half of a surrogate pair
        raise invalid(name, "must be Unicode text") from None
    return value


def _strings(name: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(element, str) for element in value):
        raise invalid(name, "must be an array of strings")
    return tuple(_string(name, element) for element in value)


def _check_number(field: Field, text: str) -> None:
    least = field.least or 0
    if not _NUMBER.fullmatch(text) or int(text) < least or (field.most is not None and int(text) > field.most):
        limits = f"{least} or more" if field.most is None else f"from {least} to {field.most}"
        raise invalid(field.name, f"must be a whole number {limits}, not {quoted(text)}")


# --- formats of single parameters

_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_NOT_IN_URLS = re.compile(r"[\s\x00-\x20\x7f-\x9f]")


def _is_day(value: str) -> bool:
    try:
        return bool(_DAY.fullmatch(value) and date.fromisoformat(value))
    except ValueError:
        return False


def _is_url(value: str) -> bool:
    try:
        parts = urlsplit(value)
        # Reading the port checks it.
        is_absolute = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return is_absolute and not _NOT_IN_URLS.search(value)


_FORMATS: Mapping[str, tuple[Callable[[str], object], str]] = {
    "phone": (re.compile(r"\+?[0-9]{5,15}").fullmatch, "5 to 15 digits with an optional + before them"),
    "country-code": (re.compile(r"[A-Za-z]{2}").fullmatch, "a two-letter ISO 3166 country code"),
    "since": (_is_day, "a date as YYYY-MM-DD"),
    "until": (_is_day, "a date as YYYY-MM-DD"),
    "alias": (re.compile(r"[A-Za-z0-9_-]{1,64}").fullmatch, "1 to 64 letters, digits, dashes and underscores"),
    "domain-name": (re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*").fullmatch, "a domain name"),
    "url-long": (_is_url, "an absolute http or https URL"),
}


def _formatted(name: str, value: str) -> str:
    """Return a parameter that has the format of its name, if there is one; a phone number loses its ``+``."""
    is_valid, rule = _FORMATS.get(name, (None, ""))
    if is_valid and not is_valid(value):
        raise invalid(name, f"must be {rule}, not {quoted(value)}")
    return value.removeprefix("+") if name == "phone" else value
