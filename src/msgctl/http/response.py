"""Convert a response to the record that a command shows, or to an error.

`msgctl.outcomes` determines the meaning of a response. An error quotes the service, reports whether the request was
carried out, and suggests what to do next.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urljoin, urlsplit

from msgctl.config.profiles import SANDBOX_URL
from msgctl.config.urls import is_loopback
from msgctl.errors import (
    ConditionError,
    Hint,
    MsgctlError,
    OutcomeUnknownError,
    RefusedError,
    ResponseDetails,
    TurnedAwayError,
    UnreadableError,
    UsageError,
)
from msgctl.jsontext import Number, Repeated, RepeatedFieldError, ShapeError, load_json
from msgctl.operations import Effect, Operation, Shape
from msgctl.outcomes import codes, judge
from msgctl.outcomes.judge import EXPLAINED, PARTIAL_CONTENT, RATE_LIMITED, REFUSALS
from msgctl.outcomes.outcome import REFUSED, UNKNOWN, Doubt, Outcome, RequestFacts
from msgctl.outcomes.record import ERROR_TEXTS, MAX_QUOTE, RESULTS, beginning_of, convert, service_message
from msgctl.outcomes.words import NO_WORDS, AddedWords
from msgctl.text import capitalized, clean, plural, shorten, some_of
from msgctl.values import MAX_URL, quote

if TYPE_CHECKING:
    from msgctl.http.request import Request
    from msgctl.http.transport import RawResponse

MAX_QUOTED_BODY = 4000
"""Maximum characters of a response in an error."""

NOT_FOR_RECIPIENTS = frozenset({301, 307, 308, 401, 405, 415})
"""Statuses of refusals that are about the account or the address, so they would be the same for any recipients."""
SERVICE_ERROR = 520
"""The status of the service's own errors."""
REQUEST_TIMEOUT = 408
MAX_MISSING = 3
"""Maximum strings that a hint suggests adding to a profile."""

TRY_LATER = "Try again later."
CHECK_CREDENTIALS = "Check the client ID and the key"
CHECK_CREDENTIALS_TOO = f"{CHECK_CREDENTIALS}, and that the account's Security menu allows this machine's IP address."
_CREDENTIALS = "unauthori[sz]ed|not authori[sz]ed|no autorizad|credential|credencial"
_CREDITS = "cr[eé]dit|saldo|balance"
"""Words of a refusal that seems to be about credits. They decide only about hints."""

MAX_QUOTATION = 500
"""Maximum characters that an error quotes from a response that is not clear."""


