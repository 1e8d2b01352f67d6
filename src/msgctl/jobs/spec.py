"""The data in a ledger: the job's spec, its requests and their results, its totals."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from msgctl import operations
from msgctl.errors import MsgctlError
from msgctl.http.request import Value
from msgctl.jobs.states import LEFT_OUT, Outcome, State, outcome
from msgctl.operations import Operation
from msgctl.recipients import RecipientOutcome

MOST_DIGITS = 12
"""The longest number of credits for one recipient: a million of them still fit into 64 bits."""


@dataclass(frozen=True)
class JobSpec:
    """A job as the user gave it; nothing in it is secret.

    ``fixed`` are the parameters that all its requests have, by wire name. ``rate`` is in recipients per second,
    ``max_credits`` limits the whole job, ``columns`` are those of the file without the phone's. ``window`` and ``days``
    are the hours at which it may send (see `Window`), ``zones`` the time zones of its recipients; ``at`` is when it is
    due, in seconds since 1970. After ``canary`` recipients the job pauses.
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
    client: int = 0
    window: str | None = None
    days: str | None = None
    at: float | None = None
    canary: int | None = None
    name: str | None = None
    columns: Sequence[str] = ()
    zones: Sequence[str] = ("",)

    @cached_property
    def performs(self) -> Operation:
        """The operation of its requests."""
        return {each.name: each for each in operations.OPERATIONS}[self.operation]

    def dump(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, text: str) -> JobSpec:
        return cls(**json.loads(text))


class Intent(NamedTuple):
    """A request that is about to be sent, to recipients who were in ``state``.

    ``parameters`` are those of its message, ``cost`` is per recipient, ``zones`` are the recipients' time zones.
    """

    number: int
    state: State
    lines: Sequence[int]
    phones: Sequence[str]
    parameters: Mapping[str, Any]
    cost: int
    zones: str = ""

    @property
    def estimate(self) -> int:
        """Estimated credits of the whole request."""
        return self.cost * len(self.lines)


class RequestResult(NamedTuple):
    """The result of a request: the outcome of each recipient, in the order of its phones.

    ``body`` is the response if it leaves an outcome in doubt.
    """

    intent: Intent
    outcomes: Sequence[RecipientOutcome]
    error: MsgctlError | None = None
    body: str | None = None
    was_sent: bool = True


def charged(text: str | None) -> int | None:
    """Return the credits in what the service said of them; None if that is not a reasonable whole number."""
    is_number = text is not None and text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
    return int(text) if text and is_number else None


@dataclass(slots=True)
class Totals:
    """A job in numbers: recipients by state, requests that were sent, credits charged.

    ``lost`` are estimated credits that may have been charged without a response that says so, ``promised`` those of
    requests in flight.
    """

    states: Counter[State] = field(default_factory=Counter)
    requests: int = 0
    credits: int = 0
    lost: int = 0
    promised: int = 0

    def copy(self) -> Totals:
        return Totals(Counter(self.states), self.requests, self.credits, self.lost, self.promised)

    def move(self, before: State, after: State, number: int) -> None:
        self.states[before] -= number
        self.states[after] += number

    def outcomes(self, *, running: bool) -> dict[Outcome, int]:
        """Count recipients by outcome."""
        counts = dict.fromkeys(Outcome, 0)
        for state, number in self.states.items():
            counts[outcome(state, running=running)] += number
        return counts

    @property
    def recipients(self) -> int:
        """All rows of the file."""
        return self.states.total()

    @property
    def sendable(self) -> int:
        """Rows that can be sent to, each number once."""
        return self.recipients - sum(self.states[state] for state in LEFT_OUT)

    @property
    def sent(self) -> int:
        """Recipients who got their message, or may have got it, also those who are to be sent to again."""
        return self.sendable - self.states[State.PENDING]

    @property
    def unsent(self) -> int:
        """Recipients who wait for their request."""
        return self.states[State.PENDING] + self.states[State.AGAIN]
