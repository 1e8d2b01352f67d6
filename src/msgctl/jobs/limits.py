"""What holds a job back: its rate, its budget, and failures in a row."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from msgctl.errors import ConditionError, MsgctlError
from msgctl.jobs.records import Entry, Totals

SHARE_OF_A_SECOND = 5
"""A request has at most a fifth of a second's recipients: one more or less is 2 % of ten seconds."""

CATCH_UP = 0.1
"""Seconds of the rate that are made good at once after a delay: 1 % of ten seconds."""

FAILURES_IN_A_ROW = 5


class Pace:
    """Lets ``rate`` recipients a second go (None: any number), evenly, so that every ten seconds have their share.

    Times are those of a monotonic clock, in seconds: setting the clock of the machine moves nothing.
    """

    def __init__(self, rate: float | None) -> None:
        self._rate = rate
        self._next = 0.0

    def most(self, size: int) -> int:
        """How many of ``size`` recipients may share a request."""
        return size if self._rate is None else max(1, min(size, int(self._rate / SHARE_OF_A_SECOND)))

    def delay(self, now: float) -> float:
        """Seconds until the next request may leave; none where that is now."""
        return 0.0 if self._rate is None else max(0.0, self._next - now)

    def took(self, size: int, now: float) -> None:
        """A request to so many recipients has left."""
        if self._rate is not None:
            self._next = max(self._next, now - CATCH_UP) + size / self._rate


class Budget:
    """Keeps a job within ``most`` credits (None: any number).

    What a message costs is only known when one was charged: until then requests have one recipient and leave one by
    one, and from then on each is taken for as dear as the dearest so far, measured in its estimate.
    """

    def __init__(self, most: int | None) -> None:
        self.most = most
        self._price = Fraction(1)
        self._is_known = False

    def learn(self, cost: int, entries: Iterable[Entry | None]) -> None:
        """Take note of what was charged for recipients whose estimate was ``cost`` credits each.

        Where an answer does not say, the estimate counts, as it does in the ledger.
        """
        charged = [cost if entry.charged is None else entry.charged for entry in entries if entry]
        if cost and charged and max(charged):
            self._price = max(self._price, Fraction(max(charged), cost))
            self._is_known = True

    def allows(self, cost: int, size: int, totals: Totals) -> int | None:
        """How many recipients the next request may have, up to ``size``, each at an estimate of ``cost`` credits.

        None while that has to wait for an answer.
        """
        if self.most is None or not cost:
            return size
        if not self._is_known:
            if totals.promised:
                return None
            size = 1
        left = self.most - totals.credits - self._price * (totals.doubtful + totals.promised)
        return min(size, max(0, int(left / (self._price * cost))))

    def used_up(self, totals: Totals) -> ConditionError:
        """Why nothing more may leave."""
        lost = int(self._price * totals.doubtful)
        doubtful = f", and up to {lost} for what is unknown" if lost else ""
        return ConditionError(
            f"the next request could pass --max-credits {self.most}: {totals.credits} were charged{doubtful}"
        )


class Failures:
    """Counts requests that failed one after the other in the same way."""

    def __init__(self) -> None:
        self._kind: type[MsgctlError] | None = None
        self._number = 0

    def add(self, fault: MsgctlError | None) -> bool:
        """Take note of a request that came to its end, None where it was accepted; true where it is time to stop."""
        kind = type(fault) if fault else None
        self._number = self._number + 1 if kind is self._kind else 1
        self._kind = kind
        return kind is not None and self._number >= FAILURES_IN_A_ROW
