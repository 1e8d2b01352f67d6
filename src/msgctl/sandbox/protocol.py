"""The requests and responses of the sandbox, independent of how they are carried, and reading the parameters of one.

Everything is read strictly. Of the formats, the interface gives only that of dates (``YYYY-MM-DD``); the other rules
are the emulator's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple
from urllib.parse import unquote_plus, urlsplit

from msgctl.operations import Field, Kind, Operation, Place

BASE_PATH = "/api/v1"
"""The path of the interface, below which the operations are."""

UNKNOWN_ERROR = 520
"""The status of a refused operation (interface, "Errors")."""

MAX_BODY = 1024 * 1024
"""The largest request body, in bytes."""

FORM_TYPE = "application/x-www-form-urlencoded"
JSON_TYPE = "application/json"

WHERE = {Place.QUERY: "in the query string", Place.FORM: "in the form body", Place.JSON: "in the JSON body"}


class SandboxRequest(NamedTuple):
    """One request: ``query`` without its question mark, header names in lower case."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = {}
    body: bytes = b""

    def media_type(self) -> str:
        """Return the content type in lower case, without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


class SandboxResponse(NamedTuple):
    """One response, and how to carry it.

    ``refusal`` is the reason if the request was refused; ``faults`` names the faults that it met. It is sent after
    ``delay`` seconds. If ``wait`` is not 0, there is nothing new: ask again until so many seconds have passed.
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = {}
    refusal: Refusal | None = None
    faults: tuple[str, ...] = ()
    delay: float = 0
    wait: float = 0


class Refusal(Exception):  # noqa: N818 - a response of the service, not a failure of the emulator
    """A refused request: the fields ``error`` and ``msg`` of the error record, and the HTTP status.

    ``parameter`` names the parameter that breaks a rule, if it is one parameter.
    """

    def __init__(
        self,
        error: str,
        msg: str,
        *,
        status: int = UNKNOWN_ERROR,
        headers: Mapping[str, str] | None = None,
        parameter: str | None = None,
    ) -> None:
        super().__init__(msg)
        self.error = error
        self.msg = msg
        self.status = status
        self.headers = headers or {}
        self.parameter = parameter

    def response(self) -> SandboxResponse:
        """Return the error record as a response."""
        record = json_response({"error": self.error, "msg": self.msg}, self.status, self.headers)
        return record._replace(refusal=self)


def missing(name: str, where: str) -> Refusal:
    """Return the refusal of a request that lacks a required parameter."""
    return Refusal("MISSING_PARAMETER", f"{name} is required {where}", parameter=name)


def invalid(name: str, rule: str) -> Refusal:
    """Return the refusal of a parameter, or of the part of the request, that breaks a rule."""
    return Refusal("INVALID_PARAMETER", f"{name} {rule}", parameter=name)


def wrong_method(path: str, *allowed: str) -> Refusal:
    """Return the refusal of a method that a path does not support."""
    why = f"{path} supports {' and '.join(allowed)} only"
    return Refusal("METHOD_NOT_ALLOWED", why, status=405, headers={"allow": ", ".join(allowed)})


_KEY = re.compile(r"""(key=|"key"\s*:\s*")[^&\s'"]*""", re.IGNORECASE)


def masked(text: str) -> str:
    """Return a text without the values of its ``key`` parameters, for a log line or a message."""
    return _KEY.sub(r"\1***", text)


def quoted(text: str) -> str:
    """Return a received value for a message: in quotes, in ASCII, and shortened."""
    return json.dumps(text if len(text) <= 40 else text[:40] + "...")


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def json_response(
    document: Mapping[str, object], status: int = 200, headers: Mapping[str, str] | None = None
) -> SandboxResponse:
    """Return a response with a JSON object on one line."""
    body = f"{_ENCODER.encode(document)}\n".encode()
    return SandboxResponse(status, body, {"content-type": JSON_TYPE, **(headers or {})})


# --- reading the parameters of an operation

Pairs = Mapping[str, list[Any]]
"""What was sent in the query or the body: each name with all its values."""

_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_NUMBER = re.compile(r"[0-9]{1,9}")
_BOOLEANS = {"true": True, "false": False}
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_DAY = (re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}"), "a date as YYYY-MM-DD")

CREDENTIALS = {
    place: (
        Field("client", "", "Client (account) identifier.", place, Kind.INTEGER),
        Field("key", "", "Account key.", place),
    )
    for place in (Place.QUERY, Place.FORM)
}
"""The parameters of every operation, by their place."""

