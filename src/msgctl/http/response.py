"""What a response of the service means: the record that was asked for, read without losing a digit, or an error.

An error says what the service said, what was or was not done, and what to do next.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from msgctl import operations
from msgctl.config.profiles import is_loopback
from msgctl.errors import RETRYABLE_STATUSES, MsgctlError, OutcomeUnknownError, RefusedError, UnreadableError
from msgctl.jsontext import ShapeError, load_json, pieces
from msgctl.operations import Effect, Kind, Operation, Record, ResponseField
from msgctl.recipients import FAILURE_WORDS, has_error, words
from msgctl.text import shorten

if TYPE_CHECKING:
    from decimal import Decimal

    import httpx

    from msgctl.http.request import Request

MOST_DIGITS = 18
"""The most digits that a number of credits may have."""
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
"""Words of an error about a parameter or the balance …"""
_CREDENTIALS = frozenset(
    """
    client key ip address auth authentication authorization authorized unauthorized access forbidden denied allowed
    credentials account cliente clave llave direccion acceso autorizado denegado permitido permitida cuenta credenciales
    """.split()
)
"""… unless one of these says that it is about the caller."""


class Response(NamedTuple):
    """A record as the service sent it (``body``) and as it was read (``document``; numbers are `Number`)."""

    operation: Operation
    http_status: int
    body: bytes
    document: Mapping[str, Any]

    def attached(self) -> dict[str, Any]:
        """Return what an error has of this response: see `MsgctlError`."""
        return attached(self.http_status, self.body, load_json(self.body))


def attached(status: int, body: bytes, document: Any) -> dict[str, Any]:
    """Return what an error has of a response: see `MsgctlError`. ``document`` is its JSON, None if it is not whole."""
    text = body.decode(errors="replace")
    found = document if isinstance(document, dict) else {}
    return {
        "http_status": status,
        "record": {name: found[name] for name in ("error", "msg") if name in found},
        "body": text[:LONGEST_BODY],
        "document": document if len(text) <= LONGEST_BODY else None,
    }


def read(operation: Operation, body: bytes, http_status: int) -> Response:
    """Return the response to an operation. Raises ShapeError if the body does not hold the operation's record.

    The record is the JSON object itself, or what its ``data`` holds. Where the record has entries in ``data``, they
    are an array in the response's ``document``, although the service may send a single object.
    """
    return Response(operation, http_status, body, _record(operation.record, load_json(body)))


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


def _record(record: Record, document: Any) -> Mapping[str, Any]:
    """Return the record that a JSON object is or holds. Raises ShapeError."""
    if not isinstance(document, dict):
        raise ShapeError("it is JSON, but not an object")
    found: dict[str, Any] = document
    data = found.get("data")
    if record.entries and isinstance(data, dict) and "data" not in data:
        found = {**found, "data": [data]}
    elif isinstance(data, dict) and not _has_fields(record, found, besides=("data",)):
        found = data
    elif not record.entries and isinstance(data, list) and len(data) == 1 and not _has_fields(record, found):
        found = data[0] if isinstance(data[0], dict) else {}
    if not _has_fields(record, found):
        names = ", ".join(field.name for field in record.fields)
        raise ShapeError(f"it has none of the fields of {record.name} ({names})")
    if len(record.fields) > 1 and not _has_fields(record, found, besides=("status",)) and has_error(found):
        raise ShapeError(f"it has an error and no {record.name}")
    _check_fields(found, record.fields)
    return found


def _has_fields(record: Record, document: Mapping[str, Any], besides: Sequence[str] = ()) -> bool:
    """Return whether an object has a field of a record; null says nothing, and ``msg`` may be the error record's."""
    return any(document.get(each.name) is not None for each in record.fields if each.name not in ("msg", *besides))


