"""Poll the delivery states of a job's messages."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Lock
from typing import NamedTuple

from msgctl import operations
from msgctl.errors import MsgctlError, of_thread
from msgctl.http.client import Client
from msgctl.http.request import build
from msgctl.jobs.ending import FAILURES_IN_A_ROW
from msgctl.jobs.limits import RateLimiter
from msgctl.jobs.settings import Settings
from msgctl.outcomes.delivery import is_final, reaches, states
from msgctl.outcomes.words import AddedWords
from msgctl.store import results
from msgctl.store.jobs import Job
from msgctl.store.results import Sent
from msgctl.store.store import Store

TOGETHER = 100
"""Messages whose states are stored together."""
READ_AHEAD = 10_000
"""Recipients that are read at a time, to check those who share an ID together."""


class _Polled(NamedTuple):
    """The states of the recipients who share an ID, with the texts of the service; or an error."""

    recipients: Sequence[Sent]
    states: Sequence[str | None] = ()
    texts: Collection[str] = ()
    error: MsgctlError | None = None


class Poller:
    """Polls each message without a final state. States that reach ``until`` count as final.

    ``checked`` and ``failed`` count messages among ``due``. ``first_error`` is the error of the first message that
    failed. ``is_stopped`` means that too many in a row have failed, that the time is over, or that it was interrupted.
    """

    def __init__(
        self,
        store: Store,
        job: Job,
        connect: Callable[[], Client],
        added: AddedWords,
        until: str | None,
        monotonic: Callable[[], float],
        deadline: float | None = None,
    ) -> None:
        """``connect`` creates a client with its own connection. ``added`` are the words of the profile.

        After the ``deadline``, on the clock ``monotonic``, no request begins or is in flight.
        """
        self._store = store
        self._job = job
        self._settings = Settings.shown(job.settings)
        self._connect = connect
        self._added = added
        self.until = until
        self._monotonic = monotonic
        self._deadline = deadline
        self._limiter = RateLimiter(self._settings.rate)
        self._clients: SimpleQueue[Client] = SimpleQueue()
        self._lock = Lock()
        self._errors_in_a_row = 0
        self.is_stopped = False
        self.due = self.missing
        self.checked = 0
        self.failed = 0
        self.first_error: MsgctlError | None = None
        self.of_service: set[str] = set()
        """The states that are a text of the service. A state that another field contradicts is not among them."""

    @property
    def missing(self) -> int:
        """How many messages with an ID have no final state yet."""
        return self.unfinished().total()

    def unfinished(self) -> Counter[str | None]:
        """Count the messages with an ID and without a final state by their last state; None is not known."""
        states = results.states(self._store, self._job.number)
        counts = Counter({state: number for state, number in states.items() if not (state and self.is_final(state))})
        counts[None] -= self.without_id
        return +counts

    @property
    def without_id(self) -> int:
        """How many messages have no ID, and therefore no state."""
        return results.without_id(self._store, self._job.number)

    @property
    def ended_otherwise(self) -> int:
        """How many messages are in a final state other than ``until``."""
        if self.until is None:
            return 0
        states = results.states(self._store, self._job.number)
        return sum(
            number
            for state, number in states.items()
            if state is not None and is_final(state, self._added) and not reaches(state, self.until, self._added)
        )

    def is_final(self, state: str) -> bool:
        """Return whether a message in a state needs no more checks."""
        return is_final(state, self._added) or (self.until is not None and reaches(state, self.until, self._added))

    def run(self) -> Iterator[list[tuple[str, str]]]:
        """Poll all messages and store their states; yield new ones, each after its phone, from time to time.

        Raises the errors of the store.
        """
        if self._deadline is not None and self._monotonic() >= self._deadline:
            return  # the errors of the last time remain
        self.checked, self.failed, self.first_error, self.due = 0, 0, None, self.missing
        self.is_stopped, self._errors_in_a_row = False, 0
        groups = self._groups()
        with ThreadPoolExecutor(self._settings.concurrency, thread_name_prefix="poller") as pool:
            try:
                while not self.is_stopped and (some := [*islice(groups, TOGETHER)]):
                    yield self._store_states(pool.map(self._poll, some))
            except KeyboardInterrupt:
                self.is_stopped = True  # the pool waits for its threads
                raise
        while not self._clients.empty():
            self._clients.get().close()

    def _groups(self) -> Iterator[list[Sent]]:
        """Yield the recipients of each message that shares an ID, in the order of first lines.

        If texts alternate, recipients who share an ID are not on consecutive lines.
        """
        accepted = results.accepted(self._store, self._job.number)
        due = (sent for sent in accepted if sent.state is None or not self.is_final(sent.state))
        while some := [*islice(due, READ_AHEAD)]:
            groups: dict[str, list[Sent]] = {}
            for sent in some:
                groups.setdefault(sent.id, []).append(sent)
            yield from groups.values()

    def _poll(self, group: Sequence[Sent]) -> _Polled | None:
        """Return the states of a group; None if this was stopped."""
        if self.is_stopped:
            return None
        timeout = None
        with self._lock:
            now = self._monotonic()
            delay = self._limiter.delay(now)
            if self._deadline is not None:
                timeout = self._deadline - now - delay
                if timeout <= 0:
                    self.is_stopped = True
                    return None
            self._limiter.sent(1, now)
        time.sleep(delay)
        try:
            client = self._clients.get_nowait()
        except Empty:
            client = self._connect()
        try:
            response = client.send(build(operations.MESSAGES_STATE, {"id": group[0].id}), timeout=timeout)
            messages = response.document["data"]
            return _Polled(
                group,
                states(messages, [sent.phone or "" for sent in group], self._added),
                {str(message.get("state")) for message in messages},
            )
        except Exception as error:  # noqa: BLE001 (one message must not end the others)
            return _Polled(group, error=of_thread(error))
        finally:
            self._clients.put(client)

    def _store_states(self, polled: Iterator[_Polled | None]) -> list[tuple[str, str]]:
        learned: list[tuple[str, str | None, str]] = []
        for message in polled:
            if message is None:
                continue
            self.checked += len(message.recipients)
            if message.error:
                self.failed += len(message.recipients)
                self.first_error = self.first_error or message.error
                self._errors_in_a_row += 1
                if self._errors_in_a_row == FAILURES_IN_A_ROW:
                    self.is_stopped = True
                continue
            self._errors_in_a_row = 0
            for sent, state in zip(message.recipients, message.states, strict=True):
                if state is None:
                    continue
                if state in message.texts:
                    self.of_service.add(state)
                if state != sent.state:
                    learned.append((sent.id, sent.phone, state))
        results.learn_states(self._store, self._job.account, learned)
        return [(phone or id_, state) for id_, phone, state in learned]
