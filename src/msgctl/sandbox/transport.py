"""An httpx transport that calls an emulator in this process: no bytes and no parser."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import httpx

from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.protocol import SECONDS_BETWEEN_CHECKS, SandboxRequest
from msgctl.sandbox.routing import respond


class SandboxTransport(httpx.BaseTransport):
    """Makes requests to an emulator. Of the request extensions of msgctl's other transport, it uses ``sent``."""

    def __init__(self, emulator: Emulator, sleep: Callable[[float], None] = time.sleep) -> None:
        self._emulator = emulator
        self._sleep = sleep

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Return the response of the emulator. Raises the httpx.TransportError of a fault that closes a connection."""
        request.extensions.get("sent", []).append(1)
        seconds = request.extensions["timeout"]["read"]
        target: bytes = request.extensions.get("target", request.url.raw_path)
        path, _, query = target.decode().partition("?")
        headers = {name.lower(): value for name, value in request.headers.items()}
        received = SandboxRequest(request.method, path, query, headers, request.content)
        started = time.monotonic()
        response = respond(self._emulator, received)
        while response.wait > time.monotonic() - started:
            self._sleep(SECONDS_BETWEEN_CHECKS)
            response = respond(self._emulator, received)
        if response.delay:
            self._sleep(min(response.delay, seconds))
        if response.delay > seconds:
            raise httpx.ReadTimeout("The sandbox responds too late")
        if response.closing - {"truncate"}:
            raise httpx.RemoteProtocolError("The sandbox closed the connection")
        if response.closing:
            return httpx.Response(response.status, headers=response.all_headers, content=_truncated(response.body))
        stream = httpx.ByteStream(response.body)
        return httpx.Response(response.status, headers=response.all_headers, stream=stream)


def _truncated(body: bytes) -> Iterator[bytes]:
    """Yield the first half of a body, before the connection is closed."""
    yield body[: len(body) // 2]
    raise httpx.RemoteProtocolError("The sandbox closed the connection")
