"""Interpret a response: return the operation's record, or raise an error.

An error quotes the service, reports whether the request was carried out, and suggests what to do next.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from msgctl import operations
from msgctl.config.profiles import is_loopback
from msgctl.delivery import contradicts_success, is_verified_word, words
from msgctl.errors import RETRYABLE_STATUSES, MsgctlError, OutcomeUnknownError, RefusedError, UnreadableError
from msgctl.http.record import RESULTS, convert, is_refusal, levels
from msgctl.jsontext import Number, ShapeError, load_json, objects, pieces, values
from msgctl.operations import Effect, Operation
from msgctl.recipients import (
    OF_ATTEMPTS,
    OF_TEXT,
    SUCCESS_FLAGS,
    describes_error,
    has_error,
    is_contradicted,
    is_one,
    is_zero,
    named_in,
    reports_failure,
)
from msgctl.text import shorten

if TYPE_CHECKING:
    from decimal import Decimal

    import httpx

    from msgctl.http.request import Request

MAX_DIGITS = 18
"""Maximum digits of a number of credits."""
MAX_QUOTE = 300
MAX_STRINGS = 100
"""Maximum strings of an error that are searched for an internal failure."""
MAX_BODY = 4000
"""Maximum characters of a response in an error."""

REFUSALS = frozenset({301, 307, 308, 400, 401, 402, 403, 404, 405, 413, 415, 422, 429})
"""Statuses of a request that was certainly not carried out."""
DOUBTFUL_REFUSALS = frozenset({200, 400, 520})
"""Statuses of refusals; the outcome is in doubt if the service reports an internal failure."""
_INTERNAL = frozenset("internal interno interna inesperado inesperada unexpected".split())
_FAILURE = frozenset("error errors fallo fallos falla fallas failure failures".split())
_TIMEOUT = re.compile(r"\btimed? ?outs?\b")
SERVICE_ERROR = 520
"""The status of the service's own refusals; without the error record, a proxy or firewall sent it."""
SAYING = ("error", "msg", "message", "detail", "errors")
"""Fields in which a service describes an error."""
_OF_SUCCESS = re.compile("valid|verif|match|coincid|success|exito|correct|approv|aprob|accept|acept|authori|autoriz")
_OF_FAILURE = re.compile("invalid|incorrect|expired|blocked|locked|failed")
OTHER_RESULTS = (*SUCCESS_FLAGS, "state", "result", "estado", "resultado")
"""Fields that services add to the response to a code."""

CHECK_BEFORE_RETRYING = {
    operations.BLOCK_PHONE: "Block the number again: that changes nothing if it is blocked already.",
    operations.URL_SHORT: "Before making it again, check if it exists: msgctl url stats NAME --since today",
    operations.VERIFY_2FA: "The code may be used up: if in doubt, send a new one.",
}
"""Hints for requests with an unknown outcome, by operation; all other operations send."""
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
"""… unless one of these words shows that the error is about the caller."""


class Response(NamedTuple):
    """A record as the service sent it (``body``), and parsed (``document``, with numbers as `Number`)."""

    operation: Operation
    http_status: int
    body: bytes
    document: Mapping[str, Any]

    def attached(self) -> dict[str, Any]:
        """Return the response details for `MsgctlError`."""
        return attached(self.http_status, self.body, load_json(self.body))


def attached(status: int, body: bytes, document: Any) -> dict[str, Any]:
    """Return the details of a response for `MsgctlError`. ``document`` is its JSON, None if it is incomplete."""
    text = body.decode(errors="replace")
    found = document if isinstance(document, dict) else {}
    return {
        "http_status": status,
        "record": {name: _quoted(found[name]) for name in ("error", "msg") if name in found},
        "body": text[:MAX_BODY],
        "document": document if len(text) <= MAX_BODY else None,
    }


def read(request: Request, body: bytes, http_status: int) -> Response:
    """Return the response to a request. Raises ShapeError if the body does not contain the operation's record."""
    return Response(request.operation, http_status, body, convert(request, load_json(body)))


def credits_left(response: Response) -> Decimal | None:
    """Return the credits in the ``status`` of a ResponseBalance; None if this is not a number."""
    from decimal import Decimal, InvalidOperation  # most commands do not need it

    text = str(response.document.get("status"))
    try:
        left = Decimal(text)
    except InvalidOperation:
        return None
    # Decimal would write out an exponent of a billion, or ten thousand decimals.
    is_sane = left.is_finite() and abs(left.adjusted()) < MAX_DIGITS and len(text) < 2 * MAX_DIGITS
    return left if is_sane else None


