"""The sandbox over HTTP/1.1, with limits on everything that a client may send.

One thread serves all connections with asyncio's streams. This module adds what they lack: HTTP, limits of size and
time, and responses broken on purpose by faults.
"""

from __future__ import annotations

import asyncio
import socket
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Iterable
from email.utils import formatdate
from functools import lru_cache
from http.client import responses
from typing import Protocol

from msgctl.sandbox.emulator import SECONDS_BETWEEN_CHECKS
from msgctl.sandbox.protocol import MAX_BODY, Refusal, SandboxRequest, SandboxResponse, masked
from msgctl.text import shorten

IDLE_SECONDS = 30.0
"""Seconds that a connection may be idle between two requests, that a body may take, and a response."""

HEADER_SECONDS = 10.0
"""Seconds that the headers of a request may take, however slowly they arrive."""

MAX_HEADERS = 64 * 1024
"""Bytes of the request line and the headers."""

MAX_DRAINED = 8 * MAX_BODY
"""Bytes of a body over the limit that are read and discarded, so that its sender gets to read the response."""

GARBAGE = b"\x00\xff\x00garbage\r\n\r\n\x1b[2J\xfe" * 8

_SINGLE = ("host", "content-length", "transfer-encoding")
_NOTHING_SENT = {"drop", "reject"}


class Responder(Protocol):
    """What a server serves: `service.Service`, or `recording.ExchangeRecorder`."""

    @property
    def now(self) -> float | None:
        """The time for the header ``Date``, if it is not this machine's."""

    def respond(self, request: SandboxRequest, address: str) -> SandboxResponse:
        """Respond to a request from an address. Never raises."""


