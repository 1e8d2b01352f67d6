"""The data in a ledger: the job's spec, its requests and their results, and its totals."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from math import inf
from types import NoneType
from typing import Any, NamedTuple

from msgctl import operations
from msgctl.errors import MsgctlError
from msgctl.http.request import Value
from msgctl.jobs.states import LEFT_OUT, Outcome, State, outcome
from msgctl.operations import Operation
from msgctl.outcomes.judge import RecipientOutcome, charge

_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "str | None": (str, NoneType),
    "int | None": (int, NoneType),
    "float | None": (int, float, NoneType),
    "Mapping[str, Value]": (dict,),
    "Sequence[str]": (list,),
}
"""The types of settings as JSON."""


@dataclass(frozen=True)
class JobSpec:
    """The settings of a job; they contain no secrets.

    ``fixed`` are the parameters of all its requests, by wire name. ``rate`` is in recipients per second.
    ``max_credits`` limits the whole job. ``columns`` are the file's columns without the phone column. The job sends
    only during ``window`` and ``days`` (see `Window`), in the recipients' time ``zones``. It is due ``at`` a time, in
    seconds since 1970. It pauses after ``canary`` recipients. It resends to recipients of the job ``resend_of``. It
    leaves out people who have got ``at_most`` messages (see `Frequency`).
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
    resend_of: str | None = None
    at_most: str | None = None
    columns: Sequence[str] = ()
    zones: Sequence[str] = ("",)

    @cached_property
    def performs(self) -> Operation:
        """The operation of its requests."""
        return {each.name: each for each in operations.OPERATIONS}[self.operation]

    @property
    def over_limit(self) -> str:
        """The reason for leaving out a person who has got ``at_most`` messages."""
        return f"reached the limit of {self.at_most}"

    def dump(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, text: str) -> JobSpec:
        """Return the settings in a ledger. Raises LookupError, TypeError or ValueError if they are not valid."""
        spec = cls(**json.loads(text))
        for each in fields(cls):
            if not isinstance(value := getattr(spec, each.name), _TYPES[str(each.type)]):
                raise TypeError(f"{each.name} is {type(value).__name__}")
        for number in (spec.batch_size, spec.concurrency, spec.rate, spec.canary):
            if number is not None and not 0 < number < inf:
                raise ValueError(f"{number} is not a limit")
        if not all(isinstance(each, str) for each in (*spec.columns, *spec.zones)):
            raise TypeError("a column or time zone is not text")
        for name in spec.fixed:
            spec.performs.field(name)
        return spec


class Intent(NamedTuple):
    """A request that is about to be sent, to recipients who were in ``state``.

    ``parameters`` contains its message. ``cost`` is per recipient. ``zones`` are the recipients' time zones.
    ``message`` is the number of the message in the ledger. ``international`` contains the recipients' international
    numbers if ``phones`` were not checked. After ``expires``, on the monotonic clock, the opt-out list must be checked
    again.
    """

    number: int
    state: State
    lines: Sequence[int]
    phones: Sequence[str]
    parameters: Mapping[str, Any]
    cost: int
    zones: str = ""
    message: int = 0
    international: Sequence[str] = ()
    expires: float = 0.0

    @property
    def numbers(self) -> list[str]:
        """All numbers under which the recipients may be on the opt-out list."""
        return [*self.phones, *self.international]

    @property
    def people(self) -> Sequence[str]:
        """The international numbers of the recipients."""
        return self.international or self.phones

    @property
    def estimate(self) -> int:
        """Estimated credits of the whole request."""
        return self.cost * len(self.lines)


class RequestResult(NamedTuple):
    """The result of a request: the outcome of each recipient, in the order of its phones.

    ``body`` is the response if an outcome is in doubt.
    """

    intent: Intent
    outcomes: Sequence[RecipientOutcome]
    error: MsgctlError | None = None
    body: str | None = None
    was_sent: bool = True

    def charge(self, found: RecipientOutcome) -> tuple[int, int]:
        """Return the credits charged for a recipient, and the estimate to use if no charge is reported."""
        return charge(found, self.intent.cost) if self.was_sent else (0, 0)


@dataclass(slots=True)
class Totals:
    """A job in numbers: recipients by state, requests that were sent, credits charged.

    ``lost`` are estimated credits that may have been charged without a response that reports it. ``promised`` are the
    estimated credits of requests in flight.
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
        """Rows that the job sends to, each number once."""
        return self.recipients - sum(self.states[state] for state in LEFT_OUT)

    @property
    def sent(self) -> int:
        """Recipients who got their message or may have got it, including recipients to resend to."""
        return self.sendable - self.states[State.PENDING]

    @property
    def unsent(self) -> int:
        """Recipients with an unsent request."""
        return self.states[State.PENDING] + self.states[State.AGAIN]