def parse(
    request: Request, response: httpx.Response, base_url: str, *, is_sandbox: bool = False, any_json: bool = False
) -> Response:
    """Return the record in a response. Raises RefusedError, UnreadableError and OutcomeUnknownError.

    With ``any_json``, a request that only reads accepts any JSON document of a 2xx response. A record without fields
    accepts any body. The ``document`` is then empty unless the body is a JSON object.
    """
    operation, status = request.operation, response.status_code
    document, fault = None, str(response.extensions.get("fault", ""))
    try:
        is_unique = operation.effect is not Effect.READS
        document = None if fault else load_json(response.content, is_unique=is_unique)
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
    if operation is operations.VERIFY_2FA and (fault or not is_verified(request, document)):
        raise failure.refused("The code was not verified")
    try:
        record = {} if fault else convert(request, document)
    except ShapeError as error:
        if any(map(describes_error, levels(document))):
            raise failure.refused() from None
        if any_json and operation.effect is Effect.READS:
            return found._replace(document={})
        fault = str(error)
    if fault:
        raise failure.unusable(fault)
    if is_refusal(operation, record):
        raise failure.refused()
    if operation is operations.URL_SHORT and not _is_short_url(record):
        raise failure.in_doubt("the response reports a failure, or contains no short URL")
    return found._replace(document=record)


def _is_short_url(record: Mapping[str, Any]) -> bool:
    short = record.get("urlShort")
    is_text = isinstance(short, str) and bool(short) and not is_zero(short)
    return is_text and not (reports_failure(record) or is_contradicted(record))


def is_verified(request: Request, document: Any) -> bool:
    """Return whether the response to a code means that the code is correct.

    ``verified``, ``valid`` and ``status`` of the document and of its ``data`` must all mean success, and at least one
    must be present. At any depth, these contradict them: an ``error`` or ``errorCode``, a message with a word for
    failure or a negation, a false ``success`` or ``data``, a failing ``state``, and the phone of another person.
    """
    outer = list(levels(document))
    if not any(name in RESULTS for level in outer for name in level):
        return False
    if any(isinstance(level.get("data"), list) and len(level["data"]) > 1 for level in outer):
        return False
    found = list(objects(document))
    results = [value for each in found for name, value in each.items() if name.lower() in RESULTS]
    messages = [value for each in found for name, value in each.items() if name in SAYING or OF_TEXT.search(name)]
    messages += [each["data"] for each in found if isinstance(each.get("data"), str)]
    return (
        all(is_one(each) or (isinstance(each, str) and is_verified_word(each)) for each in results)
        and not any(has_error(each) or is_zero(each.get("data")) for each in found)
        and not any(is_contradicted(each) for each in outer)
        and not any(contradicts_success(text) for each in messages for text in _strings(each))
        and not any(_means_failure(name.lower(), value) for each in found for name, value in each.items())
        and not any(named_in(each, [phone for phone in request.phones if phone]) == [] for each in found)
    )


def _means_failure(name: str, value: Any) -> bool:
    """Return whether an undocumented field contradicts success, such as ``isValid`` false or ``expired`` true."""
    if _OF_FAILURE.search(name):
        return is_one(value) and not OF_ATTEMPTS.search(name)
    if name not in OTHER_RESULTS and not _OF_SUCCESS.search(name):
        return False
    return is_zero(value) or (isinstance(value, str) and contradicts_success(value))