class Server:
    """Listens at once; `serve_forever` responds. ``log`` gets one line per request, without its query.

    A request must name one of the server's own addresses in ``Host``, or one of ``hosts``, and have no foreign
    ``Origin``: otherwise a web page could read the inbox, by DNS rebinding or directly.
    """

    def __init__(self, host: str, port: int, log: Callable[[str], None], hosts: Iterable[str] = ()) -> None:
        self.log = log
        self.service: Responder | None = None
        self._hosts = {"localhost", host.lower(), *(name.lower() for name in hosts)}
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.socket = socket.create_server((host, port), family=family, backlog=256)
        self.is_stopping = False
        self._wake: Callable[[], object] = lambda: None

    @property
    def origin(self) -> str:
        """Return the URL of the server, without a path."""
        host, port = self.socket.getsockname()[:2]
        # A server on all addresses is reached through loopback from here.
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not bound here
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def serve_forever(self) -> None:
        """Serve until `stop`."""
        asyncio.run(self._serve())

    def stop(self) -> None:
        """End `serve_forever`, or prevent it, from another thread or a signal handler."""
        self.is_stopping = True
        self._wake()

    def close(self) -> None:
        self.socket.close()

    async def _serve(self) -> None:
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        self._wake = lambda: loop.call_soon_threadsafe(stopped.set)
        loop.set_exception_handler(lambda _, context: self.log(f"a connection failed: {context['message']}"))
        await asyncio.start_server(self._converse, sock=self.socket, limit=MAX_HEADERS)
        if not self.is_stopping:
            await stopped.wait()

    async def _converse(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Serve one connection until it ends, or takes too long."""
        connection = _Connection(self, reader, writer)
        try:
            # The time limits of all steps are those of this block.
            async with asyncio.timeout(None) as limit:
                while await connection.respond_once(limit):
                    pass
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the client is gone, or too slow
        except Exception as error:  # noqa: BLE001 - one line instead of a traceback
            self.log(f"a connection ended with {type(error).__name__}")
        finally:
            writer.close()

    def check_host(self, headers: dict[str, str], own: str) -> None:
        """Refuse a request that names another server, or comes from a web page of another origin."""
        host = headers.get("host", "").lower()
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        if name not in self._hosts and name != own.removeprefix("::ffff:"):
            raise Refusal("FORBIDDEN_HOST", "Host must be an address of this server; see --allow-host", status=403)
        if headers.get("origin", f"http://{host}").lower() != f"http://{host}":
            raise Refusal("FORBIDDEN_ORIGIN", "web pages of another origin may not use the sandbox", status=403)


class _Connection:
    """One connection of a client."""

    def __init__(self, server: Server, reader: StreamReader, writer: StreamWriter) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer
        self._own_address = writer.get_extra_info("sockname")[0]
        self._address = writer.get_extra_info("peername")[0]

    async def respond_once(self, limit: asyncio.Timeout) -> bool:
        """Respond to the next request, and tell whether the connection stays open."""

        def allow(seconds: float) -> None:
            limit.reschedule(asyncio.get_running_loop().time() + seconds)

        allow(IDLE_SECONDS)
        first = await self._reader.read(1)
        if not first:
            return False
        allow(HEADER_SECONDS)
        started = time.perf_counter()
        method, path, stays_open = "-", "-", False
        try:
            try:
                head = first + await self._reader.readuntil(b"\r\n\r\n")
            except asyncio.LimitOverrunError:
                raise _malformed("the headers are too long") from None
            method, target, version, headers = _parsed(head)
            path, _, query = target.partition("?")
            allow(IDLE_SECONDS)
            self._server.check_host(headers, self._own_address)
            body = await self._body(headers)
            limit.reschedule(None)
            response = await self._response(SandboxRequest(method, path, query, headers, body))
            stays_open = (
                version == "HTTP/1.1" and len(body) <= MAX_BODY and "close" not in headers.get("connection", "").lower()
            )
        except Refusal as refusal:
            response = refusal.response()
        milliseconds = (time.perf_counter() - started) * 1000
        fault = f" fault {', '.join(response.faults)}" if response.faults else ""
        asked = f"{shorten(method, 20)} {shorten(masked(path), 100)}"
        self._server.log(f"{asked} {response.status} {milliseconds:.0f} ms{fault}")
        allow(IDLE_SECONDS)
        return await self._send(response, stays_open, without_body=method == "HEAD")

    async def _response(self, request: SandboxRequest) -> SandboxResponse:
        assert self._server.service is not None  # noqa: S101 - set before the server is started
        respond = self._server.service.respond
        started = time.monotonic()
        response = respond(request, self._address)
        while response.wait > time.monotonic() - started and not self._reader.at_eof():
            await asyncio.sleep(SECONDS_BETWEEN_CHECKS)
            response = respond(request, self._address)
        if response.delay:
            await asyncio.sleep(response.delay)
        return response

    async def _body(self, headers: dict[str, str]) -> bytes:
        """Return the body; one that is too large becomes one byte more than allowed, and the connection closes."""
        if headers.get("expect", "").lower() == "100-continue":
            self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        length = headers.get("content-length", "0")
        if "transfer-encoding" in headers:
            if headers["transfer-encoding"].lower() != "chunked" or "content-length" in headers:
                raise _malformed("Transfer-Encoding must be chunked, without Content-Length")
            return await self._chunks()
        if not (length.isascii() and length.isdecimal() and len(length) <= 18):
            raise _malformed("Content-Length must be one number")
        if int(length) <= MAX_BODY:
            return await self._reader.readexactly(int(length))
        left = min(int(length), MAX_DRAINED)
        while left > 0 and (data := await self._reader.read(left)):
            left -= len(data)
        return bytes(MAX_BODY + 1)

    async def _chunks(self) -> bytes:
        """Return a chunked body (RFC 9112, 7.1), ignoring trailers."""
        body = bytearray()
        try:
            while size := int((await self._reader.readline()).partition(b";")[0], 16):
                if size < 0 or len(body) + size > MAX_BODY:
                    return bytes(MAX_BODY + 1)
                body += await self._reader.readexactly(size)
                if await self._reader.readexactly(2) != b"\r\n":
                    raise _malformed("a chunk is longer than its size")
            while (await self._reader.readline()).strip():
                pass
        except ValueError:
            raise _malformed("a chunk has no size, or a trailer is too long") from None
        return bytes(body)

    async def _send(self, response: SandboxResponse, stays_open: bool, *, without_body: bool) -> bool:
        """Send a response, or what its faults make of it, and tell whether the connection stays open."""
        stays_open = stays_open and not {*_NOTHING_SENT, "garbage", "truncate"} & {*response.faults}
        body = b"" if without_body else response.body
        if "garbage" in response.faults:
            self._writer.write(GARBAGE)
        elif not _NOTHING_SENT & {*response.faults}:
            shown = body[: len(body) // 2] if "truncate" in response.faults else body
            self._writer.write(self._head(response, stays_open) + shown)
        await self._writer.drain()
        return stays_open

    def _head(self, response: SandboxResponse, stays_open: bool) -> bytes:
        assert self._server.service is not None  # noqa: S101 - set before the server is started
        now = self._server.service.now
        lines = {"server": "msgctl-sandbox", "date": _date(int(time.time() if now is None else now))}
        lines |= {**response.headers, "content-length": str(len(response.body))}
        if not stays_open:
            lines["connection"] = "close"
        head = "".join(f"{name.title()}: {value}\r\n" for name, value in lines.items())
        return f"HTTP/1.1 {response.status} {responses.get(response.status, 'Unknown Error')}\r\n{head}\r\n".encode(
            "latin-1", "replace"
        )


def _parsed(head: bytes) -> tuple[str, str, str, dict[str, str]]:
    """Return method, target, version and headers of a request. Raises Refusal."""
    first, *lines = head.decode(errors="replace").strip("\r\n").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or words[2] not in ("HTTP/1.0", "HTTP/1.1"):
        raise _malformed("the request line is not one of HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or not name.strip() or (name in _SINGLE and name in headers):
            raise _malformed("a header has no name or no value, or is repeated")
        headers[name] = value.strip()
    return words[0], words[1], words[2], headers


def _malformed(why: str) -> Refusal:
    return Refusal("MALFORMED", f"the request is not valid HTTP: {why}", status=400)


@lru_cache(maxsize=1)
def _date(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)