def _check_fields(document: Mapping[str, Any], fields: Sequence[ResponseField]) -> None:
    """Check that fields are arrays of objects, objects or plain values, as they should be; null is always allowed.

    A plain value may be a number or a string: it is shown as it came.
    """
    for field in fields:
        value = document.get(field.name)
        if value is None:
            continue
        if field.kind is Kind.ARRAY:
            if not isinstance(value, list) or not {dict}.issuperset(map(type, value)):
                raise ShapeError(f"its field {field.name} is not an array of objects")
            are_plain = {Kind.ARRAY, Kind.OBJECT}.isdisjoint(each.kind for each in field.of)
            values = chain.from_iterable(map(dict.values, value))  # there can be very many, so all are checked at once
            if not (are_plain and {dict, list}.isdisjoint(map(type, values))):
                for entry in value:
                    _check_fields(entry, field.of)
        elif field.kind is Kind.OBJECT:
            if not isinstance(value, dict):
                raise ShapeError(f"its field {field.name} is not an object")
            _check_fields(value, field.of)
        elif isinstance(value, (dict, list)):
            raise ShapeError(f"its field {field.name} is not a plain value")


_NOT_VERIFIED = FAILURE_WORDS | frozenset(
    """
    no not non false falso pending pendiente incorrect incorrecto incorrecta erroneo erronea wrong unverified mismatch
    """.split()
)
_INNER_CAPITAL = re.compile("(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def parse(
    request: Request, response: httpx.Response, base_url: str, *, is_sandbox: bool = False, any_json: bool = False
) -> Response:
    """Return what a response to a request means. Raises RefusedError, UnreadableError and OutcomeUnknownError.

    ``any_json`` accepts any JSON document of a 2xx response to a request that only reads, and a record without fields
    any body; the ``document`` is then empty unless it is a JSON object.
    """
    operation, status = request.operation, response.status_code
    document, fault = None, str(response.extensions.get("fault", ""))
    try:
        document = None if fault else load_json(response.content)
    except ShapeError as error:
        fault = str(error)
    failure = Failure(request, response, document, base_url, is_sandbox)
    if not response.is_success:
        raise failure.of_status()
    if response.extensions.get("lost"):
        raise failure.in_doubt(fault)
    found = Response(operation, status, response.content, document if isinstance(document, dict) else {})
    if not operation.record.fields and "fault" not in response.extensions:
        if has_error(found.document) and found.document.keys() <= {"error", "msg"}:
            raise failure.refused()
        return found
    reason = fault
    try:
        found = found if fault else found._replace(document=_record(operation.record, document))
    except ShapeError as error:
        reason = str(error)
    if reason:
        # A status may be that of the error.
        is_error = has_error(found.document) and not _has_fields(operation.record, found.document, ("status",))
        if operation is operations.VERIFY_2FA or is_error:
            raise failure.refused()
        if any_json and operation.effect is Effect.READS and not fault:
            return found
        raise failure.unusable(reason)
    if operation is operations.VERIFY_2FA and not is_verified(found.document):
        raise failure.refused("The code was not verified")
    return found


def is_verified(document: Mapping[str, Any]) -> bool:
    """Return whether the response to a code says that it is right.

    Its ``status`` must be true, a number other than 0, or a word that is not one for failure; an ``error`` refuses it.
    """
    status = document.get("status")
    if has_error(document) or status is None or isinstance(status, (dict, list)):
        return False
    if isinstance(status, bool):
        return status
    found = words(status) + words(_INNER_CAPITAL.sub(" ", status))  # InvalidCode and OTPInvalid are two words, too
    number = re.fullmatch(r"\s*[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?\s*", status)
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


