"""The emulator of the 13 operations: a request in, a response out, and everything between in one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from random import Random, SystemRandom
from sqlite3 import Connection
from urllib.parse import urlsplit

from msgctl.operations import OPERATIONS, Effect, Operation
from msgctl.sandbox.decode import read
from msgctl.sandbox.handlers import HANDLERS
from msgctl.sandbox.messages import Scope
from msgctl.sandbox.protocol import (
    BASE_PATH,
    Refusal,
    SandboxRequest,
    SandboxResponse,
    json_response,
    masked,
    quoted,
    wrong_method,
)
from msgctl.sandbox.state import SandboxState

BASE_URL = f"https://sandbox.invalid{BASE_PATH}"
CLIENT = 1
KEY = "sandbox"

_BY_PATH: Mapping[str, Operation] = {BASE_PATH + operation.path: operation for operation in OPERATIONS}


class Emulator:
    """Simulates the service on a state; any number of threads may use it.

    ``clock`` is the machine's, in seconds since 1970; ``client`` and ``key`` are the one account; short URLs begin with
    the origin of ``base_url``. With a ``seed`` the same requests get the same identifiers, codes and faults.
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
    ) -> None:
        self.state = state
        self.random = SystemRandom() if seed is None else Random(seed)  # noqa: S311 - repeatable on request
        self.chance = Random(seed)  # noqa: S311 - of faults only, so that they do not change the identifiers
        parts = urlsplit(base_url)
        self.origin = f"{parts.scheme}://{parts.netloc}"
        self.clock = clock
        self.stopped: float | None = None
        """The time of the sandbox's clock, if it was stopped when it was last read."""
        self._client = client
        self._key = key

    def respond(self, request: SandboxRequest) -> SandboxResponse:
        """Carry out a request: 200 with the record, or 520, 404 or 405 with the error record.

        Raises nothing but ConfigurationError, if the state cannot be used.
        """
        try:
            operation = _route(request)
            given = read(operation, request, self._client, self._key)
            begin = self.state.reading if operation.effect is Effect.READS else self.state.writing
            with begin() as db:
                # The time is read inside the transaction, so that messages are stored in the order of their times.
                scope = Scope(db, self.now(db), self.random, self.origin)
                return json_response(HANDLERS[operation.answer.name](scope, given))
        except Refusal as refusal:
            return refusal.response()

    def now(self, db: Connection) -> float:
        """Return the time of the sandbox's clock, in seconds since 1970."""
        offset, stopped = db.execute("SELECT clock_offset, clock_stopped FROM account").fetchone()
        self.stopped = stopped
        return float(self.clock() + offset if stopped is None else stopped)

    def close(self) -> None:
        """Close the state's connections; the next request opens one again."""
        self.state.close()


def _route(request: SandboxRequest) -> Operation:
    operation = _BY_PATH.get(request.path)
    if operation is None:
        raise Refusal("NOT_FOUND", f"no operation at the path {quoted(masked(request.path))}", status=404)
    if request.method != operation.method:
        raise wrong_method(operation.path, operation.method)
    return operation
