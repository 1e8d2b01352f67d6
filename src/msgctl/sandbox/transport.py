"""Lets an httpx client call the emulator inside its own process."""

from __future__ import annotations

import httpx

from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.wire import Call


class SandboxTransport(httpx.BaseTransport):
    """Answers every request, whatever its host, from an emulator. Closing it closes the emulator's connections."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path, _, query = request.url.raw_path.decode("ascii").partition("?")
        headers = {name.lower(): value for name, value in request.headers.items()}
        reply = self._emulator.answer(Call(request.method, path, query, headers, request.read()))
        # A stream, not content: whoever asked wants to read it in pieces and to stop at a limit.
        return httpx.Response(reply.status, headers=dict(reply.headers), stream=httpx.ByteStream(reply.body))

    def close(self) -> None:
        self._emulator.close()
