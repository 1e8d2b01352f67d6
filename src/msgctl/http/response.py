"""What a response of the service means: the record that was asked for, read without losing a digit, or an error."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeVar
from urllib.parse import urljoin, urlsplit

from msgctl import operations
from msgctl.config.base_url import is_loopback
from msgctl.errors import (
    RETRYABLE_STATUSES,
    MsgctlError,
    OutcomeUnknownError,
    RefusedError,
    ServiceError,
    UnreadableError,
)
from msgctl.operations import Effect, Kind, Member, Operation, Record
from msgctl.recipients import FAILURE_WORDS, words
from msgctl.text import shorten

if TYPE_CHECKING:
    from decimal import Decimal

    import httpx

    from msgctl.http.request import Request

MOST_DIGITS = 18
"""The longest number of credits that is taken for one."""


_Error = TypeVar("_Error", bound=ServiceError)


class Number(str):
    """A JSON number, kept as the text that was sent: no digit is lost to a float, none is added."""

    __slots__ = ()


class ShapeError(ValueError):
    """A body is not JSON, or is JSON of another shape than the record; the text says which."""


class Response(NamedTuple):
    """A record as the service sent it (``body``) and as it was read (``document``; numbers are `Number`)."""

    operation: Operation
    http_status: int
    body: bytes
    document: Mapping[str, Any]


def load_json(body: bytes) -> Any:
    """Read JSON (RFC 8259) of unknown origin; numbers become `Number`. Raises ShapeError."""
    try:
        text = body.decode("utf-8-sig")
        return _DECODER.decode(text)
    except UnicodeDecodeError:  # which holds the body, as the other errors do
        raise ShapeError("it is not UTF-8 text") from None
    except RecursionError:
        raise ShapeError("its JSON is nested too deeply") from None
    except ShapeError:
        raise
    except ValueError:
        raise ShapeError("it is not JSON") from None


def read(operation: Operation, body: bytes, http_status: int = 200) -> Response:
    """Return the response to an operation. Raises ShapeError if the body does not hold the operation's record.

    The record is the JSON object itself, or what its ``data`` holds. Where the record has entries in ``data``, they
    are an array in the response's ``document``, although the service may send a single object.
    """
    document = load_json(body)
    if not isinstance(document, dict):
        raise ShapeError("it is JSON, but not an object")
    return Response(operation, http_status, body, _record(operation.answer, document))


def credits_left(response: Response) -> Decimal | None:
    """The credits of a ResponseBalance, which are in its ``status``; None where that is not a number."""
    from decimal import Decimal, InvalidOperation  # a short command does without

    text = str(response.document.get("status"))
    try:
        left = Decimal(text)
    except InvalidOperation:
        return None
    # An exponent of a billion would be written out, and so would ten thousand decimals.
    is_sane = left.is_finite() and abs(left.adjusted()) < MOST_DIGITS and len(text) < 2 * MOST_DIGITS
    return left if is_sane else None


def _refuse_constant(name: str) -> NoReturn:
    raise ShapeError(f"it holds {name}, which is not JSON")


_SHORT = {text: Number(text) for text in map(str, range(100))}


def _number(text: str) -> Number:
    """A whole number; short ones are made once, since an answer can hold eight million of them."""
    return _SHORT.get(text) or Number(text)


_DECODER = json.JSONDecoder(parse_int=_number, parse_float=Number, parse_constant=_refuse_constant)


def _record(record: Record, document: dict[str, Any]) -> dict[str, Any]:
    """Return the record that a JSON object is or holds. Raises ShapeError."""
    data = document.get("data")
    if record.entries and isinstance(data, dict) and "data" not in data:
        document = {**document, "data": [data]}
    elif isinstance(data, dict) and not _has_members(record, document, besides=("data",)):
        document = data
    elif not record.entries and isinstance(data, list) and len(data) == 1 and not _has_members(record, document):
        document = data[0] if isinstance(data[0], dict) else {}
    if not _has_members(record, document):
        names = ", ".join(member.name for member in record.members)
        raise ShapeError(f"it has none of the fields of {record.name} ({names})")
    if document.get("error") and len(record.members) > 1 and not _has_members(record, document, besides=("status",)):
        raise ShapeError(f"it has an error and no {record.name}")
    _check_members(document, record.members)
    return document


def _has_members(record: Record, document: Mapping[str, Any], besides: Sequence[str] = ()) -> bool:
    """Return whether an object has a field of a record; null says nothing, and ``msg`` may be the error record's."""
    return any(document.get(each.name) is not None for each in record.members if each.name not in ("msg", *besides))


