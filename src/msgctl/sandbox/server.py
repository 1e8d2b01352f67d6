"""The sandbox over HTTP/1.1: one thread per connection, with limits on everything that a client may send.

It is for the tests of one machine, so the standard library's server is enough. This module adds what that server
lacks: chunked bodies, limits of size and time, and responses broken on purpose by faults.
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

from msgctl.sandbox.decode import MAX_BODY
from msgctl.sandbox.faults import FaultKind, Outcome
from msgctl.sandbox.protocol import Refusal, SandboxRequest, SandboxResponse, masked
from msgctl.sandbox.service import Service
from msgctl.text import shorten

IDLE_SECONDS = 30.0
"""How long a connection may be silent, within a request or between two."""

MAX_DRAINED = 8 * MAX_BODY
"""Bytes of a body over the limit that are read and discarded, so that its sender gets to read the response."""

GARBAGE = b"\x00\xff\x00garbage\r\n\r\n\x1b[2J\xfe" * 8

Log = Callable[[str], None]


class MalformedError(Exception):
    """A request that is not valid HTTP; the connection is closed after the response."""


class Server(ThreadingHTTPServer):
    """Listens at once; `serve_forever` responds. ``log`` gets one line per request, without its query."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 256
    allow_reuse_address = True

    def __init__(self, host: str, port: int, log: Log) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.log = log
        self.service: Service | None = None
        super().__init__((host, port), _Handler)

    @property
    def origin(self) -> str:
        """Return the URL of the server, without a path."""
        host, port = self.server_address[:2]
        # A server on all addresses is reached through loopback from here.
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(str(host), host)  # noqa: S104 - not bound here
        shown = f"[{host!s}]" if self.address_family == socket.AF_INET6 else str(host)
        return f"http://{shown}:{port}"

    def server_bind(self) -> None:
        # HTTPServer's own looks up the name of the address, which may take seconds.
        socketserver.TCPServer.server_bind(self)

    def get_request(self) -> tuple[socket.socket, Any]:
        try:
            return super().get_request()
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                time.sleep(0.05)  # out of descriptors: the client waits until one is free
            raise

    def handle_error(self, *_connection: Any) -> None:
        """Ignore a broken connection; log anything unexpected as one line, not a traceback."""
        error = sys.exc_info()[1]
        if not isinstance(error, OSError):
            self.log(f"a connection ended with {type(error).__name__}")


