"""The whole sandbox: the operations with their faults, its own endpoints, short URLs, and its page."""

from __future__ import annotations

import time
from collections.abc import Callable
from email.utils import formatdate

import httpx

from msgctl.sandbox import endpoints, faults, page
from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.protocol import (
    CLOSING,
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
    """Respond to a request from an address, with the faults that are set for operations.

    Raises nothing but ConfigurationError.
    """
    is_own = request.path == PAGE or request.path.startswith(OWN_PATH)
    if request.path == PAGE:
        response = _page(request)
    elif is_own or request.path.startswith(VISITS):
        response = endpoints.respond(emulator, request)
    else:
        response = _operate(emulator, request, address)
    if not is_own:
        emulator.log(request, response)
    if emulator.stopped is None:
        return response
    return response._replace(headers={**response.headers, "date": formatdate(emulator.stopped, usegmt=True)})


def _operate(emulator: Emulator, request: SandboxRequest, address: str) -> SandboxResponse:
    is_faulty = emulator.read_settings()
    if not emulator.allows(address):
        # Like wrong credentials: the API does not distinguish the two.
        return emulator.refused(Refusal("UNAUTHORIZED", "client or key is wrong"))
    return faults.respond(emulator, request) if is_faulty else emulator.carry_out(request)


def _page(request: SandboxRequest) -> SandboxResponse:
    if request.method not in ("GET", "HEAD"):
        return wrong_method(request.path, "GET", "HEAD").response()
    return page.response()


class SandboxTransport(httpx.BaseTransport):
    """Carries requests to an emulator in place of the network; several threads may use one.

    Faults raise the exceptions of httpx on a network, or return a response with the fault in its extensions.
    """

    def __init__(self, emulator: Emulator, sleep: Callable[[float], None] = time.sleep) -> None:
        self._emulator = emulator
        self._sleep = sleep

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path, _, query = request.url.raw_path.decode().partition("?")
        asked = SandboxRequest(request.method, path, query, dict(request.headers), request.read())
        started = time.monotonic()
        response = respond(self._emulator, asked)
        while response.wait > time.monotonic() - started:
            self._sleep(SECONDS_BETWEEN_CHECKS)
            response = respond(self._emulator, asked)
        if response.delay:
            limit = request.extensions.get("timeout", {}).get("read") or response.delay
            self._sleep(min(response.delay, limit))
            if response.delay > limit:
                raise httpx.ReadTimeout("timed out", request=request)
        body, extensions = response.body, {}
        if {*response.faults} & CLOSING == {"truncate"}:
            body = body[: len(body) // 2]
            extensions = {"lost": True, "fault": "the connection was closed before the end of the response"}
        elif not CLOSING.isdisjoint(response.faults):
            raise httpx.RemoteProtocolError("a fault simulated by the sandbox", request=request)
        headers = dict(response.headers)
        return httpx.Response(response.status, headers=headers, content=body, request=request, extensions=extensions)
