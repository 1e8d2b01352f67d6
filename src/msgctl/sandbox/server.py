"""The sandbox over HTTP/1.1: one thread per connection, with limits on everything that a client may send.

It is for the tests of one machine, so the standard library's server is enough. This module adds what that server
lacks: chunked bodies, limits of size and time, and responses broken on purpose by faults.
"""

from __future__ import annotations

import contextlib
import errno
import io
import socket
import socketserver
import sys
import time
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Protocol

from msgctl.sandbox.decode import MAX_BODY
from msgctl.sandbox.faults import FaultKind
from msgctl.sandbox.protocol import Refusal, SandboxRequest, SandboxResponse, masked
from msgctl.text import shorten

IDLE_SECONDS = 30.0
"""Seconds that a connection may be idle between two requests, and that a body may take."""

HEADER_SECONDS = 10.0
"""Seconds that the headers of a request may take, however slowly they arrive."""

MAX_DRAINED = 8 * MAX_BODY
"""Bytes of a body over the limit that are read and discarded, so that its sender gets to read the response."""

GARBAGE = b"\x00\xff\x00garbage\r\n\r\n\x1b[2J\xfe" * 8

Log = Callable[[str], None]


class Responder(Protocol):
    """What a server serves: `service.Service`, or `recording.ExchangeRecorder`."""

    def respond(self, request: SandboxRequest, address: str) -> SandboxResponse:
        """Respond to a request from an address. Never raises."""


class Server(ThreadingHTTPServer):
    """Listens at once; `serve_forever` responds. ``log`` gets one line per request, without its query.

    A request must name one of the server's own addresses in ``Host``, or one of ``hosts``, and have no foreign
    ``Origin``: otherwise a web page could read the inbox, by DNS rebinding or directly.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = 256
    allow_reuse_address = True

    def __init__(self, host: str, port: int, log: Log, hosts: Iterable[str] = ()) -> None:
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.log = log
        self.service: Responder | None = None
        self.hosts = {"localhost", host.lower(), *(name.lower() for name in hosts)}
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
        # HTTPServer would look up the name of the address, which may take seconds.
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

    def setup(self) -> None:
        super().setup()
        self._source = _TimedSource(self.connection)
        self.rfile = io.BufferedReader(self._source)

    def __getattr__(self, name: str) -> Any:
        """Pass every method to the service, which knows the valid ones."""
        if name.startswith("do_"):
            return self._serve
        raise AttributeError(name)

    def _serve(self) -> None:
        started = time.perf_counter()
        # The standard library decodes the target as Latin-1, which no client means.
        target = self.path.encode("latin-1").decode("utf-8", "surrogateescape")
        path, _, query = target.partition("?")
        self._source.restart(IDLE_SECONDS)
        headers = {name.lower(): _utf8(value) for name, value in self.headers.items()}
        assert self.server.service is not None  # noqa: S101 - set before the server is started
        try:
            self._check_host()
            request = SandboxRequest(self.command, path, query, headers, self._body())
            response = self.server.service.respond(request, self.client_address[0])
        except Refusal as refusal:
            self.close_connection = True
            response = refusal.response()
        milliseconds = (time.perf_counter() - started) * 1000
        fault = f" fault {', '.join(response.faults)}" if response.faults else ""
        asked = f"{shorten(self.command, 20)} {shorten(masked(path), 100)}"
        self.server.log(f"{asked} {response.status} {milliseconds:.0f} ms{fault}")
        self._send(response)

    def _check_host(self) -> None:
        hosts = self.headers.get_all("host", [])
        own = {*self.server.hosts, str(self.connection.getsockname()[0]).removeprefix("::ffff:")}
        if not hosts or not all(_name_of(host) in own for host in hosts):
            raise Refusal("FORBIDDEN_HOST", "Host must be an address of this server; see --allow-host", status=403)
        origin = self.headers.get("origin")
        if origin is not None and origin.lower() != f"http://{hosts[0].strip().lower()}":
            raise Refusal("FORBIDDEN_ORIGIN", "web pages of another origin may not use the sandbox", status=403)

    def _body(self) -> bytes:
        """Return the body; one that is too large becomes one byte more than allowed, and the connection closes."""
        if "transfer-encoding" in self.headers:
            if self.headers["transfer-encoding"].strip().lower() != "chunked" or "content-length" in self.headers:
                raise _malformed("Transfer-Encoding must be chunked, without Content-Length")
            return self._chunks()
        lengths = set(self.headers.get_all("content-length", ["0"]))
        length = lengths.pop().strip()
        if lengths or not (length.isascii() and length.isdecimal() and len(length) <= 18):
            raise _malformed("Content-Length must be one number")
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
                raise _malformed("a chunk has no size") from None
            if size == 0:
                break
            if size < 0 or len(body) + size > MAX_BODY:
                self.close_connection = True
                return bytes(MAX_BODY + 1)
            body += self._exactly(size)
            if self.rfile.readline(3) not in (b"\r\n", b"\n"):
                raise _malformed("a chunk is longer than its size")
        for _ in range(100):
            if self.rfile.readline(65537) in (b"\r\n", b"\n", b""):
                return bytes(body)
        raise _malformed("too many trailers")

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

    def _send(self, response: SandboxResponse) -> None:
        kinds = response.faults
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
        self._source.restart(None)

    def _write(self, data: bytes) -> None:
        self.connection.settimeout(IDLE_SECONDS)
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
            self._send(Refusal("MALFORMED", "the request is not valid HTTP", status=code).response())
        self.server.log(f"- - {code} {shorten(masked(message or ''), 80)}")

    def log_message(self, *_arguments: Any) -> None:
        """Do nothing: the standard library would log the query, and with it the key."""


class _TimedSource(io.RawIOBase):
    """Reads from a connection, and gives up when a whole request takes too long, however slowly it arrives."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._until: float | None = None

    def restart(self, seconds: float | None) -> None:
        """Allow so many seconds from now; None until the next request begins."""
        self._until = None if seconds is None else time.monotonic() + seconds

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = IDLE_SECONDS if self._until is None else self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        count = self._connection.recv_into(buffer)
        if self._until is None:
            self.restart(HEADER_SECONDS)
        return count


def _malformed(why: str) -> Refusal:
    return Refusal("MALFORMED", why, status=400)


def _name_of(host: str) -> str:
    """Return the name or address of a Host header, without its port."""
    name = host.strip().lower()
    return name[1:].partition("]")[0] if name.startswith("[") else name.partition(":")[0]


def _utf8(value: str) -> str:
    """Return a header as its sender encoded it; the standard library decodes every header as Latin-1."""
    return value.encode("latin-1", "replace").decode("utf-8", "replace")