class _Handler(BaseHTTPRequestHandler):
    server: Server
    protocol_version = "HTTP/1.1"
    timeout = IDLE_SECONDS
    disable_nagle_algorithm = True
    wbufsize = 0

    def __getattr__(self, name: str) -> Any:
        """Pass every method to the service, which knows those that exist."""
        if name.startswith("do_"):
            return self._serve
        raise AttributeError(name)

    def _serve(self) -> None:
        started = time.perf_counter()
        # The standard library decodes the target as Latin-1, which no client means.
        target = self.path.encode("latin-1").decode("utf-8", "surrogateescape")
        path, _, query = target.partition("?")
        if target.lower().startswith(("http://", "https://")):  # RFC 9112, 3.2.2
            path = "/" + path.partition("://")[2].partition("/")[2]
        headers = {name.lower(): _utf8(value) for name, value in self.headers.items()}
        try:
            body = self._body()
        except MalformedError as error:
            self.close_connection = True
            self._send(Outcome(Refusal("MALFORMED", str(error), status=400).response()))
            return
        assert self.server.service is not None  # noqa: S101 - set before the server is started
        outcome = self.server.service.respond(
            SandboxRequest(self.command, path, query, headers, body), self.client_address[0]
        )
        milliseconds = (time.perf_counter() - started) * 1000
        fault = f" fault {', '.join(kind.value for kind in outcome.faults)}" if outcome.faults else ""
        asked = f"{shorten(self.command, 20)} {shorten(masked(path), 100)}"
        self.server.log(f"{asked} {outcome.response.status} {milliseconds:.0f} ms{fault}")
        self._send(outcome)

    def _body(self) -> bytes:
        """Return the body; one that is too large becomes one byte more than allowed, and the connection closes."""
        if "transfer-encoding" in self.headers:
            if self.headers["transfer-encoding"].strip().lower() != "chunked" or "content-length" in self.headers:
                raise MalformedError("Transfer-Encoding must be chunked, without Content-Length")
            return self._chunks()
        lengths = set(self.headers.get_all("content-length", ["0"]))
        length = lengths.pop().strip()
        if lengths or not (length.isascii() and length.isdecimal() and len(length) <= 18):
            raise MalformedError("Content-Length must be one number")
        if int(length) > MAX_BODY:
            self._drain(int(length))
            return bytes(MAX_BODY + 1)
        return self._exactly(int(length))

    def _chunks(self) -> bytes:
        """Return a chunked body (RFC 9112, 7.1), ignoring trailers."""
        body = bytearray()
        while True:
            size_text = self.rfile.readline(1026).partition(b";")[0].strip()
            try:
                size = int(size_text[:9], 16)
            except ValueError:
                raise MalformedError("a chunk has no size") from None
            if size == 0:
                break
            if size < 0 or len(body) + size > MAX_BODY:
                self.close_connection = True
                return bytes(MAX_BODY + 1)
            body += self._exactly(size)
            if self.rfile.readline(3) not in (b"\r\n", b"\n"):
                raise MalformedError("a chunk is longer than its size")
        for _ in range(100):
            if self.rfile.readline(65537) in (b"\r\n", b"\n", b""):
                return bytes(body)
        raise MalformedError("too many trailers")

    def _exactly(self, size: int) -> bytes:
        data = self.rfile.read(size)
        if len(data) < size:
            raise ConnectionResetError("the request ended early")
        return data

    def _drain(self, size: int) -> None:
        self.close_connection = True
        left = min(size, MAX_DRAINED)
        while left > 0 and (data := self.rfile.read(min(left, 65536))):
            left -= len(data)

    def _send(self, outcome: Outcome) -> None:
        response, kinds = outcome.response, outcome.faults
        whole = b"" if self.command == "HEAD" else response.body
        if FaultKind.DROP in kinds or FaultKind.REJECT in kinds:
            self.close_connection = True
        elif FaultKind.GARBAGE in kinds:
            self.close_connection = True
            self._write(GARBAGE)
        elif FaultKind.TRUNCATE in kinds:
            self.close_connection = True
            self._write(self._head(response) + whole[: len(whole) // 2])
        else:
            self._write(self._head(response) + whole)

    def _write(self, data: bytes) -> None:
        try:
            self.wfile.write(data)
        except OSError:
            self.close_connection = True

    def _head(self, response: SandboxResponse) -> bytes:
        lines = {"server": "msgctl-sandbox", "date": self.date_time_string(), **response.headers}
        lines["content-length"] = str(len(response.body))
        if self.close_connection:
            lines["connection"] = "close"
        reason = self.responses.get(response.status, ("Unknown Error",))[0]
        head = "".join(f"{name.title()}: {value}\r\n" for name, value in lines.items())
        return f"HTTP/1.1 {response.status} {reason}\r\n{head}\r\n".encode("latin-1", "replace")

    def send_error(self, code: int, message: str | None = None, _explain: str | None = None) -> None:
        """Respond with the error record to what the standard library finds wrong with a request."""
        self.close_connection = True
        self.command = getattr(self, "command", None) or "GET"
        with contextlib.suppress(OSError):
            self._send(Outcome(Refusal("MALFORMED", "the request is not valid HTTP", status=code).response()))
        self.server.log(f"- - {code} {shorten(masked(message or ''), 80)}")

    def log_message(self, *_arguments: Any) -> None:
        """Do nothing: the standard library would log the query, and with it the key."""


def _utf8(value: str) -> str:
    """Return a header as its sender encoded it; the standard library decodes every header as Latin-1."""
    return value.encode("latin-1", "replace").decode("utf-8", "replace")
