"""Check the delivery states of a job's messages."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgctl import operations
from msgctl.errors import MsgctlError, unexpected, without_frames
from msgctl.http.client import Client
from msgctl.http.request import build
from msgctl.jobs import schema
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.schema import Undecided
from msgctl.jobs.workers import Wait, Workers
from msgctl.outcomes.judge import states
from msgctl.text import clean


class PollResult(NamedTuple):
    """The states of the recipients who share an id, or an error."""

    item: Undecided
    states: Sequence[str | None] = ()
    error: MsgctlError | None = None
    was_sent: bool = True


class StatePoller(Workers):
    """Checks each message without a final state, the least recently checked first.

    States that reach one in ``until`` count as final. ``due``, ``checked`` and ``failed`` count messages;
    ``first_error`` is the error of the first that failed.
    """

    def __init__(
        self,
        ledger: Ledger,
        connect: Callable[[], Client],
        *,
        until: Sequence[str] = (),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._until = until
        self.due = schema.undecided(ledger.db, until)
        super().__init__(ledger, connect, self.due, monotonic)
        self._to_check = schema.to_check(ledger.db, until)
        self.first_error: MsgctlError | None = None
        self.checked = 0
        self.failed = 0

    def missing(self) -> int:
        """Return how many messages have not reached a wanted state yet."""
        return schema.undecided(self._ledger.db, self._until)

    def status(self) -> str:
        """Return the known states as a line for a person."""
        return ", ".join(f"{number:,} {clean(state)}" for state, number in schema.deliveries(self._ledger.db).items())

    def finish(self) -> MsgctlError | None:
        self._to_check.close()  # its query would keep the ledger open
        return super().finish()

    def _next(self) -> Undecided | Wait | None:
        if delay := self._limiter.delay(self._monotonic()):
            return Wait(delay)
        self._limiter.sent(1, self._monotonic())
        return next(self._to_check, None)

    def _perform(self, client: Client, item: Undecided) -> PollResult:
        try:
            document = client.send(build(operations.MESSAGES_STATE, {"id": item.id})).document
            return PollResult(item, states(document["data"], item.phones))
        except MsgctlError as error:
            return PollResult(item, error=without_frames(error))
        except Exception as error:  # noqa: BLE001 (one message must not end the others)
            return PollResult(item, error=without_frames(unexpected(error)))

    def _record(self, result: PollResult) -> None:
        size = len(result.item.lines)
        self.checked += size
        if result.error:
            self.failed += size
            self.first_error = self.first_error or result.error
            return
        for line, state in zip(result.item.lines, result.states, strict=True):
            self._ledger.note_delivery(line, state)