FORMATS = {
    "phone": (re.compile(r"\+?[0-9]{5,15}"), "5 to 15 digits with an optional + before them"),
    "country-code": (re.compile("[A-Za-z]{2}"), "a two-letter ISO 3166 country code"),
    "since": _DAY,
    "until": _DAY,
    "alias": (re.compile("[A-Za-z0-9_-]{1,64}"), "1 to 64 letters, digits, dashes and underscores"),
    "domain-name": (re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*"), "a domain name"),
    "url-long": (re.compile(r"https?://[^\s\x00-\x20\x7f-\x9f]+"), "an absolute http or https URL"),
}
"""The formats of parameters by their names: a pattern for the whole value, and the rule in words."""


def read(operation: Operation, request: SandboxRequest, client: int, key: str) -> dict[str, Any]:
    """Return the parameters of an operation's request by their names, checked and converted.

    An optional parameter that was not sent is missing. Raises Refusal for the first that breaks a rule.
    """
    if len(request.body) > MAX_BODY:
        raise invalid("the body", f"must not be larger than {MAX_BODY} bytes")
    place = operation.credentials
    source = _source(place, request)
    values: dict[str, Any] = {}
    for field in (*CREDENTIALS[place], *operation.fields):
        if field.place is not place:
            place = field.place
            source = _source(place, request)
        value = _single(source, field.name)
        if value is not None:
            values[field.name] = _checked(field, value)
        elif field.required:
            raise missing(field.name, WHERE[field.place])
        if field.name == "key" and (values["client"], value) != (client, key):
            raise Refusal("UNAUTHORIZED", "client or key is wrong")
    return values


def _source(place: Place, request: SandboxRequest) -> Pairs:
    if place is Place.QUERY:
        return _pairs("the query string", request.query)
    expected = FORM_TYPE if place is Place.FORM else JSON_TYPE
    if request.media_type() != expected:
        raise invalid("Content-Type", f"must be {expected}")
    try:
        text = request.body.decode()
    except UnicodeDecodeError:
        raise invalid("the body", "must be UTF-8 text") from None
    return _pairs("the body", text) if place is Place.FORM else _json_fields(text)


def _pairs(where: str, text: str) -> Pairs:
    """Read ``name=value&name=value`` (WHATWG URL standard), refusing what a browser would silently repair."""
    if _BROKEN_ESCAPE.search(text):
        raise invalid(where, "has a % without two hexadecimal digits after it")
    pairs = [pair.partition("=")[::2] for pair in text.split("&") if pair]
    if text.isascii() and "%" not in text and "+" not in text:
        return _fields(pairs)
    try:
        text.encode()  # half of a surrogate pair stands for a byte that is not UTF-8
        return _fields(
            (unquote_plus(name, errors="strict"), unquote_plus(value, errors="strict")) for name, value in pairs
        )
    except ValueError:
        raise invalid(where, "must be percent-encoded UTF-8") from None


def _json_fields(text: str) -> Pairs:
    """Read a JSON object (RFC 8259); a repeated field has several values."""
    try:
        document = json.loads(text, object_pairs_hook=_fields)
    except (ValueError, RecursionError):
        raise invalid("the body", "must be JSON") from None
    if not isinstance(document, dict):
        raise invalid("the body", "must be a JSON object")
    return document


def _fields(pairs: Iterable[Sequence[Any]]) -> dict[str, list[Any]]:
    """Return each name with all its values, so that a repeated one is seen."""
    found: dict[str, list[Any]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return found


def _single(source: Pairs, name: str) -> Any:
    """Return the value of a parameter, or None if it was not sent or is empty."""
    values = source.get(name, ())
    if len(values) > 1:
        raise invalid(name, "must not be sent more than once")
    return values[0] if values and values[0] != "" else None


def _checked(field: Field, value: Any) -> object:
    name, kind = field.name, field.kind
    if kind is Kind.ARRAY:
        if not isinstance(value, list):
            raise invalid(name, "must be an array of strings")
        return tuple(_checked(field._replace(kind=Kind.STRING), each) for each in value)
    if not isinstance(value, str):
        raise invalid(name, "must be a string")
    if not value.isascii() and _SURROGATE.search(value):  # JSON can hold half of a surrogate pair
        raise invalid(name, "must be Unicode text")
    if kind is Kind.INTEGER:
        if not _INTEGER.fullmatch(value) or not -(2**63) <= int(value) < 2**63:
            raise invalid(name, "must be a 64-bit integer")
        return int(value)
    if kind is Kind.BOOLEAN:
        if value not in _BOOLEANS:
            raise invalid(name, f"must be true or false, not {quoted(value)}")
        return _BOOLEANS[value]
    if field.choices and value not in field.choices:
        raise invalid(name, f"must be one of {', '.join(field.choices)}, not {quoted(value)}")
    if field.least is not None:
        most = 10**9 if field.most is None else field.most
        if not (_NUMBER.fullmatch(value) and field.least <= int(value) <= most):
            limits = f"{field.least} or more" if field.most is None else f"from {field.least} to {field.most}"
            raise invalid(name, f"must be a whole number {limits}, not {quoted(value)}")
    return tuple(_formatted(name, part) for part in value.split(",")) if field.several else _formatted(name, value)


def _formatted(name: str, value: str) -> str:
    """Return a parameter that has the format of its name, if there is one; a phone number loses its ``+``."""
    pattern, rule = FORMATS.get(name, (None, ""))
    if pattern and not (pattern.fullmatch(value) and _exists(name, value)):
        raise invalid(name, f"must be {rule}, not {quoted(value)}")
    return value.removeprefix("+") if name == "phone" else value


def _exists(name: str, value: str) -> bool:
    """Tell whether a day is in the calendar, and a URL has a host and a possible port."""
    try:
        if name in ("since", "until"):
            date.fromisoformat(value)
        if name == "url-long":
            parts = urlsplit(value)
            return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
    return True
