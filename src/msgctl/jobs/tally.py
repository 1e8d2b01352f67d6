"""Read and count the rows of a new job, with the people who would be left out now."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from msgctl.jobs.report import EXCLUSIONS
from msgctl.lists.faults import MAX_NAMED
from msgctl.outcomes.outcome import LEFT_OUT
from msgctl.phones import country_of
from msgctl.store import queue, recipients
from msgctl.store.queue import Exclusion, ExclusionRules
from msgctl.store.recipients import FileRow
from msgctl.store.store import Store


def with_exclusions(
    store: Store, job: int, account: str, rules: ExclusionRules
) -> Iterator[tuple[FileRow, Exclusion | None]]:
    """Yield every row of a new job, and the reason why a request would leave it out now, if any."""
    for page in recipients.file_rows(store, job):
        sendable = [row for row in page if row.outcome is None]
        exclusions, _ = queue.exclusions(store, job, account, rules, sendable, attrgetter("digest"))
        yield from ((row, exclusions.get(row.line)) for row in page)


@dataclass
class Tally:
    """The counts of a job before it is sent: recipients, people who would be left out now, and estimated credits.

    ``excluded`` counts people who would be left out, by the names in `EXCLUSIONS`. These are estimates: the transaction
    before each request decides. ``repeats_of`` are the numbers of the jobs that sent the same message. ``left_out``
    counts the rows with an outcome in `LEFT_OUT`; ``first_left_out`` are the first `MAX_NAMED` rows of each outcome.
    """

    messages: int = 0
    credits: int = 0
    countries: Counter[str] = field(default_factory=Counter)
    first: FileRow | None = None
    most_expensive: FileRow | None = None
    excluded: Counter[str] = field(default_factory=Counter)
    repeats_of: set[int] = field(default_factory=set)
    left_out: Counter[str] = field(default_factory=Counter)
    first_left_out: dict[str, list[FileRow]] = field(default_factory=lambda: {outcome: [] for outcome in LEFT_OUT})

    @classmethod
    def of(cls, store: Store, job: int, account: str, rules: ExclusionRules) -> Tally:
        """Count the messages that a job would send now."""
        total = cls()
        for row, exclusion in with_exclusions(store, job, account, rules):
            if row.outcome is not None:
                total.left_out[row.outcome] += 1
                total.keep_first(row.outcome, row)
            elif exclusion is not None:
                total.excluded[EXCLUSIONS.get(exclusion.reason, "over_limit")] += 1
                total.keep_first("excluded", row._replace(reason=exclusion.reason))
                if exclusion.repeats is not None:
                    total.repeats_of.add(exclusion.repeats)
            else:
                total.messages += 1
                total.credits += row.cost
                total.countries[country_of(row.phone) or "other"] += row.cost
                total.first = total.first or row
                if row.cost > (total.most_expensive or total.first).cost:
                    total.most_expensive = row
        return total

    def keep_first(self, outcome: str, row: FileRow) -> None:
        if len(self.first_left_out[outcome]) < MAX_NAMED:
            self.first_left_out[outcome].append(row)

    @property
    def numbers_left_out(self) -> dict[str, int]:
        """The numbers of invalid, duplicate and excluded rows; opt-outs, repeats and --at-most exclude rows, too."""
        numbers = {outcome: self.left_out[outcome] for outcome in LEFT_OUT}
        numbers["excluded"] += self.excluded.total()
        return numbers

    def document_left_out(self, outcome: str) -> list[dict[str, Any]]:
        """Return the first rows that were left out with an outcome, as JSON."""
        rows = self.first_left_out[outcome]
        return [{"line": row.line, "phone": row.phone, "reason": row.reason} for row in rows]
