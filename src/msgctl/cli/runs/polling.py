"""Check the delivery states of messages, for `state`, --wait and `job states`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import takewhile
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from msgctl import operations
from msgctl.cli.runs.pool import Pool
from msgctl.cli.shell.context import Context
from msgctl.errors import Interrupted, MsgctlError, of_thread
from msgctl.http.request import Request, build
from msgctl.http.response import Response
from msgctl.outcomes import delivery
from msgctl.outcomes.delivery import is_final, reaches
from msgctl.outcomes.record import Object
from msgctl.outcomes.words import AddedWords
from msgctl.text import shorten

if TYPE_CHECKING:
    from msgctl.http.client import Client
    from msgctl.jobs.limits import RateLimiter

LAST_CHECK = 1.0
"""Seconds that the last check may take after the deadline."""


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

    ``response`` is the latest response about the message. ``states`` are pairs of a phone and its state: one for each
    of ``phones``, or else one for each message in the response. ``texts`` are the states that the service sent
    unchanged; a state that another field contradicts has a comment. ``error`` is the error of the last check, if it
    failed. ``reported`` are the states that `changes` has returned, by phone.
    """

    id: str
    phones: Sequence[str] = ()
    response: Response | None = None
    states: Sequence[tuple[str | None, str | None]] = ()
    texts: set[str] = field(default_factory=set)
    error: MsgctlError | None = None
    reported: dict[str | None, str] = field(default_factory=dict)

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
        return ", ".join(dict.fromkeys(state or "missing" for _, state in self.states))

    def receive(self, response: Response, added: AddedWords) -> None:
        self.response, self.error = response, None
        messages = response.document.get("data", ())
        if self.phones:
            self.states = [*zip(self.phones, delivery.states(messages, self.phones, added), strict=True)]
        else:
            phones = [str(message["phone"]) if message.get("phone") else None for message in messages]
            states = [delivery.state_of(message, added) for message in messages]
            self.states = [*zip(phones, states, strict=True)] or [(None, None)]
        texts = {str(message.get("state")) for message in messages}
        self.texts = {state for _, state in self.states if state and state in texts}

    def changes(self) -> dict[str | None, str]:
        """Return the states that are new since the last call, by phone (None if it is not known)."""
        states = {phone: state for phone, state in self.states if state}
        changed = {phone: state for phone, state in states.items() if self.reported.get(phone) != state}
        self.reported |= states
        return changed

    def received(
        self, added: AddedWords, phones_of: Callable[[str], Sequence[str | None]]
    ) -> Iterator[tuple[str, str | None, str]]:
        """Yield an ID, a phone and its state for each recipient that the response is about.

        Without ``phones``, ``phones_of`` returns the recipients of an ID in the store.
        """
        messages = self.response.document.get("data", ()) if self.response else ()
        by_id: dict[str, list[Object]] = {self.id: [*messages]}
        for message in messages:
            if str(message["id"]) != self.id:
                by_id.setdefault(str(message["id"]), []).append(message)
        for id_, of_id in by_id.items():
            phones: Sequence[str | None] = self.phones if id_ == self.id else ()
            phones = phones or phones_of(id_)  # a query for each message of a send would take long
            states = delivery.states(of_id, phones, added)
            yield from ((id_, phone, state) for phone, state in zip(phones, states, strict=True) if state)


class Poller:
    """Checks messages, one after the other or in ``threads``, no faster than ``limiter`` allows, until a deadline.

    Every request has ended when `LAST_CHECK` has passed since the ``deadline``, a monotonic time.
    """

    def __init__(
        self,
        context: Context,
        added: AddedWords,
        deadline: float | None = None,
        *,
        limiter: RateLimiter | None = None,
        threads: int = 0,
    ) -> None:
        self._pool = Pool(context, threads)
        self._keeps_responses = not threads
        self._monotonic = context.monotonic
        self._added = added
        self._end = None if deadline is None else deadline + LAST_CHECK
        self._limiter = limiter
        self._lock = Lock()
        self.is_stopped = False
        """Whether the run stopped before all messages were checked."""

    def run(self, messages: Iterable[Tracked]) -> Iterator[Tracked]:
        """Check each message once, and yield it."""
        self.is_stopped = False
        checked = self._pool.map(self._check, takewhile(lambda _: not self.is_stopped, messages))
        yield from filter(None, checked)

    def _check(self, client: Client, message: Tracked) -> Tracked | None:
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
            message.receive(client.send(message.request, timeout=timeout), self._added)
            if not self._keeps_responses:
                message.response = None  # so that memory is bounded while many messages wait for the caller
        except Interrupted:
            raise
        except Exception as error:  # noqa: BLE001 (one message must not end the others)
            message.error = of_thread(error)
        return message


def poll(context: Context, check: Callable[[], bool], max_wait: float, interval: float, goal: str = "") -> None:
    """Call ``check`` until it returns False, or until the time is over; call it at the deadline, too.

    A note has the end of the wait and its ``goal``.
    """
    deadline = context.monotonic() + max_wait
    now = context.now()
    end = now + timedelta(seconds=max_wait)
    day = "" if end.date() == now.date() else f"{end:%a %d %b} "
    context.note(f"waiting until {day}{end:%H:%M} {goal}".rstrip())
    while check() and (left := deadline - context.monotonic()) > 0:
        context.sleep(min(interval, left))
