"""One connection to the service, over which requests go one after another.

What fails until a connection stands fails with NotReachedError: nothing was sent. From the first byte of the request
on the request counts as sent, and what fails is a LostError. Nothing is ever repeated here.
"""

from __future__ import annotations

import re
import select
import socket
import ssl
import time
from email import errors as mail
from http.client import HTTPException, HTTPResponse
from typing import Any

from msgctl.http.dialing import Dialer, not_in_time
from msgctl.http.exchange import LostError, Outgoing, Reply
from msgctl.http.response import MOST_BYTES
from msgctl.http.timed import Deadline, Incoming, TooMuchError, send

MOST_HEAD_BYTES = 256 * 1024
"""The longest head of an answer, in bytes, with all the interim answers (1xx) before it."""
MOST_INTERIM = 100
"""The most interim answers before an answer, of other kinds than 100 Continue: to read each takes its time."""
MOST_IDLE = 4.0
"""Seconds after which a connection is not used again; many servers close theirs after five."""

# What a head is reproached with that names a content type of several parts: the body, which is not there yet.
_OF_THE_BODY = (
    mail.CloseBoundaryNotFoundDefect,
    mail.InvalidMultipartContentTransferEncodingDefect,
    mail.MultipartInvariantViolationDefect,
    mail.NoBoundaryInMultipartDefect,
    mail.StartBoundaryNotFoundDefect,
)
_LENGTH = re.compile(r"[0-9]{1,18}", re.A)
_KEEP_ALIVE = re.compile(r"\btimeout=([0-9]{1,6})\b", re.I | re.A)