@dataclass
class Response:
    """A response to a request as the service sent it (``body``), and its JSON (``content``).

    ``facts`` are about its request, and ``outcomes`` contains an outcome per recipient of a send or change.
    """

    request: Request
    http_status: int
    body: bytes
    content: Any
    facts: RequestFacts
    outcomes: Sequence[Outcome] = ()

    @property
    def operation(self) -> Operation:
        return self.request.operation

    @property
    def missing_words(self) -> Sequence[str]:
        """The strings that a profile must add as accepted, so that no outcome is unknown; perhaps none."""
        missing: list[str] = []
        outcomes = self.outcomes
        while unknown := [outcome for outcome in outcomes if outcome.outcome == UNKNOWN]:
            doubt = unknown[0].doubt
            text = doubt and doubt.text_to_add
            if text is None or text in missing or len(missing) == MAX_MISSING:
                return []
            missing.append(text)
            facts = replace(self.facts, added=self.facts.added.plus("accepted", missing))
            outcomes = judge.outcomes_of(facts, self.http_status, self.content).outcomes
        return missing

    def set_outcomes(self, outcomes: Sequence[Outcome]) -> None:
        """Set the outcomes of the recipients. An unknown outcome quotes the response, so that no id is lost."""
        self.outcomes = outcomes
        if any(outcome.outcome == UNKNOWN for outcome in outcomes):
            text = self.quotation
            self.outcomes = [
                outcome._replace(error=text) if outcome.outcome == UNKNOWN else outcome for outcome in outcomes
            ]

    def error(self) -> MsgctlError | None:
        """Return the error about unknown outcomes, or else about refused recipients; None if all were accepted."""
        if unknown := _names(self.outcomes, UNKNOWN):
            verb = "was" if len(unknown) == 1 else "were"
            doubt = self.doubt(f"{some_of(unknown)} {verb} accepted")
            return OutcomeUnknownError(
                f"{capitalized(doubt)}: {self.quotation}",
                self.request.advice,
                missing_words=("accepted", self.missing_words),
                recipients=self.outcomes,
                details=self.details,
            )
        if refused := _names(self.outcomes, REFUSED):
            message = next((outcome.error for outcome in self.outcomes if outcome.error), None)
            message = message or service_message(self.content)
            quoted = f": {shorten(message, MAX_QUOTATION)}" if message else ""
            number = f"{len(refused)} of {plural(len(self.outcomes), 'recipient')}"
            return ConditionError(
                f"The service refused {some_of(refused)} ({number}){quoted}",
                reason="not_accepted",
                recipients=self.outcomes,
                details=self.details,
            )
        return None

    def doubt(self, what: str) -> str:
        """Return a clause that the outcome is in doubt, with the field that is the reason, if there is one."""
        doubt = next((outcome.doubt for outcome in self.outcomes if outcome.doubt), None)
        because = ""
        if doubt is not None:
            because = f", because its {shorten(doubt.field, 60)} is {quote(shorten(doubt.value, 60))}"
        return f"the response does not show whether {what}{because}"

    @property
    def quotation(self) -> str:
        """The text of the response on one line, for the error of an unknown outcome."""
        return shorten(" ".join(self.body.decode(errors="replace").split()), MAX_QUOTATION)

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """The record of the response, with numbers as `Number`. A job never needs it."""
        return convert(self.operation, self.content, self.facts.known_phones)

    @property
    def details(self) -> ResponseDetails:
        return details_of(self.http_status, self.body, self.content)


def details_of(http_status: int, body: bytes, document: Any) -> ResponseDetails:
    """Return the details of a response for an error. ``document`` is its JSON, None if it is incomplete."""
    text = body.decode(errors="replace")
    record = {}
    if isinstance(document, dict):
        for name in ("error", "msg"):
            if name in document:
                value = document[name]
                beginning = beginning_of(value, MAX_QUOTED_BODY)
                record[name] = value if len(beginning) < MAX_QUOTED_BODY else beginning
    if len(text) > MAX_QUOTED_BODY:
        document = None
    return ResponseDetails(http_status, record, text[:MAX_QUOTED_BODY], document)


def stored_details(http_status: int | None, body: bytes) -> ResponseDetails | None:
    """Return the details of a stored response; None if there was no response."""
    if http_status is None:
        return None
    try:
        document = load_json(body, repeated="refuse")
    except ShapeError:
        document = None
    return details_of(http_status, body, document)


def stored_response(request: Request, body: bytes, http_status: int, added: AddedWords = NO_WORDS) -> Response:
    """Return the response to a send or change from its whole body. Raises ShapeError if the body is not JSON."""
    response = Response(request, http_status, body, load_json(body), request.facts(added))
    response.set_outcomes(judge.outcomes_of(response.facts, http_status, response.content).outcomes)
    return response


def outcomes_after(error: MsgctlError, phones: Sequence[str | None]) -> Sequence[Outcome]:
    """Return the outcomes of the recipients of a request that ended with an error."""
    outcome = REFUSED if isinstance(error, (UsageError, RefusedError)) else UNKNOWN
    outcomes = error.recipients or [Outcome(phone, outcome) for phone in phones or (None,)]
    return [recipient._replace(outcome=outcome, error=error.message) for recipient in outcomes]


