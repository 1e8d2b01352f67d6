"""The rows of a job's file: added during the import, read by reports."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from msgctl.outcomes.outcome import ACCEPTED, PENDING, SENDING, UNKNOWN
from msgctl.store.database import any_of, chunks, plain
from msgctl.store.jobs import import_lost
from msgctl.store.people import ALL
from msgctl.store.results import HasState
from msgctl.store.store import PAUSE, Store, pages


class NewContent(NamedTuple):
    """One of the different messages of a job: its number (from 1), parameters (JSON), digest, and segments per person.

    Without a digest, the message does not count for repeats.
    """

    number: int
    parameters: str
    digest: bytes | None
    cost: int


class NewRecipient(NamedTuple):
    """A row of the file: its line (from 1), phone, the number of its content, and the cells of the row (JSON).

    Without a content, nothing is sent: ``outcome`` is ``invalid`` or ``excluded``, and ``reason`` explains it.
    """

    line: int
    phone: str | None
    content: int | None
    columns: str | None = None
    outcome: str | None = None
    reason: str | None = None


WITHOUT_RESULT = """content IS NOT NULL AND (SELECT 1 FROM result
    WHERE result.job = recipient.job AND result.line = recipient.line AND attempt = ?) IS NULL"""
"""The condition of recipients who have no result of an attempt yet.

With NOT EXISTS, PostgreSQL compares all pairs of rows until it has statistics of a new job.
"""


class PendingMessages(NamedTuple):
    """A job's pending recipients who have opted out, and the messages of the others.

    ``segments`` is the sum over all messages, and ``least`` the segments of the shortest message.
    """

    opted_out: int
    messages: int
    segments: int
    least: int


def pending_messages(store: Store, job: int, channel: str) -> PendingMessages:
    """Count a job's pending messages, without people who have opted out of a channel, or of all."""
    query = f"""SELECT count(refused), count(*) - count(refused),
            coalesce(sum(CASE WHEN refused IS NULL THEN cost END), 0),
            coalesce(min(CASE WHEN refused IS NULL THEN cost END), 0)
        FROM content JOIN (
            SELECT number, (SELECT 1 FROM optout WHERE optout.phone = pending.phone AND channel {any_of((ALL, channel))}
                LIMIT 1) AS refused
            FROM (SELECT content AS number, phone FROM recipient WHERE job = ? AND {WITHOUT_RESULT}
                UNION ALL SELECT content, phone FROM result WHERE job = ? AND outcome = 'pending') AS pending
        ) AS checked ON checked.number = content.number WHERE content.job = ?"""
    return PendingMessages(*map(int, store.db.rows(query, (ALL, channel, job, 1, job, job))[0]))


@dataclass(slots=True)
class RecipientResult:
    """A recipient in a report, with its last attempt.

    The time is in milliseconds since 1970, and credits are millionths. ``parameters`` of the message and ``columns`` of
    the file are JSON.
    """

    line: int
    phone: str | None
    outcome: str
    time: int | None
    id: str | None
    status: str | None
    state: str | None
    credits: int | None
    error: str | None
    parameters: str | None
    columns: str | None


def add(store: Store, job: int, contents: Sequence[NewContent], rows: Sequence[NewRecipient]) -> None:
    """Add at most 1,000 rows and their contents in one transaction.

    A recipient whose phone is in an earlier line is stored as ``duplicate``. Raises StoreNotReachedError if the import
    was deleted.
    """
    with store.db.transaction(f"import {job}"):
        query = "UPDATE job SET updated = ? WHERE number = ? AND state = 'importing' AND removed IS NULL"
        if store.db.change(query, (store.now(), job)) != 1:
            raise import_lost(store)
        first = _lines(store, job, [row.phone for row in rows if row.content is not None and row.phone])
        stored = []
        for row in rows:
            line, phone, content, cells, outcome, reason = row
            if content is not None and phone is not None:
                earlier = first.setdefault(phone, line)
                if earlier != line:
                    content, outcome, reason = None, "duplicate", f"same number as line {earlier}"
            stored.append((job, line, plain(phone), content, outcome, plain(reason), plain(cells)))
        store.db.fill(
            "content",
            ("job", "number", "parameters", "digest", "cost"),
            [(job, number, plain(parameters), digest, cost) for number, parameters, digest, cost in contents],
        )
        columns = ("job", "line", "phone", "content", "outcome", "reason", "columns")
        store.db.fill("recipient", columns, stored)
    time.sleep(PAUSE)


