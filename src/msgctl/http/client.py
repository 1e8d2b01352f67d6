"""The client of the service: send a request, and return its response or raise an error.

Only this module decides which requests may be retried. A request that may have been sent is retried only if it changes
nothing (GET /balance, GET /messages-state, POST /url/short-statistic, `api GET`). A send is never retried then, because
the service cannot distinguish a retry from a second message.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from threading import Lock
from urllib.parse import urlsplit

import httpx

from msgctl.config.profiles import Credential
from msgctl.errors import (
    NOTHING_SENT,
    RETRYABLE_STATUSES,
    Interrupted,
    MsgctlError,
    NotReachedError,
    RefusedError,
    TurnedAwayError,
    UsageError,
    unexpected,
    without_frames,
)
from msgctl.http import SentCounter
from msgctl.http.redaction import redact, redact_body
from msgctl.http.request import Request, by_name
from msgctl.http.response import Response, parse, without_response
from msgctl.http.transport import (
    LargeBody,
    NoResponseError,
    RawResponse,
    TooLateError,
    Transport,
    ascii_url,
    exchange,
)
from msgctl.operations import Effect
from msgctl.outcomes.outcome import REFUSED
from msgctl.outcomes.words import NO_WORDS, AddedWords
from msgctl.text import clean, without_parameters

MAX_REQUEST_URL = 65_000
"""The longest URL that is sent, in bytes; few servers accept longer ones."""
PAUSES = (0.3, 0.9)
"""Seconds before the first and the second retry."""
MAX_LOGGED_LINES = 100
MAX_LOGGED_CHARACTERS = 4000
"""Limits under -vv, separately for the headers and the body of a request or response."""
_parsing = Lock()
"""Held while a response is redacted or parsed: its parsed JSON takes up to 32 times as much memory as its text."""


class Client:
    """Makes requests to one base URL with one credential, over a connection that is kept open; for one thread.

    ``base_url`` has no slash at its end. ``timeout`` limits a request with its retries, in seconds. ``transport``
    creates the transports of the sandbox; without it, the network is used. ``added`` are the words of the profile.
    ``log`` gets a line for each request and response at ``verbosity`` 1, and their headers and bodies, too, at 2.
    ``counter`` counts the requests of the run that may have been sent. The key is redacted in all responses, errors and
    log lines.
    """

    def __init__(
        self,
        base_url: str,
        credential: Credential,
        *,
        timeout: float = 30.0,
        transport: Callable[[], httpx.BaseTransport] | None = None,
        log: Callable[[str], None] = lambda _: None,
        verbosity: int = 1,
        counter: SentCounter | None = None,
        sleep: Callable[[float], None] = time.sleep,
        added: AddedWords = NO_WORDS,
    ) -> None:
        self._base_url = base_url
        self._ascii_url = ascii_url(base_url)
        self._path = urlsplit(self._ascii_url).path
        self._credential = credential
        self._timeout = timeout
        self._write_log = log
        self._verbosity = verbosity
        self._counter = counter or SentCounter()
        self._sleep = sleep
        self._added = added
        self._new_transport = transport or partial(Transport, base_url)
        self._transport = self._new_transport()
        self._large_body = LargeBody()
        self._sent: list[int] = []
        """The sizes of the parts of the latest request that have left this machine, or may have."""

    def sibling(self) -> Client:
        """Return a client with the same settings and its own connection, for another thread. Any thread may call it."""
        sibling = copy.copy(self)
        sibling._transport = self._new_transport()  # noqa: SLF001 (an object of this class)
        sibling._large_body, sibling._sent = LargeBody(), []  # noqa: SLF001
        return sibling

    @property
    def is_sent(self) -> bool:
        """Whether a byte of the latest request may have left this machine."""
        return bool(self._sent)

    def close(self) -> None:
        self._transport.close()

    def send(
        self, request: Request, *, timeout: float | None = None, may_send: Callable[[], bool] | None = None
    ) -> Response:
        """Make a request and return its response.

        ``timeout`` (seconds) replaces the client's limit if it is lower; the caller then decides about retries.
        ``may_send`` returns whether it is not too late for the first byte, after the connection is open.

        Raises NotReachedError, RefusedError, TurnedAwayError, UnreadableError (only for reads), OutcomeUnknownError,
        UsageError if the values are too long for a URL, ConfigurationError if the settings for TLS or proxies cannot
        be used, TooLateError, and Interrupted on Ctrl-C.
        """
        with self._counted(request):
            return self.parse(request, self._response(request, timeout, may_send))

    def fetch(self, request: Request) -> RawResponse:
        """Make a request and return the response, whatever its status and body. Raises the other errors of `send`."""
        with self._counted(request):
            return self._response(request)

    def parse(self, request: Request, response: RawResponse) -> Response:
        """Return the parsed response, or raise its error, like `send`. Call it once per response."""
        with _parsing:
            try:
                parsed = parse(request, response, self._base_url, added=self._added)
            except (RefusedError, TurnedAwayError) as error:
                self._count(request, -1)
                raise without_frames(error) from None  # another thread parses next
            except MsgctlError as error:
                raise without_frames(error) from None
        if parsed.outcomes and all(outcome.outcome == REFUSED for outcome in parsed.outcomes):
            self._count(request, -1)
        return parsed

    @contextmanager
    def _counted(self, request: Request) -> Iterator[None]:
        """Count a request unless it was certainly not sent. Convert Ctrl-C and bugs to errors that report this."""
        self._sent.clear()
        self._count(request, 1)
        try:
            yield
        except BaseException as error:
            is_sent = self.is_sent
            if not is_sent:
                self._count(request, -1)
            if isinstance(error, KeyboardInterrupt):
                raise interrupted(request, is_sent=is_sent) from None
            if isinstance(error, (MsgctlError, TooLateError)) or not isinstance(error, Exception):
                raise
            raise unexpected(error, is_sent=is_sent and request.operation.effect is not Effect.READS) from error
        finally:
            self._large_body.release()

    def _count(self, request: Request, number: int) -> None:
        if request.operation.effect is not Effect.READS:
            self._counter.add(number)

    def _response(
        self, request: Request, timeout: float | None = None, may_send: Callable[[], bool] | None = None
    ) -> RawResponse:
        """Return the response to a request. Retry the request if it was not sent, or if it only reads."""
        if timeout is not None:
            return self._attempt(request, min(self._timeout, timeout), may_send)
        reads = request.operation.effect is Effect.READS
        deadline, seconds = time.monotonic() + self._timeout, self._timeout
        for pause in PAUSES:
            try:
                response = self._attempt(request, seconds, may_send)
            except (NotReachedError, TurnedAwayError) as error:
                seconds = deadline - time.monotonic() - pause
                if seconds <= 0 or not error.retryable:
                    raise
            else:
                seconds = deadline - time.monotonic() - pause
                is_lost = response.is_lost or response.status in RETRYABLE_STATUSES
                if seconds <= 0 or not (reads and is_lost):
                    return response
            self._log(f"* trying again in {pause:g} s")
            self._sleep(pause)
        return self._attempt(request, seconds, may_send)

    def _attempt(self, request: Request, seconds: float, may_send: Callable[[], bool] | None) -> RawResponse:
        """Make a request once."""
        self._sent.clear()
        name = f"{request.operation.method} {self._path}{request.operation.path}"
        outgoing = self._outgoing(request, may_send)
        self._log(f"> {name}")
        if self._verbosity > 1:
            self._log_request(outgoing)
        started = time.monotonic()
        outcome = "not sent"
        try:
            response = exchange(self._transport, outgoing, seconds, request.max_response, self._large_body)
            with _parsing:
                response = self._redacted(response)
            outcome = str(response.status)
        except NoResponseError as error:
            outcome = "no response"
            raise without_response(request, str(error)) from None
        except KeyboardInterrupt:
            outcome = "interrupted"
            raise
        finally:
            self._log(f"< {outcome} {name} {(time.monotonic() - started) * 1000:.0f} ms")
        if self._verbosity > 1:
            self._log_response(response)
        return response

    def _outgoing(self, request: Request, may_send: Callable[[], bool] | None) -> httpx.Request:
        """Return the request with the credentials. Raises UsageError if its URL, which is not shown, is too long."""
        client, key = self._credential
        query, form = request.with_credentials((("client", str(client)), ("key", key)))
        path = self._path + request.operation.path
        try:
            url = _parsed(self._ascii_url + request.operation.path)
            if query:
                url = url.copy_with(params=query)
                path += f"?{url.query.decode()}"
            is_too_long = bool(query) and len(str(url)) > MAX_REQUEST_URL
        except httpx.InvalidURL:  # over 65,536 characters
            is_too_long = True
        if is_too_long:
            raise UsageError(f"The URL of the request is longer than {MAX_REQUEST_URL:,} bytes", "Shorten a value.")
        return httpx.Request(
            request.operation.method,
            url,
            headers=_headers(*request.headers.items()),
            data=by_name(form) or None,
            content=request.json,
            # httpx would remove the dots of a path such as /a/../b.
            extensions={"target": path.encode(), "sent": self._sent, "may_send": may_send},
        )

    def _redacted(self, response: RawResponse) -> RawResponse:
        """Return a response with the key redacted, so that no other code can show or store it."""
        key = self._credential.key
        head = b"\0".join([part for header in response.headers for part in header])
        parts = redact_body(head, key).split(b"\0")
        headers = list(zip(parts[::2], parts[1::2], strict=False))
        return response._replace(headers=headers, body=redact_body(response.body, key, is_cut=response.is_cut))

    # --- the log

    def _log_request(self, request: httpx.Request) -> None:
        head = _head(request.headers.raw)
        if query := request.url.query.decode():
            head += f"\n?{query}"
        for part in (head, request.content.decode()):
            self._log_part(">", redact(without_parameters(part, "client|key"), self._credential.key))

    def _log_response(self, response: RawResponse) -> None:
        self._log_part("<", _head(response.headers))
        # Cut first, because splitting millions of lines would take hundreds of megabytes.
        self._log_part("<", response.body[: 4 * MAX_LOGGED_CHARACTERS + 4].decode(errors="replace"))

    def _log_part(self, sign: str, text: str) -> None:
        """Log headers or a body up to the limits."""
        if text:
            for line in _limited(text.removesuffix("\n").split("\n", MAX_LOGGED_LINES)):
                self._log(f"{sign} {line}")

    def _log(self, text: str) -> None:
        """Log a line, with control characters escaped."""
        if self._verbosity:
            self._write_log(clean(text))


@cache
def _parsed(url: str) -> httpx.URL:
    """Return the URL of an operation. Parsing it takes a tenth of the time of a request."""
    return httpx.URL(url)


@cache
def _headers(*headers: tuple[str, str]) -> httpx.Headers:
    return httpx.Headers([*headers, ("Accept-Encoding", "identity")])


def interrupted(request: Request, *, is_sent: bool) -> Interrupted:
    """Return the error for Ctrl-C during a request."""
    if request.operation.effect is Effect.READS:
        return Interrupted("Interrupted")
    if not is_sent:
        return Interrupted("Interrupted", consequence=NOTHING_SENT)
    what = "Interrupted after the request was sent"
    return Interrupted(what, request.advice, consequence="it may have been carried out")


def _limited(lines: Sequence[str]) -> Iterator[str]:
    """Yield cleaned lines up to the limits of the log, then an ellipsis if there are more."""
    left = MAX_LOGGED_CHARACTERS
    for number, line in enumerate(lines):
        if number == MAX_LOGGED_LINES or left <= 0:
            yield "…"
            return
        text = clean(line.removesuffix("\r")[: left + 1])
        if len(text) > left:
            yield text[: left - 1] + "…"
            return
        yield text
        left -= len(text)


def _head(headers: Sequence[tuple[bytes, bytes]]) -> str:
    """Return headers as text, one per line."""
    return "\n".join(f"{name.decode('latin-1')}: {value.decode('latin-1')}" for name, value in headers)