def _strings(value: Any) -> Iterator[str]:
    """Yield every string in a JSON value, and the names of its fields."""
    for each in values(value):
        if isinstance(each, dict):
            yield from each
        elif isinstance(each, str) and not isinstance(each, Number):
            yield each


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
    """Composes the error for a response without the requested record.

    ``document`` is the response's JSON, None if it is not a whole document.
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
        message = self._service_message()
        what = f"status {self._status}" + (f": {message}" if message else " without a message")
        if self._reads:
            return RefusedError(f"The response is {what}", self._advice(), **self._attached())
        return self.in_doubt(f"the response is {what}")

    def refused(self, what: str = "The service refused the request") -> MsgctlError:
        """Return the error for a request that was refused, or that ended in an internal failure of the service."""
        if not self._reads and self._status in DOUBTFUL_REFUSALS and self._is_internal_failure():
            return self.in_doubt(f"the service failed ({self._status}): {self._service_message()}")
        consequence = {Effect.SENDS: "nothing was sent", Effect.CHANGES: "nothing was changed"}
        if self.request.operation is operations.VERIFY_2FA:
            consequence = {}
        message = self._service_message()
        return RefusedError(
            f"{what} ({self._status}){': ' + message if message else ''}",
            self._advice(),
            consequence=consequence.get(self.request.operation.effect, ""),
            **self._attached(),
        )

    def _is_internal_failure(self) -> bool:
        """Return whether the service reports an internal error or a timeout, and not an invalid parameter."""
        texts = [level.get(name) for level in levels(self.document) for name in ("error", "msg", "message")]
        found = words(" ".join(text[:MAX_BODY] for each in texts for text in islice(_strings(each), MAX_STRINGS)))
        if any(word.startswith("param") for word in found):
            return False
        is_timeout = _TIMEOUT.search(" ".join(found)) is not None
        return is_timeout or not (_INTERNAL.isdisjoint(found) or _FAILURE.isdisjoint(found))

    def unusable(self, reason: str) -> MsgctlError:
        """Return the error for a 2xx response without the requested record."""
        message = self._service_message()
        what = f"response ({self._status}) cannot be used: {reason}" + (f'. It says: "{message}"' if message else "")
        if self._reads:
            return UnreadableError(f"The {what}", "Check the base URL; -v shows the request.", **self._attached())
        return self.in_doubt(f"the {what}")

    def in_doubt(self, why: str) -> OutcomeUnknownError:
        """Return the error for a request that may have been carried out."""
        error = outcome_unknown(self.request, why, **self._attached())
        if 300 <= self._status < 400:
            return error.replaced(hint=f"{self._redirect()} {error.hint}")
        return error

    def _attached(self) -> dict[str, Any]:
        return attached(self._status, self.response.content, self.document)

    def _service_message(self) -> str:
        """Return the error text of the service or of an HTML page, shortened for a message."""
        texts = ([_text(level[name]) for name in SAYING if level.get(name)] for level in levels(self.document))
        parts = next(filter(None, texts), [])
        if not parts and self.document is not None:
            parts = [_text(self.document)]
        elif not parts:
            text = self.response.content[:MAX_BODY].decode(errors="replace")
            parts = [" ".join(re.sub("(?s)<(script|style)\\b.*?</\\1>|<[^>]*>", " ", text).split())]
        return shorten(": ".join(parts), MAX_QUOTE)

    def _advice(self) -> str | None:
        status = self._status
        is_here = self.is_sandbox or is_loopback(urlsplit(self.base_url).hostname or "")
        if 300 <= status < 400:
            return self._redirect()
        if status in (401, 403):
            return f"{CHECK_CREDENTIALS}." if is_here else CHECK_CREDENTIALS_TOO
        if self.request.operation is operations.VERIFY_2FA and status in (400, 422):
            return None
        if status == SERVICE_ERROR:
            found = words(f"{_text(self._object.get('error'))} {_text(self._object.get('msg'))}")
            may_be_address = _COMPLAINTS.isdisjoint(found) or not _CREDENTIALS.isdisjoint(found)
            return CHECK_ADDRESS_TOO if may_be_address and not is_here else None
        if self.response.is_success:
            return None if _CREDENTIALS.isdisjoint(words(self._service_message())) else f"{CHECK_CREDENTIALS}."
        if status in (404, 405) and not self._object.get("error"):
            return CHECK_URL
        if status in RETRYABLE_STATUSES or status >= 500:
            return "Try again a little later."
        return "Check the values and the base URL."

    def _redirect(self) -> str:
        """Return the advice for a redirect. It shows only scheme and host, because the rest may repeat the key."""
        from httpx import URL, InvalidURL

        location = self.response.headers.get("location", "")
        try:
            url = URL(self.base_url).join(location)
            to = f"{url.scheme}://{url.netloc.decode('ascii')}"
        except InvalidURL:
            to = "a malformed URL"
        where = f"; this one points to {shorten(to)}" if location else ""
        return f"Redirects are not followed, because they would send the key elsewhere{where}. Check the base URL."


def _quoted(value: Any) -> Any:
    """Return a JSON value, or the beginning of its text if that is long."""
    if value is None or isinstance(value, bool):
        return value
    text = value if isinstance(value, str) else "".join(islice(pieces(value), MAX_BODY))
    return value if len(text) < MAX_BODY else text[:MAX_BODY]


def _text(value: Any) -> str:
    """Return the beginning of a JSON value as text: a string unchanged, anything else as JSON."""
    return value if isinstance(value, str) else "".join(islice(pieces(value), MAX_QUOTE))
