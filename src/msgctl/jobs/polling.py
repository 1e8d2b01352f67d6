"""Check the delivery states of messages, for `state`, --wait and `job states`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from queue import Empty, SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from msgctl import operations
from msgctl.errors import ConditionError, Interrupted, MsgctlError, ResponseDetails, of_thread
from msgctl.http.request import Request, build
from msgctl.http.response import Response
from msgctl.outcomes import delivery
from msgctl.outcomes.delivery import is_final, reaches
from msgctl.outcomes.words import AddedWords
from msgctl.text import shorten

if TYPE_CHECKING:
    from msgctl.http.client import Client
    from msgctl.jobs.limits import RateLimiter

LAST_CHECK = 1.0
"""Seconds that the last check may take after the deadline."""
TOGETHER = 100
"""Maximum messages that are checked together; their states are then stored together."""


class Goal(NamedTuple):
    """The state to wait for, "sent" or "delivered" (None: any final state), and the words that the profile adds."""

    until: str | None
    added: AddedWords

    def __str__(self) -> str:
        return self.until or "a final state"

    def is_reached(self, state: str | None) -> bool:
        if state is None:
            return False
        return reaches(state, self.until, self.added) if self.until else is_final(state, self.added)

    def is_over(self, state: str | None) -> bool:
        """Return whether a message in a state needs no more checks."""
        return self.is_reached(state) or (state is not None and is_final(state, self.added))


@dataclass
class Tracked:
    """A message ID, the phones that share it, if they are known, and the results of its checks.

    ``response`` is the latest response about the message, with the ``states`` of its phones, or of each message in the
    response if they are not known. ``texts`` are the states that are words of the service. A state that another field
    contradicts is not one of them. ``error`` is the error of the last check if it failed. ``known`` are the states that
    `changes` has reported, by phone.
    """

    id: str
    phones: Sequence[str | None] = ()
    response: Response | None = None
    states: Sequence[str | None] = ()
    texts: set[str] = field(default_factory=set)
    error: MsgctlError | None = None
    known: dict[str | None, str] = field(default_factory=dict)

    @property
    def request(self) -> Request:
        return build(operations.MESSAGES_STATE, {"id": self.id})

    @property
    def label(self) -> str:
        """The ID, shortened for a note."""
        return shorten(self.id, 60)

    @property
    def in_words(self) -> str:
        """The states in words; empty before the first response."""
        return ", ".join(dict.fromkeys(state or "missing" for state in self.states))

    def receive(self, response: Response, added: AddedWords) -> None:
        messages = response.document.get("data", ())
        self.response, self.error = response, None
        if self.phones:
            self.states = delivery.states(messages, [phone or "" for phone in self.phones], added)
        else:
            self.states = [delivery.state_of(message, added) for message in messages] or [None]
        texts = {str(message.get("state")) for message in messages}
        self.texts = {state for state in self.states if state and state in texts}

    def changes(self) -> dict[str | None, str]:
        """Return the states that are new since the last call, by phone (None if it is not known)."""
        phones = self.phones
        if not phones and self.response:
            messages = self.response.document.get("data", ())
            phones = [message.get("phone") and str(message["phone"]) for message in messages]
        states = {phone: state for phone, state in zip(phones, self.states, strict=False) if state}
        changed = {phone: state for phone, state in states.items() if self.known.get(phone) != state}
        self.known |= states
        return changed

    def learned(self, added: AddedWords) -> Iterator[tuple[str, str | None, str]]:
        """Yield the ID, the phone (None: all that share the ID) and the state of each message in the response."""
        known = {state for state in self.states if state}
        for phone, state in zip(self.phones, self.states, strict=False):
            if state:
                yield self.id, phone, state
        if not self.phones and len(known) == 1:
            yield self.id, None, known.pop()
        for message in self.response.document.get("data", ()) if self.response else ():
            state = delivery.state_of(message, added)
            if state is not None and str(message["id"]) != self.id:
                yield str(message["id"]), None, state


class Poller:
    """Checks messages, one after the other or in ``threads``, no faster than ``limiter`` allows, until a deadline.

    ``connect`` returns the client of a thread. Every request has ended when `LAST_CHECK` has passed since the
    ``deadline``, a time of the clock ``monotonic``.
    """

    def __init__(
        self,
        connect: Callable[[], Client],
        added: AddedWords,
        monotonic: Callable[[], float],
        deadline: float | None = None,
        *,
        limiter: RateLimiter | None = None,
        threads: int = 0,
    ) -> None:
        self._connect = connect
        self._added = added
        self._monotonic = monotonic
        self._end = None if deadline is None else deadline + LAST_CHECK
        self._limiter = limiter
        self._threads = threads
        self._clients: SimpleQueue[Client] = SimpleQueue()
        self._lock = Lock()
        self.is_stopped = False
        """Whether messages were not checked, because the time is over, or because the caller has stopped it."""

    @property
    def is_late(self) -> bool:
        return self._end is not None and self._monotonic() >= self._end

    def run(self, messages: Iterable[Tracked]) -> Iterator[Tracked]:
        """Check each message once, and yield it."""
        self.is_stopped = False
        waiting = iter(messages)
        if not self._threads:
            while not self.is_stopped and (message := next(waiting, None)):
                if self._check(message):
                    yield message
            return
        from concurrent.futures import ThreadPoolExecutor  # only jobs need it

        with ThreadPoolExecutor(self._threads, thread_name_prefix="poller") as pool:
            try:
                while not self.is_stopped and (some := [*islice(waiting, TOGETHER)]):
                    yield from filter(None, pool.map(self._check, some))
            except BaseException:
                self.is_stopped = True  # the pool waits for its threads
                raise

    def _check(self, message: Tracked) -> Tracked | None:
        """Check a message; return None if the poller is stopped."""
        timeout, delay = None, 0.0
        with self._lock:
            now = self._monotonic()
            if self._limiter:
                delay = self._limiter.delay(now)
            if self._end is not None:
                timeout = self._end - now - delay
                self.is_stopped = self.is_stopped or timeout <= 0
            if self.is_stopped:
                return None
            if self._limiter:
                self._limiter.sent(1, now)
        time.sleep(delay)
        try:
            client = self._clients.get_nowait()
        except Empty:
            client = self._connect()
        try:
            message.receive(client.send(message.request, timeout=timeout), self._added)
            if self._threads:
                message.response = None  # so that memory is bounded while many messages wait for the caller
        except Interrupted:
            raise
        except Exception as error:  # noqa: BLE001 (one message must not end the others)
            message.error = of_thread(error)
        finally:
            self._clients.put(client)
        return message


def not_reached(
    goal: Goal,
    hint: str | None,
    *,
    ended: str = "",
    is_undelivered: bool = False,
    late: str = "",
    when: str = "in time",
    unread: str = "",
    without_id: str = "",
    failure: MsgctlError | None = None,
    details: ResponseDetails | None = None,
    states: Sequence[str] = (),
) -> ConditionError | None:
    """Return the error about messages that did not reach a goal; None if all of them did.

    ``ended`` and ``unread`` are the beginning of a sentence about messages that ended in another state, or whose state
    could not be read because of ``failure``; ``late`` and ``without_id`` are messages. ``states`` are the states that
    the words of a profile could make final.
    """
    parts = [ended] if ended else []
    if late:
        parts.append(f"{late} did not reach {goal} {when}")
    if unread:
        parts.append(f"{unread}: {failure.message}" if failure else unread)
    if without_id:
        parts.append(f"The state of {without_id} cannot be checked: the service returned no ID")
    if not parts:
        return None
    return ConditionError(
        "; ".join(parts),
        hint,
        reason="not_delivered" if is_undelivered else "state_not_reached",
        word=("delivered", states[:1]),
        details=failure.details if failure else details,
    )
