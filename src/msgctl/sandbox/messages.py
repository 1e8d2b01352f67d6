"""Messages: what they cost, how they are stored, and how they move through their delivery states.

Nothing runs in the background. The state of a message follows from its age, and its final state from the last four
digits of the number, so that programs can be tested against every case.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from msgctl.sandbox.protocol import Refusal

SMS = "sms"
CALL = "call"
CHATAPP = "chatapp"
KINDS = (SMS, CALL, CHATAPP)

SECONDS_PER_STATE = 1.0

_MESSAGE = {
    "0001": ("queued", "sent", "undelivered"),
    "0002": ("queued", "rejected"),
    "0003": ("queued",),
}
_CALL = {
    "0001": ("queued", "ringing", "not-answered"),
    "0002": ("queued", "busy"),
    "0003": ("queued", "ringing"),
}
_RECEIVED = {"delivered", "answered", "voicemail"}


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of a handler. The time is in seconds since 1970; short URLs begin with the origin."""

    db: sqlite3.Connection
    now: float
    random: Random
    origin: str


class SentMessage(NamedTuple):
    """One message to one number: a row of the table ``messages``.

    ``text`` is what the phone receives; ``shown`` is what responses repeat of it, with a code masked.
    """

    id: str
    dispatch_id: str
    phone: str
    kind: str
    text: str
    shown: str
    credits: int
    created: float
    code: str | None = None
    voice: str | None = None
    audio_code: str | None = None
    template: str | None = None
    template_values: str | None = None
    voicemail: bool = False
    blocked: bool = False
    received: bool = False
    number: int | None = None

    @property
    def states(self) -> tuple[str, ...]:
        """The states that the message goes through, changing once per second."""
        if self.blocked:
            return ("blocked",)
        if self.kind != CALL:
            return _MESSAGE.get(self.phone[-4:], ("queued", "sent", "delivered"))
        states = _CALL.get(self.phone[-4:], ("queued", "ringing", "answered"))
        return ("queued", "ringing", "voicemail") if self.voicemail and states[-1] == "not-answered" else states

    def reached(self, now: float) -> tuple[str, ...]:
        """Return the states until now, the current one last."""
        # The clock may have been set back.
        age = max((now - self.created) / SECONDS_PER_STATE, 0)
        return self.states[: int(min(age, len(self.states) - 1)) + 1]


_COLUMNS = ", ".join(SentMessage._fields)
_INSERT = f"INSERT INTO messages ({_COLUMNS}) VALUES ({', '.join('?' for _ in SentMessage._fields)})"  # noqa: S608


def find(db: sqlite3.Connection, rest: str, *values: object) -> list[SentMessage]:
    """Return stored messages; ``rest`` is the query after the table's name."""
    return [SentMessage(*row) for row in db.execute(f"SELECT {_COLUMNS} FROM messages {rest}", values)]  # noqa: S608


def send(
    scope: Scope,
    phones: Iterable[str],
    kind: str,
    text: str,
    *,
    shown: str | None = None,
    credits: int = 1,
    values: Sequence[str] | None = None,
    **more: Any,
) -> list[SentMessage]:
    """Charge for and store one message to each number; a repeated number gets one message.

    A blocked number costs nothing. Raises Refusal if the account has too few credits for all of them together.
    """
    dispatch_id = new_id(scope.random)
    if values is not None:
        more["template_values"] = json.dumps(values, ensure_ascii=False)
    messages = []
    for phone in dict.fromkeys(phones):
        message_id = new_id(scope.random)
        shown = text if shown is None else shown
        message = SentMessage(message_id, dispatch_id, phone, kind, text, shown, credits, scope.now, **more)
        if scope.db.execute("SELECT 1 FROM blocked WHERE phone = ?", (phone,)).fetchone():
            # The code of a blocked message is not stored, since it never arrives.
            message = message._replace(text=message.shown, credits=0, code=None, blocked=True)
        messages.append(message._replace(received=message.states[-1] in _RECEIVED))
    cost = sum(message.credits for message in messages)
    (left,) = scope.db.execute("SELECT credits FROM account").fetchone()
    if cost > left:
        unit = "credit" if cost == 1 else "credits"
        raise Refusal("NOT_ENOUGH_CREDITS", f"this send costs {cost} {unit}; {left} left", parameter="phone")
    scope.db.execute("UPDATE account SET credits = credits - ?", (cost,))
    scope.db.executemany(_INSERT, messages)
    return messages


def status(messages: Sequence[SentMessage]) -> str:
    """Return the status of a dispatch: ``accepted`` if any of its numbers is not blocked."""
    return "blocked" if all(message.blocked for message in messages) else "accepted"


def new_id(random: Random) -> str:
    """Return an identifier of 16 hexadecimal digits."""
    return f"{random.getrandbits(64):016x}"
