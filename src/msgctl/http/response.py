"""Convert a response to the record that a command shows, or to an error.

`msgctl.outcomes` determines the meaning of a response. An error quotes the service, reports whether the request was
carried out, and suggests what to do next.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from msgctl.config.profiles import is_loopback
from msgctl.errors import (
    MsgctlError,
    OutcomeUnknownError,
    RefusedError,
    ResponseDetails,
    TurnedAwayError,
    UnreadableError,
)
from msgctl.jsontext import Number, RepeatedFieldError, ShapeError, load_json, pieces
from msgctl.operations import Effect, Operation, Shape
from msgctl.outcomes import balance, codes, judge
from msgctl.outcomes.judge import EXPLAINED, PARTIAL_CONTENT, RATE_LIMITED, REFUSALS
from msgctl.outcomes.outcome import NO_RECIPIENTS, REFUSED, UNKNOWN, Doubt, Outcome, RequestParts
from msgctl.outcomes.record import ERROR_TEXTS, RESULTS, convert, service_message
from msgctl.outcomes.words import NO_WORDS, AddedWords
from msgctl.text import shorten
from msgctl.values import MAX_URL, quote

if TYPE_CHECKING:
    from msgctl.http.request import Request
    from msgctl.http.transport import RawResponse

MAX_QUOTE = 300
MAX_BODY = 4000
"""Maximum characters of a response in an error."""

SERVICE_ERROR = 520
"""The status of the service's own errors."""
REQUEST_TIMEOUT = 408
MAX_MISSING = 3
"""Maximum texts that a hint suggests to add to a profile."""

CHECK_CREDENTIALS = "Check client and key"
CHECK_CREDENTIALS_TOO = f"{CHECK_CREDENTIALS}, and that the account's Security menu allows this machine's IP address."
CHECK_URL = "Check the base URL: it ends in the version, /api/v1."

MAX_QUOTATION = 500
"""Maximum characters of a response in doubt that an error quotes."""


@dataclass
class Response:
    """A response as the service sent it (``body``), and its JSON (``content``).

    ``record`` returns its record. ``outcomes`` are the outcomes of the recipients of a send or change, and ``parts``
    are the parts of its request.
    """

    operation: Operation
    http_status: int
    body: bytes
    content: Any
    record: Callable[[], Mapping[str, Any]]
    outcomes: Sequence[Outcome] = ()
    parts: RequestParts = NO_RECIPIENTS

    @property
    def missing_words(self) -> Sequence[str]:
        """The texts that a profile could add to make the outcomes certain."""
        return missing_words(self.parts, self.http_status, self.content)

    @property
    def quotation(self) -> str:
        """The text of the response on one line, which the error of an unknown outcome quotes so that no id is lost."""
        return shorten(" ".join(self.body.decode(errors="replace").split()), MAX_QUOTATION)

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """The record of the response, with numbers as `Number`. A job never needs it."""
        return self.record()

    @property
    def details(self) -> ResponseDetails:
        """The details of the response for an error."""
        return details_of(self.http_status, self.body, self.content)


def details_of(http_status: int, body: bytes, document: Any) -> ResponseDetails:
    """Return the details of a response for an error. ``document`` is its JSON, None if it is incomplete."""
    text = body.decode(errors="replace")
    record = {}
    if isinstance(document, dict):
        record = {name: _quoted(document[name]) for name in ("error", "msg") if name in document}
    return ResponseDetails(http_status, record, text[:MAX_BODY], document if len(text) <= MAX_BODY else None)


def stored_details(http_status: int | None, body: bytes) -> ResponseDetails | None:
    """Return the details of a stored response; None if there was no response."""
    if http_status is None:
        return None
    try:
        document = load_json(body)
    except ShapeError:
        document = None
    return details_of(http_status, body, document)


def stored_response(request: Request, body: bytes, http_status: int, added: AddedWords = NO_WORDS) -> Response:
    """Return the response to a send or change from its whole body. Raises ShapeError if the body is not JSON."""
    document = load_json(body)
    parts = request.parts(added)
    judgement = judge.sent(parts, http_status, document, len(body))
    record = partial(convert, request.operation, document, parts.known_phones)
    return Response(request.operation, http_status, body, document, record, judgement.outcomes, parts)