def _check_members(document: Mapping[str, Any], members: Sequence[Member]) -> None:
    """Arrays must be arrays of objects, objects objects, and everything else a plain value; null is always allowed.

    Whether a plain value is a number or a string is not held against the service: it is shown as it came.
    """
    for member in members:
        value = document.get(member.name)
        if value is None:
            continue
        if member.kind is Kind.ARRAY:
            if not isinstance(value, list) or not {dict}.issuperset(map(type, value)):
                raise ShapeError(f"its member {member.name} is not an array of objects")
            _check_entries(value, member.of)
        elif member.kind is Kind.OBJECT:
            if not isinstance(value, dict):
                raise ShapeError(f"its member {member.name} is not an object")
            _check_members(value, member.of)
        elif isinstance(value, (dict, list)):
            raise ShapeError(f"its member {member.name} is not a plain value")


def _check_entries(entries: list[dict[str, Any]], members: Sequence[Member]) -> None:
    """Check the objects of an array, which can be very many: at one glance where all of their values are plain."""
    are_plain = {Kind.ARRAY, Kind.OBJECT}.isdisjoint(member.kind for member in members)
    values = chain.from_iterable(map(dict.values, entries))
    if not (are_plain and {dict, list}.isdisjoint(map(type, values))):
        for entry in entries:
            _check_members(entry, members)


LONGEST_QUOTE = 300
LONGEST_BODY = 4000
"""Characters of a response that an error carries."""

REFUSALS = frozenset({301, 307, 308, 400, 401, 402, 403, 404, 405, 413, 415, 422, 429})
"""Statuses of a request that was certainly not carried out."""
SERVICE_ERROR = 520
"""The status of the service's own refusals; without its error record it comes from something in between."""
SAYING = ("error", "msg", "message", "detail", "errors")
"""Fields in which a service says what is wrong."""

CHECK_BEFORE_RETRYING = {
    operations.BLOCK_PHONE: "Block the number again: that changes nothing if it is blocked already.",
    operations.URL_SHORT: "Before making it again, check if it exists: msgctl url stats NAME --since today",
    operations.VERIFY_2FA: "The code may be used up: if in doubt, send a new one.",
}
"""What to do if it is not known whether a request was carried out; all other operations send."""
CHECK_A_SEND = "Before sending again, check the delivery state, the balance, or the phone itself."
CHECK_ADDRESS_TOO = (
    "If the values are right, this machine's IP address may not be allowed: see the account's Security menu."
)
CHECK_CREDENTIALS = "Check client and key"
CHECK_CREDENTIALS_TOO = f"{CHECK_CREDENTIALS}, and that the account's Security menu allows this machine's IP address."
CHECK_URL = "Check the base URL: it ends in the version, /api/v1."

_COMPLAINTS = frozenset(
    """
    parameter parameters param params missing required invalid format length long short empty value field fields found
    credit credits balance funds number phone sms message voice retries template alias name url code
    parametro parametros falta requerido requerida invalido invalida formato vacio valor campo numero telefono mensaje
    plantilla codigo saldo creditos credito
    """.split()
)
"""Words of an error that is about a parameter or the balance …"""
_CREDENTIALS = frozenset(
    """
    client key ip address auth authentication authorization authorized unauthorized access forbidden denied allowed
    credentials account cliente clave llave direccion acceso autorizado denegado permitido permitida cuenta credenciales
    """.split()
)
"""… unless one of these says that it is about who asks."""
_NOT_VERIFIED = FAILURE_WORDS | frozenset(
    "no not non false falso pending pendiente incorrect incorrecto incorrecta wrong unverified mismatch".split()
)


def parse(
    request: Request, response: httpx.Response, base_url: str, *, is_sandbox: bool = False, any_json: bool = False
) -> Response:
    """Return what a response to a request means. Raises RefusedError, UnreadableError and OutcomeUnknownError.

    ``any_json`` accepts any JSON document of a 2xx response to a request that only reads; the ``document`` is then
    empty unless it is an object.
    """
    case = _Case(request, response, base_url, is_sandbox=is_sandbox)
    if not response.is_success:
        raise case.failure()
    if is_lost(response):
        raise case.in_doubt(response.extensions["fault"])
    try:
        found = read(request.operation, case.whole_body(), response.status_code)
    except ShapeError as error:
        if case.is_error_record or request.operation is operations.VERIFY_2FA:
            raise case.refused() from None
        if any_json and request.operation.effect is Effect.READS and case.document is not None:
            document = case.document if isinstance(case.document, dict) else {}
            return Response(request.operation, response.status_code, response.content, document)
        raise case.unusable(error) from None
    if request.operation is operations.VERIFY_2FA and not is_verified(found.document):
        raise case.refused("The code was not verified")
    return found


