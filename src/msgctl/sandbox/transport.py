"""The sandbox in place of the network: an httpx transport over the emulator of this process."""

from __future__ import annotations

import time
from collections.abc import Callable

import httpx

from msgctl.sandbox import faults
from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.faults import FaultKind
from msgctl.sandbox.protocol import SandboxRequest

_BROKEN = {
    FaultKind.DROP: "Server disconnected without sending a response.",
    FaultKind.REJECT: "Server disconnected without sending a response.",
    FaultKind.TRUNCATE: "peer closed connection without sending complete message body",
    FaultKind.GARBAGE: "illegal status line",
}


class SandboxTransport(httpx.BaseTransport):
    """Carries requests to an emulator. Several threads may use one; faults raise what httpx raises on a network."""

    def __init__(self, emulator: Emulator, sleep: Callable[[float], None] = time.sleep) -> None:
        self._emulator = emulator
        self._sleep = sleep

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path, _, query = request.url.raw_path.decode().partition("?")
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = SandboxRequest(request.method, path, query, headers, request.read())
        outcome = faults.respond(self._emulator, asked, lambda seconds: self._wait(request, seconds))
        for kind in outcome.faults:
            if kind in _BROKEN:
                raise httpx.RemoteProtocolError(_BROKEN[kind], request=request)
        response = outcome.response
        return httpx.Response(response.status, headers=dict(response.headers), content=response.body, request=request)

    def _wait(self, request: httpx.Request, seconds: float) -> None:
        limit = request.extensions.get("timeout", {}).get("read")
        if limit is not None and seconds > limit:
            self._sleep(limit)
            raise httpx.ReadTimeout("timed out", request=request)
        self._sleep(seconds)
