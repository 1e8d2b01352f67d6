"""Check the delivery states of messages, for `state`, --wait and `job states`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from msgctl import operations
from msgctl.cli.shell.context import Context
from msgctl.errors import MsgctlError, of_thread
from msgctl.http.request import Request, build
from msgctl.http.response import Response
from msgctl.outcomes import delivery
from msgctl.outcomes.delivery import is_final, reaches
from msgctl.outcomes.record import Object
from msgctl.outcomes.words import AddedWords
from msgctl.text import shorten

if TYPE_CHECKING:
    from msgctl.http.client import Client

LAST_CHECK = 1.0
"""Seconds that the last check may take after the end of a wait."""


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
    of ``phones``, or else one for each message in the response. ``texts`` are the states as the service sent them. In
    ``states``, a state that another field contradicts has a comment. ``error`` is the error of the last check, if it
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

    def check(self, client: Client, timeout: float | None, added: AddedWords) -> None:
        """Read the states of the message. If that fails, ``error`` has the reason."""
        try:
            self.receive(client.send(self.request, timeout=timeout), added)
        except Exception as error:  # noqa: BLE001 (one message must not end the others)
            self.error = of_thread(error)

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