def accept(request: Request, response: httpx.Response, base_url: str, *, is_sandbox: bool = False) -> None:
    """Accept any whole response with a status of success. Raises as `parse` does."""
    case = _Case(request, response, base_url, is_sandbox=is_sandbox)
    if not response.is_success:
        raise case.failure()
    if is_lost(response):
        raise case.in_doubt(response.extensions["fault"])
    try:
        case.whole_body()
    except ShapeError as error:
        raise case.unusable(error) from None


def is_lost(response: httpx.Response) -> bool:
    """Return whether the response broke off within its body."""
    return bool(response.extensions.get("lost"))


def is_verified(document: Mapping[str, Any]) -> bool:
    """Return whether the response to a code says that it is right.

    Its ``status`` must be true, a number other than 0, or a word that is not one for failure; an ``error`` refuses it.
    """
    status = document.get("status")
    if document.get("error") or status is None or isinstance(status, (dict, list)):
        return False
    if isinstance(status, bool):
        return status
    found = words(str(status))
    number = re.fullmatch(r"\s*[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?\s*", status, re.ASCII)
    if number is not None:
        return re.search("[1-9]", re.split("[eE]", status)[0]) is not None
    return bool(found) and _NOT_VERIFIED.isdisjoint(found)


def check(request: Request) -> str:
    """Return what to check before a request is made again."""
    if request.operation.effect is Effect.READS:
        return "Try again."
    return CHECK_BEFORE_RETRYING.get(request.operation, CHECK_A_SEND)


def outcome_unknown(request: Request, why: str, **response: Any) -> OutcomeUnknownError:
    """Return the error for a request that was sent and got no usable response."""
    consequence = "" if request.operation.effect is Effect.READS else "it may have been carried out"
    return OutcomeUnknownError(f"The request was sent, but {why}", check(request), consequence=consequence, **response)


