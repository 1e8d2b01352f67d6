"""The sandbox over HTTP/1.1, with limits on everything that a client may send.

One thread serves all connections with asyncio's streams. This module adds what they lack: HTTP, limits of size and
time, and responses broken on purpose by faults.
"""

from __future__ import annotations

import asyncio
import re
import socket
import time
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Iterable
from email.utils import formatdate
from functools import lru_cache
from http.client import responses

from msgctl.errors import ConfigurationError
from msgctl.sandbox.protocol import (
    CLOSING,
    MAX_BODY,
    SECONDS_BETWEEN_CHECKS,
    Redact,
    Refusal,
    SandboxRequest,
    SandboxResponse,
    masked,
)
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
_HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\x00\r\n]*)")
"""A field line (RFC 9112, 5): no space before the colon, and no continuation of the line before it."""
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r\n")


Respond = Callable[[SandboxRequest, str], SandboxResponse]
"""A function that responds to a request from an address, or raises ConfigurationError."""


class Server:
    """Listens once created; `serve_forever` responds. ``log`` gets one line per request, without its query and keys.

    A request must name one of the server's own addresses in ``Host``, or one of ``hosts``, and have no foreign
    ``Origin``: otherwise a web page could read the inbox, by DNS rebinding or directly.
    """

    def __init__(
        self,
        host: str,
        port: int,
        log: Callable[[str], None],
        hosts: Iterable[str] = (),
        redact: Redact = masked,
    ) -> None:
        self.log = log
        self.redact = redact
        self.hosts = {"localhost", host.lower(), *(name.lower() for name in hosts)}
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        both = host == "::" and socket.has_dualstack_ipv6()
        self.socket = socket.create_server((host, port), family=family, backlog=256, dualstack_ipv6=both)
        self.is_stopping = False
        self._wake: Callable[[], object] = lambda: None

    @property
    def origin(self) -> str:
        """Return the URL of the server, without a path."""
        host, port = self.socket.getsockname()[:2]
        # A server on all addresses is reached through loopback from here.
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not bound here
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def serve_forever(self, respond: Respond) -> None:
        """Serve until `stop`."""
        asyncio.run(self._serve(respond))

    def stop(self) -> None:
        """End `serve_forever`, or prevent it, from another thread or a signal handler."""
        self.is_stopping = True
        self._wake()

    def close(self) -> None:
        self.socket.close()

    async def _serve(self, respond: Respond) -> None:
        loop, stopped = asyncio.get_running_loop(), asyncio.Event()
        self._wake = lambda: loop.call_soon_threadsafe(stopped.set)
        loop.set_exception_handler(lambda _loop, _context: None)  # connections are cancelled at the end
        await asyncio.start_server(
            lambda reader, writer: _Connection(self, respond, reader, writer).serve(),
            sock=self.socket,
            limit=MAX_HEADERS,
        )
        if not self.is_stopping:
            await stopped.wait()