def parse(
    request: Request,
    response: RawResponse,
    base_url: str,
    *,
    is_sandbox: bool = False,
    added: AddedWords = NO_WORDS,
) -> Response:
    """Return the record in a response, with the outcomes of its recipients. ``added`` are the words of the profile.

    Raises RefusedError, UnreadableError, TurnedAwayError and OutcomeUnknownError. An operation without fields in its
    record accepts any body.
    """
    operation = request.operation
    document, fault, is_json = None, response.fault, False
    try:
        # The status alone decides about other responses, unless one of their fields contradicts it.
        decides = response.is_success or (response.status in EXPLAINED and operation.effect is not Effect.READS)
        document = None if fault else load_json(response.body, is_unique=decides)
        is_json = not fault
    except ShapeError as error:
        fault = str(error)
        is_json = isinstance(error, RepeatedFieldError)
    failure = Failure(request, response, document, is_json, base_url, is_sandbox, request.parts(added))
    if operation.effect is Effect.READS:
        record = _read(failure, fault)
    elif operation.verifies:
        record = _verified(failure, fault)
    else:
        return _sent(failure, fault)
    return Response(operation, response.status, response.body, document, lambda: record)


def _sent(failure: Failure, fault: str) -> Response:
    response, document = failure.response, failure.document
    operation, status = failure.request.operation, response.status
    parts = failure.parts
    judgement = judge.sent(parts, status, document, len(response.body))
    if judgement.is_refused or (parts.is_link and judgement.outcomes[0].outcome == REFUSED):
        if status == RATE_LIMITED:
            raise failure.rate_limited(judgement.outcomes)
        raise failure.refused(judgement.outcomes)
    if not judge.is_whole_success(status):
        raise failure.in_doubt(failure.of_status, judgement.outcomes)
    if not operation.record.fields and not response.fault:
        record = document if isinstance(document, dict) else {}
        return Response(operation, status, response.body, document, lambda: record)
    if fault:
        raise failure.in_doubt(failure.unusable(fault), judgement.outcomes)
    convert_later = partial(convert, operation, document, parts.known_phones)
    result = Response(operation, status, response.body, document, convert_later, judgement.outcomes, parts)
    if parts.is_link and judgement.outcomes[0].outcome == UNKNOWN:
        why = f"the response does not show whether the short URL was created{because_of(judgement.outcomes)}"
        error = failure.in_doubt(why, judgement.outcomes)
        error.word = ("accepted", result.missing_words)
        raise error
    return result


def _verified(failure: Failure, fault: str) -> Mapping[str, Any]:
    """Return the record of a code that is verified."""
    response, document = failure.response, failure.document
    status = response.status
    if status in (401, 403):
        raise failure.refused()
    if status == RATE_LIMITED:
        raise failure.rate_limited()
    is_breakdown = failure.is_breakdown and status != SERVICE_ERROR
    if is_breakdown or status == PARTIAL_CONTENT or (fault and not response.is_success):
        raise failure.in_doubt(failure.of_status)
    if fault:
        raise failure.in_doubt(failure.unusable(fault))
    if status in EXPLAINED and codes.may_use_up(document):
        raise failure.in_doubt(failure.of_status)
    if not response.is_success:
        raise failure.not_verified()
    doubt = codes.doubt_of_code(failure.parts, document)
    if doubt is not None:
        raise failure.not_verified(doubt)
    record = convert(failure.request.operation, document)
    result = next((record[name] for name in RESULTS if name in record), None)
    return {"status": result, **record}


def _read(failure: Failure, fault: str) -> Mapping[str, Any]:
    """Return the record of a request that only reads."""
    response, document = failure.response, failure.document
    operation = failure.request.operation
    if not judge.is_whole_success(response.status):
        raise failure.of_read()
    if response.is_late:
        raise without_response(failure.request, fault)
    if not operation.record.fields:
        if response.fault:
            raise failure.unreadable(failure.unusable(fault))
        if failure.is_refused:
            raise failure.refused()
        return document if isinstance(document, dict) else {}
    if fault:
        raise failure.unreadable(failure.unusable(fault))
    try:
        if operation.record.shape is Shape.BALANCE:
            return _balance(operation, document)
        return convert(operation, document, (), dict(failure.request.query).get("id"))
    except ShapeError as error:
        if failure.is_refused:
            raise failure.refused() from None
        raise failure.unreadable(failure.unusable(str(error))) from None


def _balance(operation: Operation, document: Any) -> Mapping[str, Any]:
    left = balance.credits_left(document)
    if left is None:
        raise ShapeError("it does not contain the credits left")
    return {**convert(operation, document), "status": Number(f"{left:f}")}


