"""What goes into a ledger and comes out of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from msgctl import operations
from msgctl.errors import MsgctlError
from msgctl.jobs.states import Event, Outcome, State
from msgctl.operations import Operation
from msgctl.request import Value

MOST_DIGITS = 12
"""Of the credits of one recipient: those of a million recipients are still a number of 64 bits."""


@dataclass(frozen=True, slots=True)
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

    @property
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


class Ahead(NamedTuple):
    """The next request: credits a recipient, estimated, and its size where that is settled."""

    cost: int
    size: int | None


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
    """What became of a request; ``entries`` stand in the order of its phones, None where one has none."""

    number: int
    event: Event
    entries: tuple[Entry | None, ...] = ()
    fault: MsgctlError | None = None


class Heard(NamedTuple):
    """What was said about the message to one recipient: its delivery state, or why there is none."""

    line: int
    state: str | None
    fault: MsgctlError | None


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
