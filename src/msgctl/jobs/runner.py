"""Run a job within its limits: send its pending messages."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Protocol

from msgctl.errors import (
    ConfigurationError,
    MsgctlError,
    NotReachedError,
    RefusedError,
    StoreNotReachedError,
    TurnedAwayError,
    UsageError,
    unexpected,
    without_frames,
)
from msgctl.http.client import Client
from msgctl.http.request import build
from msgctl.jobs import schema
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.model import Intent, JobSpec, RequestResult
from msgctl.jobs.rate_limits import Budget
from msgctl.jobs.schedule import SendingHours
from msgctl.jobs.schema import LEDGER, OPTED_OUT
from msgctl.jobs.states import IN_FLIGHT
from msgctl.jobs.workers import Wait, Workers
from msgctl.outcomes.judge import ACCEPTED, REFUSED, UNKNOWN, RecipientOutcome
from msgctl.phones import price_area

CLOCK_CHECK = 1.0
"""Seconds between checks of the clock while the window is closed: the clock may be set, or the machine may sleep."""

OPT_OUT_CHECK = 0.5
"""Seconds after which an unsent request checks the opt-out list again, for example after a slow commit."""

MAX_ATTEMPT = 3600.0
"""Seconds; the client's own limit, --timeout, is never longer."""

MAX_STORED = 256 * 1024
"""Bytes of a response that are stored if it leaves an outcome in doubt; each thread may hold one."""


class ContactRecord(Protocol):
    """Records who may have got a message, and limits how many a person gets (`msgctl.history.contacts`)."""

    def claim(self, intents: Sequence[Intent]) -> Collection[str]: ...
    def reached(self, people: Sequence[str]) -> Collection[str]: ...
    def settle(self, results: Iterable[RequestResult]) -> None: ...


