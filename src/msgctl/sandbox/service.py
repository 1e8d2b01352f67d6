"""The whole sandbox: the operations with their faults, its own endpoints, short URLs, and its page."""

from __future__ import annotations

import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import h11
import httpcore

from msgctl.sandbox import endpoints, faults, page, wire
from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.protocol import (
    OWN_PATH,
    PAGE,
    SECONDS_BETWEEN_CHECKS,
    VISITS,
    Refusal,
    SandboxRequest,
    SandboxResponse,
    wrong_method,
)


def respond(emulator: Emulator, request: SandboxRequest, address: str = "") -> SandboxResponse:
    """Respond to a request from an address; faults apply to operations. Raises only ConfigurationError."""
    is_own = request.path == PAGE or request.path.startswith(OWN_PATH)
    if request.path == PAGE:
        response = _page(request)
    elif is_own or request.path.startswith(VISITS):
        response = endpoints.respond(emulator, request)
    else:
        is_faulty = emulator.read_settings()
        if not emulator.allows(address):
            # Like wrong credentials: the API does not distinguish the two.
            response = emulator.refused(Refusal("UNAUTHORIZED", "client or key is wrong"))
        elif is_faulty:
            response = faults.respond(emulator, request)
        else:
            response = emulator.carry_out(request)
    if not is_own:
        emulator.log(request, response)
    if emulator.stopped is None:
        return response
    return response._replace(headers={**response.headers, "date": formatdate(emulator.stopped, usegmt=True)})


def _page(request: SandboxRequest) -> SandboxResponse:
    if request.method not in ("GET", "HEAD"):
        return wrong_method(request.path, "GET", "HEAD").response()
    return page.response()


class SandboxBackend(httpcore.NetworkBackend):
    """A network of httpcore that connects to an emulator in this process."""

    def __init__(self, emulator: Emulator, sleep: Callable[[float], None] = time.sleep) -> None:
        self._emulator = emulator
        self._sleep = sleep

    def connect_tcp(self, *_: Any, **__: Any) -> httpcore.NetworkStream:
        return _Stream(self._emulator, self._sleep)


class _Stream(httpcore.NetworkStream):
    """A connection to an emulator, which responds when the response is read."""

    def __init__(self, emulator: Emulator, sleep: Callable[[float], None]) -> None:
        self._emulator = emulator
        self._sleep = sleep
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=wire.MAX_HEADERS)
        self._unread = b""

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        self._http.receive_data(buffer)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if not self._unread and self._http.our_state in (h11.IDLE, h11.DONE):
            self._unread = self._response(timeout or 0)
        data, self._unread = self._unread[:max_bytes], self._unread[max_bytes:]
        return data

    def close(self) -> None:
        pass

    def _response(self, seconds: float) -> bytes:
        """Return the bytes of the response to the written request, within this many seconds."""
        if self._http.our_state is h11.DONE:
            self._http.start_next_cycle()
        request, body = SandboxRequest("", ""), b""
        while not isinstance(event := self._http.next_event(), h11.EndOfMessage):
            if isinstance(event, h11.Request):
                request = wire.request(event)
            elif isinstance(event, h11.Data):
                body += event.data
        request = request._replace(body=body)
        started = time.monotonic()
        response = respond(self._emulator, request)
        while response.wait > time.monotonic() - started:
            self._sleep(SECONDS_BETWEEN_CHECKS)
            response = respond(self._emulator, request)
        if response.delay:
            self._sleep(min(response.delay, seconds))
        if response.delay > seconds:
            raise httpcore.ReadTimeout
        return wire.encoded(self._http, response, has_body=request.method != "HEAD")
