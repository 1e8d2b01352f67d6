"""What goes into a ledger and comes out of it."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from types import NoneType
from typing import Any, NamedTuple

from msgctl import operations
from msgctl.errors import MsgctlError, ServiceError
from msgctl.http.request import Value
from msgctl.jobs.states import Event, Outcome, State
from msgctl.operations import Operation

MOST_DIGITS = 12
"""Of the credits of one recipient: those of a million recipients are still a number of 64 bits."""


@dataclass(frozen=True)
class Order:
    """A job as the user gave it; nothing in it is secret.

    ``fixed`` are the parameters that all its requests have, by wire name. ``rate`` is in recipients a second,
    ``max_credits`` what the whole job may cost.
    """

    command: str
    operation: str
    file: str
    profile: str
    base_url: str
    fixed: Mapping[str, Value]
    batch_size: int = 100
    concurrency: int = 8
    rate: float | None = None
    max_credits: int | None = None

    @cached_property
    def performs(self) -> Operation:
        """The operation of its requests."""
        return {each.name: each for each in operations.OPERATIONS}[self.operation]

    def document(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of(cls, document: Any) -> Order:
        """The order that `document` gave. Raises TypeError and ValueError where it is none."""
        order = cls(**document)
        texts = (order.command, order.operation, order.file, order.profile, order.base_url)
        numbers = (order.batch_size, order.concurrency, order.max_credits or 0)
        if not all(isinstance(text, str) for text in texts) or not all(type(number) is int for number in numbers):
            raise TypeError("a member of the order is of another kind")
        rate = 1.0 if order.rate is None else order.rate
        if min(order.batch_size, order.concurrency) < 1 or (order.max_credits or 0) < 0 or not 0 < rate < math.inf:
            raise ValueError("a limit of the order is none")
        if not isinstance(order.fixed, dict) or order.operation not in {each.name for each in operations.OPERATIONS}:
            raise ValueError("nothing can be sent by the order")
        return order


class Entry(NamedTuple):
    """What the service said of one recipient, as it was sent; None for a member that was not."""

    id: str | None
    status: str | None
    credits: str | None

    @property
    def charged(self) -> int | None:
        """Credits charged; None where that is no whole number, or one that nobody has."""
        text = self.credits or ""
        return int(text) if text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else None


def pack(entries: Sequence[Entry | None]) -> str | None:
    """Entries as a short text: columns, in which a status or a credit that all have stands once; None for no entries.

    It is the JSON array of ids, statuses, credits, and the places of those that are None.
    """
    if not entries:
        return None
    absent = [place for place, entry in enumerate(entries) if entry is None]
    said = [entry or _NOTHING for entry in entries] if absent else entries
    ids, statuses, prices = zip(*said, strict=True)
    # Half of a surrogate pair, which JSON can spell and SQLite not keep, becomes a question mark.
    return _encode([ids, _once(statuses), _once(prices), absent]).encode("utf-8", "replace").decode()


def unpack(text: str | None) -> list[Entry | None]:
    """The entries of a text. Raises ValueError, TypeError and IndexError for one that `pack` did not write."""
    if text is None:
        return []
    ids, *others, absent = json.loads(text)
    statuses, prices = (values if isinstance(values, list) else [values] * len(ids) for values in others)
    if not {str, NoneType}.issuperset(map(type, [*ids, *statuses, *prices])):
        raise TypeError("its columns hold something else than texts")
    entries: list[Entry | None] = [Entry(*said) for said in zip(ids, statuses, prices, strict=True)]
    for place in absent:
        entries[place] = None
    return entries


_NOTHING = Entry(None, None, None)
_CREDITS = Entry._fields.index("credits")  # by its place it is found faster than by its name
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def _once(values: tuple[str | None, ...]) -> str | tuple[str | None, ...] | None:
    return values[0] if values.count(values[0]) == len(values) else values


@dataclass(frozen=True, slots=True)
class Intent:
    """A request that is about to leave, and whose intent is on the disk.

    ``parameters`` are those that are not fixed, but for the phones; ``estimate`` is in credits.
    """

    number: int
    phones: tuple[str, ...]
    parameters: Mapping[str, Any]
    estimate: int


class Fate(NamedTuple):
    """What became of the request that a recipient went out with."""

    state: State
    error: str | None


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a request; ``entries`` stand in the order of its phones, None where one has none.

    ``charged`` are the credits that were said, ``unpriced`` counts entries that do not say any, and ``missing`` those
    that are None. This is found out where a result is made: many threads make them, and a single one writes them.
    """

    number: int
    event: Event
    entries: tuple[Entry | None, ...] = ()
    fault: MsgctlError | None = None
    packed: str | None = field(init=False, repr=False)
    charged: int = field(init=False, default=0)
    unpriced: int = field(init=False, default=0)
    missing: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        prices = Counter(entry and entry[_CREDITS] for entry in self.entries)
        charged = {price: Entry(None, None, price).charged for price in prices}
        found = {
            "packed": pack(self.entries),
            "charged": sum((charged[price] or 0) * times for price, times in prices.items()),
            "unpriced": sum(times for price, times in prices.items() if charged[price] is None),
            "missing": self.entries.count(None),
        }
        for name, value in found.items():
            object.__setattr__(self, name, value)


class Heard(NamedTuple):
    """What was said about the message to one recipient: its delivery state, or why there is none."""

    line: int
    state: str | None
    fault: MsgctlError | None

    @property
    def is_answered(self) -> bool:
        """Whether the service said something, were it that it does not tell."""
        return self.fault is None or isinstance(self.fault, ServiceError)


@dataclass(slots=True)
class Totals:
    """A job in numbers: recipients by what became of them, requests that left, credits charged.

    ``doubtful`` are estimated credits of what may have been charged without an answer. ``under_way`` are recipients
    whose answer is not here yet, which count as pending while somebody waits for it, and ``promised`` their credits.
    """

    pending: int = 0
    accepted: int = 0
    refused: int = 0
    unknown: int = 0
    invalid: int = 0
    duplicate: int = 0
    under_way: int = 0
    requests: int = 0
    credits: int = 0
    doubtful: int = 0
    promised: int = 0

    @property
    def recipients(self) -> int:
        """All rows of the file."""
        return sum(getattr(self, outcome) for outcome in Outcome)

    @property
    def sendable(self) -> int:
        """Rows that can be sent to, each number once."""
        return self.recipients - self.invalid - self.duplicate

    def outcomes(self) -> dict[str, int]:
        return {str(outcome): getattr(self, outcome) for outcome in Outcome}
