"""Read the next recipients of a job, and leave out opt-outs, repeats and people over --at-most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from msgctl.store import people
from msgctl.store.jobs import Job
from msgctl.store.recipients import WITHOUT_RESULT, FileRow
from msgctl.store.results import undo_resend
from msgctl.store.store import Store, boot_time

MAX_PAGE = 1000
"""Maximum recipients read together."""
MAX_LEFT_OUT = 2000
"""People whom a transaction leaves out before it ends, so that other processes get their turn."""
CONTENTS_TOGETHER = 100
"""Messages read together; each has up to 64 KiB."""
OPTED_OUT = "opted out"
REPEATED = "got the same message in the last 12 hours"


@dataclass(frozen=True, slots=True)
class ExclusionRules:
    """Rules for the next recipients: the channel of opt-outs, whether repeats are left out, and --at-most.

    No one gets more than ``at_most`` messages ``since`` a time (milliseconds since 1970); ``over_limit`` is the reason
    that the report shows. ``time`` is when the messages are sent, in milliseconds since 1970; None is now.
    """

    channel: str
    again: bool = False
    at_most: int | None = None
    since: int = 0
    over_limit: str = "reached the limit of --at-most"
    time: int | None = None


class PendingRecipient(NamedTuple):
    """A recipient who is pending."""

    content: int
    line: int
    phone: str | None


class Exclusion(NamedTuple):
    """Why a recipient must not get the message now, and the number of the job that sent it already, if any."""

    reason: str
    repeats: int | None = None


Pending = TypeVar("Pending", PendingRecipient, FileRow)


def exclusions(
    store: Store,
    job: int,
    account: str,
    rules: ExclusionRules,
    recipients: Sequence[Pending],
    digest_of: Callable[[Pending], bytes | None],
) -> tuple[dict[int, Exclusion], float]:
    """Return the recipients of a job who must not get the message now, by line.

    Also return when the opt-outs were read, on the clock of `boot_time`. ``digest_of`` returns the digest of a
    recipient's message.
    """
    phones = [recipient.phone for recipient in recipients if recipient.phone]
    reasons: dict[int, Exclusion] = {}
    if rules.at_most is not None:
        numbers = people.messages_since(store, account, phones, rules.since)
        for recipient in recipients:
            if numbers.get(recipient.phone or "", 0) >= rules.at_most:
                reasons[recipient.line] = Exclusion(rules.over_limit)
    if not rules.again and (repeats := people.repeats(store, account, phones, besides=job, time=rules.time)):
        for recipient in recipients:
            key = recipient.phone or "", digest_of(recipient) or b""
            if key in repeats:
                reasons[recipient.line] = Exclusion(REPEATED, repeats[key])
    # Last, because an intent is valid for less than a second after this.
    checked = boot_time()
    refused = people.opted_out(store, phones, rules.channel)
    reasons |= {recipient.line: Exclusion(OPTED_OUT) for recipient in recipients if recipient.phone in refused}
    return reasons, checked


class QueuedMessage(NamedTuple):
    """A message: its parameters (JSON), segments per recipient, and digest."""

    parameters: str
    cost: int
    digest: bytes | None


class Queue:
    """The pending recipients of a job, in the order of messages and lines.

    They are read and checked in the transaction that stores their intents. Between two transactions, only the position
    of the last recipient is kept.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._db = store.db
        self._position = (0, 0)
        self._used = 0
        self._contents: dict[int, QueuedMessage] = {}

    def begin(self, job: Job, rules: ExclusionRules, wanted: int) -> None:
        """Begin a transaction that needs recipients for ``wanted`` requests.

        ``checked`` is when it reads the opt-outs, on the clock of `boot_time`.
        """
        self._job, self._rules, self.attempt = job, rules, 1
        if job.is_resending:
            self._rules, self.attempt = replace(rules, again=True), job.attempt
        self.checked = float("inf")
        self.changes: Counter[str] = Counter()
        self._left_out = 0
        self._page: list[tuple[PendingRecipient, Exclusion | None]] = []
        self._read_to = self._position
        # At least one recipient for each request, or as many as the last batch used. One more shows whether the next
        # recipient gets the same message.
        self._size, self._used = max(wanted, self._used) + 1, 0

    def go_back(self, content: int, line: int) -> None:
        """Continue from an earlier recipient, who is pending again. Called before `next`."""
        self._read_to = self._position = min(self._position, (content, line - 1))

    @property
    def is_full(self) -> bool:
        """Whether this transaction has left out its maximum of people. The next one reads further."""
        return self._left_out >= MAX_LEFT_OUT

    def next(self, size: int) -> list[PendingRecipient]:
        """Return the next recipients of one message, at most ``size``.

        It is empty if no recipient is pending, or if the transaction `is_full`.
        """
        while True:
            group: list[PendingRecipient] = []
            for row, left_out in self._page:
                if left_out:
                    continue
                if group and row.content != group[0].content:
                    return group
                group.append(row)
                if len(group) == size:
                    return group
            if not group:  # now, so that the page does not grow
                self._pass(len(self._page))
            if self.is_full or not self._read():
                return group

    def take(self, row: PendingRecipient) -> None:
        """Continue after a recipient of `next`. People before this recipient who must get nothing are left out now."""
        self._pass(self._page.index((row, None)) + 1)

    def content(self, number: int) -> QueuedMessage:
        """Return a message of the job."""
        if number not in self._contents:
            query = """SELECT number, parameters, cost, digest FROM content WHERE job = ? AND number >= ?
                ORDER BY number LIMIT ?"""
            rows = self._db.rows(query, (self._job.number, number, CONTENTS_TOGETHER))
            self._contents = {row[0]: QueuedMessage(*row[1:]) for row in rows}
        return self._contents[number]

    def _read(self) -> bool:
        """Read and check more recipients. Return whether there are any."""
        query = """SELECT content, line, phone FROM result WHERE job = ? AND attempt = ? AND outcome = 'pending'
            AND (content, line) > (?, ?) ORDER BY content, line LIMIT ?"""
        if self.attempt == 1:
            query = f"""SELECT content, line, phone FROM recipient WHERE job = ? AND {WITHOUT_RESULT}
                AND (content, line) > (?, ?) ORDER BY content, line LIMIT ?"""
        size = min(self._size, MAX_PAGE)
        rows = [
            *map(PendingRecipient._make, self._db.rows(query, (self._job.number, self.attempt, *self._read_to, size)))
        ]
        if not rows:
            return False
        self._size *= 2
        self._read_to = rows[-1][:2]
        job = self._job
        reasons, checked = exclusions(self._store, job.number, job.account, self._rules, rows, self._digest)
        self.checked = min(self.checked, checked)
        self._left_out += len(reasons)
        self._page += [(row, reasons.get(row.line)) for row in rows]
        return True

    def _digest(self, row: PendingRecipient) -> bytes | None:
        return self.content(row.content).digest

    def _pass(self, number: int) -> None:
        """Continue after some rows of the page. Store that people are left out; in a resend, they keep the outcome."""
        if not number:
            return
        passed, self._page = self._page[:number], self._page[number:]
        self._position = passed[-1][0][:2]
        self._used += number
        reasons = [(row, left_out.reason) for row, left_out in passed if left_out]
        job, now = self._job.number, self._store.now()
        if self.attempt > 1:
            self.changes.update(undo_resend(self._db, job, self.attempt, [row.line for row, _ in reasons]))
            return
        self.changes.update(pending=-len(reasons), excluded=len(reasons))
        self._db.insert_all(
            "INSERT INTO result (job, line, attempt, content, phone, time, request, outcome, error)",
            [(job, row.line, 1, row.content, row.phone, now, 0, "excluded", reason) for row, reason in reasons],
        )
