"""The service from the caller's side: a request goes in, its answer comes out or an error is raised.

Which requests may be repeated is decided here and nowhere else. One that may have left is repeated only if it reads
(GET /balance, GET /messages-state, POST /url/short-statistic); a send is never repeated after that, since the service
has no way to tell a repetition from a second message.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import httpx

from msgctl import answers, operations
from msgctl.answers import Answer, ShapeError
from msgctl.credential import Credential
from msgctl.errors import (
    PASSING_STATUSES,
    NotReachedError,
    OutcomeUnknownError,
    RefusedError,
    StoppedError,
    UnreadableError,
    UsageError,
)
from msgctl.exchange import Journey, LostError, Reply, exchange, open_client
from msgctl.operations import Effect
from msgctl.request import Request
from msgctl.text import clean, shorten

PAUSES = (0.3, 0.9)
"""Seconds before the first and the second repetition."""

ALLOW_ADDRESS = (
    "If nothing is wrong with the values: calls from an address that is not allowed get this answer, too. "
    "Allow this machine's public address in the security menu of the account."
)
CHECK_BEFORE_REPEATING = {
    operations.BLOCK_PHONE: "Block the number again: that changes nothing where it is blocked already.",
    operations.URL_SHORT: "Before making it again, look whether it is there: msgctl url stats NAME --since today",
    operations.VERIFY_2FA: "The code may be used up: where in doubt, send a new one.",
}
"""What to do where it is not known whether a request was carried out; every other one sends."""
CHECK_A_SEND = "Before sending again, check the delivery state, the balance, or the phone itself."
CHECK_CREDENTIALS = (
    "Check client and key, and whether this machine's address is allowed in the account's security menu."
)


class Client:
    """Performs requests against one base URL with one credential.

    ``seconds`` bounds each attempt as a whole. ``log`` is told of each request and answer, credentials never. A
    ``transport`` takes the place of the network.
    """

    def __init__(
        self,
        base_url: str,
        credential: Credential,
        *,
        seconds: float = 30.0,
        transport: httpx.BaseTransport | None = None,
        log: Callable[[str], None] = lambda _: None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._credential = credential
        self._seconds = seconds
        self._log = log
        self._sleep = sleep
        self._clock = clock
        self._local = transport is not None
        self._http = open_client(base_url, seconds) if transport is None else httpx.Client(transport=transport)

    def close(self) -> None:
        self._http.close()

    def perform(self, request: Request, *, within: float | None = None) -> Answer:
        """Make a request and read its answer.

        ``within`` bounds it further, in seconds, and leaves repeating it to the caller.

        Raises NotReachedError, RefusedError, UnreadableError (a request that only reads), OutcomeUnknownError,
        UsageError where the values are too long for a URL, and StoppedError on Ctrl-C.
        """
        reads = request.operation.effect is Effect.READS
        seconds = self._seconds if within is None else min(self._seconds, within)
        for pause in (*PAUSES, None) if within is None else (None,):
            try:
                reply = self._exchange(request, seconds)
            except NotReachedError as error:
                if pause is None or not error.passing:
                    raise
            except OutcomeUnknownError:
                if pause is None or not reads:
                    raise
            else:
                if pause is None or not (reads and reply.status in PASSING_STATUSES):
                    return self._judged(request, reply)
            self._pause(request, pause)
        raise AssertionError("the last attempt returns or raises")

    def _judged(self, request: Request, reply: Reply) -> Answer:
        """The answer that was read; whoever interrupts that is told that the request had gone out."""
        try:
            return self._judge(request, reply)
        except KeyboardInterrupt:
            raise _stopped(request, left=True) from None

    def _pause(self, request: Request, seconds: float) -> None:
        """Wait before a repetition, which there is only where nothing left, or where the request only reads."""
        self._log(f"* trying again in {seconds:g} s")
        try:
            self._sleep(seconds)
        except KeyboardInterrupt:
            raise _stopped(request, left=False) from None

    def _exchange(self, request: Request, seconds: float) -> Reply:
        path = clean(httpx.URL(self._base_url).path.rstrip("/") + request.operation.path)
        journey = Journey()
        self._log(f"> {request.operation.method} {path}")
        started = self._clock()
        outcome = "not sent"
        try:
            reply = exchange(self._http, self._prepared(request, journey), journey, seconds, traced=not self._local)
        except LostError as error:
            outcome = "no answer"
            raise _outcome_unknown(request, str(error)) from error
        except KeyboardInterrupt:
            outcome = "interrupted"
            raise _stopped(request, left=journey.give_up()) from None
        else:
            outcome = str(reply.status)
            return reply
        finally:
            self._log(f"< {outcome} {request.operation.method} {path} {(self._clock() - started) * 1000:.0f} ms")

    def _prepared(self, request: Request, journey: Journey) -> httpx.Request:
        query, form = request.with_credentials(self._credential.parameters())
        try:
            return self._http.build_request(
                request.operation.method,
                self._base_url + request.operation.path,
                headers=request.headers,
                params=query or None,
                data=dict(form) or None,
                content=request.json,
                extensions={"trace": journey.trace},
            )
        except httpx.InvalidURL:  # its text quotes the URL, and the key with it
            raise UsageError(f"{request.operation.name} cannot be asked for: a value is too long for a URL") from None

    def _judge(self, request: Request, reply: Reply) -> Answer:
        if reply.status != 200:
            raise self._refused(request, reply)
        try:
            return answers.read(request.operation, reply.whole_body())
        except ShapeError as error:
            if request.operation.effect is Effect.READS:
                raise UnreadableError(
                    f"the answer to {request.operation.name} cannot be read: {error}",
                    "Check the base URL; -v shows what was asked for.",
                    http_status=reply.status,
                ) from error
            raise _outcome_unknown(request, f"the answer cannot be read: {error}", reply.status) from error

    def _refused(self, request: Request, reply: Reply) -> RefusedError:
        record = self._error_record(reply.body)
        said = ": ".join(_said(value) for value in (record or {}).values() if value)
        if reply.status == 520 and record is not None:
            message = f"the service refused the request ({reply.status}){': ' + said if said else ''}"
            consequence = {Effect.SENDS: "; nothing was sent", Effect.CHANGES: "; nothing was changed"}
            return RefusedError(
                message + consequence.get(request.operation.effect, ""),
                None if self._local else ALLOW_ADDRESS,
                http_status=reply.status,
                record=record,
            )
        return RefusedError(
            f"the answer is {_described(reply, said)}{_doubt(request.operation.effect, reply.status)}",
            self._advice(request, reply),
            http_status=reply.status,
            record=record,
        )

    def _advice(self, request: Request, reply: Reply) -> str | None:
        if 300 <= reply.status < 400:
            where = _origin(self._base_url, reply.location) if reply.location else "nowhere"
            shown = shorten(self._credential.mask(where))
            return (
                f"Redirects are not followed, since the key would travel along; it points to {shown}. "
                "Check the base URL, and before sending again the delivery state or the balance."
            )
        if reply.status in (404, 405):
            return "Check the base URL: it ends in the version segment, /api/v1."
        if reply.status == 520:
            return ALLOW_ADDRESS
        if reply.status in (401, 403):
            return CHECK_CREDENTIALS
        if reply.status in PASSING_STATUSES and request.operation.effect is Effect.READS:
            return "Try again a little later."
        return _check(request) if reply.status >= 500 else "Check the values and the base URL."

    def _error_record(self, body: bytes) -> dict[str, Any] | None:
        """``error`` and ``msg`` of the service's error record, without the key; None where the body is no record."""
        try:
            document = answers.load(body)
        except ShapeError:
            return None
        if not isinstance(document, dict) or (document and not document.keys() & {"error", "msg"}):
            return None
        try:
            return {name: self._masked(document[name]) for name in ("error", "msg") if name in document}
        except RecursionError:  # no error of a service is nested a thousand times
            return None

    def _masked(self, value: Any) -> Any:
        """A JSON value without the key, wherever in it."""
        if isinstance(value, str):
            masked = self._credential.mask(value)
            return value if masked == value else masked  # a number that is left as it is stays one
        if isinstance(value, list):
            return [self._masked(element) for element in value]
        if isinstance(value, dict):
            return {self._credential.mask(name): self._masked(element) for name, element in value.items()}
        return value


