"""The client of the service: send a request, and return its response or raise an error.

Only this module decides which requests may be retried. A request that may have been sent is retried only if it just
reads (GET /balance, GET /messages-state, POST /url/short-statistic). A send is never retried then, because the service
cannot distinguish a retry from a second message.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from threading import BoundedSemaphore, Lock
from urllib.parse import urlsplit

import httpx

from msgctl.config.profiles import Credential, ascii_host, percent_encoded
from msgctl.errors import (
    RETRYABLE_STATUSES,
    Interrupted,
    MsgctlError,
    NotReachedError,
    TurnedAwayError,
    UsageError,
    without_frames,
)
from msgctl.http.redaction import redact, redact_body, redact_parameters
from msgctl.http.request import Request, encoded
from msgctl.http.response import Response, check, parse, without_response
from msgctl.http.transport import NetworkTransport, describe, finished, header_lines
from msgctl.operations import Effect
from msgctl.text import clean

MAX_URL = 65_000
"""The longest URL that is sent, in bytes; few servers accept longer ones."""
PAUSES = (0.3, 0.9)
"""Seconds before the first and the second retry."""
MAX_LOGGED_LINES = 100
MAX_LOGGED_CHARACTERS = 4000
"""Limits under -vv, separately for the headers and the body of a request or response."""
_parsing = Lock()
"""Held while a response is redacted or parsed: its parsed JSON takes up to 32 times as much memory as its text."""
_large_bodies = BoundedSemaphore(16)
"""Held from when a body becomes large until it is parsed, so that the threads of a job do not add up."""


class Client:
    """Makes requests to one base URL with one credential, over a connection that is kept open; for one thread.

    ``base_url`` has no slash at its end. ``timeout`` limits each attempt as a whole, in seconds. ``transport`` creates
    the transports of the sandbox; without it, the network is used. ``log`` gets a line for each request and response
    at ``verbosity`` 1, and also their headers and bodies at 2. The key is redacted in all responses,
    errors and log lines.
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
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        parts = urlsplit(base_url)
        host = ascii_host(parts.hostname or "")
        port = f":{parts.port}" if parts.port else ""
        self._target, self._path, self._url = "", "", httpx.URL()
        self._root = f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}{percent_encoded(parts.path)}"
        self._base_url = base_url
        self._is_sandbox = transport is not None
        self._credential = credential
        self._timeout = timeout
        self._log: Callable[[str], None] = (lambda text: log(clean(text))) if verbosity else lambda _: None
        self._verbosity = verbosity
        self._sleep = sleep
        self._clock = clock
        self._new_transport = transport or partial(NetworkTransport, base_url)
        self._transport = self._new_transport()
        self._latest: httpx.Request | None = None
        self._has_large_body = False

    def sibling(self) -> Client:
        """Return a client with the same settings and its own connection, for another thread. Any thread may call it."""
        sibling = copy.copy(self)
        sibling._transport, sibling._has_large_body = self._new_transport(), False
        return sibling

    def close(self) -> None:
        self._transport.close()

    def send(self, request: Request, *, timeout: float | None = None) -> Response:
        """Make a request and return its response.

        ``timeout`` is a lower limit for this request, in seconds; the caller then decides about retries.

        Raises NotReachedError, RefusedError, TurnedAwayError, UnreadableError (only for reads), OutcomeUnknownError,
        UsageError if the values are too long for a URL, ConfigurationError if the settings for TLS or proxies cannot
        be used, and Interrupted on Ctrl-C.
        """
        self._latest = None
        try:
            return self.parse(request, self._response(request, timeout))
        except KeyboardInterrupt:
            raise self._interrupted(request) from None
        finally:
            self._release()

    def fetch(self, request: Request, *, timeout: float | None = None) -> httpx.Response:
        """Make a request and return the response, whatever its status and body. Raises the other errors of `send`."""
        self._latest = None
        try:
            return self._response(request, timeout)
        except KeyboardInterrupt:
            raise self._interrupted(request) from None
        finally:
            self._release()

    def parse(self, request: Request, response: httpx.Response) -> Response:
        """Return the parsed response, or raise the error that it means, like `send`."""
        with _parsing:
            try:
                return parse(request, response, self._base_url, is_sandbox=self._is_sandbox)
            except MsgctlError as error:
                raise without_frames(error) from None  # another thread parses next

    def _interrupted(self, request: Request) -> Interrupted:
        """Return the error for Ctrl-C, which reports whether the request had been sent."""
        if request.operation.effect is Effect.READS:
            return Interrupted("Interrupted")
        if self._latest is not None and self._latest.extensions["sent"]:
            what = "Interrupted after the request was sent"
            return Interrupted(what, check(request), consequence="it may have been carried out")
        error = Interrupted("Interrupted", consequence="nothing was sent")
        error.nothing_sent = True
        return error

    def _response(self, request: Request, timeout: float | None) -> httpx.Response:
        """Return the response to a request. Retry the request if it was not sent, or if it only reads."""
        if timeout is not None:
            return self._attempt(request, min(self._timeout, timeout))
        reads = request.operation.effect is Effect.READS
        deadline, left = self._clock() + self._timeout, self._timeout
        for pause in PAUSES:
            try:
                response = self._attempt(request, left)
            except (NotReachedError, TurnedAwayError) as error:
                left = deadline - self._clock() - pause
                if left <= 0 or not error.retryable:
                    raise
            else:
                left = deadline - self._clock() - pause
                is_lost = response.status_code in RETRYABLE_STATUSES or response.extensions.get("lost")
                if left <= 0 or not (reads and is_lost):
                    return response
            self._log(f"* trying again in {pause:g} s")
            self._sleep(pause)
        return self._attempt(request, left)

    def _admit(self, seconds: float) -> bool:
        """Wait until the body of the latest response may become large; return whether that was in time."""
        self._has_large_body = _large_bodies.acquire(timeout=seconds)
        return self._has_large_body

    def _release(self) -> None:
        if self._has_large_body:
            _large_bodies.release()
            self._has_large_body = False

    def _attempt(self, request: Request, seconds: float) -> httpx.Response:
        self._release()
        self._latest = outgoing = self._outgoing(request, seconds)
        named = f"{outgoing.method} {self._path}"
        self._log(f"> {named}")
        if self._verbosity > 1:
            self._log_more(">", outgoing)
        started = self._clock()
        outcome = "not sent"
        try:
            response = self._transport.handle_request(outgoing)
            with _parsing:
                response = self._redacted(response)
            outcome = str(response.status_code)
        except httpx.HTTPError as error:
            outcome = "no response"
            raise without_response(request, describe(error, seconds)) from None
        except KeyboardInterrupt:
            outcome = "interrupted"
            raise
        finally:
            self._log(f"< {outcome} {named} {(self._clock() - started) * 1000:.0f} ms")
        if self._verbosity > 1:
            self._log_more("<", response)
        return response

    def _outgoing(self, request: Request, seconds: float) -> httpx.Request:
        """Return the request with the credentials. Raises UsageError, without the URL, if it is too long."""
        client, key = self._credential
        query, form = request.with_credentials((("client", str(client)), ("key", key)))
        target = request.operation.path + (f"?{encoded(query)}" if query else "")
        if len(self._root) + len(target) > MAX_URL:
            raise UsageError(f"A value is too long for a URL of at most {MAX_URL:,} bytes", "Shorten it.")
        if self._target != target:  # the URL is usually the same in a job, and parsing it takes a twelfth of a request
            self._target, self._url = target, httpx.URL(self._root + target)
            self._path = self._url.raw_path.partition(b"?")[0].decode()
        content = request.json or encoded(form).encode()
        headers = {"Host": self._url.netloc.decode(), **request.headers, "Accept-Encoding": "identity"}
        if content:
            headers["Content-Length"] = str(len(content))
        extensions = {
            "timeout": {"read": seconds},
            "sent": False,
            "max_response": request.max_response,
            "admit": self._admit,
        }
        stream = httpx.ByteStream(content)  # five times as fast as the parameter "content"
        method = request.operation.method
        outgoing = httpx.Request(method, self._url, headers=headers, stream=stream, extensions=extensions)
        outgoing.read()
        return outgoing

    def _redacted(self, response: httpx.Response) -> httpx.Response:
        """Return a response with the key redacted, so that no other code can show or store it."""
        key = self._credential.key
        sent = response.extensions.get("headers", response.headers.raw)
        names_and_values = [part for header in sent for part in header]
        head = b"\0".join([*names_and_values, response.extensions.get("reason_phrase", b"")])
        body = redact_body(response.content, key, is_cut="fault" in response.extensions)
        redacted = redact_body(head, key)
        if body is response.content and redacted is head:
            return response
        *headers, reason = redacted.split(b"\0")
        extensions = {**response.extensions, "reason_phrase": reason}
        return finished(response.status_code, zip(headers[::2], headers[1::2], strict=True), body, extensions)

    def _log_more(self, sign: str, message: httpx.Request | httpx.Response) -> None:
        """Log headers, query and body, each up to the limits; `_log` escapes control characters."""
        headers = header_lines(message)
        if isinstance(message, httpx.Request):
            headers += [f"?{message.url.query.decode()}"] * bool(message.url.query)
            headers = [self._masked(line) for line in headers]
            text = self._masked(message.content.decode())
        else:  # cut first, because splitting millions of lines would take hundreds of megabytes
            text = message.content[: 4 * MAX_LOGGED_CHARACTERS + 4].decode(errors="replace")
        for lines in (headers, text.removesuffix("\n").split("\n", MAX_LOGGED_LINES) if text else []):
            for line in _limited(lines):
                self._log(f"{sign} {line}")

    def _masked(self, sent: str) -> str:
        """Return a query or form without the credentials."""
        return redact(redact_parameters(sent, "client", "key"), self._credential.key)


def _limited(lines: Sequence[str]) -> Iterator[str]:
    """Yield cleaned lines up to the limits of the log, then an ellipsis if there are more."""
    left = MAX_LOGGED_CHARACTERS
    for number, line in enumerate(lines):
        if number == MAX_LOGGED_LINES or left <= 0:
            yield "…"
            return
        shown = clean(line.removesuffix("\r")[: left + 1])
        if len(shown) > left:
            yield shown[: left - 1] + "…"
            return
        yield shown
        left -= len(shown)
