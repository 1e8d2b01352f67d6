"""The emulator: a call in, a reply out, and everything between in one transaction."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from random import Random, SystemRandom
from urllib.parse import urlsplit

from msgctl.operations import OPERATIONS, Effect, Operation
from msgctl.sandbox.behaviour import HANDLERS
from msgctl.sandbox.dispatch import Context
from msgctl.sandbox.parameters import Parameters, read
from msgctl.sandbox.state import State
from msgctl.sandbox.wire import Call, Refusal, Reply, masked, quoted, reply

BASE_PATH = "/api/v1"
BASE_URL = f"https://sandbox.invalid{BASE_PATH}"
CLIENT = 1
KEY = "sandbox"

__all__ = ("BASE_PATH", "BASE_URL", "CLIENT", "KEY", "Call", "Emulator", "Reply")


class Emulator:
    """The service, played on a state; any number of threads may call it.

    ``clock`` gives seconds since 1970, ``client`` and ``key`` are the one account, and the origin of ``base_url`` is
    where short URLs lead.
    """

    def __init__(
        self,
        state: State,
        *,
        clock: Callable[[], float] = time.time,
        random: Random | None = None,
        client: int = CLIENT,
        key: str = KEY,
        base_url: str = BASE_URL,
    ) -> None:
        self.state = state
        self.clock = clock
        self.random = random or SystemRandom()
        self._client = client
        self._key = key
        self._origin = _origin(base_url)

    def answer(self, call: Call) -> Reply:
        """Carry out a call: 200 with the record, or 520, 404 or 405 with the error record.

        Raises ConfigurationError where the state cannot be used; nothing else, whatever is in the call.
        """
        try:
            operation = _route(call)
            return self._perform(operation, read(operation, call, self._client, self._key))
        except Refusal as refusal:
            return refusal.reply()

    def close(self) -> None:
        """Close the state's connections; the next call opens one again."""
        self.state.close()

    def _perform(self, operation: Operation, parameters: Parameters) -> Reply:
        begin = self.state.reading if operation.effect is Effect.READS else self.state.writing
        with begin() as db:
            # The time is taken when the transaction has begun, so that messages are created in their order.
            context = Context(db, self.clock(), self.random, self._origin)
            return reply(HANDLERS[operation.name](context, parameters))


_BY_PATH: Mapping[str, Operation] = {BASE_PATH + operation.path: operation for operation in OPERATIONS}


def _route(call: Call) -> Operation:
    operation = _BY_PATH.get(call.path)
    if operation is None:
        raise Refusal("NOT_FOUND", f"there is no operation at the path {quoted(masked(call.path))}", status=404)
    if call.method != operation.method:
        raise Refusal(
            "METHOD_NOT_ALLOWED",
            f"{operation.path} takes the method {operation.method}, not {quoted(call.method)}",
            status=405,
            headers={"allow": operation.method},
        )
    return operation


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