def without_response(request: Request, why: str) -> MsgctlError:
    """Return the error for a request that was sent and got no response."""
    if request.operation.effect is Effect.READS:
        return TurnedAwayError(f"The request was sent, but {why}", "Try again a little later.", reason="unavailable")
    outcomes: Sequence[Outcome] = ()
    if not request.operation.verifies:
        outcomes = [Outcome(phone, UNKNOWN) for phone in request.parts().phones]
    return outcome_unknown(request, why, outcomes)


def outcome_unknown(
    request: Request, why: str, outcomes: Sequence[Outcome], details: ResponseDetails | None = None
) -> OutcomeUnknownError:
    """Return the error for a request that may have been carried out."""
    return OutcomeUnknownError(
        f"The request was sent, but {why}",
        request.advice,
        consequence="it may have been carried out",
        recipients=outcomes,
        details=details,
    )


def because_of(outcomes: Sequence[Outcome]) -> str:
    """Return a clause with the field that made an outcome unknown; empty if no field did."""
    doubt = next((outcome.doubt for outcome in outcomes if outcome.doubt), None)
    return "" if doubt is None else f", because its {shorten(doubt.field, 60)} is {quote(shorten(doubt.value, 60))}"


def missing_words(request: RequestParts, http_status: int, document: Any) -> list[str]:
    """Return the texts that a profile must add as accepted to make every unknown outcome certain; perhaps none."""
    missing: list[str] = []
    for _ in range(MAX_MISSING + 1):
        added = request.added.plus("accepted", missing)
        outcomes = judge.sent(replace(request, added=added), http_status, document).outcomes
        unknown = [outcome for outcome in outcomes if outcome.outcome == UNKNOWN]
        if not unknown:
            return missing
        doubt = unknown[0].doubt
        if doubt is None or doubt.word is None or doubt.word in missing:
            break
        missing.append(doubt.word)
    return []


def would_verify(request: RequestParts, document: Any, doubt: Doubt) -> bool:
    """Return whether the code would be verified if a profile added the text of a doubt."""
    added = request.added.plus("verified", [doubt.value])
    return doubt.word is not None and codes.doubt_of_code(replace(request, added=added), document) is None


