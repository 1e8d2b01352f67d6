"""The meaning of delivery states. Only this module judges them, for polling, colours and reports."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache

from msgctl.outcomes import words
from msgctl.outcomes.content import as_text, is_nothing, is_zero, meaning_of
from msgctl.outcomes.outcome import RecipientFinder
from msgctl.outcomes.record import Object, text_to_store
from msgctl.outcomes.words import AddedWords, tokenize
from msgctl.text import shorten


class Delivery(StrEnum):
    """The class of a delivery state. All but the first are final."""

    ON_ITS_WAY = "on its way"
    NOT_ANSWERED = "not answered"
    FAILED = "failed"
    DELIVERED = "delivered"


@lru_cache(maxsize=256)
def classify(state: str, added: AddedWords) -> Delivery:
    """Return the class of a delivery state; an unknown state counts as on its way."""
    if added.has("delivered", state):
        return Delivery.DELIVERED
    if added.has("failed", state):
        return Delivery.FAILED
    text = tokenize(state)
    if text.is_all(words.DELIVERED, words.VERIFIED) and not words.NOT_A_DELIVERY.among(text.words):
        return Delivery.DELIVERED
    is_unanswered = words.ALONE.among(text.plain) or words.NO_ANSWER.among(text.negated)
    if is_unanswered and text.is_all(words.NO_ANSWER, words.NEGATION):
        return Delivery.NOT_ANSWERED
    return Delivery.FAILED if text.fails() else Delivery.ON_ITS_WAY


def is_final(state: str, added: AddedWords) -> bool:
    return classify(state, added) is not Delivery.ON_ITS_WAY


def reaches(state: str, goal: str, added: AddedWords) -> bool:
    """Return whether a message in a state has reached a goal, "sent" or "delivered"."""
    if classify(state, added) is Delivery.DELIVERED:
        return True
    text = tokenize(state)
    return goal == "sent" and text.is_all(words.GOOD) and words.SENT.among(text.words)


def state_of(message: Object, added: AddedWords) -> str | None:
    """Return the delivery state of a message, or None.

    If another field contradicts a delivery, the state mentions that field and counts as on its way.
    """
    state = text_to_store(message.get("state"))
    if state is None or classify(state, added) is not Delivery.DELIVERED:
        return state
    for name, value in message.items():
        meaning = meaning_of(words.cut(name), False)
        is_error = words.ERROR.among(meaning.words) and not is_nothing(value)
        is_machine = name == "answered_by" and value not in ("human", "", None)
        if is_error or is_machine or (meaning.is_good and is_zero(value)):
            # "unknown" is a word of OPEN: without it, a text that a profile adds could read like a failure here.
            return f"unknown: {state}, but {shorten(name, 60)} is {shorten(as_text(value), 60)}"
    return state


def states(messages: Sequence[Object], phones: Sequence[str | None], added: AddedWords) -> list[str | None]:
    """Return the delivery state of each phone, or None, from the messages with the requested id.

    A message belongs to the recipient whose number it contains, or else to all recipients with the id. Several states
    of one recipient count only if they agree.
    """
    finder = RecipientFinder(phones)
    of_phone: dict[str | None, list[str]] = {}
    for message in messages:
        state = state_of(message, added)
        if state is not None:
            recipients: Sequence[str | None] = finder.among(message.get("phone")) or [None]
            for phone in recipients:
                of_phone.setdefault(phone, []).append(state)
    result = [of_phone.get(phone) or of_phone.get(None, []) for phone in phones]
    return [texts[-1] if len({classify(text, added) for text in texts}) == 1 else None for texts in result]
