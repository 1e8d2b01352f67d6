"""The sandbox over HTTP/1.1: a thread a connection, limits on everything that a client may send.

It is for one machine's tests, so the standard library's server carries it. What that server does not do is here:
bodies in chunks, limits of size and time, answers that go out broken because a fault says so.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import socketserver
import sys
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from msgctl.sandbox.desk import Desk, Ending, Outcome
from msgctl.sandbox.sources import MOST_BODY
from msgctl.sandbox.wire import Call, Refusal, Reply, masked
from msgctl.text import shorten

PATIENCE = 30.0
"""Seconds that a connection may be silent within a request, or between two."""

MOST_DRAINED = 8 * MOST_BODY
"""Bytes of a body over the limit that are read and thrown away, so that its sender gets to read the answer."""

GARBAGE = b"\x00\xff\x00garbage\r\n\r\n\x1b[2J\xfe" * 8

Log = Callable[[str], None]


class MalformedError(Exception):
    """A request that cannot be read as HTTP; the connection is closed after its answer."""


class Server(ThreadingHTTPServer):
    """Listens at once; `serve_forever` answers. ``log`` gets a line a request, without its query."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 256
    allow_reuse_address = True

    def __init__(self, host: str, port: int, log: Log) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.log = log
        self.desk: Desk | None = None
        super().__init__((host, port), _Handler)

    @property
    def origin(self) -> str:
        """Where it listens, as a URL without a path."""
        host, port = self.server_address[:2]
        # What listens everywhere is reached on loopback from here.
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(str(host), host)  # noqa: S104 - not bound here
        shown = f"[{host!s}]" if self.address_family == socket.AF_INET6 else str(host)
        return f"http://{shown}:{port}"

    def server_bind(self) -> None:
        # Past HTTPServer's own, which looks up the name of the address, and that may take seconds.
        socketserver.TCPServer.server_bind(self)

    def get_request(self) -> tuple[socket.socket, Any]:
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                time.sleep(0.05)  # every descriptor is taken: whoever waits is let in when one is free again
            raise

    def handle_error(self, *_connection: Any) -> None:
        """A connection that broke harms nobody else; anything unexpected is one line, not a traceback."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            self.log(f"a connection ended with {type(error).__name__}")


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = PATIENCE
    disable_nagle_algorithm = True
    wbufsize = 0

    def __getattr__(self, name: str) -> Any:
        """Every method is answered by the desk, which knows which ones there are."""
        if name.startswith("do_"):
            return self._serve
        raise AttributeError(name)

    def _serve(self) -> None:
        started = time.perf_counter()
        # The standard library takes the target for Latin-1, which no client means.
        target = self.path.encode("latin-1").decode("utf-8", "surrogateescape")
        path, _, query = target.partition("?")
        if target.lower().startswith(("http://", "https://")):  # RFC 9112, 3.2.2
            path = "/" + path.partition("://")[2].partition("/")[2]
        headers = {name.lower(): _utf8(value) for name, value in self.headers.items()}
        try:
            body = self._body()
        except MalformedError as error:
            self.close_connection = True
            self._send(Outcome(Refusal("MALFORMED", str(error), status=400).reply()))
            return
        assert self.server.desk is not None  # noqa: S101 - set before the server is started
        outcome = self.server.desk.answer(Call(self.command, path, query, headers, body), self.client_address[0])
        milliseconds = (time.perf_counter() - started) * 1000
        fault = f" fault {', '.join(outcome.faults)}" if outcome.faults else ""
        asked = f"{shorten(self.command, 20)} {shorten(masked(path), 100)}"
        self.server.log(f"{asked} {outcome.reply.status} {milliseconds:.0f} ms{fault}")
        self._send(outcome)

    def _body(self) -> bytes:
        """The body; one byte more than is allowed where it is larger, and the connection is then closed."""
        if "transfer-encoding" in self.headers:
            if self.headers["transfer-encoding"].strip().lower() != "chunked" or "content-length" in self.headers:
                raise MalformedError("Transfer-Encoding must be chunked, without Content-Length")
            return self._chunks()
        lengths = set(self.headers.get_all("content-length", ["0"]))
        length = lengths.pop().strip()
        if lengths or not (length.isascii() and length.isdecimal() and len(length) <= 18):
            raise MalformedError("Content-Length must be one number")
        if int(length) > MOST_BODY:
            self._drain(int(length))
            return bytes(MOST_BODY + 1)
        return self._exactly(int(length))

    def _chunks(self) -> bytes:
        """A chunked body (RFC 9112, 7.1); trailers are passed over."""
        body = bytearray()
        while True:
            size_text = self.rfile.readline(1026).partition(b";")[0].strip()
            try:
                size = int(size_text[:9], 16)
            except ValueError:
                raise MalformedError("a chunk has no size") from None
            if size == 0:
                break
            if size < 0 or len(body) + size > MOST_BODY:
                self.close_connection = True
                return bytes(MOST_BODY + 1)
            body += self._exactly(size)
            if self.rfile.readline(3) not in (b"\r\n", b"\n"):
                raise MalformedError("a chunk is longer than its size")
        for _ in range(100):
            if self.rfile.readline(65537) in (b"\r\n", b"\n", b""):
                return bytes(body)
        raise MalformedError("there are too many trailers")

    def _exactly(self, size: int) -> bytes:
        data = self.rfile.read(size)
        if len(data) < size:
            raise ConnectionResetError("the request ended early")
        return data

    def _drain(self, size: int) -> None:
        self.close_connection = True
        left = min(size, MOST_DRAINED)
        while left > 0 and (data := self.rfile.read(min(left, 65536))):
            left -= len(data)

    def _send(self, outcome: Outcome) -> None:
        if outcome.ending is Ending.WHOLE:
            self._write(self._head(outcome.reply) + (b"" if self.command == "HEAD" else outcome.reply.body))
            return
        self.close_connection = True
        if outcome.ending is Ending.HALF:
            self._write(self._head(outcome.reply) + outcome.reply.body[: len(outcome.reply.body) // 2])
        elif outcome.ending is Ending.GARBAGE:
            self._write(GARBAGE)

    def _write(self, data: bytes) -> None:
        try:
            self.wfile.write(data)
        except OSError:
            self.close_connection = True

    def _head(self, reply: Reply) -> bytes:
        lines = {"server": "msgctl-sandbox", "date": self.date_time_string(), **reply.headers}
        lines["content-length"] = str(len(reply.body))
        if self.close_connection:
            lines["connection"] = "close"
        reason = self.responses.get(reply.status, ("Unknown Error",))[0]
        head = "".join(f"{name.title()}: {value}\r\n" for name, value in lines.items())
        return f"HTTP/1.1 {reply.status} {reason}\r\n{head}\r\n".encode("latin-1", "replace")

    def send_error(self, code: int, message: str | None = None, _explain: str | None = None) -> None:
        """What the standard library finds wrong with a request, in the record of every other error."""
        self.close_connection = True
        self.command = getattr(self, "command", None) or "GET"
        with contextlib.suppress(OSError):
            self._send(Outcome(Refusal("MALFORMED", "it is not HTTP as it should be", status=code).reply()))
        self.server.log(f"- - {code} {shorten(masked(message or ''), 80)}")

    def log_message(self, *_arguments: Any) -> None:
        """The standard library's log shows the query, and with it the key."""


def _utf8(value: str) -> str:
    """A header as its sender meant it; the standard library takes every header for Latin-1."""
    return value.encode("latin-1", "replace").decode("utf-8", "replace")
