"""Read the next recipients of a job in advance, and leave out opt-outs, repeats and people over --at-most."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from msgctl.store import people
from msgctl.store.database import any_of, chunks
from msgctl.store.jobs import Job
from msgctl.store.results import last_outcomes
from msgctl.store.store import Store

READ_AHEAD = 2000
"""Recipients that are read together."""
CONTENTS_TOGETHER = 100
"""Messages that are read together; each has up to 64 KiB."""
OPTED_OUT = "opted out"
REPEATED = "got the same message in the last 12 hours"


@dataclass(frozen=True, slots=True)
class Limits:
    """Rules for the next recipients: the channel of opt-outs, whether repeats are left out, and --at-most.

    No one gets more than ``at_most`` messages ``since`` a time (milliseconds since 1970); ``over_limit`` is the reason
    that the report shows.
    """

    channel: str
    again: bool = False
    ignore_optouts: bool = False
    at_most: int | None = None
    since: int = 0
    over_limit: str = "reached the limit of --at-most"


class Waiting(NamedTuple):
    """A recipient who is pending."""

    content: int
    line: int
    phone: str | None

    @property
    def place(self) -> tuple[int, int]:
        """The position in the order of sending."""
        return self.content, self.line


class Content(NamedTuple):
    """A message: its parameters (JSON), segments per recipient, and digest."""

    parameters: str
    cost: int
    digest: bytes | None


class Queue:
    """The pending recipients of a job, in the order of messages and lines.

    `begin` is called in each transaction: people are checked in the transaction that stores their intent.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._db = store.db
        self._checked: deque[Waiting] = deque()
        self._unchecked: deque[Waiting] = deque()
        self._read_to = (0, 0)
        self._contents: dict[int, Content] = {}

    def begin(self, job: Job, limits: Limits, wanted: int) -> None:
        """Begin a transaction that needs recipients for ``wanted`` requests."""
        self._job, self._limits, self._wanted = job, limits, max(1, wanted)
        self.changes: Counter[str] = Counter()
        self._unchecked.extendleft(reversed(self._checked))
        self._checked.clear()

    def restart(self) -> None:
        """Read from the beginning again: the transaction was not stored."""
        self._checked.clear()
        self._unchecked.clear()
        self._read_to = (0, 0)

    def go_back(self, content: int, line: int) -> None:
        """Continue from an earlier recipient, who is pending again."""
        places = [(content, line), *(each.place for each in (*self._checked, *self._unchecked))]
        first, position = min(places), self._read_to
        self.restart()
        self._read_to = min(position, (first[0], first[1] - 1))

    def next(self, size: int) -> int:
        """Return how many recipients of one message are next, at most ``size``; 0 if no recipient is pending."""
        while True:
            group = 0
            content = self._checked[0].content if self._checked else 0
            for each in self._checked:
                if each.content != content or group == size:
                    return group
                group += 1
            if group == size or not self._more(size - group):
                return group

    @property
    def first(self) -> Waiting:
        """The next recipient, after `next`."""
        return self._checked[0]

    def take(self, number: int) -> list[Waiting]:
        """Remove and return the next recipients."""
        return [self._checked.popleft() for _ in range(number)]

    def content(self, number: int) -> Content:
        """Return a message of the job."""
        if number not in self._contents:
            query = """SELECT number, parameters, cost, digest FROM content WHERE job = ? AND number >= ?
                ORDER BY number LIMIT ?"""
            rows = self._db.rows(query, (self._job.number, number, CONTENTS_TOGETHER))
            self._contents = {row[0]: Content(*row[1:]) for row in rows}
        return self._contents[number]

    def _more(self, size: int) -> bool:
        """Check more recipients for a group that may need ``size`` more. Return whether there are any."""
        if not self._unchecked and not self._read():
            return False
        if self._checked and self._unchecked[0].content != self._checked[0].content:
            return False
        rows: list[Waiting] = []
        requests, count = 0, 0
        for each in self._unchecked:
            if not rows or each.content != rows[-1].content or count == size:
                requests, count = requests + 1, 0
                if requests > self._wanted:
                    break
            count += 1
            rows.append(each)
        for _ in rows:
            self._unchecked.popleft()
        left_out = self._left_out(rows)
        if left_out:
            self._leave_out(left_out)
            rows = [row for row in rows if row not in left_out]
        self._checked.extend(rows)
        return True

    @property
    def attempt(self) -> int:
        """The attempt that is being sent: the first one, or the attempt of a resend."""
        return self._job.attempt if self._job.is_resending else 1

    def _read(self) -> bool:
        number, attempt = self._job.number, self.attempt
        query = """SELECT content, line, phone FROM result WHERE job = ? AND attempt = ? AND outcome = 'pending'
            AND (content, line) > (?, ?) ORDER BY content, line LIMIT ?"""
        # With NOT EXISTS, PostgreSQL compares all pairs of rows until it has statistics of a new job.
        if attempt == 1:
            query = """SELECT content, line, phone FROM recipient WHERE job = ? AND content IS NOT NULL
                AND (SELECT 1 FROM result
                    WHERE result.job = recipient.job AND result.line = recipient.line AND attempt = ?) IS NULL
                AND (content, line) > (?, ?) ORDER BY content, line LIMIT ?"""
        rows = self._db.rows(query, (number, attempt, *self._read_to, READ_AHEAD))
        self._unchecked.extend(map(Waiting._make, rows))
        if rows:
            self._read_to = self._unchecked[-1].place
        return bool(rows)

    # --- people to leave out

    def _left_out(self, rows: Sequence[Waiting]) -> dict[Waiting, str]:
        """Return who must not get the message now, with the reason."""
        limits = self._limits
        phones = [row.phone for row in rows if row.phone is not None]
        reasons: dict[Waiting, str] = {}
        if not limits.ignore_optouts:
            refused = people.opted_out(self._store, phones, limits.channel)
            reasons |= {row: OPTED_OUT for row in rows if row.phone in refused}
        if not limits.again and self.attempt == 1:
            earlier = people.repeats(self._store, self._job.account, phones, besides=self._job.number)
            repeated = {(each.phone, each.digest) for each in earlier}
            for row in rows:
                if repeated and (row.phone, self.content(row.content).digest) in repeated:
                    reasons.setdefault(row, REPEATED)
        if limits.at_most is not None:
            numbers = people.messages_since(self._store, self._job.account, phones, limits.since)
            for row in rows:
                if row.phone is not None and numbers.get(row.phone, 0) >= limits.at_most:
                    reasons.setdefault(row, limits.over_limit)
        return reasons

    def _leave_out(self, reasons: dict[Waiting, str]) -> None:
        """Store that people are left out. In a resend, they keep the earlier outcome."""
        number, now = self._job.number, self._store.now()
        self.changes["pending"] -= len(reasons)
        if self.attempt == 1:
            self.changes["excluded"] += len(reasons)
            self._db.insert(
                "INSERT INTO result (job, line, attempt, content, phone, time, request, outcome, error)",
                [
                    (number, row.line, 1, row.content, row.phone, now, 0, "excluded", why)
                    for row, why in reasons.items()
                ],
            )
            return
        for lines in chunks(row.line for row in reasons):
            self._db.change(
                f"DELETE FROM result WHERE job = ? AND attempt = ? AND line {any_of(lines)}",
                (number, self.attempt, *lines),
            )
            self.changes.update(last_outcomes(self._db, number, lines))