class Connection:
    """Carries requests to one service, one thread at a time; opened when it is needed and kept for the next request.

    A connection is used again only where the answer before was read whole, and the server has neither closed it nor
    sent anything since.
    """

    def __init__(self, dialer: Dialer) -> None:
        self._dialer = dialer
        self._socket: socket.socket | None = None
        self._incoming: Incoming | None = None
        self._good_until = 0.0
        self.left = False

    def exchange(self, outgoing: Outgoing, seconds: float) -> Reply:
        """Send a request once and read its answer, within ``seconds``; see `exchange.Line`."""
        deadline = Deadline(seconds)
        self.left = False
        try:
            connection, incoming = self._opened(deadline)
            reply = self._carry(outgoing, connection, incoming, deadline)
        except BaseException:
            self.close()
            raise
        if self._good_until <= time.monotonic():
            self.close()
        return reply

    def close(self) -> None:
        """Close the connection; the next request opens one again."""
        if self._socket is not None:
            self._socket.close()
        self._socket = self._incoming = None
        self._good_until = 0.0

    def _opened(self, deadline: Deadline) -> tuple[socket.socket, Incoming]:
        if self._socket is None or self._incoming is None or not self._is_idle(self._socket):
            self.close()
            self._socket = self._dialer.open(deadline)
            self._incoming = Incoming(self._socket)
        return self._socket, self._incoming

    def _is_idle(self, connection: socket.socket) -> bool:
        """Whether a kept connection is still good, and nothing came over it: no end, no reset, no unasked bytes."""
        if time.monotonic() >= self._good_until or (isinstance(connection, ssl.SSLSocket) and connection.pending()):
            return False
        poll = select.poll()
        poll.register(connection, select.POLLIN)
        return not poll.poll(0)

    def _carry(self, outgoing: Outgoing, connection: socket.socket, incoming: Incoming, deadline: Deadline) -> Reply:
        data = memoryview(self._encoded(outgoing))  # which shows in no traceback what it holds
        try:
            deadline.left()
        except TimeoutError:
            raise not_in_time(self._dialer.host, deadline) from None
        self._good_until = 0.0
        self.left = True
        lost_while = "waiting for the answer"
        try:
            try:
                send(connection, data, deadline)
            except ConnectionError:
                lost_while = "sending"  # a server may answer before it has read all, and close
            response = _read_head(incoming, outgoing.method, deadline)
            reply = _read_reply(response, incoming, deadline)
        except TimeoutError:
            raise LostError(f"no answer came within {deadline.seconds:g} seconds") from None
        except (HTTPException, TooMuchError, ValueError):  # their texts may quote what was sent
            raise LostError("the connection was closed, or what came back is not HTTP") from None
        except OSError:
            raise LostError(f"the connection was lost while {lost_while}") from None
        if lost_while != "sending" and _ends_whole(response, reply, incoming):
            self._good_until = time.monotonic() + _most_idle(response)
        return reply

    def _encoded(self, outgoing: Outgoing) -> bytes:
        """The whole request in one piece, so that it can leave in one packet."""
        headers = {"Host": self._dialer.authority, **outgoing.headers, "Accept-Encoding": "identity"}
        if outgoing.body or outgoing.method != "GET":
            headers["Content-Length"] = str(len(outgoing.body))
        headers.update(self._dialer.proxy_headers)
        lines = [f"{outgoing.method} {self._dialer.prefix}{outgoing.target} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode("ascii") + outgoing.body


def _read_head(incoming: Any, method: str, deadline: Deadline) -> HTTPResponse:
    """Status and headers of the answer proper, after all interim ones (RFC 9110, 15.2).

    Raises HTTPException where they are not HTTP, contradict each other, or leave open where the body ends.
    """
    incoming.expect(deadline, MOST_HEAD_BYTES)
    for _ in range(1 + MOST_INTERIM):
        response = HTTPResponse(incoming, method=method)
        response.begin()
        if response.status >= 200:
            break
    else:
        raise HTTPException("no answer follows the interim ones")
    if not all(isinstance(defect, _OF_THE_BODY) for defect in response.headers.defects):
        raise HTTPException("a header line is none")
    lengths = {length.strip() for line in response.headers.get_all("content-length", []) for length in line.split(",")}
    if len(lengths) > 1 or not all(_LENGTH.fullmatch(length) for length in lengths):
        raise HTTPException("the length is none")
    if not response.chunked and "transfer-encoding" in response.headers:
        raise HTTPException("a transfer encoding that was not asked for")
    return response


def _read_reply(response: HTTPResponse, incoming: Incoming, deadline: Deadline) -> Reply:
    """The reply with its body, or with what is wrong with its body.

    What was lost of an answer other than 200 is no loss: its status says enough. Raises as reading does otherwise.
    """

    def with_body(body: bytes, fault: str | None = None) -> Reply:
        headers = tuple(response.headers.items())
        return Reply(response.status, body, fault, headers, f"HTTP/1.{response.version % 10}", response.reason)

    def without_body(fault: str) -> Reply:
        return with_body(b"", fault)

    if response.headers.get("content-encoding", "").strip().lower() not in ("identity", ""):
        return without_body("it is compressed, which was not asked for")
    try:
        return with_body(_read_body(response, incoming, deadline))
    except TooMuchError:
        return without_body(f"it is over {MOST_BYTES // 2**20} MiB")
    except TimeoutError:
        if response.status == 200:
            raise
        return without_body("its body did not come in time")
    except (OSError, HTTPException, ValueError):
        if response.status == 200:
            raise
        return without_body("the connection was lost within its body")


def _read_body(response: HTTPResponse, incoming: Incoming, deadline: Deadline) -> bytes:
    """The body, as long as its head says. Raises TooMuchError, HTTPException, ValueError, TimeoutError and OSError."""
    if (response.length or 0) > MOST_BYTES:
        raise TooMuchError
    incoming.expect(deadline, 2 * MOST_BYTES)  # as http.client reads on for ever after a chunk of negative length
    body = response.read(MOST_BYTES + 1)
    if len(body) > MOST_BYTES:
        raise TooMuchError
    if response.length:
        raise HTTPException("the body is shorter than its length")
    return body


def _ends_whole(response: HTTPResponse, reply: Reply, incoming: Incoming) -> bool:
    """Whether the connection is where the next answer begins, and the server keeps it open."""
    if response.will_close or not response.isclosed() or reply.fault is not None:
        return False
    contradicts = response.chunked and "content-length" in response.headers  # RFC 9112, 6.3: close it
    return not contradicts and not incoming.has_more()


def _most_idle(response: HTTPResponse) -> float:
    """How many seconds the connection may be idle: less than the server says, if it does, lest both act at once."""
    said = _KEEP_ALIVE.search(response.headers.get("keep-alive", ""))
    return min(MOST_IDLE, int(said[1]) - 1) if said else MOST_IDLE
