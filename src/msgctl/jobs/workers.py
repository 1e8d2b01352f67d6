"""Threads between a ledger and the service: some make requests, and one writes the ledger.

The writing thread commits all waiting results together, so that many requests share one sync of the disk. It hands out
items of work only after that commit.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, NamedTuple

from msgctl.errors import ConfigurationError, MsgctlError, no_more, unexpected
from msgctl.http.client import Client
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.rate_limits import FailureCounter, RateLimiter
from msgctl.text import plural

MAX_TOGETHER = 20
"""Maximum threads that share one commit. With more, all would wait for the last one and then send at once."""

PAUSE = 1.0
"""Seconds that a thread waits after a request did not reach the service."""


class Wait(NamedTuple):
    """No work yet: ask again after some seconds, or after the next result if None."""

    seconds: float | None


class _WorkerMessage(NamedTuple):
    """A worker's message to the writer: a result, its queue for the next item, or its end."""

    result: Any = None
    turn: SimpleQueue[Any] | None = None
    ended: int = 0


class Workers(ABC):
    """Performs items of work in threads: `start`, `wait` until all are done, and `finish`.

    A result has the attributes ``error`` and ``was_sent``.
    """

    def __init__(
        self, ledger: Ledger, connect: Callable[[], Client], due: int, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """``due`` is the number of items; ``connect`` creates the client of a thread."""
        self._ledger = ledger
        self._connect = connect
        self._monotonic = monotonic
        self._limiter = RateLimiter(ledger.spec.rate)
        self._failures: defaultdict[type, FailureCounter] = defaultdict(FailureCounter)  # by type of result
        self._running = min(ledger.spec.concurrency, max(1, due))
        self._messages: SimpleQueue[_WorkerMessage] = SimpleQueue()
        self._waiting: list[SimpleQueue[Any]] = []
        self._timeout: float | None = None
        self._unwritten = 0
        self._stopped_by: MsgctlError | None = None
        self._stopping = Event()
        self._ended = Event()

    @abstractmethod
    def _next(self) -> Any:
        """Return the next item of work, a `Wait`, or None if there is no more work. Called in a transaction."""

    @abstractmethod
    def _perform(self, client: Client, item: Any) -> Any:
        """Return the result of an item; nothing is raised. Called by any thread."""

    @abstractmethod
    def _record(self, result: Any) -> None:
        """Write a result. Called in a transaction."""

    def _is_due(self) -> bool:
        """Return whether there may be work for a waiting thread."""
        return True

    def _committed(self, results: list[Any]) -> None:  # noqa: B027 (most subclasses do nothing here)
        """Called after some results are durable."""

    def start(self) -> None:
        """Start the threads, or as many as the system allows; without any, `finish` returns the error."""
        self._ledger.is_in_use = True
        bodies = [("ledger", self._write), *[("sender", self._work)] * self._running]
        for number, (name, body) in enumerate(bodies):
            try:
                Thread(target=body, name=name, daemon=True).start()
            except RuntimeError:  # "can't start new thread"
                if number < 2:
                    self.stop(no_more("threads"))
                if number == 0:
                    self._ended.set()
                self._messages.put(_WorkerMessage(ended=len(bodies) - number))
                break

    def wait(self, seconds: float) -> bool:
        """Wait up to this long for all work to be written; return whether it was."""
        return self._ended.wait(seconds)

    def stop(self, error: Exception | None = None) -> None:
        """Send nothing more, but let requests in flight finish."""
        if error is not None and self._stopped_by is None:
            self._stopped_by = error if isinstance(error, MsgctlError) else unexpected(error)
        self._stopping.set()
        self._messages.put(_WorkerMessage())  # wakes the writing thread up

    def finish(self) -> MsgctlError | None:
        """Return the error that ended the work early, after `wait`."""
        self._ledger.is_in_use = False
        error = self._stopped_by
        if error and self._unwritten:
            requests = plural(self._unwritten, "request")
            return ConfigurationError(
                f"the results of {requests} could not be written and are unknown: {error}", error.hint
            )
        return error

    def _work(self) -> None:
        turn: SimpleQueue[Any] = SimpleQueue()
        try:
            client = self._connect()
            try:
                self._messages.put(_WorkerMessage(turn=turn))
                while (item := turn.get()) is not None:
                    result = self._perform(client, item)
                    if result.was_sent:
                        self._messages.put(_WorkerMessage(result, turn))
                    else:
                        self._messages.put(_WorkerMessage(result))
                        self._stopping.wait(PAUSE)
                        self._messages.put(_WorkerMessage(turn=turn))
            finally:
                client.close()
        except Exception as error:  # noqa: BLE001 (`finish` returns it)
            self.stop(error)
        finally:
            self._messages.put(_WorkerMessage(ended=1))

    # --- the writing thread

    def _write(self) -> None:
        """Write results until the last thread has ended. After an error, no thread is left waiting."""
        while self._running:
            results = self._received()
            if not (results or (self._waiting and self._is_due())):
                continue
            try:
                self._commit(results)
            except Exception as error:  # noqa: BLE001 (`finish` returns it)
                self.stop(error)
                try:
                    self._commit(results)  # without new work, whose intent may have caused the error
                except Exception:  # noqa: BLE001 (the first error is the one to report)
                    self._unwritten += len(results)
                    self._serve([None] * len(self._waiting))
        self._ended.set()

    def _received(self) -> list[Any]:
        """Wait for results, or until a waiting thread may get work; return the results."""
        results = []
        with suppress(Empty):
            for number in range(MAX_TOGETHER):
                result, turn, ended = self._messages.get(timeout=0 if number else self._timeout)
                self._running -= ended
                if result is not None:
                    results.append(result)
                if turn is not None:
                    self._waiting.append(turn)
        return results

    def _commit(self, results: list[Any]) -> None:
        self._timeout = None
        with self._ledger.transaction():
            for result in results:
                self._record(result)
                if self._failures[type(result)].add(result.error):
                    self.stop(result.error)
            items = self._items(len(self._waiting))
        self._serve(items)
        self._committed(results)

    def _items(self, number: int) -> list[Any]:
        """Return the next items of work, at most ``number``. Called in a transaction."""
        return self._next_items(number)

    def _next_items(self, number: int) -> list[Any]:
        items: list[Any] = []
        while len(items) < number:
            item = None if self._stopping.is_set() else self._next()
            if isinstance(item, Wait):
                self._timeout = item.seconds
                break
            items.append(item)
        return items

    def _serve(self, items: list[Any]) -> None:
        for turn, item in zip(self._waiting, items, strict=False):
            turn.put(item)
        del self._waiting[: len(items)]
