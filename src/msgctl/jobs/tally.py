"""Count the messages of a job before it is sent, and the people who would be left out now."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, NamedTuple

from msgctl.jobs.report import EXCLUSIONS
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

    def document(self) -> dict[str, Any]:
        """Return the row as JSON."""
        own = {"line": self.line, "phone": self.phone, "segments": self.cost, "credits": self.cost}
        return {**own, **self.parameters}


@dataclass
class Tally:
    """The numbers of a job before it is sent: recipients, people who would be left out now, and estimated credits.

    ``excluded`` counts people who would be left out, by the names in `EXCLUSIONS`. These are estimates: the transaction
    before each request decides. ``repeats_of`` are the numbers of the jobs that sent the same message.
    """

    messages: int = 0
    credits: int = 0
    countries: Counter[str] = field(default_factory=Counter)
    first: Example | None = None
    most_expensive: Example | None = None
    excluded: Counter[str] = field(default_factory=Counter)
    repeats_of: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, store: Store, job: int, account: str, limits: queue.Limits) -> Tally:
        """Count the messages that a job would send now, by the rules that also apply to each request."""
        total = cls()
        first: Planned | None = None
        costly: Planned | None = None
        for page in recipients.planned(store, job):
            reasons, _ = queue.exclusions(store, job, account, limits, page, attrgetter("digest"))
            for row in page:
                if exclusion := reasons.get(row.line):
                    total.excluded[EXCLUSIONS.get(exclusion.reason, "over_limit")] += 1
                    if exclusion.repeats is not None:
                        total.repeats_of.add(exclusion.repeats)
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


def _example(store: Store, job: int, row: Planned) -> Example:
    parameters = json.loads(recipients.parameters(store, job, row.content))
    return Example(row.line, row.phone, parameters, row.cost)
