"""Read what the service knows of a job's messages: their delivery states, and the clicks on their links."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Generator, Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple

from msgctl import operations
from msgctl.errors import MsgctlError, UnreadableError, unexpected, without_frames
from msgctl.http.client import Client
from msgctl.http.request import Request, build
from msgctl.http.response import Response
from msgctl.jobs import schema
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.schema import SentLink, Undecided
from msgctl.jobs.workers import Wait, Workers
from msgctl.recipients import charged, states
from msgctl.text import clean


class PollResult(NamedTuple):
    """The value for an item, or an error."""

    item: Any
    value: Any = None
    error: MsgctlError | None = None
    was_sent: bool = True


class Poller(Workers):
    """Makes one request for each item, which is about the messages of some ``lines``.

    ``due``, ``checked`` and ``failed`` count messages; ``first_error`` is the error of the first that failed.
    Messages call a checked item ``checked_noun``, and an item that could not be checked ``failed_noun``.
    """

    checked_noun: str
    failed_noun: str

    def __init__(
        self,
        ledger: Ledger,
        connect: Callable[[], Client],
        due: int,
        items: Generator[Any, None, None],
        monotonic: Callable[[], float],
    ) -> None:
        super().__init__(ledger, connect, due, monotonic)
        self.due = due
        self._to_check = items
        self.first_error: MsgctlError | None = None
        self.checked = 0
        self.failed = 0

    @abstractmethod
    def missing(self) -> int:
        """Return how many messages do not have the wanted value yet."""

    @abstractmethod
    def status(self) -> str:
        """Return the known values as a line for a person."""

    @abstractmethod
    def _request(self, item: Any) -> Request:
        """Return the request for an item."""

    @abstractmethod
    def _value(self, item: Any, response: Response) -> Any:
        """Return the value in a response. Raises MsgctlError."""

    @abstractmethod
    def _write_value(self, item: Any, value: Any) -> None:
        """Write the value of an item. Called in a transaction."""

    def finish(self) -> MsgctlError | None:
        self._to_check.close()  # its query would keep the ledger open
        return super().finish()

    def _next(self) -> Any:
        if delay := self._limiter.delay(self._monotonic()):
            return Wait(delay)
        self._limiter.sent(1, self._monotonic())
        return next(self._to_check, None)

    def _perform(self, client: Client, item: Any) -> PollResult:
        try:
            return PollResult(item, self._value(item, client.send(self._request(item))))
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
        else:
            self._write_value(result.item, result.value)


class StatePoller(Poller):
    """Checks each message without a final state, the least recently checked first.

    States that reach one in ``until`` count as final.
    """

    checked_noun, failed_noun = "message", "delivery state"

    def __init__(
        self,
        ledger: Ledger,
        connect: Callable[[], Client],
        *,
        until: Sequence[str] = (),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._until = until
        due = schema.undecided(ledger.db, until)
        super().__init__(ledger, connect, due, schema.to_check(ledger.db, until), monotonic)

    def missing(self) -> int:
        return schema.undecided(self._ledger.db, self._until)

    def status(self) -> str:
        return ", ".join(f"{number:,} {clean(state)}" for state, number in schema.deliveries(self._ledger.db).items())

    def _request(self, item: Undecided) -> Request:
        return build(operations.MESSAGES_STATE, {"id": item.id})

    def _value(self, item: Undecided, response: Response) -> list[str | None]:
        return states(response.document["data"], item.phones)

    def _write_value(self, item: Undecided, value: Sequence[str | None]) -> None:
        for line, state in zip(item.lines, value, strict=True):
            self._ledger.note_delivery(line, state)


class ClickPoller(Poller):
    """Requests the clicks on each link in a sent message, the least recently checked first."""

    checked_noun = failed_noun = "link"

    def __init__(
        self, ledger: Ledger, connect: Callable[[], Client], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        links = schema.clicks(ledger.db).links
        super().__init__(ledger, connect, links, schema.sent_links(ledger.db), monotonic)

    def missing(self) -> int:
        found = schema.clicks(self._ledger.db)
        return found.links - (found.people or 0)

    def status(self) -> str:
        found = schema.clicks(self._ledger.db)
        return "" if found.people is None else f"{found.people:,} of {found.links:,} clicked"

    def _request(self, item: SentLink) -> Request:
        # The day before, because the service may be in another time zone.
        first = date.fromtimestamp(item.requested) - timedelta(days=1)
        values = {"name-url": item.name, "since": first.isoformat()}
        return build(
            operations.URL_STATISTIC, {**values, "until": date.fromtimestamp(self._ledger.clock()).isoformat()}
        )

    def _value(self, item: SentLink, response: Response) -> int:
        clicks = charged(str(response.document.get("clicksNumber")))
        if clicks is None:
            raise UnreadableError(f"The response for {item.name} has no number of clicks", **response.attached())
        return clicks

    def _write_value(self, item: SentLink, value: int) -> None:
        self._ledger.note_clicks(item.lines[0], value)
