"""The requests and responses of the sandbox, without their transport, and the parser of parameters.

All input is checked strictly. The API specifies only the format of dates (``YYYY-MM-DD``); the other rules are the
emulator's own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Set
from contextlib import suppress
from datetime import date
from email.utils import formatdate
from math import nan
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from msgctl.operations import Field, Kind, Place
from msgctl.text import without_parameters

BASE_PATH = "/api/v1"
"""The prefix of the paths of the operations."""
OWN_PATH = "/sandbox"
"""The path of the sandbox's own endpoints."""
VISITS = "/u/"
"""The prefix of the paths of short URLs."""
PAGE = "/"
"""The path of the inbox page."""
FAULT_KINDS = ("520", "breakdown", "503", "429", "html", "delay=", "drop", "reject", "truncate", "garbage")
"""The kinds of fault, with which a SPEC begins."""
FAULT_SYNTAX = (
    f"KIND[:PROBABILITY][:PATH] or KIND:next=N[:PATH]. Kinds: {', '.join(FAULT_KINDS).replace('=', '=SECONDS')}."
)
CLOSING = frozenset({"drop", "reject", "garbage", "truncate"})
"""Faults without a whole response, after which the connection is closed."""
SECONDS_BETWEEN_CHECKS = 0.05
"""Seconds between two checks during a request that waits."""

UNKNOWN_ERROR = 520
"""The status of a refused operation (API, "Errors")."""

MAX_INTEGER = 10**9 - 1
"""The largest value of a number for which the API specifies no limit."""

MAX_BODY = 1024 * 1024
"""The largest request body, in bytes."""

MAX_CLICKS = 100_000
"""Maximum visits of one `sandbox click`."""
MAX_INBOX_WAIT = 3600
"""Maximum seconds that a request to the inbox waits."""

MAX_FIELDS = 1000
"""Maximum parameters in a query or a form; more would delay other clients."""

FORM_TYPE = "application/x-www-form-urlencoded"
JSON_TYPE = "application/json"

JsonObject = dict[str, Any]
"""A JSON object that the sandbox sends."""

WHERE = {Place.QUERY: "in the query string", Place.FORM: "in the form body", Place.JSON: "in the body"}


class SandboxRequest(NamedTuple):
    """One request. ``query`` has no question mark, and the header names are in lower case."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = {}
    body: bytes = b""


class SandboxResponse(NamedTuple):
    """One response, and how to send it.

    ``refusal`` is the reason if the request was refused; ``faults`` lists the faults that were applied. The response is
    sent after ``delay`` seconds. If ``wait`` is not 0, there are no new messages yet: repeat the request for up to this
    many seconds.
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = {}
    refusal: Reason | None = None
    faults: tuple[str, ...] = ()
    delay: float = 0
    wait: float = 0

    @property
    def closing(self) -> Set[str]:
        """The faults that close the connection without a whole response."""
        return CLOSING & {*self.faults}

    @property
    def all_headers(self) -> list[tuple[str, str]]:
        """The headers, including those that every response has."""
        values = {"server": "msgctl-sandbox", "date": formatdate(usegmt=True), **self.headers}
        values["x-content-type-options"] = "nosniff"
        values["content-length"] = str(len(self.body))
        return [(name.title(), value) for name, value in values.items()]


class Reason(NamedTuple):
    """The reason for a refusal: the fields of the error record, and the invalid parameter, if any."""

    error: str
    msg: str
    parameter: str | None = None


class Refusal(Exception):  # noqa: N818 - a response of the service, not a failure of the emulator
    """A refused request: its reason, and the HTTP status. The reason has words that msgctl recognises as a failure."""

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
        self.reason = Reason(error, msg, parameter)
        self.status = status
        self.headers = headers or {}

    def response(self) -> SandboxResponse:
        """Return the error record as a response.

        The response does not refer to this exception: the traceback would keep the whole request in memory.
        """
        record = json_response({"error": self.reason.error, "msg": self.reason.msg}, self.status, self.headers)
        return record._replace(refusal=self.reason)


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


def without_keys(text: str) -> str:
    """Return a text without keys. A program with the variables of a real account may send a real one."""
    return without_parameters(text, "key")


def quoted(text: str) -> str:
    """Return a received value for a message: in quotes, in ASCII, and shortened."""
    shown = text if len(text) <= 40 else f"{text[:40]}..."
    return json.dumps(shown)


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def json_response(document: object, status: int = 200, headers: Mapping[str, str] | None = None) -> SandboxResponse:
    """Return a response with a JSON document on one line."""
    body = f"{_ENCODER.encode(document)}\n".encode()
    return SandboxResponse(status, body, {"content-type": JSON_TYPE, **(headers or {})})


# --- reading the parameters of an operation or endpoint

_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_INTEGER = re.compile(r"-?[0-9]{1,19}")
_SURROGATE = re.compile("[\ud800-\udfff]")
_BOOLEANS = {"true": True, "false": False}
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"

CREDENTIALS = {
    place: (
        Field("client", "", "Client (account) identifier.", place, Kind.INTEGER, least=-(2**63), most=2**63 - 1),
        Field("key", "", "Account key.", place),
    )
    for place in (Place.QUERY, Place.FORM)
}
"""The parameters of every operation, by their place."""


class Pattern(NamedTuple):
    """The format of a parameter: a pattern for the whole value, the rule in words, and a check that raises
    ValueError.
    """

    pattern: str
    rule: str
    check: Callable[[str], object] = str

    def fits(self, value: str) -> bool:
        try:
            self.check(value)
        except ValueError:
            return False
        return re.fullmatch(self.pattern, value) is not None


