"""Messages: what they cost, how they are stored, and how they move through their delivery states.

Nothing runs in the background. The state of a message follows from its age, and its final state from the last four
digits of the number, so that programs can be tested against every case.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random

from msgctl.sandbox.protocol import Refusal

SMS = "sms"
CALL = "call"
CHATAPP = "chatapp"
KINDS = (SMS, CALL, CHATAPP)

SECONDS_PER_STATE = 1.0

_MESSAGE = {
    "": ("queued", "sent", "delivered"),
    "0001": ("queued", "sent", "undelivered"),
    "0002": ("queued", "rejected"),
    "0003": ("queued",),
}
_CALL = {
    "": ("queued", "ringing", "answered"),
    "0001": ("queued", "ringing", "not-answered"),
    "0002": ("queued", "busy"),
    "0003": ("queued", "ringing"),
}
_RECEIVED = {"delivered", "answered", "voicemail"}


def journey(kind: str, phone: str, *, blocked: bool, voicemail: bool) -> tuple[str, ...]:
    """Return the states that a message of one of `KINDS` goes through, changing once per second.

    ``voicemail`` tells whether a call that is not answered leaves a message.
    """
    if blocked:
        return ("blocked",)
    table = _CALL if kind == CALL else _MESSAGE
    states = table.get(phone[-4:], table[""])
    return ("queued", "ringing", "voicemail") if voicemail and states[-1] == "not-answered" else states


def reached(row: sqlite3.Row, now: float) -> tuple[str, ...]:
    """Return the states that a stored message has been in until now, the current one last."""
    states = journey(row["kind"], row["phone"], blocked=bool(row["blocked"]), voicemail=bool(row["voicemail"]))
    # The clock may have been set back.
    return states[: int(min(max((now - row["created"]) / SECONDS_PER_STATE, 0), len(states) - 1)) + 1]


def is_moving(row: sqlite3.Row, now: float) -> bool:
    """Tell whether the state of a stored message will still change."""
    states = journey(row["kind"], row["phone"], blocked=bool(row["blocked"]), voicemail=bool(row["voicemail"]))
    return len(reached(row, now)) < len(states)


@dataclass(frozen=True, slots=True)
class Scope:
    """The scope of a handler. The time is in seconds since 1970; short URLs begin with the origin."""

    db: sqlite3.Connection
    now: float
    random: Random
    origin: str


@dataclass(frozen=True, slots=True)
class Content:
    """The message to each number of a dispatch, and its price.

    ``text`` is what the phone receives; ``shown`` is what responses repeat of it, with a code masked.
    """

    kind: str
    text: str
    shown: str
    credits: int
    code: str | None = None
    voice: str | None = None
    audio_code: str | None = None
    template: str | None = None
    values: tuple[str, ...] | None = None
    voicemail: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a dispatch. It costs nothing if its number is blocked."""

    id: str
    dispatch_id: str
    phone: str
    content: Content
    blocked: bool

    @property
    def credits(self) -> int:
        return 0 if self.blocked else self.content.credits

    @property
    def states(self) -> tuple[str, ...]:
        return journey(self.content.kind, self.phone, blocked=self.blocked, voicemail=self.content.voicemail)


def send(scope: Scope, phones: Iterable[str], content: Content) -> list[Message]:
    """Charge for and store one message to each number; a repeated number gets one message.

    Raises Refusal if the account has too few credits for all of them together.
    """
    dispatch_id = new_id(scope.random)
    messages = [_message(scope, dispatch_id, phone, content) for phone in dict.fromkeys(phones)]
    _charge(scope.db, sum(message.credits for message in messages))
    scope.db.executemany(
        "INSERT INTO messages (id, dispatch_id, phone, kind, text, shown, code, voice, audio_code, template,"
        " template_values, voicemail, blocked, received, credits, created)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [_row(message, scope.now) for message in messages],
    )
    return messages


def accepted(messages: Sequence[Message]) -> bool:
    """Tell whether any message of a dispatch goes to a number that is not blocked."""
    return not all(message.blocked for message in messages)


def status(messages: Sequence[Message]) -> str:
    """Return the status of a dispatch, for the records in which it is a string."""
    return "accepted" if accepted(messages) else "blocked"


def new_id(random: Random) -> str:
    """Return an identifier of 16 hexadecimal digits."""
    return f"{random.getrandbits(64):016x}"


def _message(scope: Scope, dispatch_id: str, phone: str, content: Content) -> Message:
    blocked = scope.db.execute("SELECT 1 FROM blocked WHERE phone = ?", (phone,)).fetchone() is not None
    # The code of a blocked message is not stored, since it never arrives.
    kept = replace(content, text=content.shown, code=None) if blocked else content
    return Message(new_id(scope.random), dispatch_id, phone, kept, blocked)


def _charge(db: sqlite3.Connection, cost: int) -> None:
    (left,) = db.execute("SELECT credits FROM account").fetchone()
    if cost > left:
        unit = "credit" if cost == 1 else "credits"
        raise Refusal("NOT_ENOUGH_CREDITS", f"this send costs {cost} {unit}; {left} left", parameter="phone")
    db.execute("UPDATE account SET credits = credits - ?", (cost,))


def _row(message: Message, now: float) -> tuple[object, ...]:
    content = message.content
    return (
        message.id,
        message.dispatch_id,
        message.phone,
        content.kind,
        content.text,
        content.shown,
        content.code,
        content.voice,
        content.audio_code,
        content.template,
        None if content.values is None else json.dumps(content.values, ensure_ascii=False),
        content.voicemail,
        message.blocked,
        message.states[-1] in _RECEIVED,
        message.credits,
        now,
    )
