"""Limits of a job: its rate, credits and canary, waits, failures in a row, and people who are left out."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from msgctl.credits import CREDIT
from msgctl.errors import ConditionError
from msgctl.jobs.ending import FAILURES_IN_A_ROW
from msgctl.jobs.schedule import Frequency
from msgctl.jobs.settings import Settings
from msgctl.outcomes.outcome import ACCEPTED, UNKNOWN, Outcome
from msgctl.store import results
from msgctl.store.jobs import Job
from msgctl.store.queue import ExclusionRules
from msgctl.store.results import Charges, Intent
from msgctl.store.store import Store
from msgctl.text import plural

REQUESTS_PER_SECOND = 5
"""Minimum requests per second with --rate. At this rate, one request more or less in ten seconds is 2 %.

With a lower --rate, each request has one recipient.
"""
CATCH_UP = 0.1
"""After a delay, a job makes up for at most this many seconds at once; that is 1 % of ten seconds."""

MAX_WAITS = 5
"""Maximum waits without an accepted request between them."""
MAX_BACKOFF = 60.0
MAX_RETRY_AFTER = 600.0
"""Maximum seconds of ``Retry-After`` that a job waits; if it is longer, the job pauses."""
JITTER = 0.05
"""The random part that is added to a wait, so that several jobs do not send at the same moment."""


class RateLimiter:
    """Allows ``rate`` recipients per second (None: any number), evenly.

    Times are in seconds on a monotonic clock, so a change of the machine's clock has no effect.
    """

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._next = 0.0

    def batch_size(self, size: int) -> int:
        """Return how many of ``size`` recipients may share a request."""
        return size if self._rate is None else max(1, min(size, int(self._rate / REQUESTS_PER_SECOND)))

    def delay(self, now: float) -> float:
        """Return the seconds until the next request may be sent."""
        return max(0.0, self._next - now)

    def sent(self, size: int, now: float) -> None:
        """Count a request to this many recipients."""
        if self._rate is not None:
            self._next = max(self._next, now - CATCH_UP) + size / self._rate


class Budget:
    """Keeps a job within ``max_credits``.

    Each segment in flight or with an unknown outcome may cost as much as the most expensive one so far, and at least 1
    credit. An accepted message without a charge, or with a charge of 0, counts as 1 credit per segment. Until a message
    has been accepted, one request with one recipient is in flight.
    """

    def __init__(self, max_credits: int, job: Job, charged: Charges) -> None:
        self._max = max_credits * CREDIT
        self._price = max(job.highest_price, CREDIT)
        self._is_known = charged.accepted > 0
        self._spent = job.credits + charged.uncharged * CREDIT
        self._unknown = charged.unknown
        self._in_flight = 0

    def reserve(self, intent: Intent) -> None:
        """Reserve the segments of a request."""
        self._in_flight += intent.segments

    def release(self, intent: Intent, rows: Sequence[Outcome] = ()) -> None:
        """Count the charges of a request; without ``rows``, it was not sent."""
        self._in_flight -= intent.segments
        for row in rows:
            self._spent += row.credits or 0
            if row.outcome == ACCEPTED:
                self._is_known = True
                self._spent += 0 if row.credits else intent.cost * CREDIT
                self._price = max(self._price, -(-(row.credits or 0) // max(intent.cost, 1)))
            elif row.outcome == UNKNOWN and not row.credits:
                self._unknown += intent.cost

    def allows(self, size: int, cost: int) -> int | None:
        """Return how many of the next recipients, with ``cost`` segments each, may share a request.

        Return None if this depends on a request in flight; 0 means that the limit is reached.
        """
        left = self._max - self._spent - (self._in_flight + self._unknown) * self._price
        number = min(size, max(left, 0) // (max(cost, 1) * self._price))
        if not self._is_known:
            if self._in_flight:
                return None
            number = min(number, 1)
        return number if number or not self._in_flight else None

    def covers(self, segments: int) -> bool:
        """Return whether this many more segments fit, at the highest price so far."""
        return self._spent + (self._unknown + segments) * self._price <= self._max

    @property
    def used(self) -> int:
        """The credits that the job has used, rounded up."""
        return -(-self._spent // CREDIT)

    def reached(self) -> ConditionError:
        """Return the error that reports why the job is paused."""
        used = plural(self.used, "credit")
        doubt = ""
        if self._unknown:
            doubt = f", and up to {-(-self._unknown * self._price // CREDIT):,} more by unknown requests"
        return ConditionError(
            f"The next request could exceed --max-credits {self._max // CREDIT:,} ({used} used{doubt})",
            reason="credit_limit",
        )


def budget_of(store: Store, settings: Settings, job: Job) -> Budget | None:
    """Return the budget of a job; None if --max-credits is omitted."""
    if settings.max_credits is None:
        return None
    return Budget(settings.max_credits, job, results.charges(store, job.number))


class Backoff:
    """The waits of a job after 429, and while the service cannot be reached. All its requests wait together.

    A request that began before the wait does not count as another one; its Retry-After may prolong the wait.
    """

    def __init__(self) -> None:
        self._waits = 0
        self._began = float("-inf")
        self.until = float("-inf")

    def delay(self, now: float) -> float:
        """Return the seconds until the next request may be sent."""
        return max(0.0, self.until - now)

    def accepted(self) -> None:
        """Count an accepted request."""
        self._waits = 0

    def turned_away(self, started: float, now: float, retry_after: float | None) -> bool:
        """Count a request that began at ``started``, and got 429 or did not reach the service.

        A ``retry_after`` of 0 is ignored, because a service with a slow clock sends a date in the past. Return whether
        the job must pause.
        """
        if retry_after is not None and retry_after > MAX_RETRY_AFTER:
            return True
        if started > self._began:
            if self._waits == MAX_WAITS:
                return True
            seconds = retry_after or min(2.0**self._waits, MAX_BACKOFF)
            self._waits, self._began = self._waits + 1, now
        elif not retry_after:
            return False
        else:
            seconds = retry_after
        self.until = max(self.until, now + seconds * random.uniform(1, 1 + JITTER))  # noqa: S311 (no secret)
        return False


class FailureCounter:
    """Counts consecutive requests that failed as a whole in the same way, such as all refused."""

    def __init__(self) -> None:
        self._kind = ""
        self._number = 0

    def count(self, kind: str) -> bool:
        """Count a request: a kind of failure, or empty for any other request. Return whether the run must stop."""
        self._number = self._number + 1 if kind == self._kind else 1
        self._kind = kind
        return bool(kind) and self._number >= FAILURES_IN_A_ROW


def canary_left(store: Store, settings: Settings, job: Job) -> int | None:
    """Return how many more recipients --canary allows; None if it is omitted, or if a person has resumed the job."""
    if settings.canary is None or settings.is_past_canary:
        return None
    return max(0, settings.canary - results.sent_to(store, job.number))


def exclusion_rules(settings: Settings, seconds: float) -> ExclusionRules:
    """Return the rules that leave out recipients: opt-outs, repeats, and --at-most. ``seconds`` is when it sends."""
    rules = ExclusionRules(settings.performs.channel, settings.again, time=int(seconds * 1000))
    if settings.at_most is None:
        return rules
    frequency = Frequency.parse(settings.at_most)
    since = int(frequency.since(seconds, settings.zone) * 1000)
    reason = f"reached the limit of {frequency}"
    return replace(rules, at_most=frequency.most, since=since, over_limit=reason)