class Runner(Workers):
    """Sends the pending messages in a ledger.

    ``totals`` are the ledger's totals at the last commit. ``waits_until`` is the time when the window opens for the
    next recipient, in seconds since 1970; None if the job does not wait for it.
    """

    def __init__(
        self,
        ledger: Ledger,
        connect: Callable[[], Client],
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        opted_out: Callable[[Collection[str]], Collection[str]] = lambda _: (),
        contacts: ContactRecord | None = None,
        waits: bool = True,
    ) -> None:
        """Without ``waits``, the job ends when all pending recipients must wait for their window.

        ``contacts`` records the recipients of each request before it is sent.

        ``opted_out`` returns the numbers in its argument that have opted out. Any thread may call it.
        """
        super().__init__(ledger, connect, ledger.totals.unsent, monotonic)
        spec = ledger.spec
        self._hours = SendingHours.of(spec, clock)
        self._opted_out = opted_out
        self._contacts = contacts
        self._waits = waits
        self._size = self._limiter.batch_size(spec.batch_size)
        self.budget: Budget | None = None
        if spec.max_credits is not None:
            with LEDGER.explained(ledger.path):
                self.budget = Budget(spec.max_credits, schema.prices(ledger.db, price_area))
        self.totals = ledger.totals.copy()
        self.waits_until: float | None = None
        self._closed: list[str] = []

    def _is_due(self) -> bool:
        """Return whether there may be work. While all pending recipients wait for their window, there is no work."""
        if self._hours is None or self.waits_until is None or self._stopping.is_set():
            return True
        return not {*self._hours.open_zones()}.isdisjoint(self._closed)

    def _perform(self, client: Client, item: Intent) -> RequestResult:
        """Send a request, unless its window has closed or a recipient has opted out meanwhile."""
        is_open = self._hours is None or item.zones in self._hours.open_zones()
        if is_open and not self._is_refused(item):
            return send(client, self._ledger.spec, item)
        return RequestResult(item, [RecipientOutcome(phone, UNKNOWN) for phone in item.phones], was_sent=False)

    def _is_refused(self, item: Intent) -> bool:
        """Return whether a recipient of a request has opted out since its intent, if the intent has expired."""
        if self._monotonic() < item.expires:
            return False
        try:
            return bool(self._opted_out(item.numbers))
        except (ConfigurationError, StoreNotReachedError):  # the next intent raises the same error
            return True

    def _items(self, number: int) -> list[Any]:
        """Return the next requests, without people who have opted out or reached the limit of --at-most."""
        while True:
            expires = self._monotonic() + OPT_OUT_CHECK
            items = self._next_items(number)
            intents = [item for item in items if item is not None]
            if self._opted_out([each for intent in intents for each in intent.numbers]):
                self._withdraw(intents)
                self._ledger.leave_out(self._opted_out(self._ledger.numbers_ahead()), OPTED_OUT)
            elif self._contacts and (over := self._contacts.claim(intents)):
                self._withdraw(intents)
                over = {*over, *self._contacts.reached(self._ledger.people_ahead())}
                self._ledger.leave_out(over, self._ledger.spec.over_limit)
            else:
                return [item and item._replace(expires=expires) for item in items]

    def _withdraw(self, intents: Sequence[Intent]) -> None:
        self._ledger.withdraw(intents)
        if self.budget:
            for intent in intents:
                self.budget.release(intent)

    def _record(self, result: RequestResult) -> None:
        self._ledger.record(result)
        if self.budget:
            self.budget.learn(result, self._ledger.totals)

    def _committed(self, results: list[RequestResult]) -> None:
        if self._contacts:
            self._contacts.settle(results)
        self.totals = self._ledger.totals.copy()

    def _next(self) -> Intent | Wait | None:
        now = self._monotonic()
        if delay := self._limiter.delay(now):
            return Wait(delay)
        if self._hours is not None:
            self._ledger.open_to(self._hours.open_zones())
            self.waits_until = None
        size = self._allowed()
        if size is None:
            return Wait(None)
        intent = self._ledger.intend(size) if size else None
        if intent is not None:
            if self.budget:
                self.budget.reserve(intent)
            self._limiter.sent(len(intent.phones), now)
        elif size and self._hours is not None and (closed := self._ledger.pending_zones()):
            if not self._waits:
                return None
            self._closed, self.waits_until = closed, self._hours.next_opening(closed)
            return Wait(CLOCK_CHECK)
        return intent

    def _allowed(self) -> int | None:
        """Return how many recipients the next request may have; None if a request in flight must end first.

        At 0, the job is stopped.
        """
        totals, spec = self._ledger.totals, self._ledger.spec
        max_size = self._size if spec.canary is None else min(self._size, spec.canary - totals.sent)
        size: int | None = max_size
        if self.budget and max_size > 0:
            cost, phones = self._ledger.upcoming(max_size)
            size = self.budget.allows(cost, phones, totals) if phones else max_size
        if size is None or (size <= 0 and any(totals.states[each] for each in IN_FLIGHT)):  # they may not be sent
            return None
        if size <= 0:
            self.stop(self.budget.used_up(totals) if self.budget and max_size > 0 else None)
        return max(size, 0)


def send(client: Client, spec: JobSpec, intent: Intent) -> RequestResult:
    """Send a request once and return its result; nothing is raised."""
    operation = spec.performs
    phones = intent.phones if operation.field("phone").several else intent.phones[0]
    try:
        request = build(operation, {**spec.fixed, **intent.parameters, "phone": phones})
        # One attempt: a request that was not sent is tried again at the job's rate.
        response = client.send(request, timeout=MAX_ATTEMPT)
    except Exception as raised:  # noqa: BLE001 (its recipients must not stay in flight)
        error = without_frames(raised if isinstance(raised, MsgctlError) else unexpected(raised))
        outcome = REFUSED if isinstance(error, (UsageError, RefusedError)) else UNKNOWN
        found = [RecipientOutcome(phone, outcome) for phone in intent.phones]
        was_sent = not isinstance(error, (NotReachedError, ConfigurationError, TurnedAwayError))
        return RequestResult(intent, found, error, error.body or None, was_sent)
    is_in_doubt = any(each.outcome != ACCEPTED for each in response.outcomes)
    body = response.body[:MAX_STORED].decode(errors="replace") if is_in_doubt else None
    return RequestResult(intent, list(response.outcomes), body=body)