class _Case:
    """A response that is not the record asked for, and the error that it means."""

    def __init__(self, request: Request, response: httpx.Response, base_url: str, *, is_sandbox: bool) -> None:
        self._request = request
        self._response = response
        self._status = response.status_code
        self._base_url = base_url
        self._is_here = is_sandbox or is_loopback(urlsplit(base_url).hostname or "")
        self.document = self._json()
        self._fields: Mapping[str, Any] = self.document if isinstance(self.document, dict) else {}

    @property
    def is_error_record(self) -> bool:
        """Whether it names an error and has nothing of the record; a status may be that of the error."""
        record = self._request.operation.answer
        return bool(self._fields.get("error")) and not _has_members(record, self._fields, besides=("status",))

    def whole_body(self) -> bytes:
        """Return the body. Raises ShapeError if it is not whole."""
        if "fault" in self._response.extensions:
            raise ShapeError(self._response.extensions["fault"])
        return self._response.content

    def failure(self) -> MsgctlError:
        """Return the error for a status other than 2xx."""
        is_own = self._status == SERVICE_ERROR and any(self._fields.get(name) for name in ("error", "msg"))
        if is_own or self._status in REFUSALS:
            return self.refused()
        if self._request.operation.effect is not Effect.READS:
            return self.in_doubt(f"the response is {self._described()}")
        return self._made(RefusedError, f"The response is {self._described()}", self._advice())

    def refused(self, what: str = "The service refused the request") -> RefusedError:
        """Return the error for a request that was certainly not carried out."""
        consequence = {Effect.SENDS: "nothing was sent", Effect.CHANGES: "nothing was changed"}
        if self._request.operation is operations.VERIFY_2FA:
            consequence = {}
        said = self._said()
        error = self._made(RefusedError, f"{what} ({self._status}){': ' + said if said else ''}", self._advice())
        error.consequence = consequence.get(self._request.operation.effect, "")
        return error

    def unusable(self, error: ShapeError) -> MsgctlError:
        """Return the error for a 2xx response without the record that was asked for."""
        why = f"the response ({self._status}) cannot be used: {error}"
        if said := self._said():
            why += f'. It says: "{said}"'
        if self._request.operation.effect is not Effect.READS:
            return self.in_doubt(why)
        return self._made(UnreadableError, f"T{why[1:]}", "Check the base URL; -v shows the request.")

    def in_doubt(self, why: str) -> OutcomeUnknownError:
        """Return the error for a request that may have been carried out."""
        error = outcome_unknown(self._request, why, **self._attached())
        if 300 <= self._status < 400:
            error.hint = f"{self._redirect()} {error.hint}"
        return error

    def _made(self, kind: type[_Error], what: str, hint: str | None) -> _Error:
        return kind(what, hint, **self._attached())

    def _attached(self) -> dict[str, Any]:
        text = self._response.content.decode("utf-8", "replace")
        return {
            "http_status": self._status,
            "record": {name: self._fields[name] for name in ("error", "msg") if name in self._fields},
            "body": text[:LONGEST_BODY],
            "document": self.document if len(text) <= LONGEST_BODY else None,
        }

    def _json(self) -> Any:
        try:
            return load_json(self.whole_body())
        except ShapeError:
            return None

    def _described(self) -> str:
        if said := self._said():
            return f"status {self._status}: {said}"
        if fault := self._response.extensions.get("fault"):
            return f"status {self._status}, and {fault}"
        return f"status {self._status} with {'no text' if self._response.content else 'an empty body'}"

    def _said(self) -> str:
        """Return what the service or the page says, for a message."""
        said = [_text(self._fields[name]) for name in SAYING if self._fields.get(name)]
        if not said and self.document is not None:
            said = [_text(self.document)]
        elif not said:
            text = self._response.content[:LONGEST_BODY].decode("utf-8", "replace")
            said = [" ".join(re.sub("(?s)<(script|style)\\b.*?</\\1>|<[^>]*>", " ", text).split())]
        return shorten(": ".join(said), LONGEST_QUOTE)

    def _advice(self) -> str | None:
        if 300 <= self._status < 400:
            return self._redirect()
        if self._status in (401, 403):
            return f"{CHECK_CREDENTIALS}." if self._is_here else CHECK_CREDENTIALS_TOO
        if self._status == SERVICE_ERROR or self._response.is_success:
            return CHECK_ADDRESS_TOO if self._status == SERVICE_ERROR and self._could_be_the_address() else None
        if self._status in (404, 405) and not self._fields.get("error"):
            return CHECK_URL
        if self._status in RETRYABLE_STATUSES:  # RFC 6585, 4
            return "Try again a little later."
        return "Try again." if self._status >= 500 else "Check the values and the base URL."

    def _could_be_the_address(self) -> bool:
        """Return whether the service may refuse this machine, and not a parameter."""
        found = words(_text(self._fields.get("error") or ""))
        return not self._is_here and (_COMPLAINTS.isdisjoint(found) or not _CREDENTIALS.isdisjoint(found))

    def _redirect(self) -> str:
        location = self._response.headers.get("location", "")
        return (
            "Redirects are not followed, since the key would travel along; "
            f"this one points to {shorten(_origin(self._base_url, location)) if location else 'nowhere'}. "
            "Check the base URL."
        )


def _text(value: Any) -> str:
    """Return a JSON value as text: a string as it is, anything else as JSON."""
    try:
        return value if isinstance(value, str) else json.dumps(_plain(value), ensure_ascii=False)
    except RecursionError:
        return "JSON that is nested too deeply"


def _plain(value: Any) -> Any:
    """Return a JSON value whose numbers are numbers again; what is too long to be shown is left out."""
    if isinstance(value, Number):
        return json.loads(value) if len(value) < LONGEST_QUOTE else "…"
    if isinstance(value, list):
        return [_plain(each) for each in value[:LONGEST_QUOTE]]
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in islice(value.items(), LONGEST_QUOTE)}
    return value


def _origin(base_url: str, location: str) -> str:
    """Return scheme, host and port of a redirect: the rest may repeat the request, and with it the key."""
    try:
        parts = urlsplit(urljoin(base_url, location))
        port = parts.port
    except ValueError:
        return "a malformed URL"
    if not parts.hostname:
        return "a malformed URL"
    return f"{parts.scheme}://{parts.hostname}" + (f":{port}" if port else "")
