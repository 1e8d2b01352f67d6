"""The sandbox in place of the network: an httpx transport over the emulator of this process."""

from __future__ import annotations

import time
from collections.abc import Callable

import httpx

from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.protocol import SandboxRequest

_BROKEN = {
    "drop": "Server disconnected without sending a response.",
    "reject": "Server disconnected without sending a response.",
    "truncate": "peer closed connection without sending complete message body",
    "garbage": "illegal status line",
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
        if self._emulator.state.has_faults():
            from msgctl.sandbox import faults

            response = faults.respond(self._emulator, asked, lambda seconds: self._wait(request, seconds))
        else:
            response = self._emulator.respond(asked)
        for kind in response.faults:
            if kind in _BROKEN:
                raise httpx.RemoteProtocolError(_BROKEN[kind], request=request)
        return httpx.Response(response.status, headers=dict(response.headers), content=response.body, request=request)

    def _wait(self, request: httpx.Request, seconds: float) -> None:
        limit = request.extensions.get("timeout", {}).get("read")
        if limit is not None and seconds > limit:
            self._sleep(limit)
            raise httpx.ReadTimeout("timed out", request=request)
        self._sleep(seconds)