class Failure(NamedTuple):
    """Composes the error for a response without the requested record.

    ``document`` is the response's JSON, None if it is not a whole document, or has a field twice. ``is_json`` is true
    of a document with a field twice, too.
    """

    request: Request
    response: RawResponse
    document: Any
    is_json: bool
    base_url: str
    is_sandbox: bool
    parts: RequestParts

    @property
    def is_refused(self) -> bool:
        """Whether the response to a request that only reads is a refusal."""
        return judge.sent(self.parts, self._status, self.document).is_refused

    @property
    def is_breakdown(self) -> bool:
        """Whether the status means that the service failed, or did not respond in time."""
        return self._status == REQUEST_TIMEOUT or 500 <= self._status < 600

    @property
    def of_status(self) -> str:
        """The description of a response by its status and text."""
        return f"the response has status {self._status}{self._quotation or ' without a message'}"

    @property
    def _status(self) -> int:
        return self.response.status

    def unusable(self, reason: str) -> str:
        """Return the description of a 2xx response without the requested record."""
        message = self._service_message()
        quoted = f'. Body: "{message}"' if message else ""
        return f"the response ({self._status}) cannot be used: {reason}{quoted}"

    def of_read(self) -> MsgctlError:
        """Return the error for a request that only reads and whose status is not a success."""
        if self._status in REFUSALS:
            return self.refused()
        if self._status == RATE_LIMITED:
            return self.rate_limited()
        if self._status in EXPLAINED:
            return self.unavailable() if judge.is_passing_fault(self.document) else self.refused()
        if self.is_breakdown:
            return self.unavailable()
        return self.unreadable(self.of_status)

    def refused(self, outcomes: Sequence[Outcome] = ()) -> MsgctlError:
        """Return the error for a request that was refused."""
        reason = "unauthorized" if self._status in (401, 403) else "refused"
        return self._refused("The service refused the request", reason, self._consequence(), outcomes)

    def not_verified(self, doubt: Doubt | None = None) -> MsgctlError:
        """Return the error for a code that the service did not confirm."""
        error = self._refused("The code was not verified", "not_verified")
        if doubt and would_verify(self.parts, self.document, doubt):
            error.word = ("verified", [doubt.value])
        return error

    def _refused(self, what: str, reason: str, consequence: str = "", outcomes: Sequence[Outcome] = ()) -> MsgctlError:
        return self._printable(
            RefusedError(
                f"{what} ({self._status}){self._quotation}",
                self._advice(),
                consequence=consequence,
                reason=reason,
                recipients=outcomes,
                details=self._details,
            )
        )

    def rate_limited(self, outcomes: Sequence[Outcome] = ()) -> MsgctlError:
        """Return the error for a request that was turned away for now."""
        error = TurnedAwayError(
            f"The service turned the request away for now ({self._status}){self._quotation}",
            "Try again a little later.",
            consequence=self._consequence(),
            reason="rate_limited",
            recipients=outcomes,
            details=self._details,
        )
        error.retry_after = _seconds(self.response.header("Retry-After"))
        return error

    def unavailable(self) -> MsgctlError:
        """Return the error for a request that only reads and that the service could not carry out."""
        what = f"{self.of_status[0].upper()}{self.of_status[1:]}"
        return TurnedAwayError(what, "Try again a little later.", reason="unavailable", details=self._details)

    def unreadable(self, what: str) -> MsgctlError:
        """Return the error for a useless response to a request that only reads."""
        hint = self._redirect() if 300 <= self._status < 400 else "Check the base URL; -v shows the request."
        return self._printable(UnreadableError(f"{what[0].upper()}{what[1:]}", hint, details=self._details))

    def in_doubt(self, why: str, outcomes: Sequence[Outcome] = ()) -> MsgctlError:
        """Return the error for a request that may have been carried out."""
        error = outcome_unknown(self.request, why, outcomes, self._details)
        if 300 <= self._status < 400:
            error = error.replaced(hint=f"{self._redirect()} {error.hint}")
        return self._printable(error)

    def _printable(self, error: MsgctlError) -> MsgctlError:
        """Return an error with the response that --json prints, if it is a 2xx with a whole JSON document."""
        if self.response.is_success and self.is_json:
            error.response = Response(self.request.operation, self._status, self.response.body, self.document, dict)
        return error

    def _consequence(self) -> str:
        if self.request.operation.verifies:
            return ""
        return self.request.operation.effect.prevented

    @property
    def _details(self) -> ResponseDetails:
        return details_of(self._status, self.response.body, self.document)

    @property
    def _quotation(self) -> str:
        """The error text of the service after a colon; or an empty text."""
        message = self._service_message()
        return f": {message}" if message else ""

    def _service_message(self) -> str:
        """Return the error text of the service or of an HTML page, shortened for a message."""
        message = service_message(self.document)
        if message is None and self.document is not None:
            message = _text(self.document)
        elif message is None:
            text = self.response.body[:MAX_BODY].decode(errors="replace")
            message = " ".join(re.sub("(?s)<(script|style)\\b.*?</\\1>|<[^>]*>", " ", text).split())
        return shorten(message, MAX_QUOTE)

    def _advice(self) -> str | None:
        status = self._status
        is_here = self.is_sandbox or is_loopback(urlsplit(self.base_url).hostname or "")
        if 300 <= status < 400:
            return self._redirect()
        if status in (401, 403):
            return f"{CHECK_CREDENTIALS}." if is_here else CHECK_CREDENTIALS_TOO
        if self.response.is_success or status in EXPLAINED or self.request.operation.verifies:
            return None
        is_of_service = isinstance(self.document, dict) and any(self.document.get(name) for name in ERROR_TEXTS)
        return "Check the values and the base URL." if is_of_service else CHECK_URL

    def _redirect(self) -> str:
        """Return the advice for a redirect. It shows only scheme and host, because the rest may repeat the key."""
        location = self.response.header("Location")[:MAX_URL]
        try:
            url = urlsplit(urljoin(self.base_url, location))
            port = f":{url.port}" if url.port else ""
            to = f"{url.scheme}://{url.hostname or ''}{port}"
        except ValueError:
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


def _seconds(text: str) -> float | None:
    """Return the seconds of a Retry-After header: a number, or a date (RFC 9110, section 10.2.3)."""
    text = text.strip()[:64]
    if text.isascii() and text.isdigit():
        return float(text)
    from email.utils import parsedate_to_datetime  # most services send a number

    try:
        moment = parsedate_to_datetime(text)
        return max(0.0, moment.timestamp() - time.time())
    except (ValueError, OverflowError):
        return None