def without_response(request: Request, why: str) -> MsgctlError:
    """Return the error for a request that was sent and got no response."""
    if request.operation.effect is Effect.READS:
        return TurnedAwayError(f"The request was sent, but {why}", TRY_LATER, reason="unavailable")
    outcomes: Sequence[Outcome] = ()
    if not request.operation.verifies:
        outcomes = [Outcome(phone, UNKNOWN) for phone in request.facts().phones]
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


def is_about_credentials(message: str) -> bool:
    """Return whether a refusal seems to be about the client ID or the key. This decides only about hints."""
    return re.search(_CREDENTIALS, message, re.IGNORECASE) is not None


def _names(outcomes: Sequence[Outcome], kind: str) -> list[str]:
    """Return the recipients with an outcome, each with the status that the service gave it."""
    names = []
    for outcome in outcomes:
        if outcome.outcome == kind:
            status = f" [{clean(outcome.status)}]" if outcome.status else ""
            names.append((outcome.phone or "the message") + status)
    return names


def parse(request: Request, raw: RawResponse, base_url: str, *, added: AddedWords = NO_WORDS) -> Response:
    """Return the record in a response, with the outcomes of its recipients. ``added`` are the words of the profile.

    Raises RefusedError, UnreadableError, TurnedAwayError and OutcomeUnknownError. An operation without fields in its
    record accepts any body.
    """
    document, fault, is_json = None, raw.fault, not raw.fault
    reading: Repeated = "refuse" if raw.is_success else "all"
    try:
        if not fault:
            document = load_json(raw.body, repeated=reading)
    except ShapeError as error:
        fault = str(error)
        is_json = isinstance(error, RepeatedFieldError)
    response = Response(request, raw.status, raw.body, document, request.facts(added))
    parser = _Parser(response, raw, fault, is_json, base_url)
    if request.operation.effect is Effect.READS:
        response.document = parser.read()
    elif request.operation.verifies:
        response.document = parser.verify_code()
    else:
        parser.judge_send()
    return response