class _Connection:
    """One connection of a client."""

    def __init__(self, server: Server, respond: Respond, reader: StreamReader, writer: StreamWriter) -> None:
        self._server = server
        self._reader = reader
        self._writer = writer
        self._respond = respond
        self._address = str(writer.get_extra_info("peername")[0])
        own = str(writer.get_extra_info("sockname")[0])
        self._hosts = {*server.hosts, own.removeprefix("::ffff:")}
        self._loop = asyncio.get_running_loop()

    async def serve(self) -> None:
        """Serve requests until the connection ends, or takes too long."""
        try:
            async with asyncio.timeout(None) as self._limit:
                while await self._serve_once():
                    pass
        except (OSError, TimeoutError, asyncio.IncompleteReadError):
            pass  # the client is gone, or too slow
        except Exception as error:  # noqa: BLE001 - one line instead of a traceback
            self._server.log(f"a connection ended with {type(error).__name__}")
        finally:
            self._writer.close()

    def _allow(self, seconds: float) -> None:
        """Set the time limit of the next step."""
        self._limit.reschedule(self._loop.time() + seconds)

    async def _serve_once(self) -> bool:
        """Respond to the next request, and return whether the connection stays open."""
        self._allow(IDLE_SECONDS)
        first = await self._reader.read(1)
        if not first:
            return False
        self._allow(HEADER_SECONDS)
        started = self._loop.time()
        method, path, stays_open = "-", "-", False
        try:
            method, target, version, headers = _parsed(first + await self._reader.readuntil(b"\r\n\r\n"))
            path, _, query = target.partition("?")
            self._allow(IDLE_SECONDS)
            self._check_host(headers)
            body = await self._body(headers)
            response = await self._response(SandboxRequest(method, path, query, headers, body))
            closes = version == "HTTP/1.0" or "close" in headers.get("connection", "").lower()
            stays_open = not closes and len(body) <= MAX_BODY and CLOSING.isdisjoint(response.faults)
        except asyncio.LimitOverrunError:
            response = _malformed("the headers are too long").response()
        except ConfigurationError as error:
            response = Refusal("SANDBOX_FAILURE", error.message, status=500).response()
        except Refusal as refusal:
            response = refusal.response()
        milliseconds = (self._loop.time() - started) * 1000
        fault = f" fault {', '.join(response.faults)}" if response.faults else ""
        asked = f"{shorten(method, 20)} {shorten(self._server.redact(path), 100)}"
        self._server.log(f"{asked} {response.status} {milliseconds:.0f} ms{fault}")
        self._writer.write(_sent(response, stays_open, without_body=method == "HEAD"))
        await self._writer.drain()
        return stays_open

    def _check_host(self, headers: dict[str, str]) -> None:
        """Refuse a request that names another server, or comes from a web page of another origin."""
        host = headers.get("host", "").lower()
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        if name not in self._hosts:
            raise Refusal("FORBIDDEN_HOST", "Host must be an address of this server; see --allow-host", status=403)
        if headers.get("origin", f"http://{host}").lower() != f"http://{host}":
            raise Refusal("FORBIDDEN_ORIGIN", "web pages of another origin may not use the sandbox", status=403)

    async def _response(self, request: SandboxRequest) -> SandboxResponse:
        response = self._respond(request, self._address)
        if response.wait or response.delay:
            self._limit.reschedule(None)
            until = self._loop.time() + response.wait
            while response.wait and self._loop.time() < until and not self._reader.at_eof():
                await asyncio.sleep(SECONDS_BETWEEN_CHECKS)
                response = self._respond(request, self._address)
            await asyncio.sleep(response.delay)
            self._allow(IDLE_SECONDS)
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

    async def _chunk_size(self) -> int:
        """Return the size of the next chunk. Raises ValueError."""
        found = _CHUNK.fullmatch(await self._reader.readline())
        if found is None:
            raise ValueError
        return int(found[1], 16)

    async def _chunks(self) -> bytes:
        """Return a chunked body (RFC 9112, 7.1), ignoring trailers."""
        body = bytearray()
        try:
            while size := await self._chunk_size():
                if len(body) + size > MAX_BODY:
                    return bytes(MAX_BODY + 1)
                body += await self._reader.readexactly(size)
                if await self._reader.readexactly(2) != b"\r\n":
                    raise _malformed("a chunk is longer than its size")
            while (await self._reader.readline()).strip():
                pass
        except ValueError:
            raise _malformed("a chunk has no size, or a trailer is too long") from None
        return bytes(body)


def _sent(response: SandboxResponse, stays_open: bool, *, without_body: bool) -> bytes:
    """Return the bytes of a response, changed by its faults."""
    if {"drop", "reject"} & {*response.faults}:
        return b""
    if "garbage" in response.faults:
        return GARBAGE
    lines = {"server": "msgctl-sandbox", "date": _date(int(time.time())), **response.headers}
    lines["x-content-type-options"] = "nosniff"
    lines["content-length"] = str(len(response.body))
    if not stays_open:
        lines["connection"] = "close"
    shown = "".join(f"{name.title()}: {value}\r\n" for name, value in lines.items())
    reason = responses.get(response.status, "Unknown Error")
    head = f"HTTP/1.1 {response.status} {reason}\r\n{shown}\r\n".encode("latin-1", "replace")
    body = b"" if without_body else response.body
    return head + (body[: len(body) // 2] if "truncate" in response.faults else body)


def _parsed(head: bytes) -> tuple[str, str, str, dict[str, str]]:
    """Return method, target, version and headers of a request. Raises Refusal."""
    first, *lines = head.decode(errors="replace").strip("\r\n").split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or words[2] not in ("HTTP/1.0", "HTTP/1.1") or re.search(r"[\x00\r\n]", words[1]):
        raise _malformed("the request line is not valid HTTP/1.1")
    headers: dict[str, str] = {}
    for line in lines:
        header = _HEADER.fullmatch(line)
        name = header[1].lower() if header else ""
        if header is None or (name in _SINGLE and name in headers):
            raise _malformed("a header has no name or no value, is folded, or is repeated")
        headers[name] = header[2].strip()
    return words[0], words[1], words[2], headers


def _malformed(why: str) -> Refusal:
    return Refusal("MALFORMED", f"the request is not valid HTTP: {why}", status=400)


@lru_cache(maxsize=1)
def _date(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)
