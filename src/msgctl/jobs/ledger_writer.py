"""The one thread that writes a job's ledger: senders hand in results and take the next request from it.

It commits what is waiting together, so that one sync of the disk serves many requests, and releases a request only
after its intent is on disk. It also decides whether anything more may be sent at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event

from msgctl.errors import MsgctlError, unexpected
from msgctl.jobs import queries
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.rate_limits import Budget, FailureCounter, RateLimiter
from msgctl.jobs.sending_hours import SendingHours
from msgctl.jobs.spec import Intent, RequestResult

MOST_TOGETHER = 20
"""Results and intents in one commit. With more, all senders would wait for the last one and then send at once."""

CLOCK_CHECK = 1.0
"""Seconds between checks of the clock while the window is closed: it may be set, or the machine may sleep."""
LONGEST_WAIT = 60.0
"""Seconds; a queue cannot wait indefinitely long."""

Waiting = SimpleQueue[Intent | None]
"""A sender that waits for its next request."""


class LedgerWriter:
    """Serves the senders of one job; `write` is the body of the writing thread.

    ``stopped_by`` is the error that ended the job, ``unwritten`` counts results that could not be written, and
    ``totals`` are those of the last commit.
    """

    def __init__(
        self,
        ledger: Ledger,
        *,
        monotonic: Callable[[], float],
        hours: SendingHours | None = None,
        waits: bool = True,
    ) -> None:
        """``hours`` are those of the job's window, if it has one; without ``waits`` the job ends when it closes."""
        spec = ledger.spec
        self._hours = hours
        self._waits = waits
        self._closed_zones: list[str] = []
        self._ledger = ledger
        self._monotonic = monotonic
        self._limiter = RateLimiter(spec.rate)
        self._size = self._limiter.most(spec.batch_size)
        self._budget = Budget(spec.max_credits, None if spec.max_credits is None else queries.highest_price(ledger.db))
        self._canary = spec.canary
        self._failures = FailureCounter()
        # None wakes the thread up. A SimpleQueue costs a tenth of events and conditions.
        self._handed_in: SimpleQueue[Waiting | RequestResult | None] = SimpleQueue()
        self._waiting: list[Waiting] = []
        self._on_hold = False
        self._closed = False
        self.stopping = Event()
        self.stopped_by: MsgctlError | None = None
        self.unwritten = 0
        self.totals = ledger.totals.copy()
        self.waits_until: float | None = None
        """The time the window opens, in seconds since 1970, if all pending recipients must wait for it."""

    # --- called by other threads

    def take(self) -> Intent | None:
        """Return the next request, whose intent is on disk; None if there is no more."""
        turn: Waiting = SimpleQueue()
        self._handed_in.put(turn)
        return turn.get()

    def may_send(self, intent: Intent) -> bool:
        """Return whether the window of a request is still open, right before it is sent."""
        return self._hours is None or intent.zones in self._hours.open_zones()

    def hand_in(self, result: RequestResult) -> None:
        """Hand in a result to be written soon."""
        self._handed_in.put(result)

    def stop(self, error: MsgctlError | None = None) -> None:
        """Send nothing more; requests in flight may still be handed in."""
        self.stopped_by = self.stopped_by or error
        self.stopping.set()
        self._handed_in.put(None)

    def close(self) -> None:
        """End `write` after everything handed in is written."""
        self._closed = True
        self._handed_in.put(None)

    # --- the writing thread

    def write(self) -> None:
        """Write what is handed in, until `close`. Whatever happens, no sender is left waiting."""
        while (handed_in := self._next()) is not None:
            self._waiting.extend(each for each in handed_in if isinstance(each, SimpleQueue))
            results = [each for each in handed_in if isinstance(each, RequestResult)]
            try:
                self._commit(results)
            except Exception as error:  # noqa: BLE001 (the senders must not wait indefinitely)
                self.stop(error if isinstance(error, MsgctlError) else unexpected(error))
                self._dismiss()
                self._rescue(results)
            self.totals = self._ledger.totals.copy()

    def _next(self) -> list[Waiting | RequestResult] | None:
        """Return what was handed in, as soon as there is something to do; None at the end."""
        handed_in = self._received(0)
        while not handed_in and not self._is_due():
            if self._closed:
                return None
            handed_in = self._received(self._patience())
        return handed_in

    def _patience(self) -> float | None:
        """Return how long to wait for something to be handed in; None if nothing else can become due."""
        if self._waiting and self._is_closed():
            return CLOCK_CHECK
        if not self._waiting or self._on_hold:
            return None
        return min(self._limiter.delay(self._monotonic()), LONGEST_WAIT)

    def _is_closed(self) -> bool:
        """Return whether all pending recipients must wait for their window; the clock may have been set meanwhile."""
        if not self._closed_zones or self._hours is None:
            return False
        return self._hours.open_zones().isdisjoint(self._closed_zones)

    def _received(self, seconds: float | None) -> list[Waiting | RequestResult]:
        """Return what was handed in, waiting at most so long for the first (None: as long as it takes)."""
        found: list[Waiting | RequestResult] = []
        with suppress(Empty):
            each = self._handed_in.get(timeout=seconds)
            while each is not None:
                found.append(each)
                if len(found) >= MOST_TOGETHER:
                    break
                each = self._handed_in.get_nowait()
        return found

    def _is_due(self) -> bool:
        """Return whether a waiting sender can be served: with a request, or because there are no more."""
        if not self._waiting:
            return False
        if self.stopping.is_set():
            return True
        return not (self._on_hold or self._is_closed() or self._limiter.delay(self._monotonic()))

    def _commit(self, results: Sequence[RequestResult]) -> None:
        with self._ledger.transaction():
            for result in results:
                self._ledger.record(result)
                self._budget.learn(result)
                if self._failures.add(result.error):
                    self.stop(result.error)
            served = self._intents()
        for turn, intent in zip(self._waiting, served, strict=False):
            turn.put(intent)
        self._waiting = self._waiting[len(served) :]

    def _intents(self) -> list[Intent | None]:
        """Write intents for the senders who wait; None for one who need not wait any longer."""
        self._on_hold = False
        if self._hours is not None:
            self._closed_zones, self.waits_until = [], None
            self._ledger.open_to(self._hours.open_zones())
        served: list[Intent | None] = []
        for _ in self._waiting:
            if self.stopping.is_set():
                served.append(None)
                continue
            now = self._monotonic()
            size = None if self._limiter.delay(now) else self._allowed()
            if size is None:
                self._on_hold = not self._limiter.delay(now)
                break
            intent = self._ledger.intend(size) if size else None
            if intent:
                self._limiter.sent(len(intent.phones), now)
            elif self._hours is not None and self._wait_for(self._hours):
                break
            served.append(intent)
        return served

    def _wait_for(self, hours: SendingHours) -> bool:
        """Wait for the window if it is closed for a pending recipient. Return whether it is."""
        if not self._ledger.totals.unsent:
            return False
        closed = self._ledger.pending_zones()
        if not self._waits:
            self.stop()
            return False
        self._closed_zones, self.waits_until = closed, hours.next_opening(closed)
        return bool(closed)

    def _allowed(self) -> int | None:
        """Return how many recipients the next request may have; None until a request in flight has ended."""
        most = self._size
        if self._canary is not None:
            most = min(most, self._canary - self._ledger.totals.sent)
            if most <= 0:
                self.stop()
                return 0
        cost = None if self._budget.most is None else self._ledger.next_cost()
        if cost is None:
            return most
        size = self._budget.allows(cost, most, self._ledger.totals)
        if size == 0:
            self.stop(self._budget.used_up(self._ledger.totals))
        return size

    def _dismiss(self) -> None:
        """Release the waiting senders: the intents meant for them are not on disk."""
        for turn in self._waiting:
            turn.put(None)
        self._waiting = []

    def _rescue(self, results: Sequence[RequestResult]) -> None:
        """Write results one by one after they could not be written together with new intents.

        If one fails, the rest is not tried: each could wait for a locked file again.
        """
        for number, result in enumerate(results):
            try:
                with self._ledger.transaction():
                    self._ledger.record(result)
            except Exception:  # noqa: BLE001 (the first error is reported; this one left results unwritten)
                self.unwritten += len(results) - number
                return
