"""The outcome of a recipient, and the facts about its request that a response is judged by."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from msgctl.outcomes import words
from msgctl.outcomes.words import NO_WORDS, AddedWords, tokenize

ACCEPTED, REFUSED, UNKNOWN = "accepted", "refused", "unknown"
PENDING, SENDING = "pending", "sending"
"""Words for a recipient of a job that has no outcome yet: not sent to, or its request is in flight."""
LEFT_OUT = ("invalid", "duplicate", "excluded")
"""The outcomes of rows that a job leaves out."""
ERROR_CODE = r"-[0-9]+(\.[0-9]+)?|[45][0-9][0-9](\.0+)?"
"""An error code: 400 to 599, or negative."""
MIN_SHARED_DIGITS = 7
"""Minimum digits of a number that may lack its country code."""

_NO_DIGITS = "[^0-9]+"


def digits_of(text: str) -> str:
    return text if text.isdecimal() and text.isascii() else re.sub(_NO_DIGITS, "", text)


class RecipientFinder:
    """Finds the recipients of a request by their numbers in a response, which may lack the country code."""

    def __init__(self, phones: Sequence[str | None]) -> None:
        self._by_end: dict[str, list[str]] = {}
        for phone in phones:
            if phone and (end := digits_of(phone)[-MIN_SHARED_DIGITS:]):
                self._by_end.setdefault(end, []).append(phone)

    def among(self, phone: Any) -> Sequence[str]:
        """Return the recipients whose numbers are in a field `phone`, separated by commas."""
        if not isinstance(phone, str):
            return []
        if self._by_end.get(phone[-MIN_SHARED_DIGITS:]) == [phone]:  # the usual case, for speed
            return [phone]
        recipients = dict.fromkeys(self._recipient(digits_of(part)) for part in phone.split(","))
        return [recipient for recipient in recipients if recipient]

    def _recipient(self, digits: str) -> str | None:
        """Return the only recipient with a number."""
        fits = [
            phone for phone in self._by_end.get(digits[-MIN_SHARED_DIGITS:], ()) if _is_same(digits_of(phone), digits)
        ]
        return fits[0] if len(fits) == 1 else None


def _is_same(one: str, other: str) -> bool:
    """Return whether two numbers are the same, except that one of them may lack the country code."""
    if min(len(one), len(other)) < MIN_SHARED_DIGITS:
        return one == other
    return one.endswith(other) or other.endswith(one)


@dataclass(frozen=True)
class RequestFacts:
    """The facts about a request that a response is judged by, because it may repeat or contradict them.

    ``phones`` are the recipients; None is a recipient that only the user's own body specifies. ``echoes`` are all
    values and the phones. ``numbers`` are the values that a good text may contain: phones, the code, and the number of
    recipients. ``added`` are the texts of the profile.
    """

    phones: Sequence[str | None] = (None,)
    echoes: frozenset[str] = frozenset()
    numbers: frozenset[str] = frozenset()
    is_block: bool = False
    is_link: bool = False
    is_call: bool = False
    added: AddedWords = NO_WORDS

    @property
    def known_phones(self) -> list[str]:
        """The recipients whose numbers are known."""
        return [phone for phone in self.phones if phone]

    @cached_property
    def finder(self) -> RecipientFinder:
        return RecipientFinder(self.phones)


class Doubt(NamedTuple):
    """The field that made an outcome unknown, or a code not verified, and its value as text."""

    field: str
    value: str

    @property
    def text_to_add(self) -> str | None:
        """The value, unless a profile must not add it as good: a description of a failure, or a number."""
        text = tokenize(self.value).words
        both = (*text, *tokenize(self.field).words)
        is_bad = any(bad.among(both) for bad in (words.FAILED, words.ERROR, words.NEGATION))
        is_number = not any(map(str.isalpha, self.value)) and self.field not in ("status", "state")
        return None if is_bad or is_number or not text or re.fullmatch(ERROR_CODE, self.value) else self.value


class Outcome(NamedTuple):
    """The outcome of one recipient: accepted, refused or unknown.

    ``phone`` is the number in the request, or in the entry if the request has none. ``id``, ``status`` and ``error``
    are text as the service sent it. ``credits`` are millionths; several recipients of one entry share its
    credits. ``doubt`` is the field that made the outcome unknown.
    """

    phone: str | None
    outcome: str
    id: str | None = None
    status: str | None = None
    credits: int | None = None
    error: str | None = None
    doubt: Doubt | None = None
