"""The service from the caller's side: a request goes in, its answer comes out or an error is raised.

Which requests may be repeated is decided here and nowhere else. One that may have left is repeated only if it reads
(GET /balance, GET /messages-state, POST /url/short-statistic); a send is never repeated after that, since the service
has no way to tell a repetition from a second message.
"""

from __future__ import annotations

import copy
import json
import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote, urlencode, urljoin, urlsplit

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
from msgctl.exchange import Line, LocalLine, LostError, Outgoing, Reply
from msgctl.operations import Effect
from msgctl.request import Request
from msgctl.text import shorten

LONGEST_TARGET = 65_536
"""The longest path and query that is sent, in bytes; every server has a limit, and few have a higher one."""
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
    """Performs requests against one base URL with one credential, over a connection that is kept; for one thread.

    ``seconds`` bounds each attempt as a whole. ``log`` is told of each request and answer, credentials never. ``local``
    answers requests in the place of the network.
    """

    def __init__(
        self,
        base_url: str,
        credential: Credential,
        *,
        seconds: float = 30.0,
        log: Callable[[str], None] = lambda _: None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        local: Callable[[Outgoing], Reply] | None = None,
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._path = _percent_encoded(urlsplit(self._base_url).path)
        self._credential = credential
        self._seconds = seconds
        self._log = log
        self._sleep = sleep
        self._clock = clock
        self._is_local = local is not None
        self._new_line = _lines(base_url) if local is None else lambda: LocalLine(local)
        self._line = self._new_line()

    def sibling(self) -> Client:
        """A client like this one for another thread, with a connection of its own. Any thread may ask for one."""
        sibling = copy.copy(self)
        sibling._line = self._new_line()
        return sibling

    def close(self) -> None:
        self._line.close()

    def perform(self, request: Request, *, within: float | None = None) -> Answer:
        """Make a request and read its answer.

        ``within`` bounds it further, in seconds, and leaves repeating it to the caller.

        Raises NotReachedError, RefusedError, UnreadableError (a request that only reads), OutcomeUnknownError,
        UsageError where the values are too long for a URL, ConfigurationError where the settings for TLS or proxies
        cannot be used, and StoppedError on Ctrl-C.
        """
        self._line.left = False
        try:
            outgoing = self._prepared(request)
            if within is not None:
                return self._judge(request, self._exchange(request, outgoing, min(self._seconds, within)))
            return self._judge(request, self._repeated(request, outgoing))
        except KeyboardInterrupt:
            raise _stopped(request, left=self._line.left) from None

    def _repeated(self, request: Request, outgoing: Outgoing) -> Reply:
        """The reply to a request, which is made again where nothing left, or where it only reads."""
        reads = request.operation.effect is Effect.READS
        for pause in PAUSES:
            try:
                reply = self._exchange(request, outgoing, self._seconds)
            except NotReachedError as error:
                if not error.passing:
                    raise
            except OutcomeUnknownError:
                if not reads:
                    raise
            else:
                if not (reads and reply.status in PASSING_STATUSES):
                    return reply
            self._log(f"* trying again in {pause:g} s")
            self._sleep(pause)
        return self._exchange(request, outgoing, self._seconds)

    def _exchange(self, request: Request, outgoing: Outgoing, seconds: float) -> Reply:
        named = f"{outgoing.method} {outgoing.path}"
        self._log(f"> {named}")
        started = self._clock()
        outcome = "not sent"
        try:
            reply = self._line.exchange(outgoing, seconds)
        except LostError as error:
            outcome = "no answer"
            raise _outcome_unknown(request, str(error)) from error
        except KeyboardInterrupt:
            outcome = "interrupted"
            raise
        else:
            outcome = str(reply.status)
            return reply
        finally:
            self._log(f"< {outcome} {named} {(self._clock() - started) * 1000:.0f} ms")

    def _prepared(self, request: Request) -> Outgoing:
        """The request as it travels. Raises UsageError where it is too long for a URL; its text does not show it."""
        query, form = request.with_credentials(self._credential.parameters())
        outgoing = Outgoing(
            request.operation.method,
            self._path + request.operation.path,
            urlencode(query),
            request.headers,
            urlencode(form).encode("ascii") if request.json is None else request.json,
        )
        if len(outgoing.target) > LONGEST_TARGET:
            raise UsageError(f"{request.operation.name} cannot be asked for: a value is too long for a URL")
        return outgoing

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
                None if self._is_local else ALLOW_ADDRESS,
                http_status=reply.status,
                record=record,
            )
        return RefusedError(
            f"the answer is {_described(reply, said)}{_consequence(request.operation.effect, reply.status)}",
            self._advice(request, reply),
            http_status=reply.status,
            record=record,
            certain=_is_certain(request.operation.effect, reply.status),
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


def _lines(base_url: str) -> Callable[[], Line]:
    """What makes connections to a service that share their settings. Raises ConfigurationError."""
    from msgctl.connection import Connection
    from msgctl.dialing import Dialer

    dialer = Dialer(base_url)
    return lambda: Connection(dialer)


def _percent_encoded(path: str) -> str:
    """A path in ASCII; what is percent-encoded in it already stays as it is."""
    return re.sub("%(?![0-9A-Fa-f]{2})", "%25", quote(path, safe="/%:@!$&'()*+,;=~"))


def _said(value: Any) -> str:
    """A member of an error record in a message; the interface knows strings, but who can tell."""
    return shorten(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _origin(base_url: str, location: str) -> str:
    """Scheme, host and port of where a redirect leads: the rest may repeat the request, and with it the key."""
    try:
        parts = urlsplit(urljoin(base_url, location))
        port = parts.port
    except ValueError:
        return "a malformed URL"
    if not parts.hostname:
        return "a malformed URL"
    return f"{parts.scheme}://{parts.hostname}" + (f":{port}" if port else "")


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


def _is_certain(effect: Effect, status: int) -> bool:
    """Whether a request with such an answer, which is not the service's own, was surely not carried out.

    A 4xx lays the fault on the request, and 301, 307 and 308 ask for it at another place (RFC 9110, 15.4 and 15.5). A
    302 or 303 may be the answer to one that was carried out, and the others may come from a proxy that has passed it
    on.
    """
    return effect is Effect.READS or status in (301, 307, 308) or 400 <= status < 500


def _consequence(effect: Effect, status: int) -> str:
    """What an answer other than the service's own means for the request, as the end of a message."""
    if effect is Effect.READS:
        return ""
    if _is_certain(effect, status):
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
    return StoppedError("interrupted; nothing was sent")
