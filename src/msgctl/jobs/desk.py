"""Where the threads of a job hand in results and take the next request: the one thread that writes the ledger.

It commits what is waiting together, so that one sync of the disk serves many requests, and lets a request leave only
after its intent is on the disk. It also decides whether anything more may leave at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Event

from msgctl.errors import MsgctlError, unexpected
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.limits import Budget, Failures, Pace
from msgctl.jobs.records import Intent, Result

MOST_TOGETHER = 10
"""What is written in one commit. More at once would let all wait for the last, and then leave together again."""

LONGEST_WAIT = 60.0
"""Seconds; a queue cannot be told to wait for ages."""


@dataclass(slots=True)
class _Turn:
    """A thread that waits for its next request."""

    intent: Intent | None = None
    served: SimpleQueue[Intent | None] = field(default_factory=SimpleQueue)

    def end(self) -> None:
        """Let the thread go, with the request that it got."""
        self.served.put(self.intent)


class Desk:
    """Serves the threads of one job; `write` is the body of the writing thread.

    ``stopped_by`` is the error that ended the job, ``unwritten`` counts requests whose answers the ledger did not
    take, and ``totals`` is the state of the ledger at its last commit.
    """

    def __init__(
        self, ledger: Ledger, *, size: int, budget: Budget, pace: Pace, monotonic: Callable[[], float]
    ) -> None:
        self._ledger = ledger
        self._size = pace.most(size)
        self._budget = budget
        self._pace = pace
        self._monotonic = monotonic
        self._failures = Failures()
        # None says that something else has changed. Simple queues cost a tenth of events and conditions.
        self._handed_in: SimpleQueue[_Turn | Result | None] = SimpleQueue()
        self._waiting: list[_Turn] = []
        self._on_hold = False
        self._closed = False
        self.stopping = Event()
        self.stopped_by: MsgctlError | None = None
        self.unwritten = 0
        self.totals = copy(ledger.totals)

    def take(self) -> Intent | None:
        """The next request, whose intent is on the disk; None where there is no next."""
        turn = _Turn()
        self._handed_in.put(turn)
        return turn.served.get()

    def hand_in(self, result: Result) -> None:
        """Have a result written, as soon as may be."""
        self._handed_in.put(result)

    def stop(self, error: MsgctlError | None = None) -> None:
        """Let nothing more leave; what is under way may be handed in."""
        self.stopped_by = self.stopped_by or error
        self.stopping.set()
        self._handed_in.put(None)

    def close(self) -> None:
        """End `write` when all that was handed in is written."""
        self._closed = True
        self._handed_in.put(None)

    def write(self) -> None:
        """Write what is handed in, until `close`; whatever happens, nobody waits for ever."""
        while (handed_in := self._next()) is not None:
            self._waiting.extend(each for each in handed_in if isinstance(each, _Turn))
            results = [each for each in handed_in if isinstance(each, Result)]
            try:
                self._commit(results)
            except Exception as error:  # noqa: BLE001 (the threads that wait must not wait for ever)
                self.stop(error if isinstance(error, MsgctlError) else unexpected(error))
                self._dismiss()
                self._rescue(results)
            self.totals = copy(self._ledger.totals)

    def _next(self) -> list[_Turn | Result] | None:
        """What was handed in since, as soon as there is something to do; None at the end."""
        handed_in = self._received(0)
        while not handed_in and not self._is_due():
            if self._closed:
                return None
            paced = self._waiting and not self._on_hold
            handed_in = self._received(min(self._pace.delay(self._monotonic()), LONGEST_WAIT) if paced else None)
        return handed_in

    def _received(self, seconds: float | None) -> list[_Turn | Result]:
        """All that was handed in, after waiting so long for something (None: until there is something)."""
        found: list[_Turn | Result] = []
        with suppress(Empty):
            each = self._handed_in.get(timeout=seconds)
            while True:
                if each:
                    found.append(each)
                if len(found) >= MOST_TOGETHER:
                    break
                each = self._handed_in.get_nowait()
        return found

    def _is_due(self) -> bool:
        """Whether somebody who waits can be told something: the next request, or that there is none."""
        if not self._waiting:
            return False
        return self.stopping.is_set() or not (self._on_hold or self._pace.delay(self._monotonic()))

    def _commit(self, results: Sequence[Result]) -> None:
        with self._ledger.transaction():
            for result in results:
                self._record(result)
            served = self._let_go()
        for turn in self._waiting[:served]:
            turn.end()
        self._waiting = self._waiting[served:]

    def _record(self, result: Result) -> None:
        cost = self._ledger.record(result)
        if self._budget.most is not None:
            self._budget.learn(cost, result.entries)
        if self._failures.add(result.fault):
            self.stop(result.fault)

    def _let_go(self) -> int:
        """Write the intents of the next requests for those who wait; how many of them need not wait any more."""
        self._on_hold = False
        for served, turn in enumerate(self._waiting):
            if self.stopping.is_set():
                continue
            now = self._monotonic()
            if self._pace.delay(now):
                return served
            size = self._allowed()
            if size is None:
                self._on_hold = True
                return served
            turn.intent = self._ledger.intend(size) if size else None
            if turn.intent:
                self._pace.took(len(turn.intent.phones), now)
        return len(self._waiting)

    def _allowed(self) -> int | None:
        """How many recipients the next request may have; None where that is known only after an answer."""
        cost = self._ledger.peek() if self._budget.most is not None else None
        if cost is None:
            return self._size
        size = self._budget.allows(cost, self._size, self._ledger.totals)
        if size == 0:
            self.stop(self._budget.used_up(self._ledger.totals))
        return size

    def _dismiss(self) -> None:
        """Nothing more leaves: the intents that were to be written with it are not on the disk."""
        for turn in self._waiting:
            turn.intent = None
            turn.end()
        self._waiting = []

    def _rescue(self, results: Sequence[Result]) -> None:
        """Write results that could not be written together with what was to come next: all of them, or one by one.

        Where the first cannot be written either, nothing can, and every try would wait again for a file that is held.
        """
        for number, result in enumerate(results):
            try:
                with self._ledger.transaction():
                    self._ledger.record(result)
            except Exception:  # noqa: BLE001 (the first fault is told; this one left answers unwritten)
                self.unwritten += len(results) - number
                return