_DAY = Pattern("[0-9]{4}-[0-9]{2}-[0-9]{2}", "a date as YYYY-MM-DD", date.fromisoformat)
FORMATS = {
    "phone": Pattern(r"\+?[0-9]{5,15}", "5 to 15 digits with an optional + before them"),
    "country-code": Pattern("[A-Za-z]{2}", "a two-letter ISO 3166 country code"),
    "since": _DAY,
    "until": _DAY,
    "alias": Pattern("[A-Za-z0-9_-]{1,64}", "1 to 64 letters, digits, dashes and underscores"),
    "domain-name": Pattern(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*", "a domain name"),
    "url-long": Pattern(
        r"https?://[^/?#:\s\x00-\x20\x7f-\x9f][^\s\x00-\x20\x7f-\x9f]*",
        "an absolute http or https URL",
        lambda url: urlsplit(url).port,
    ),
}
"""The formats of the API's parameters by their names. They do not apply to the sandbox's own endpoints."""


def parameters_of(fields: Iterable[Field], request: SandboxRequest) -> dict[str, Any]:
    """Return the parameters of a request by their names, checked and converted.

    An optional parameter that is empty or was not sent is omitted. Raises Refusal for the first parameter that breaks a
    rule.
    """
    if len(request.body) > MAX_BODY:
        raise invalid("the body", f"must not be larger than {MAX_BODY} bytes")
    place: Place | None = None
    source: dict[str, list[Any]] = {}
    values: dict[str, Any] = {}
    for field in fields:
        if field.place is not place:
            place, source = field.place, sent_parameters(field.place, request)
        sent = source.get(field.name, ())
        if len(sent) > 1:
            raise invalid(field.name, "must not be sent more than once")
        if sent and sent[0] not in ("", None):
            values[field.name] = checked(field, sent[0])
        elif field.required:
            raise missing(field.name, WHERE[field.place])
    return values


def sent_parameters(place: Place, request: SandboxRequest) -> dict[str, list[Any]]:
    """Return the names in the query or body, each with all its values, to detect repeated parameters.

    Malformed input that a browser would silently repair is refused. Raises Refusal.
    """
    expected = FORM_TYPE if place is Place.FORM else JSON_TYPE
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if place is not Place.QUERY and media_type != expected:
        raise invalid("Content-Type", f"must be {expected}")
    try:
        text = request.query if place is Place.QUERY else request.body.decode()
        if place is Place.JSON:
            document = json.loads(text, object_pairs_hook=_fields)
        elif _BROKEN_ESCAPE.search(text):
            document = None
        else:
            document = parse_qs(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict):
        return document
    if place is Place.JSON:
        raise invalid("the body", "must be an object")
    where = "the query string" if place is Place.QUERY else "the body"
    raise invalid(where, "must be percent-escaped UTF-8")


def _fields(pairs: Iterable[tuple[str, Any]]) -> dict[str, list[Any]]:
    fields: dict[str, list[Any]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value)
    return fields


def checked(field: Field, value: Any) -> Any:
    """Return the value of a parameter, converted to its type. Raises Refusal if it breaks a rule."""
    name, kind = field.name, field.kind
    if kind is Kind.ARRAY:
        if not isinstance(value, list) or not all(isinstance(element, str) for element in value):
            raise invalid(name, "must be an array with only strings")
        return [checked(field._replace(kind=Kind.STRING), element) for element in value]
    value = _text(field, value)
    if field.least is not None:
        return _number(field, value, field.least)
    if kind is Kind.BOOLEAN:
        if value not in _BOOLEANS:
            raise invalid(name, f"must be true or false, not {quoted(value)}")
        return _BOOLEANS[value]
    if field.choices and value not in field.choices:
        raise invalid(name, f"must be {', '.join(field.choices[:-1])} or {field.choices[-1]}, not {quoted(value)}")
    parts = value.split(",") if field.several else [value]
    if field.typed and (form := FORMATS.get(name)):
        for part in parts:
            if not form.fits(part):
                raise invalid(name, f"must be {form.rule}, not {quoted(part)}")
        if name == "phone":
            parts = [part.removeprefix("+") for part in parts]
    return parts if field.several else parts[0]


def _text(field: Field, value: Any) -> str:
    """Return a parameter as text; JSON may contain a number or a boolean instead. Raises Refusal."""
    if (field.least is not None and type(value) in (int, float)) or (field.choices and type(value) in (int, bool)):
        return str(value).lower()  # as in JSON
    if not isinstance(value, str):
        raise invalid(field.name, "must be a string")
    if not value.isascii() and _SURROGATE.search(value):  # JSON can contain half of a surrogate pair
        raise invalid(field.name, "must be Unicode text")
    return value


def _number(field: Field, value: str, least: int) -> float:
    """Return the number in a parameter. Raises Refusal if it is out of range."""
    number = nan
    with suppress(ValueError):
        if field.kind is Kind.NUMBER:
            number = float(value)
        elif _INTEGER.fullmatch(value):
            number = int(value)
    most = MAX_INTEGER if field.most is None else field.most
    if not least <= number <= most:
        what = "a number" if field.kind is Kind.NUMBER else "a whole number"
        raise invalid(field.name, f"must be {what} from {least} to {most}, not {quoted(value)}")
    return number
