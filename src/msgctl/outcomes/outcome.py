"""The outcome of a recipient, and the parts of a request that a response may repeat."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from msgctl.outcomes import words
from msgctl.outcomes.numbers import RecipientFinder
from msgctl.outcomes.words import NO_WORDS, AddedWords, tokenize

ACCEPTED, REFUSED, UNKNOWN = "accepted", "refused", "unknown"
ERROR_CODE = re.compile(r"-[0-9]+(\.[0-9]+)?|[45][0-9][0-9](\.0+)?", re.ASCII)
"""A code of 400 to 599, or below 0."""


@dataclass(frozen=True)
class RequestParts:
    """The parts of a request that a response may repeat.

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
    def recipients(self) -> RecipientFinder:
        """The recipients, indexed by number."""
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
        return None if is_bad or is_number or not text or ERROR_CODE.fullmatch(self.value) else self.value


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
