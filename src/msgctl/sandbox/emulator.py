"""The emulator of the 13 operations: a request in, a response out, and everything between in one transaction."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from random import Random, SystemRandom
from sqlite3 import Connection
from urllib.parse import urlsplit

import httpx

from msgctl.operations import OPERATIONS, Effect, Operation
from msgctl.sandbox.handlers import HANDLERS, Scope
from msgctl.sandbox.protocol import (
    BASE_PATH,
    Refusal,
    SandboxRequest,
    SandboxResponse,
    json_response,
    masked,
    quoted,
    read,
    wrong_method,
)
from msgctl.sandbox.state import SandboxState

BASE_URL = f"https://sandbox.invalid{BASE_PATH}"
CLIENT = 1
KEY = "sandbox"
OWN_PATH = "/sandbox"
"""The path of the sandbox's own endpoints."""
MAX_REQUESTS = 200
SECONDS_BETWEEN_CHECKS = 0.05
"""Seconds between two checks for what a request waits for."""

_BY_PATH: Mapping[str, Operation] = {BASE_PATH + operation.path: operation for operation in OPERATIONS}


class Emulator:
    """Simulates the service on a state; any number of threads may use it.

    ``clock`` is the machine's, in seconds since 1970; ``client`` and ``key`` are the one account; short URLs begin with
    the origin of ``base_url``. With a ``seed`` the same requests get the same identifiers, codes and faults.
    ``operate`` replaces the operations, for example by recorded responses.
    """

    def __init__(
        self,
        state: SandboxState,
        *,
        clock: Callable[[], float] = time.time,
        seed: int | None = None,
        client: int = CLIENT,
        key: str = KEY,
        base_url: str = BASE_URL,
        operate: Callable[[SandboxRequest], SandboxResponse] | None = None,
    ) -> None:
        self.state = state
        self.random = SystemRandom() if seed is None else Random(seed)  # noqa: S311 - repeatable on request
        self.chance = Random(seed)  # noqa: S311 - of faults only, so that they do not change the identifiers
        parts = urlsplit(base_url)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.clock = clock
        self.stopped: float | None = None
        """The time of the sandbox's clock, if it was stopped when it was last read."""
        self.requests: deque[tuple[int, float, SandboxRequest, SandboxResponse]] = deque(maxlen=MAX_REQUESTS)
        """The newest requests to a served sandbox, with their numbers and times."""
        self.operate = operate or self.carry_out
        self._client = client
        self._key = key

    def respond(self, request: SandboxRequest) -> SandboxResponse:
        """Respond to a request for an operation, with the faults that are set, or for an endpoint of the sandbox.

        Raises nothing but ConfigurationError, if the state cannot be used.
        """
        if request.path.startswith(OWN_PATH):
            from msgctl.sandbox import endpoints

            return endpoints.respond(self, request)
        if self.state.has_faults():
            from msgctl.sandbox import faults

            return faults.respond(self, request)
        return self.operate(request)

    def carry_out(self, request: SandboxRequest) -> SandboxResponse:
        """Carry out an operation: 200 with the record, or 520, 404 or 405 with the error record."""
        operation = _BY_PATH.get(request.path)
        if operation is None:
            why = f"no operation at the path {quoted(masked(request.path))}"
            return Refusal("NOT_FOUND", why, status=404).response()
        if request.method != operation.method:
            return wrong_method(operation.path, operation.method).response()
        try:
            given = read(operation, request, self._client, self._key)
            begin = self.state.reading if operation.effect is Effect.READS else self.state.writing
            with begin() as db:
                # The time is read inside the transaction, so that messages are stored in the order of their times.
                scope = Scope(db, *self.now(db), self.random, self.origin)
                return json_response(HANDLERS[operation.answer.name](scope, given))
        except Refusal as refusal:
            return refusal.response()

    def now(self, db: Connection) -> tuple[float, int]:
        """Return the time of the sandbox's clock, in seconds since 1970, and the credits left."""
        offset, stopped, left = db.execute("SELECT clock_offset, clock_stopped, credits FROM account").fetchone()
        self.stopped = stopped
        return float(self.clock() + offset if stopped is None else stopped), left

    def close(self) -> None:
        self.state.close()


_BROKEN = {
    "drop": "Server disconnected without sending a response.",
    "reject": "Server disconnected without sending a response.",
    "truncate": "peer closed connection without sending complete message body",
    "garbage": "illegal status line",
}


class SandboxTransport(httpx.BaseTransport):
    """Carries requests to an emulator in place of the network; several threads may use one.

    Faults raise what httpx raises on a network.
    """

    def __init__(self, emulator: Emulator, sleep: Callable[[float], None] = time.sleep) -> None:
        self._emulator = emulator
        self._sleep = sleep

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path, _, query = request.url.raw_path.decode().partition("?")
        asked = SandboxRequest(request.method, path, query, dict(request.headers), request.read())
        started = time.monotonic()
        response = self._emulator.respond(asked)
        while response.wait > time.monotonic() - started:
            self._sleep(SECONDS_BETWEEN_CHECKS)
            response = self._emulator.respond(asked)
        if response.delay:
            limit = request.extensions.get("timeout", {}).get("read") or response.delay
            self._sleep(min(response.delay, limit))
            if response.delay > limit:
                raise httpx.ReadTimeout("timed out", request=request)
        for kind in response.faults:
            if kind in _BROKEN:
                raise httpx.RemoteProtocolError(_BROKEN[kind], request=request)
        return httpx.Response(response.status, headers=dict(response.headers), content=response.body, request=request)
