"""Count the messages of a job before it is sent, and the people who would be left out now."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

from msgctl.phones import country_of
from msgctl.store import queue, recipients
from msgctl.store.recipients import Planned
from msgctl.store.store import Store


class Example(NamedTuple):
    """A row with its message: the parameters and the segments of each recipient."""

    line: int
    phone: str | None
    parameters: Mapping[str, Any]
    cost: int


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
            reasons, _ = queue.left_out(store, job, account, limits, page, attrgetter("digest"))
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

    def leave_out(self, recipient: queue.LeftOut) -> None:
        """Count a recipient who would be left out."""
        if recipient.reason == queue.OPTED_OUT:
            self.opted_out += 1
        elif recipient.repeats is not None:
            self.repeats += 1
            self.repeats_of.add(recipient.repeats)
        else:
            self.over_limit += 1


def _example(store: Store, job: int, row: Planned) -> Example:
    parameters = json.loads(recipients.parameters(store, job, row.content))
    return Example(row.line, row.phone, parameters, row.cost)
