"""Find the recipients of a request by their numbers in a response, which may lack the country code."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

MIN_SHARED_DIGITS = 7
"""Minimum digits of a number that may lack its country code."""

_NO_DIGITS = re.compile("[^0-9]+")


def digits_of(text: str) -> str:
    """Return the digits of a text."""
    return text if text.isdecimal() and text.isascii() else _NO_DIGITS.sub("", text)


class RecipientFinder:
    """The recipients of a request, found by their numbers."""

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
