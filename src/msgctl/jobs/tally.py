"""Count the messages of a job before it is sent, and the people who would be left out now."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msgctl.phones import country_of
from msgctl.store import people, queue, recipients
from msgctl.store.recipients import Planned
from msgctl.store.store import Store


class Example(NamedTuple):
    """A row with its message: the parameters and the segments of each recipient."""

    line: int
    phone: str | None
    parameters: Mapping[str, Any]
    cost: int


class LeftOutNow(NamedTuple):
    """Why a recipient would not get the message now, and the number of the job that sent it already, if any."""

    reason: str
    repeats: int | None = None


@dataclass
class Tally:
    """The numbers of a job before it is sent: recipients, people who would be left out now, and estimated credits.

    The counts of people who opted out, of repeats and of people over the limit are estimates: the transaction before
    each request decides. ``repeats_of`` are the numbers of the jobs that sent the same message.
    """

    messages: int = 0
    credits: int = 0
    countries: Counter[str] = field(default_factory=Counter)
    first: Example | None = None
    most_expensive: Example | None = None
    opted_out: int = 0
    repeats: int = 0
    over_limit: int = 0
    repeats_of: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, store: Store, job: int, account: str, limits: queue.Limits) -> Tally:
        """Count the messages that a job would send now, by the rules that also apply to each request."""
        total = cls()
        first: Planned | None = None
        costly: Planned | None = None
        for page in recipients.planned(store, job):
            reasons = left_out_now(store, job, page, account, limits)
            for row in page:
                if row.line in reasons:
                    total.leave_out(reasons[row.line])
                    continue
                total.messages += 1
                total.credits += row.cost
                total.countries[country_of(row.phone) or "other"] += row.cost
                first = first or row
                if row.cost > (costly or first).cost:
                    costly = row
        total.first = first and _example(store, job, first)
        total.most_expensive = costly and _example(store, job, costly)
        return total

    @property
    def left_out(self) -> int:
        """How many recipients would be left out."""
        return self.opted_out + self.repeats + self.over_limit

    def leave_out(self, recipient: LeftOutNow) -> None:
        """Count a recipient who would be left out."""
        if recipient.reason == queue.OPTED_OUT:
            self.opted_out += 1
        elif recipient.repeats is not None:
            self.repeats += 1
            self.repeats_of.add(recipient.repeats)
        else:
            self.over_limit += 1


def left_out_now(
    store: Store, job: int, page: Sequence[Planned], account: str, limits: queue.Limits
) -> dict[int, LeftOutNow]:
    """Return the recipients of a page who would not get the message now, by line."""
    phones = {row.phone for row in page if row.phone}
    opted_out = people.opted_out(store, phones, limits.channel)
    repeated = {}
    if not limits.again:
        repeats = people.repeats(store, account, phones, besides=job)
        repeated = {(repeat.phone, repeat.digest): repeat.job for repeat in repeats}
    numbers = {}
    if limits.at_most is not None:
        numbers = people.messages_since(store, account, phones, limits.since)
    reasons = {}
    for row in page:
        phone = row.phone or ""
        if phone in opted_out:
            reasons[row.line] = LeftOutNow(queue.OPTED_OUT)
        elif row.digest is not None and (phone, row.digest) in repeated:
            reasons[row.line] = LeftOutNow(queue.REPEATED, repeated[phone, row.digest])
        elif limits.at_most is not None and numbers.get(phone, 0) >= limits.at_most:
            reasons[row.line] = LeftOutNow(limits.over_limit)
    return reasons


def _example(store: Store, job: int, row: Planned) -> Example:
    parameters = json.loads(recipients.parameters(store, job, row.content))
    return Example(row.line, row.phone, parameters, row.cost)