class _Parser(NamedTuple):
    """Returns the record in a response, or raises the error for a response without it.

    ``response`` has no outcomes yet. If its JSON cannot be used, ``fault`` is the reason: the document is incomplete,
    or has a field twice. In the second case, ``is_json`` is true.
    """

    response: Response
    raw: RawResponse
    fault: str
    is_json: bool
    base_url: str

    def judge_send(self) -> None:
        """Set the outcomes of the response to a send or change."""
        response = self.response
        status, document, facts = response.http_status, response.content, response.facts
        judgement = judge.outcomes_of(facts, status, document)
        outcomes = judgement.outcomes
        if judgement.is_refused or (facts.is_link and outcomes[0].outcome == REFUSED):
            raise self._refused(outcomes)
        if not judge.is_whole_success(status):
            raise self._in_doubt(self._of_status, outcomes)
        if not response.operation.record.fields and not self.raw.fault:
            response.document = document if isinstance(document, dict) else {}
            return
        if self.fault:
            raise self._in_doubt(self._unusable(self.fault), outcomes)
        response.set_outcomes(outcomes)
        if facts.is_link and outcomes[0].outcome == UNKNOWN:
            error = self._in_doubt(response.doubt("the short URL was created"), outcomes)
            error.missing_words = ("accepted", response.missing_words)
            raise error

    def verify_code(self) -> Mapping[str, Any]:
        """Return the record of a code that is verified."""
        status, document, is_success = self.raw.status, self.response.content, self.raw.is_success
        if status in (401, 403, RATE_LIMITED):
            raise self._refused()
        is_breakdown = self._is_breakdown and status != SERVICE_ERROR
        may_be_used_up = is_breakdown or status == PARTIAL_CONTENT or (self.fault and not is_success)
        if may_be_used_up or (status in EXPLAINED and codes.may_use_up(document)):
            raise self._in_doubt(self._of_status)
        if self.fault:
            raise self._in_doubt(self._unusable(self.fault))
        if not is_success:
            raise self._not_verified()
        doubt = codes.doubt_of_code(self.response.facts, document)
        if doubt is not None:
            raise self._not_verified(doubt)
        record = convert(self.response.operation, document)
        result = next((record[name] for name in RESULTS if name in record), None)
        return {"status": result, **record}

    def read(self) -> Mapping[str, Any]:
        """Return the record of a request that only reads."""
        document, request = self.response.content, self.response.request
        operation = request.operation
        if not judge.is_whole_success(self.raw.status):
            raise self._of_read()
        if self.raw.is_late:
            raise without_response(request, self.fault)
        is_any_body = not operation.record.fields
        if self.fault and (self.raw.fault or not is_any_body):
            raise self._unreadable(self._unusable(self.fault))
        if is_any_body:
            if self._is_refused:
                raise self._refused()
            return document if isinstance(document, dict) else {}
        try:
            record = convert(operation, document, (), dict(request.query).get("id"))
            if operation.record.shape is not Shape.BALANCE:
                return record
            return {**record, "status": Number(f"{judge.credits_left(document):f}")}
        except ShapeError as error:
            if self._is_refused:
                raise self._refused() from None
            raise self._unreadable(self._unusable(str(error))) from None

    # --- errors

    @property
    def _is_refused(self) -> bool:
        """Whether the response to a request that only reads is a refusal."""
        return judge.outcomes_of(self.response.facts, self.raw.status, self.response.content).is_refused

    @property
    def _is_breakdown(self) -> bool:
        """Whether the status means that the service failed, or did not respond in time."""
        return self.raw.status == REQUEST_TIMEOUT or 500 <= self.raw.status < 600

    @property
    def _of_status(self) -> str:
        """The description of a response by its status and text."""
        return f"the response has status {self.raw.status}{self._quotation or ' without a message'}"

    def _unusable(self, reason: str) -> str:
        """Return the description of a 2xx response without the requested record."""
        message = self._service_message()
        quoted = f'. Body: "{message}"' if message else ""
        return f"the response ({self.raw.status}) cannot be used: {reason}{quoted}"

    def _of_read(self) -> MsgctlError:
        """Return the error for a request that only reads and whose status is not a success."""
        status, content = self.raw.status, self.response.content
        is_refusal = status in REFUSALS or status == RATE_LIMITED
        if is_refusal or (status in EXPLAINED and not judge.is_passing_fault(content)):
            return self._refused()
        if self._is_breakdown or status in EXPLAINED:
            what = capitalized(self._of_status)
            return TurnedAwayError(what, TRY_LATER, reason="unavailable", details=self.response.details)
        return self._unreadable(self._of_status)

    def _not_verified(self, doubt: Doubt | None = None) -> MsgctlError:
        """Return the error for a code that the service did not confirm, because of the field in ``doubt`` if given."""
        error = self._refused(what="The code was not verified", reason="not_verified")
        if doubt is not None and doubt.text_to_add is not None:
            facts = self.response.facts
            facts = replace(facts, added=facts.added.plus("verified", [doubt.value]))
            if codes.doubt_of_code(facts, self.response.content) is None:
                error.missing_words = ("verified", [doubt.value])
        return error

    def _refused(
        self, outcomes: Sequence[Outcome] = (), what: str = "The service refused the request", reason: str = "refused"
    ) -> MsgctlError:
        """Return the error for a request that was refused, or turned away for now."""
        status, operation = self.raw.status, self.response.operation
        kind: type[MsgctlError] = RefusedError
        if status == RATE_LIMITED:
            kind, what, reason = TurnedAwayError, "The service turned the request away for now", "rate_limited"
        elif status in (401, 403):
            reason = "unauthorized"
        consequence = "" if operation.verifies else operation.effect.prevented
        error = kind(
            f"{what} ({status}){self._quotation}",
            self._advice(),
            consequence=consequence,
            reason=reason,
            recipients=outcomes,
            details=self.response.details,
        )
        if isinstance(error, TurnedAwayError):
            error.retry_after = _seconds(self.raw.header("Retry-After"))
        return self._printable(error)

    def _unreadable(self, what: str) -> MsgctlError:
        """Return the error for a useless response to a request that only reads."""
        hint = "Check the base URL; -v shows the request."
        if 300 <= self.raw.status < 400:
            hint = self._redirect()
        return self._printable(UnreadableError(capitalized(what), hint, details=self.response.details))

    def _in_doubt(self, why: str, outcomes: Sequence[Outcome] = ()) -> MsgctlError:
        """Return the error for a request that may have been carried out."""
        error = outcome_unknown(self.response.request, why, outcomes, self.response.details)
        if 300 <= self.raw.status < 400:
            error = error.replaced(hint=Hint.joined(self._redirect(), error.hint, separator=" "))
        return self._printable(error)

    def _printable(self, error: MsgctlError) -> MsgctlError:
        """Return the error. With a 2xx status and a complete JSON document, --json prints the response, too."""
        if self.raw.is_success and self.is_json:
            self.response.document = {}
            error.response = self.response
        return error

    @property
    def _quotation(self) -> str:
        """The service's error message after a colon; empty if it has none."""
        message = self._service_message()
        return f": {message}" if message else ""

    def _service_message(self) -> str:
        """Return the error text of the service or of an HTML page, shortened for a message."""
        document = self.response.content
        message = service_message(document)
        if message is None and document is not None:
            message = beginning_of(document, MAX_QUOTE + 1)  # so that a reader sees that it was cut
        elif message is None:
            text = self.raw.body[:MAX_QUOTED_BODY].decode(errors="replace")
            message = " ".join(re.sub("(?s)<(script|style)\\b.*?</\\1>|<[^>]*>", " ", text).split())
        return shorten(message, MAX_QUOTE)

    def _advice(self) -> str | None:
        status, document = self.raw.status, self.response.content
        if status == RATE_LIMITED:
            return TRY_LATER
        if 300 <= status < 400:
            return self._redirect()
        if status in (401, 403):
            is_here = self.base_url == SANDBOX_URL or is_loopback(urlsplit(self.base_url).hostname or "")
            return f"{CHECK_CREDENTIALS}." if is_here else CHECK_CREDENTIALS_TOO
        if self.raw.is_success:
            return None
        if status in EXPLAINED:
            return self._advice_on(self._service_message())
        if self.response.operation.verifies:
            return None
        if isinstance(document, dict) and any(document.get(name) for name in ERROR_TEXTS):
            return "Check the values and the base URL."
        return "Check the base URL: it ends in the version, /api/v1."

    def _advice_on(self, message: str) -> str | None:
        """Return the advice for a refusal that the service explains."""
        if is_about_credentials(message):
            return Hint("Check the account: ", "doctor")  # it explains the key and the allowed addresses
        if self.response.operation.verifies:
            return None
        if re.search(_CREDITS, message, re.IGNORECASE):
            return Hint("Top up. See the credits left: ", "balance")
        if self.response.facts.is_link:
            return Hint("If the name is in use, see its short URL: ", f"url stats {self.response.request.quoted_name}")
        return None

    def _redirect(self) -> str:
        """Return the advice for a redirect. It shows only scheme and host, because the rest may repeat the key."""
        location = self.raw.header("Location")[:MAX_URL]
        try:
            url = urlsplit(urljoin(self.base_url, location))
            port = f":{url.port}" if url.port else ""
            to = f"{url.scheme}://{url.hostname or ''}{port}"
        except ValueError:
            to = "a malformed URL"
        where = f"; this one points to {shorten(to)}" if location else ""
        return f"Redirects are not followed, because they would send the key elsewhere{where}. Check the base URL."


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
