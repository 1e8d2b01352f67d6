"""Threads between a ledger and the service: some make requests, and one writes the ledger.

The writing thread commits what is waiting together, so that one sync of the disk serves many requests, and hands out
an item of work only after that commit.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
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
"""Threads that are served by one commit. With more, all would wait for the last one and then send at once."""

PAUSE = 1.0
"""Seconds that a thread waits after a request that did not reach the service."""


class WaitError(Exception):
    """There is no work yet: try again after some seconds, or after the next result if None."""

    def __init__(self, seconds: float | None) -> None:
        self.seconds = seconds


class _HandedIn(NamedTuple):
    """What a thread hands in: a result, a queue on which it waits for its next item, or that it ended."""

    result: Any = None
    turn: SimpleQueue[Any] | None = None
    ended: int = 0


class Workers(ABC):
    """Performs items of work in threads. `start` it, `wait` until it is done, and `finish`.

    A result has ``error`` and ``was_sent``.
    """

    def __init__(
        self, ledger: Ledger, connect: Callable[[], Client], due: int, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        """``due`` is the number of items; ``connect`` makes the client of a thread."""
        self._ledger = ledger
        self._connect = connect
        self._monotonic = monotonic
        self._limiter = RateLimiter(ledger.spec.rate)
        self._failures = FailureCounter()
        self._running = min(ledger.spec.concurrency, max(1, due))
        self._handed_in: SimpleQueue[_HandedIn] = SimpleQueue()
        self._waiting: list[SimpleQueue[Any]] = []
        self._patience: float | None = None
        self._unwritten = 0
        self._stopped_by: MsgctlError | None = None
        self._stopping = Event()
        self._ended = Event()

    @abstractmethod
    def _next(self) -> Any:
        """Return the next item of work, None if there is no more. Called in a transaction. Raises WaitError."""

    @abstractmethod
    def _perform(self, client: Client, item: Any) -> Any:
        """Return the result of an item; nothing is raised. Called by any thread."""

    @abstractmethod
    def _record(self, result: Any) -> None:
        """Write a result. Called in a transaction."""

    def _is_due(self) -> bool:
        """Return whether a waiting thread may be served."""
        return bool(self._waiting)

    def start(self) -> None:
        """Begin, with fewer threads if the system allows no more; if it allows none, that is the error."""
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
                self._handed_in.put(_HandedIn(ended=len(bodies) - number))
                break

    def wait(self, seconds: float) -> bool:
        """Wait up to this long for all work to be written; return whether it was."""
        return self._ended.wait(seconds)

    def stop(self, error: Exception | None = None) -> None:
        """Let requests in flight finish, and send nothing more."""
        if error is not None and self._stopped_by is None:
            self._stopped_by = error if isinstance(error, MsgctlError) else unexpected(error)
        self._stopping.set()
        self._handed_in.put(_HandedIn())  # wakes the writing thread up

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
                self._handed_in.put(_HandedIn(turn=turn))
                while (item := turn.get()) is not None:
                    result = self._perform(client, item)
                    if result.was_sent:
                        self._handed_in.put(_HandedIn(result, turn))
                    else:
                        self._handed_in.put(_HandedIn(result))
                        self._stopping.wait(PAUSE)
                        self._handed_in.put(_HandedIn(turn=turn))
            finally:
                client.close()
        except Exception as error:  # noqa: BLE001 (`finish` returns it)
            self.stop(error)
        finally:
            self._handed_in.put(_HandedIn(ended=1))

    # --- the writing thread

    def _write(self) -> None:
        """Write what is handed in until the last thread has ended. Whatever happens, none is left waiting."""
        while self._running:
            results = self._received()
            if not (results or self._is_due()):
                continue
            try:
                self._commit(results)
            except Exception as error:  # noqa: BLE001 (`finish` returns it)
                self.stop(error)
                try:
                    self._commit(results)  # without new work, which may be what could not be written
                except Exception:  # noqa: BLE001 (the first error is the one to report)
                    self._unwritten += len(results)
                    self._serve([None] * len(self._waiting))
        self._ended.set()

    def _received(self) -> list[Any]:
        """Wait for results, or until a waiting thread may be served; return the results."""
        results = []
        with suppress(Empty):
            for number in range(MAX_TOGETHER):
                result, turn, ended = self._handed_in.get(timeout=0 if number else self._patience)
                self._running -= ended
                if result is not None:
                    results.append(result)
                if turn is not None:
                    self._waiting.append(turn)
        return results

    def _commit(self, results: list[Any]) -> None:
        self._patience = None
        with self._ledger.transaction():
            for result in results:
                self._record(result)
                if self._failures.add(result.error):
                    self.stop(result.error)
            items = self._items(len(self._waiting))
        self._serve(items)

    def _items(self, number: int) -> list[Any]:
        """Return the next items of work, at most ``number``. Called in a transaction."""
        items: list[Any] = []
        try:
            while len(items) < number:
                items.append(None if self._stopping.is_set() else self._next())
        except WaitError as wait:
            self._patience = wait.seconds
        return items

    def _serve(self, items: list[Any]) -> None:
        for turn, item in zip(self._waiting, items, strict=False):
            turn.put(item)
        del self._waiting[: len(items)]
