"""The service from the caller's side: a request goes in, its answer comes out or an error is raised.

Which requests may be repeated is decided here and nowhere else. One that may have left is repeated only if it reads
(GET /balance, GET /messages-state, POST /url/short-statistic); a send is never repeated after that, since the service
has no way to tell a repetition from a second message.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import chain
from urllib.parse import urlsplit

from msgctl.config.base_url import percent_encoded
from msgctl.config.credential import Credential
from msgctl.errors import RETRYABLE_STATUSES, Interrupted, NotReachedError, OutcomeUnknownError, UsageError
from msgctl.http.exchange import Line, LocalLine, LostError, Outgoing, Reply
from msgctl.http.redaction import redact, redact_body
from msgctl.http.request import Request, Value, build, encoded
from msgctl.http.response import Response, accept, check, outcome_unknown, parse
from msgctl.operations import Effect, Operation

LONGEST_TARGET = 65_536
"""The longest path and query that is sent, in bytes; every server has a limit, and few have a higher one."""
PAUSES = (0.3, 0.9)
"""Seconds before the first and the second repetition."""


class Client:
    """Performs requests against one base URL with one credential, over a connection that is kept; for one thread.

    ``base_url`` has no slash at its end. ``seconds`` bounds each attempt as a whole. ``log`` is told of each request
    and answer, credentials never. ``local`` answers requests in the place of the network. Where the service repeats
    the key, it is masked in all that comes out.
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
        self._path = percent_encoded(urlsplit(base_url).path)
        self._credential = credential
        self._seconds = seconds
        self._log = log
        self._sleep = sleep
        self._clock = clock
        self._base_url = base_url
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

    def send(
        self,
        operation: Operation,
        values: Mapping[str, Value],
        *,
        body: bytes | None = None,
        timeout: float | None = None,
    ) -> Response:
        """Make the request of an operation and return its response; see `request.build`.

        ``timeout`` bounds it further, in seconds, and leaves retrying to the caller.

        Raises NotReachedError, RefusedError, UnreadableError (a request that only reads), OutcomeUnknownError,
        UsageError where the values are too long for a URL, ConfigurationError where the settings for TLS or proxies
        cannot be used, and Interrupted on Ctrl-C.
        """
        request = build(operation, values, body)
        with self._interruptible(request):
            return self.parse(request, self._reply(request, timeout))

    def fetch(self, request: Request, *, timeout: float | None = None) -> Reply:
        """Make a request and return the response, whatever its status and body. Raises as `send` does otherwise."""
        with self._interruptible(request):
            return self._reply(request, timeout)

    def parse(self, request: Request, reply: Reply) -> Response:
        """Return what a fetched response means. Raises as `send` does."""
        return parse(request, reply, self._base_url, is_local=self._is_local)

    def accept(self, request: Request, reply: Reply) -> None:
        """Accept a reply of any status that says success (2xx), with any body.

        Raises RefusedError for another status; OutcomeUnknownError, or UnreadableError where the request only reads,
        for a body that is not whole.
        """
        accept(request, reply, self._base_url, is_local=self._is_local)

    @contextmanager
    def _interruptible(self, request: Request) -> Iterator[None]:
        """Make of Ctrl-C in the block a Interrupted that says whether the request had left."""
        self._line.left = False
        try:
            yield
        except KeyboardInterrupt:
            raise _stopped(request, left=self._line.left) from None

    def _reply(self, request: Request, timeout: float | None) -> Reply:
        outgoing = self._prepared(request)
        if timeout is not None:
            return self._exchange(request, outgoing, min(self._seconds, timeout))
        return self._repeated(request, outgoing)

    def _repeated(self, request: Request, outgoing: Outgoing) -> Reply:
        """The reply to a request, which is made again where nothing left, or where it only reads."""
        reads = request.operation.effect is Effect.READS
        for pause in PAUSES:
            try:
                reply = self._exchange(request, outgoing, self._seconds)
            except NotReachedError as error:
                if not error.retryable:
                    raise
            except OutcomeUnknownError:
                if not reads:
                    raise
            else:
                if not (reads and reply.status in RETRYABLE_STATUSES):
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
            raise outcome_unknown(request, str(error)) from None
        except KeyboardInterrupt:
            outcome = "interrupted"
            raise
        else:
            outcome = str(reply.status)
            return self._without_key(reply)
        finally:
            self._log(f"< {outcome} {named} {(self._clock() - started) * 1000:.0f} ms")

    def _without_key(self, reply: Reply) -> Reply:
        """A reply in which the service does not repeat the key: from here on nothing can show or store it."""
        head = "\n".join([reply.reason, *chain.from_iterable(reply.headers)])
        key = self._credential.key.reveal()
        body = redact_body(reply.body, key)
        mask = partial(redact, key=key)
        if body is reply.body and mask(head) == head:
            return reply
        headers = tuple((mask(name), mask(value)) for name, value in reply.headers)
        return reply._replace(body=body, headers=headers, reason=mask(reply.reason))

    def _prepared(self, request: Request) -> Outgoing:
        """The request as it travels. Raises UsageError where it is too long for a URL; its text does not show it."""
        outgoing = self._outgoing(request)
        if len(outgoing.target) > LONGEST_TARGET:
            raise UsageError(f"{request.operation.name} cannot be asked for: a value is too long for a URL")
        return outgoing

    def _outgoing(self, request: Request) -> Outgoing:
        query, form = request.with_credentials(self._credential.parameters())
        return Outgoing(
            request.operation.method,
            self._path + request.operation.path,
            encoded(query),
            request.headers,
            encoded(form).encode("ascii") if request.json is None else request.json,
        )


def _lines(base_url: str) -> Callable[[], Line]:
    """What makes connections to a service that share their settings. Raises ConfigurationError."""
    from msgctl.http.connection import Connection
    from msgctl.http.dialing import Dialer

    dialer = Dialer(base_url)
    return lambda: Connection(dialer)


def _stopped(request: Request, *, left: bool) -> Interrupted:
    if request.operation.effect is Effect.READS:
        return Interrupted("interrupted")
    if left:
        return Interrupted(
            "interrupted after the request was sent", check(request), consequence="it may have been carried out"
        )
    return Interrupted("interrupted", consequence="nothing was sent", nothing_sent=True)
