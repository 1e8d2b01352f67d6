"""Messages on their way: charged, kept, and found again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from random import Random

from msgctl.sandbox import delivery
from msgctl.sandbox.wire import Refusal


@dataclass(frozen=True, slots=True)
class Context:
    """What a handler works with: an open transaction, the time in seconds since 1970, chance, and the URLs' origin."""

    db: sqlite3.Connection
    now: float
    random: Random
    origin: str


@dataclass(frozen=True, slots=True)
class Content:
    """What is sent to each number, and the credits that each costs.

    ``text`` is what the phone receives, ``shown`` what answers tell of it: a code is masked there.
    """

    kind: str
    text: str
    shown: str
    credits: int
    code: str | None = None
    voice: str | None = None
    audio_code: str | None = None
    template: str | None = None
    voicemail: bool = False


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a dispatch; it costs nothing where its number is blocked."""

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
        return delivery.journey(self.content.kind, self.phone, blocked=self.blocked, voicemail=self.content.voicemail)

    @property
    def first_state(self) -> str:
        """The delivery state in the answer to the dispatch."""
        return self.states[0]


def send(context: Context, phones: Iterable[str], content: Content) -> list[Message]:
    """Charge for one message to each number and keep them; a number given twice gets one.

    Raises Refusal where the account has fewer credits than all of them cost together.
    """
    dispatch_id = new_id(context.random)
    messages = [_message(context, dispatch_id, phone, content) for phone in dict.fromkeys(phones)]
    _charge(context.db, sum(message.credits for message in messages))
    context.db.executemany(
        "INSERT INTO messages (id, dispatch_id, phone, kind, text, shown, code, voice, audio_code, template, voicemail,"
        " blocked, received, credits, created) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [_row(message, context.now) for message in messages],
    )
    return messages


def accepted(messages: Sequence[Message]) -> bool:
    """Whether a dispatch has a message whose number is not blocked."""
    return not all(message.blocked for message in messages)


def status(messages: Sequence[Message]) -> str:
    """The status of a dispatch where the interface has a string for it."""
    return "accepted" if accepted(messages) else "blocked"


def state_of(row: sqlite3.Row, now: float) -> str:
    """The delivery state of a kept message."""
    states = delivery.journey(row["kind"], row["phone"], blocked=bool(row["blocked"]), voicemail=bool(row["voicemail"]))
    return delivery.state_after(now - row["created"], states)


def new_id(random: Random) -> str:
    """An identifier of 16 hexadecimal digits."""
    return f"{random.getrandbits(64):016x}"


def _message(context: Context, dispatch_id: str, phone: str, content: Content) -> Message:
    blocked = context.db.execute("SELECT 1 FROM blocked WHERE phone = ?", (phone,)).fetchone() is not None
    # What no phone receives holds no code.
    kept = replace(content, text=content.shown, code=None) if blocked else content
    return Message(new_id(context.random), dispatch_id, phone, kept, blocked)


def _charge(db: sqlite3.Connection, cost: int) -> None:
    (left,) = db.execute("SELECT credits FROM account").fetchone()
    if cost > left:
        raise Refusal("NOT_ENOUGH_CREDITS", f"phone: the dispatch costs {cost} credits, and {left} are left")
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
        content.voicemail,
        message.blocked,
        delivery.is_received(message.states),
        message.credits,
        now,
    )