def _lines(store: Store, job: int, phones: Sequence[str]) -> dict[str, int]:
    """Return the lines of phones that the job sends to.

    The join is in this order for SQLite, which would otherwise read all rows of the job for each thousand.
    """
    lines: dict[str, int] = {}
    for some in chunks(phones):
        given = ", ".join(["(?)"] * len(some))
        lines |= store.db.rows(
            f"""WITH given (phone) AS (VALUES {given}) SELECT recipient.phone, line FROM given CROSS JOIN recipient
            WHERE job = ? AND recipient.phone = given.phone AND content IS NOT NULL""",
            (*some, job),
        )
    return lines


def exclude(store: Store, job: int, phones: Iterable[str], reason: str) -> None:
    """Leave out recipients of a job that is being imported. Raises the errors of the store and of ``phones``."""
    for some in chunks(phones):
        with store.db.transaction(f"import {job}"):
            store.db.change(
                f"""UPDATE recipient SET content = NULL, outcome = 'excluded', reason = ?
                WHERE job = ? AND content IS NOT NULL AND phone {any_of(some)}""",
                (reason, job, *some),
            )


def excluded_later(store: Store, job: int, earlier: int) -> list[str]:
    """Return the phones that `exclude` left out of a job, and that are pending in an earlier job."""
    query = """SELECT old.phone FROM recipient AS new CROSS JOIN recipient AS old
        WHERE new.job = ? AND new.outcome = 'excluded' AND old.job = ? AND old.phone = new.phone
        AND old.content IS NOT NULL AND coalesce((SELECT outcome FROM result WHERE result.job = old.job
            AND result.line = old.line ORDER BY attempt DESC LIMIT 1), 'pending') = 'pending'"""
    return [phone for (phone,) in store.db.rows(query, (job, earlier))]


class FileRow(NamedTuple):
    """A row of the file of a new job, with its message and its own columns (both JSON).

    A row that is left out has an outcome and a reason, but no message. ``cost`` is the message's segments.
    """

    line: int
    phone: str | None
    outcome: str | None
    reason: str | None
    columns: str | None
    parameters: str | None
    digest: bytes | None
    cost: int

    @property
    def message(self) -> dict[str, Any]:
        """The parameters of its message."""
        return dict(json.loads(self.parameters or "{}"))


def file_rows(store: Store, job: int) -> Iterator[list[FileRow]]:
    """Yield all rows of the file of a new job by line, at most 1,000 together."""
    query = """SELECT line, phone, outcome, reason, columns, parameters, digest, coalesce(cost, 0) FROM recipient
        LEFT JOIN content ON content.job = recipient.job AND content.number = recipient.content
        WHERE recipient.job = ? AND line > ? ORDER BY line LIMIT ?"""
    for page in pages(store, query, (job,), (0,)):
        yield [*map(FileRow._make, page)]


_WITH_RESULTS = """SELECT recipient.line, recipient.phone, coalesce(recipient.outcome, result.outcome, 'pending'),
    result.time, result.id, status, state, credits, coalesce(recipient.reason, result.error), parameters, columns
    FROM recipient LEFT JOIN content ON content.job = recipient.job AND content.number = recipient.content
    LEFT JOIN result ON result.job = recipient.job AND result.line = recipient.line
    AND result.attempt = (SELECT max(attempt) FROM result AS newest
        WHERE newest.job = recipient.job AND newest.line = recipient.line)
    WHERE recipient.job = ? {condition} AND recipient.line > ? ORDER BY recipient.line LIMIT ?"""


def with_results(
    store: Store,
    job: int,
    *,
    outcomes: Collection[str] = (),
    has_state: HasState | None = None,
    is_running: bool = False,
) -> Iterator[RecipientResult]:
    """Yield the recipients of a job by line, 1,000 at a time, without an open cursor.

    ``outcomes`` select recipients, and ``has_state`` selects accepted recipients. A request in flight is ``pending``
    while the job is running, otherwise ``unknown``.
    """
    in_flight = PENDING if is_running else UNKNOWN
    wanted = {*outcomes}
    if in_flight in wanted:
        wanted.add(SENDING)
    read = {*wanted, ACCEPTED} if has_state else wanted
    condition = ""
    if read:
        condition = f"AND coalesce(recipient.outcome, result.outcome, 'pending') {any_of(read)}"
    for page in pages(store, _WITH_RESULTS.format(condition=condition), (job, *read), (0,)):
        for row in page:
            recipient = RecipientResult(*row)
            if has_state and recipient.outcome not in wanted and not has_state(recipient.state):
                continue
            if recipient.outcome == SENDING:
                recipient.outcome = in_flight
            yield recipient
