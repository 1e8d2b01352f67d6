"""The sandbox over HTTP/1.1, with limits on everything that a client may send.

One thread serves all connections with asyncio's streams, and h11 reads and writes HTTP. This module adds limits of size
and time.
"""

from __future__ import annotations

import asyncio
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import Callable, Iterable, Mapping
from http.client import responses
from typing import Any

import h11

from msgctl.errors import ConfigurationError
from msgctl.sandbox.protocol import (
    MAX_BODY,
    SECONDS_BETWEEN_CHECKS,
    Refusal,
    SandboxRequest,
    SandboxResponse,
    without_keys,
)
from msgctl.text import shorten

MAX_HEADERS = 64 * 1024
"""Maximum bytes of the request line and the headers, not counting the last read."""

GARBAGE = b"\x00\xff\x00garbage\r\n\r\n\x1b[2J\xfe" * 8

IDLE_SECONDS = 30.0
"""Maximum seconds between two requests, for reading a body, and for writing a response."""

HEADER_SECONDS = 10.0
"""Maximum seconds for reading the headers of a request."""

PIECE = 64 * 1024
"""Bytes read at once."""

MAX_DRAINED = 8 * MAX_BODY
"""Bytes of a too large request that are read and discarded, so that the client can read the response."""

Respond = Callable[[SandboxRequest, str], SandboxResponse]
"""A function that responds to a request from an address, or raises ConfigurationError."""


class Server:
    """Listens once created; `serve_forever` responds. ``log`` gets one line per request, without its query and keys.

    The ``Host`` of a request must be one of the server's own addresses or of ``hosts``, and it may have no foreign
    ``Origin``. Otherwise, a web page could read the inbox, by DNS rebinding or directly.
    """

    def __init__(
        self,
        host: str,
        port: int,
        log: Callable[[str], None],
        hosts: Iterable[str] = (),
    ) -> None:
        self.log = log
        self.hosts = {"localhost", host.lower(), *(name.lower() for name in hosts)}
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        both = host == "::" and socket.has_dualstack_ipv6()
        self.socket = socket.create_server((host, port), family=family, backlog=256, dualstack_ipv6=both)
        self.is_stopping = False
        self._wake: Callable[[], object] = lambda: None

    @property
    def origin(self) -> str:
        """The URL of the server, without a path."""
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
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEADERS)
        self._is_closed = False
        """Whether the client has closed its side of the connection."""

    async def serve(self) -> None:
        """Serve requests until the connection ends, or takes too long."""
        try:
            async with asyncio.timeout(None) as self._limit:
                while await self._serve_once():
                    self._http.start_next_cycle()
        except (OSError, TimeoutError):
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
        if not self._http.trailing_data[0]:
            self._allow(IDLE_SECONDS)
            await self._receive()
        self._allow(HEADER_SECONDS)
        started = self._loop.time()
        method, path, is_whole = "-", "-", False
        try:
            event = await self._event()
            if not isinstance(event, h11.Request):  # the client has closed the connection
                return False
            method = event.method.decode()
            path, _, query = event.target.decode().partition("?")
            headers = {name.decode(): value.decode("latin-1") for name, value in event.headers}
            self._allow(IDLE_SECONDS)
            self._check_host(headers)
            body = await self._body()
            is_whole = len(body) <= MAX_BODY
            response = await self._response(SandboxRequest(method, path, query, headers, body))
        except h11.RemoteProtocolError as error:
            if self._is_closed:  # in the middle of a request
                return False
            status = error.error_status_hint
            response = Refusal("MALFORMED", "the request is not valid HTTP, or too large", status=status).response()
        except ConfigurationError as error:
            response = Refusal("SANDBOX_FAILURE", error.message, status=500).response()
        except Refusal as refusal:
            response = refusal.response()
        milliseconds = (self._loop.time() - started) * 1000
        fault = f" fault {', '.join(response.faults)}" if response.faults else ""
        name = f"{shorten(method, 20)} {shorten(without_keys(path), 100)}"
        self._server.log(f"{name} {response.status} {milliseconds:.0f} ms{fault}")
        self._writer.write(self._encoded(response, is_whole=is_whole, has_body=method != "HEAD"))
        await self._writer.drain()
        if not is_whole:
            await self._discard()
        return self._http.our_state is self._http.their_state is h11.DONE

    async def _receive(self) -> None:
        data = await self._reader.read(PIECE)
        self._is_closed = not data
        self._http.receive_data(data)

    async def _discard(self) -> None:
        """Discard the rest of a request. Otherwise, the system could drop the response."""
        self._writer.write_eof()
        size = 0
        while size < MAX_DRAINED and (data := await self._reader.read(PIECE)):
            size += len(data)

    async def _event(self) -> Any:
        """Return the next part of a request. Raises h11.RemoteProtocolError."""
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                self._writer.write(self._http.send(h11.InformationalResponse(status_code=100, headers=[])) or b"")
            await self._receive()
        return event

    async def _body(self) -> bytes:
        """Return the body. Of a body that is too large, return one byte more than allowed, and close the connection."""
        body = bytearray()
        while isinstance(event := await self._event(), h11.Data):
            body += event.data
            if len(body) > MAX_BODY:
                return bytes(MAX_BODY + 1)
        return bytes(body)

    def _encoded(self, response: SandboxResponse, *, is_whole: bool, has_body: bool) -> bytes:
        """Return the bytes of a response, damaged by its faults.

        The connection closes after some faults, and if the request was not read completely (``is_whole``).
        """
        closing = response.closing
        if "garbage" in closing:
            return GARBAGE
        if closing - {"truncate"}:
            return b""
        headers = response.all_headers
        if closing or not is_whole:
            headers.append(("Connection", "close"))
        reason = responses.get(response.status, "Unknown Error")
        head = self._http.send(h11.Response(status_code=response.status, headers=headers, reason=reason)) or b""
        if closing:
            return head + response.body[: len(response.body) // 2]
        body = b""
        if has_body:
            body = self._http.send(h11.Data(data=response.body)) or b""
        return head + body + (self._http.send(h11.EndOfMessage()) or b"")

    def _check_host(self, headers: Mapping[str, str]) -> None:
        """Refuse a request with another Host, or from a web page of another origin."""
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