def _said(value: Any) -> str:
    """A member of an error record in a message; the interface knows strings, but who can tell."""
    return shorten(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _origin(base_url: str, location: str) -> str:
    """Scheme, host and port of where a redirect leads: the rest may repeat the request, and with it the key."""
    try:
        url = httpx.URL(base_url).join(location)
    except httpx.InvalidURL:
        return "a malformed URL"
    return f"{url.scheme}://{url.netloc.decode('ascii', 'replace')}"


def _described(reply: Reply, said: str) -> str:
    if said:
        return f"status {reply.status}: {said}"
    if reply.fault:
        return f"status {reply.status}, and {reply.fault}"
    if not reply.body.strip():
        return f"status {reply.status} with an empty body"
    return f"status {reply.status} with {_kind_of(reply.body)} instead of the service's record"


def _kind_of(body: bytes) -> str:
    """What a body is that is no record, in words."""
    start = body[:2000].lower()
    if b"<html" in start or b"<!doctype" in start:
        return "an HTML page, perhaps of a proxy,"
    try:
        answers.load(body)
    except ShapeError:
        return "a text"
    return "other JSON"


def _doubt(effect: Effect, status: int) -> str:
    """What an answer that is not the service's own leaves open.

    A 4xx lays the fault on the request, and 301, 307 and 308 ask for it at another place (RFC 9110, 15.4 and 15.5): it
    was not carried out. A 302 or 303 may be the answer to one that was, and the others may come from a proxy that has
    passed it on.
    """
    if effect is Effect.READS:
        return ""
    if status in (301, 307, 308) or 400 <= status < 500:
        return "; nothing was sent" if effect is Effect.SENDS else "; nothing was changed"
    return "; the request may have been carried out all the same"


def _check(request: Request) -> str:
    """What to look at before a request is made again."""
    if request.operation.effect is Effect.READS:
        return "Try again."
    return CHECK_BEFORE_REPEATING.get(request.operation, CHECK_A_SEND)


def _outcome_unknown(request: Request, why: str, status: int | None = None) -> OutcomeUnknownError:
    if request.operation.effect is Effect.READS:
        return OutcomeUnknownError(
            f"{request.operation.name} was asked for, and {why}", "Try again.", http_status=status
        )
    return OutcomeUnknownError(
        f"the request was sent, and {why}: it may have been carried out", _check(request), http_status=status
    )


def _stopped(request: Request, *, left: bool) -> StoppedError:
    if request.operation.effect is Effect.READS:
        return StoppedError("interrupted")
    if left:
        return StoppedError("interrupted after the request was sent: it may have been carried out", _check(request))
    return StoppedError("interrupted; nothing was sent", nothing_sent=True)
