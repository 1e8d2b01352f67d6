"""Check the delivery states of what a job sent, at the job's rate. It can be stopped and run again."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from msgctl import operations
from msgctl.errors import MsgctlError, no_more, unexpected
from msgctl.http.client import Client
from msgctl.jobs import queries
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.rate_limits import FailureCounter, RateLimiter
from msgctl.jobs.runner import started
from msgctl.text import storable

_COMMIT_EVERY = 200
"""Replies that are written together; those lost in a crash are asked for again."""

_NAP = 0.5
"""Seconds after which the writing thread checks whether it was stopped."""


class StateReply(NamedTuple):
    """The delivery state of a recipient's message, or the error instead of it."""

    line: int
    state: str | None = None
    error: MsgctlError | None = None


class StatePoller:
    """Checks each message whose state is not final, the one unchecked for longest first. Used like a `Runner`.

    ``due`` is the number to check; ``checked`` and ``failed`` count messages, ``first_error`` is that of the first one
    that failed.
    """

    def __init__(
        self, ledger: Ledger, connect: Callable[[], Client], *, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._ledger = ledger
        self._connect = connect
        self._monotonic = monotonic
        self._limiter = RateLimiter(ledger.spec.rate)
        self._failures = FailureCounter()
        self._asked: queue.SimpleQueue[tuple[int, str] | None] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[StateReply] = queue.SimpleQueue()
        self._unwritten: list[StateReply] = []
        self._in_flight = 0
        self._stopping = False
        self._stopped_by: MsgctlError | None = None
        self._may_ask = threading.Event()
        self._ended = threading.Event()
        askers = [
            threading.Thread(target=self._ask, name=f"asker {n}", daemon=True) for n in range(ledger.spec.concurrency)
        ]
        self._threads = [threading.Thread(target=self._run, name="ledger", daemon=True), *askers]
        self._most = len(askers)
        self.first_error: MsgctlError | None = None
        self.due = 0
        self.checked = 0
        self.failed = 0

    def start(self) -> None:
        """Begin, with fewer threads if the system allows no more; if it allows none, that stops the poller."""
        self._ledger.is_in_use = True
        self._threads = started(self._threads)
        if len(self._threads) < 2:
            self._stopped_by, self._stopping = no_more("threads"), True
        if not self._threads:
            self._ended.set()
        self._may_ask.set()

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until all are checked or it was stopped. Return whether it ended."""
        return self._ended.wait(seconds)

    def stop(self) -> None:
        self._stopping = True

    def finish(self) -> MsgctlError | None:
        """Return the error that ended it early, if any."""
        for thread in self._threads:
            thread.join()
        self._ledger.is_in_use = False
        return self._stopped_by

    def _run(self) -> None:
        """Ask at the job's pace and write the replies. Whatever happens, no thread is left waiting."""
        self._may_ask.wait()
        try:
            self.due = sum(1 for _ in queries.to_check(self._ledger.db))
            self._check_all()
        except Exception as error:  # noqa: BLE001 (`finish` returns it)
            self._stopped_by = self._stopped_by or (error if isinstance(error, MsgctlError) else unexpected(error))
        finally:
            for _ in range(self._most):
                self._asked.put(None)
            self._ended.set()

    def _check_all(self) -> None:
        try:
            for question in queries.to_check(self._ledger.db):
                while not self._stopping and (self._in_flight >= self._most or self._limiter.delay(self._monotonic())):
                    self._receive()
                if self._stopping:
                    break
                self._asked.put(question)
                self._limiter.sent(1, self._monotonic())
                self._in_flight += 1
        finally:
            while self._in_flight:
                self._receive()
            self._write()

    def _receive(self) -> None:
        """Wait a little for a reply and take note of it."""
        delay = self._limiter.delay(self._monotonic())
        try:
            reply = self._replies.get(timeout=min(delay, _NAP) or _NAP)
        except queue.Empty:
            return
        self._in_flight -= 1
        self._unwritten.append(reply)
        self.checked += 1
        if reply.error:
            self.failed += 1
            self.first_error = self.first_error or reply.error
        if self._failures.add(reply.error):
            self._stopped_by, self._stopping = reply.error, True
        if len(self._unwritten) >= _COMMIT_EVERY:
            self._write()

    def _write(self) -> None:
        """Write the replies; a known state stays if a later check failed."""
        with self._ledger.transaction():
            self._ledger.note_deliveries([(each.line, each.state) for each in self._unwritten if not each.error])
        self._unwritten = []

    def _ask(self) -> None:
        client: Client | None = None
        try:
            while (question := self._asked.get()) is not None:
                line, message = question
                try:
                    client = client or self._connect()
                    state = client.send(operations.MESSAGES_STATE, {"id": message}).document.get("state")
                    self._replies.put(StateReply(line, None if state is None else storable(str(state))))
                except MsgctlError as error:
                    self._replies.put(StateReply(line, error=error))
                except Exception as error:  # noqa: BLE001 (the writing thread waits for a reply)
                    self._replies.put(StateReply(line, error=unexpected(error)))
        finally:
            if client:
                client.close()
