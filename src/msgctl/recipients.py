"""Which entry of an answer is about which phone: the service may write numbers otherwise than they were sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

_LEAST_DIGITS = 5
"""Of a phone number; fewer could be the end of many."""


def places(entries: Sequence[Mapping[str, Any]], phones: Sequence[str]) -> Sequence[int | None]:
    """Where the entry of each phone stands; None where none can be told to be about it.

    An entry belongs to the phone that it names, also with a country code that was not sent, or without one that was,
    if no other can be meant. Where no entry names a number, they belong to the phones in their order, if there are as
    many: a `range` then, as in the ordinary case, in which all are there in their order.
    """
    told = [entry.get("phone") for entry in entries]
    if told == [*phones]:  # as nearly always
        return range(len(told))
    named = [str(phone).removeprefix("+") for phone in told]
    if len(named) == len(phones) and not any(name.isdecimal() for name in named):
        return range(len(named))
    exact = {name: place for place, name in enumerate(named)}
    alike = _Alike(named, {*phones})
    meant = [exact[phone] if phone in exact else alike.only(phone) for phone in phones]
    times = Counter(meant)
    return [place if times[place] == 1 else None for place in meant]


class _Alike:
    """The numbers that name no phone exactly, by their last digits."""

    def __init__(self, named: Sequence[str], sent: set[str]) -> None:
        self._tails: dict[str, list[tuple[int, str]]] = {}
        for place, name in enumerate(named):
            if name not in sent and len(name) >= _LEAST_DIGITS:
                self._tails.setdefault(name[-_LEAST_DIGITS:], []).append((place, name))

    def only(self, phone: str) -> int | None:
        """The place of the one number that ends as the phone does, or the other way round."""
        candidates = self._tails.get(phone[-_LEAST_DIGITS:], ())
        alike = [place for place, name in candidates if name.endswith(phone) or phone.endswith(name)]
        return alike[0] if len(alike) == 1 else None
