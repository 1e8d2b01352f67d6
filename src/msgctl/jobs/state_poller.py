"""Check the delivery states of what a job sent, at the job's rate. It can be stopped and run again."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from msgctl import operations
from msgctl.errors import MsgctlError, unexpected
from msgctl.http.client import Client
from msgctl.jobs import database
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.workers import WaitError, Workers
from msgctl.text import storable


class StateReply(NamedTuple):
    """The delivery state of a recipient's message, or the error instead of it."""

    line: int
    state: str | None = None
    error: MsgctlError | None = None
    was_sent: bool = True


class StatePoller(Workers):
    """Checks each message whose state is not final, the one unchecked for longest first.

    ``due`` is the number to check; ``checked`` and ``failed`` count messages, ``first_error`` is that of the first one
    that failed.
    """

    def __init__(
        self, ledger: Ledger, connect: Callable[[], Client], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self.due = sum(1 for _ in database.to_check(ledger.db))
        super().__init__(ledger, connect, self.due, monotonic)
        self._to_check = database.to_check(ledger.db)
        self.first_error: MsgctlError | None = None
        self.checked = 0
        self.failed = 0

    def _next(self) -> tuple[int, str] | None:
        if delay := self._limiter.delay(self._monotonic()):
            raise WaitError(delay)
        self._limiter.sent(1, self._monotonic())
        return next(self._to_check, None)

    def _perform(self, client: Client, item: tuple[int, str]) -> StateReply:
        line, message = item
        try:
            state = client.send(operations.MESSAGES_STATE, {"id": message}).document.get("state")
        except MsgctlError as error:
            return StateReply(line, error=error)
        except Exception as error:  # noqa: BLE001 (one message must not end the others)
            return StateReply(line, error=unexpected(error))
        return StateReply(line, None if state is None else storable(str(state)))

    def _record(self, result: StateReply) -> None:
        self.checked += 1
        if result.error:
            self.failed += 1
            self.first_error = self.first_error or result.error
        else:
            self._ledger.note_delivery(result.line, result.state)
