"""What slows a job down or stops it: its rate, its budget, and failures in a row."""

from __future__ import annotations

from fractions import Fraction

from msgctl.errors import ConditionError, MsgctlError
from msgctl.jobs.spec import RequestResult, Totals, charged
from msgctl.recipients import ACCEPTED

REQUESTS_PER_SECOND = 5
"""A request has at most a fifth of a second's recipients: one more or less is 2% of ten seconds."""

CATCH_UP = 0.1
"""Seconds of the rate that may be caught up at once after a delay: 1% of ten seconds."""

FAILURES_IN_A_ROW = 5


class RateLimiter:
    """Allows ``rate`` recipients per second (None: any number), evenly.

    Times are those of a monotonic clock, in seconds, so setting the machine's clock changes nothing.
    """

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._next = 0.0

    def most(self, size: int) -> int:
        """Return how many of ``size`` recipients may share a request."""
        return size if self._rate is None else max(1, min(size, int(self._rate / REQUESTS_PER_SECOND)))

    def delay(self, now: float) -> float:
        """Return the seconds until the next request may be sent."""
        return max(0.0, self._next - now)

    def sent(self, size: int, now: float) -> None:
        """Count a request to so many recipients."""
        if self._rate is not None:
            self._next = max(self._next, now - CATCH_UP) + size / self._rate


class Budget:
    """Keeps a job within ``most`` credits (None: any number).

    The price of a message is known only after the first charge, so until then requests have one recipient and are sent
    one by one. After it each message is assumed to cost as much as the most expensive so far, relative to its estimate.
    """

    def __init__(self, most: int | None, price: Fraction | None = None) -> None:
        self.most = most
        self._is_known = price is not None
        self._price = max(Fraction(1), price or Fraction(1))

    def learn(self, result: RequestResult) -> None:
        """Count what was charged; if a response does not say, the estimate counts, as in the ledger."""
        cost = result.intent.cost
        prices = {each.credits for each in result.outcomes if each.outcome == ACCEPTED} if self.most is not None else ()
        highest = max((cost if (price := charged(text)) is None else price for text in prices), default=0)
        if cost and highest:
            self._price = max(self._price, Fraction(highest, cost))
            self._is_known = True

    def allows(self, cost: int, size: int, totals: Totals) -> int | None:
        """Return how many recipients the next request may have, up to ``size``, each estimated at ``cost`` credits.

        None until a request in flight has ended.
        """
        if self.most is None or not cost:
            return size
        if not self._is_known:
            if totals.promised:
                return None
            size = min(size, 1)
        left = self.most - totals.credits - self._price * (totals.lost + totals.promised)
        return min(size, max(0, int(left / (self._price * cost))))

    def used_up(self, totals: Totals) -> ConditionError:
        """Return the error that says why the job stopped."""
        lost = int(self._price * totals.lost)
        doubtful = f", and up to {lost} more for unknown ones" if lost else ""
        return ConditionError(
            f"Stopped: the next request could exceed --max-credits {self.most} ({totals.credits} used{doubtful})"
        )


class FailureCounter:
    """Counts requests that failed one after another in the same way."""

    def __init__(self) -> None:
        self._kind: type[MsgctlError] | None = None
        self._number = 0

    def add(self, error: MsgctlError | None) -> bool:
        """Count a request, None if it was accepted. Return whether it is time to stop."""
        kind = type(error) if error else None
        self._number = self._number + 1 if kind is self._kind else 1
        self._kind = kind
        return kind is not None and self._number >= FAILURES_IN_A_ROW
