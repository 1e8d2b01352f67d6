"""Limits of a job: its rate, its budget, and failures in a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

from msgctl.errors import ConditionError, MsgctlError
from msgctl.jobs.model import Intent, RequestResult, Totals
from msgctl.outcomes.judge import ACCEPTED
from msgctl.phones import country_name, price_area
from msgctl.text import plural

REQUESTS_PER_SECOND = 5
"""Seconds of the rate that one request may use: one request more or less is then 2% of ten seconds."""

CATCH_UP = 0.1
"""Seconds of the rate that may be sent at once after a delay: 1% of ten seconds."""

FAILURES_IN_A_ROW = 5


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
    """Keeps a job within ``max_credits``, with a separate price for each country.

    The price in a country is known after the first charge there. Until then, only one request at a time, to one
    recipient, goes there. Afterwards, each message is assumed to cost as much as the most expensive one in its country,
    relative to the estimate. A charge of 0 is not a price: the service may report the price later, or never.
    """

    def __init__(self, max_credits: int, known: Mapping[str, tuple[Fraction | None, int]]) -> None:
        """``known`` contains each area's price (credits per estimated credit) and its estimated credits in doubt."""
        self.max_credits = max_credits
        self.excess: str | None = None
        """A description of how the limit was exceeded; only the first message to a country can exceed it."""
        self._prices = {area: max(Fraction(1), price) for area, (price, _) in known.items() if price}
        self._reserved = Counter({area: in_doubt for area, (_, in_doubt) in known.items()})
        self._first: int | None = None
        """The number of the request in flight to a country without a known price."""

    def reserve(self, intent: Intent) -> None:
        """Reserve the credits that the next request may cost."""
        areas = [price_area(phone) for phone in intent.phones] if intent.cost else []
        if any(area not in self._prices for area in areas):
            self._first = intent.number
        for area in areas:
            self._reserved[area] += intent.cost

    def release(self, intent: Intent) -> None:
        """Release the credits of a request that was withdrawn."""
        if intent.number == self._first:
            self._first = None
        for phone in intent.phones if intent.cost else ():
            self._reserved[price_area(phone)] -= intent.cost

    def learn(self, result: RequestResult, totals: Totals) -> None:
        """Count a charge, which ``totals`` already include. If it is not reported, the estimate counts."""
        intent = result.intent
        if intent.number == self._first:
            self._first = None
        if not intent.cost:
            return
        highest, country = 0, ""
        for phone, found in zip(intent.phones, result.outcomes, strict=True):
            area = price_area(phone)
            paid, in_doubt = result.charge(found)
            self._reserved[area] += in_doubt - intent.cost
            if paid and found.outcome == ACCEPTED:
                self._prices[area] = max(self._prices.get(area, Fraction(1)), Fraction(paid, intent.cost))
            if paid > highest:
                highest, country = paid, area
        if highest and totals.credits > self.max_credits and self.excess is None:
            where = f" to {country_name(country)}" if country.isalpha() else ""
            used = plural(totals.credits, "credit")
            self.excess = f"{used} used, more than --max-credits {self.max_credits}: a message{where} cost {highest}"

    def allows(self, cost: int, phones: Sequence[str], totals: Totals) -> int | None:
        """Return how many of the next recipients may share a request, each estimated at ``cost`` credits.

        Return None if this depends on a request in flight.
        """
        if not cost:
            return len(phones)
        left = self.max_credits - totals.credits - self._uncertain_credits()
        for number, phone in enumerate(phones):
            price = self._prices.get(price_area(phone))
            if price is None and number:
                return number
            if price is None and self._first is not None:
                return None
            left -= (price or 1) * cost
            if left < 0:
                return number
            if price is None:
                return 1
        return len(phones)

    def _uncertain_credits(self) -> Fraction:
        """Return the credits that requests in flight and requests without a reported charge may cost."""
        return sum((self._prices.get(area, Fraction(1)) * cost for area, cost in self._reserved.items()), Fraction(0))

    def used_up(self, totals: Totals) -> ConditionError:
        """Return the error that reports why the job stopped."""
        if self.excess:
            return ConditionError(f"Stopped: {self.excess}", reason="credit_limit")
        lost = int(self._uncertain_credits())
        doubtful = f", and up to {lost} more without a reported charge" if lost else ""
        used = f"{totals.credits} used{doubtful}"
        what = f"Stopped: the next request could exceed --max-credits {self.max_credits} ({used})"
        return ConditionError(what, reason="credit_limit")


class FailureCounter:
    """Counts consecutive requests that failed in the same way."""

    def __init__(self) -> None:
        self._kind: type[MsgctlError] | None = None
        self._number = 0

    def add(self, error: MsgctlError | None) -> bool:
        """Count the error of a request, None if it was accepted. Return whether the job must stop."""
        kind = type(error) if error else None
        self._number = self._number + 1 if kind is self._kind else 1
        self._kind = kind
        return kind is not None and self._number >= FAILURES_IN_A_ROW
