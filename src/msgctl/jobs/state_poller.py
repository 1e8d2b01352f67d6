"""Check the delivery states of what a job sent, at the job's rate. It can be stopped and run again."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import NamedTuple

from msgctl import operations
from msgctl.errors import MsgctlError, no_more, unexpected
from msgctl.http.client import Client
from msgctl.jobs import queries
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.rate_limits import FailureCounter, RateLimiter
from msgctl.text import storable

_COMMIT_EVERY = 200
"""States that are written together; those lost in a crash are checked again."""


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
        self._local = threading.local()
        self._clients: list[Client] = []
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._ended = threading.Event()
        self._stopped_by: MsgctlError | None = None
        self.first_error: MsgctlError | None = None
        self.due = 0
        self.checked = 0
        self.failed = 0

    def start(self) -> None:
        """Begin; if the system allows no threads, that stops the poller."""
        self._ledger.is_in_use = True
        try:
            threading.Thread(target=self._run, name="ledger", daemon=True).start()
        except RuntimeError:  # "can't start new thread"
            self._end(no_more("threads"))

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until all are checked or it was stopped. Return whether it ended."""
        return self._ended.wait(seconds)

    def stop(self) -> None:
        self._stopping.set()

    def finish(self) -> MsgctlError | None:
        """Return the error that ended it early, if any."""
        self._ended.wait()
        return self._stopped_by

    def _end(self, error: MsgctlError | None) -> None:
        self._stopped_by = self._stopped_by or error
        self._ledger.is_in_use = False
        self._ended.set()

    def _run(self) -> None:
        error: MsgctlError | None = None
        try:
            self.due = sum(1 for _ in queries.to_check(self._ledger.db))
            found = queries.to_check(self._ledger.db)
            with ThreadPoolExecutor(self._ledger.spec.concurrency, thread_name_prefix="asker") as pool:
                while not self._stopping.is_set() and (batch := [*islice(found, _COMMIT_EVERY)]):
                    self._check(pool, batch)
        except MsgctlError as raised:
            error = raised
        except Exception as raised:  # noqa: BLE001 (`finish` returns it)
            error = no_more("threads") if isinstance(raised, RuntimeError) else unexpected(raised)
        finally:
            for client in self._clients:
                client.close()
            self._end(error)

    def _check(self, pool: ThreadPoolExecutor, batch: Iterable[tuple[int, str]]) -> None:
        """Check some messages at the job's rate and write their states; a known state stays if a check fails."""
        replies: list[Future[StateReply | None]] = []
        try:
            for line, message in batch:
                if self._stopping.wait(self._limiter.delay(self._monotonic())):
                    break
                replies.append(pool.submit(self._ask, line, message))
                self._limiter.sent(1, self._monotonic())
        finally:
            answered = [reply for each in replies if (reply := each.result()) and not reply.error]
            with self._ledger.transaction():
                self._ledger.note_deliveries((reply.line, reply.state) for reply in answered)

    def _ask(self, line: int, message: str) -> StateReply | None:
        """Return the state of a message; None if the poller was stopped before."""
        if self._stopping.is_set():
            return None
        try:
            state = self._client().send(operations.MESSAGES_STATE, {"id": message}).document.get("state")
            reply = StateReply(line, None if state is None else storable(str(state)))
        except MsgctlError as error:
            reply = StateReply(line, error=error)
        except Exception as error:  # noqa: BLE001 (one message must not end the others)
            reply = StateReply(line, error=unexpected(error))
        self._count(reply)
        return reply

    def _client(self) -> Client:
        """Return the client of this thread."""
        if not hasattr(self._local, "client"):
            self._local.client = self._connect()
            self._clients.append(self._local.client)
        client: Client = self._local.client
        return client

    def _count(self, reply: StateReply) -> None:
        with self._lock:
            self.checked += 1
            if reply.error:
                self.failed += 1
                self.first_error = self.first_error or reply.error
            if self._failures.add(reply.error):
                self._stopped_by = self._stopped_by or reply.error
                self._stopping.set()