class Failure(NamedTuple):
    """A response without the requested record, and the error that it means.

    ``document`` is its JSON, None if it is not whole JSON.
    """

    request: Request
    response: httpx.Response
    document: Any
    base_url: str
    is_sandbox: bool

    @property
    def _object(self) -> Mapping[str, Any]:
        return self.document if isinstance(self.document, dict) else {}

    @property
    def _reads(self) -> bool:
        return self.request.operation.effect is Effect.READS

    @property
    def _status(self) -> int:
        return self.response.status_code

    def of_status(self) -> MsgctlError:
        """Return the error for a status other than 2xx."""
        is_own = self._status == SERVICE_ERROR and (has_error(self._object) or self._object.get("msg"))
        if is_own or self._status in REFUSALS:
            return self.refused()
        said = self._said()
        what = f"status {self._status}" + (f": {said}" if said else " without a message")
        if self._reads:
            return RefusedError(f"The response is {what}", self._advice(), **self._attached())
        return self.in_doubt(f"the response is {what}")

    def refused(self, what: str = "The service refused the request") -> RefusedError:
        """Return the error for a request that was certainly not carried out."""
        consequence = {Effect.SENDS: "nothing was sent", Effect.CHANGES: "nothing was changed"}
        if self.request.operation is operations.VERIFY_2FA:
            consequence = {}
        said = self._said()
        return RefusedError(
            f"{what} ({self._status}){': ' + said if said else ''}",
            self._advice(),
            consequence=consequence.get(self.request.operation.effect, ""),
            **self._attached(),
        )

    def unusable(self, reason: str) -> MsgctlError:
        """Return the error for a 2xx response without the requested record."""
        said = self._said()
        what = f"response ({self._status}) cannot be used: {reason}" + (f'. It says: "{said}"' if said else "")
        if self._reads:
            return UnreadableError(f"The {what}", "Check the base URL; -v shows the request.", **self._attached())
        return self.in_doubt(f"the {what}")

    def in_doubt(self, why: str) -> OutcomeUnknownError:
        """Return the error for a request that may have been carried out."""
        error = outcome_unknown(self.request, why, **self._attached())
        if 300 <= self._status < 400:
            error.hint = f"{self._redirect()} {error.hint}"
        return error

    def _attached(self) -> dict[str, Any]:
        return attached(self._status, self.response.content, self.document)

    def _said(self) -> str:
        """Return what the service or the page says, for a message."""
        said = [_text(self._object[name]) for name in SAYING if self._object.get(name)]
        if not said and self.document is not None:
            said = [_text(self.document)]
        elif not said:
            text = self.response.content[:LONGEST_BODY].decode(errors="replace")
            said = [" ".join(re.sub("(?s)<(script|style)\\b.*?</\\1>|<[^>]*>", " ", text).split())]
        return shorten(": ".join(said), LONGEST_QUOTE)

    def _advice(self) -> str | None:
        status = self._status
        is_here = self.is_sandbox or is_loopback(urlsplit(self.base_url).hostname or "")
        if 300 <= status < 400:
            return self._redirect()
        if status in (401, 403):
            return f"{CHECK_CREDENTIALS}." if is_here else CHECK_CREDENTIALS_TOO
        if status == SERVICE_ERROR:
            found = words(_text(self._object.get("error")))
            may_be_address = _COMPLAINTS.isdisjoint(found) or not _CREDENTIALS.isdisjoint(found)
            return CHECK_ADDRESS_TOO if may_be_address and not is_here else None
        if self.response.is_success:
            return None
        if status in (404, 405) and not self._object.get("error"):
            return CHECK_URL
        if status in RETRYABLE_STATUSES or status >= 500:
            return "Try again a little later."
        return "Check the values and the base URL."

    def _redirect(self) -> str:
        """Return the advice for a redirect. It shows only scheme and host: the rest may repeat the key."""
        from httpx import URL, InvalidURL

        location = self.response.headers.get("location", "")
        try:
            url = URL(self.base_url).join(location)
            to = f"{url.scheme}://{url.netloc.decode('ascii')}"
        except InvalidURL:
            to = "a malformed URL"
        where = f"; this one points to {shorten(to)}" if location else ""
        return f"Redirects are not followed, because they would send the key elsewhere{where}. Check the base URL."


def _text(value: Any) -> str:
    """Return the beginning of a JSON value as text: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else "".join(islice(pieces(value), LONGEST_QUOTE))
