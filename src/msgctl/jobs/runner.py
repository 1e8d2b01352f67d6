"""A job at work: threads, each with a connection of its own, between the ledger and the service."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from msgctl.errors import ConfigurationError, MsgctlError, no_more, unexpected
from msgctl.http.client import Client
from msgctl.jobs import reading
from msgctl.jobs.desk import Desk
from msgctl.jobs.dispatch import dispatch
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.limits import Budget, Pace
from msgctl.jobs.records import Totals
from msgctl.jobs.states import Event
from msgctl.jobs.threads import begin

PAUSE = 1.0
"""Seconds that a thread waits after a request that did not reach the service."""


class Runner:
    """Sends what is pending in a ledger. `start` it, `wait` until it is done, and `finish`."""

    def __init__(
        self, ledger: Ledger, connect: Callable[[], Client], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        order = ledger.order
        self._ledger = ledger
        self._connect = connect
        self._desk = Desk(
            ledger,
            size=order.batch_size,
            budget=_budget(ledger),
            pace=Pace(order.rate),
            monotonic=monotonic,
        )
        self._writer = threading.Thread(target=self._desk.write, name="ledger", daemon=True)
        number = min(order.concurrency, max(1, ledger.totals.sendable - ledger.totals.accepted))
        self._senders = [threading.Thread(target=self._send, name=f"sender {n}", daemon=True) for n in range(number)]
        self._begun: list[threading.Thread] = []
        self._at_work = number
        self._ended = threading.Event()
        self._lock = threading.Lock()

    @property
    def totals(self) -> Totals:
        """The job in numbers, as of the last commit."""
        return self._desk.totals

    def start(self) -> None:
        """Begin, with fewer threads where the system allows no more; with none, that is what stopped the job."""
        self._ledger.is_in_use = True
        self._begun = begin([self._writer, *self._senders])
        if len(self._begun) < 2:
            self._desk.stop(no_more("threads"))
        self._leave(len(self._senders) - max(len(self._begun) - 1, 0))

    def wait(self, seconds: float) -> bool:
        """Wait that long, or until nothing is under way any more; whether that is so."""
        return self._ended.wait(seconds)

    def stop(self) -> None:
        """Let what is under way finish, and nothing more leave."""
        self._desk.stop()

    def finish(self) -> MsgctlError | None:
        """Close what the threads used, after `wait` said that they ended; the error that stopped the job, if any."""
        self._desk.close()
        for thread in self._begun:
            thread.join()
        self._ledger.is_in_use = False
        error, unwritten = self._desk.stopped_by, self._desk.unwritten
        if error and unwritten:
            return ConfigurationError(
                f"the answers to {unwritten} {'request' if unwritten == 1 else 'requests'} could not be written, so "
                f"they are unknown: {error}",
                error.hint,
            )
        return error

    def _send(self) -> None:
        try:
            client = self._connect()
            try:
                # A result is handed in before the next request is taken: each thread leaves one in doubt at most.
                while (intent := self._desk.take()) is not None:
                    result = dispatch(client, self._ledger.order, intent)
                    self._desk.hand_in(result)
                    if result.event is Event.NEVER_LEFT:
                        self._desk.stopping.wait(PAUSE)
            finally:
                client.close()
        except Exception as error:  # noqa: BLE001 (it is told by `finish`)
            self._desk.stop(error if isinstance(error, MsgctlError) else unexpected(error))
        finally:
            self._leave(1)

    def _leave(self, number: int) -> None:
        """Take note that some senders are done; with the last one, the job's work is."""
        with self._lock:
            self._at_work -= number
            if not self._at_work:
                self._ended.set()


def _budget(ledger: Ledger) -> Budget:
    """What the job may cost, with the prices that it has paid already."""
    budget = Budget(ledger.order.max_credits)
    if budget.most is not None:
        for cost, entries in reading.charges(ledger):
            budget.learn(cost, entries)
    return budget
