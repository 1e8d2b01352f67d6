"""Run a job: threads, each with a connection of its own, between the ledger and the service."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from msgctl.errors import ConfigurationError, MsgctlError, no_more, unexpected
from msgctl.http.client import Client
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.ledger_writer import LedgerWriter
from msgctl.jobs.sender import send
from msgctl.jobs.sending_hours import hours_of
from msgctl.jobs.spec import Intent, RequestResult, Totals
from msgctl.recipients import UNKNOWN, RecipientOutcome

PAUSE = 1.0
"""Seconds that a thread waits after a request that did not reach the service."""


class Runner:
    """Sends what is pending in a ledger. `start` it, `wait` until it is done, and `finish`."""

    def __init__(
        self,
        ledger: Ledger,
        connect: Callable[[], Client],
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        waits: bool = True,
    ) -> None:
        """Without ``waits`` the job ends when all who are left must wait for their window."""
        self._ledger = ledger
        self._connect = connect
        self._writer = LedgerWriter(ledger, monotonic=monotonic, hours=hours_of(ledger, clock), waits=waits)
        writing = threading.Thread(target=self._writer.write, name="ledger", daemon=True)
        number = min(ledger.spec.concurrency, max(1, ledger.totals.unsent))
        senders = [threading.Thread(target=self._send, name=f"sender {n}", daemon=True) for n in range(number)]
        self._threads = [writing, *senders]
        self._running = number
        self._ended = threading.Event()
        self._lock = threading.Lock()

    @property
    def waits_until(self) -> float | None:
        """The time the window opens for the next recipient, in seconds since 1970; None unless the job waits for it."""
        return self._writer.waits_until

    @property
    def totals(self) -> Totals:
        """The counts of the job, as of the last commit."""
        return self._writer.totals

    def start(self) -> None:
        """Begin, with fewer threads if the system allows no more; if it allows none, that stops the job."""
        self._ledger.is_in_use = True
        wanted = len(self._threads)
        self._threads = started(self._threads)
        if len(self._threads) < 2:
            self._writer.stop(no_more("threads"))
        self._leave(min(wanted - len(self._threads), self._running))

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until nothing is in flight any more. Return whether the job ended."""
        return self._ended.wait(seconds)

    def stop(self) -> None:
        """Let requests in flight finish, and send nothing more."""
        self._writer.stop()

    def finish(self) -> MsgctlError | None:
        """Release what the threads used, after `wait` said that they ended. Return the error that stopped the job."""
        self._writer.close()
        for thread in self._threads:
            thread.join()
        self._ledger.is_in_use = False
        error, unwritten = self._writer.stopped_by, self._writer.unwritten
        if error and unwritten:
            requests = "1 request" if unwritten == 1 else f"{unwritten} requests"
            return ConfigurationError(
                f"the results of {requests} could not be written and are unknown: {error}", error.hint
            )
        return error

    def _send(self) -> None:
        try:
            client = self._connect()
            try:
                # A result is handed in before the next request is taken: each thread has at most one in flight.
                while (intent := self._writer.take()) is not None:
                    result = self._sent(client, intent)
                    self._writer.hand_in(result)
                    if not result.was_sent:
                        self._writer.stopping.wait(PAUSE)
            finally:
                client.close()
        except Exception as error:  # noqa: BLE001 (`finish` returns it)
            self._writer.stop(error if isinstance(error, MsgctlError) else unexpected(error))
        finally:
            self._leave(1)

    def _sent(self, client: Client, intent: Intent) -> RequestResult:
        if self._writer.may_send(intent):
            return send(client, self._ledger.spec, intent)
        return RequestResult(intent, [RecipientOutcome(phone, UNKNOWN) for phone in intent.phones], was_sent=False)

    def _leave(self, number: int) -> None:
        """Count senders that ended; with the last one, the job ends."""
        with self._lock:
            self._running -= number
            if not self._running:
                self._ended.set()


def started(threads: Sequence[threading.Thread]) -> list[threading.Thread]:
    """Start threads in their order, as many as the system allows, and return those that were started."""
    for number, thread in enumerate(threads):
        try:
            thread.start()
        except RuntimeError:  # "can't start new thread"
            return list(threads[:number])
    return list(threads)
