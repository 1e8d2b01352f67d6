"""Intents and outcomes of requests in the table ``result``, and the counts of a job, which must match its rows."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from msgctl.errors import MsgctlError
from msgctl.outcomes.outcome import ACCEPTED, LEFT_OUT, PENDING, REFUSED, SENDING, UNKNOWN, Outcome
from msgctl.phones import country_of
from msgctl.store.database import Database, any_of, chunks, plain
from msgctl.store.jobs import Job
from msgctl.store.store import Store, pages
from msgctl.text import clean

QUARTER = 900_000
"""Milliseconds of a quarter of an hour: days begin at a multiple of it in every time zone."""
ENDED_EARLY = "msgctl ended before the response arrived"

NEWEST = """((SELECT attempt FROM job WHERE number = result.job) = 1
    OR attempt = (SELECT max(attempt) FROM result AS newest
        WHERE newest.job = result.job AND newest.line = result.line))"""
"""The condition that selects the last attempt of each recipient. Without a resend there is only one attempt; this case
is checked first, because it takes a quarter of the time.
"""

RESULT_COLUMNS = "job, line, attempt, content, phone, time, request, outcome, id, status, credits, error"
"""The columns of a result with an outcome; the delivery state arrives later."""
INTENT_LIFE = 0.8
"""An intent may be sent this many seconds after the opt-outs were read, so an opt-out takes effect within a second."""


class Intent(NamedTuple):
    """A request that is about to be sent to the recipients in ``lines``, with their ``phones``.

    ``parameters`` belong to the message (JSON), and ``cost`` is its segments per recipient. It may be sent until
    ``expires``, a time of `msgctl.store.store.boot_time`. ``time`` is in milliseconds since 1970.
    """

    request: int
    attempt: int
    content: int
    parameters: str
    cost: int
    lines: Sequence[int]
    phones: Sequence[str | None]
    time: int
    expires: float

    @property
    def segments(self) -> int:
        """The segments of the whole request."""
        return self.cost * len(self.lines)


class RequestOutcome(NamedTuple):
    """The outcomes of a request in the order of its lines. Without ``rows``, it was not sent.

    ``error`` is its error, which the store does not keep. ``started`` is when it began, on the monotonic clock.
    """

    intent: Intent
    rows: Sequence[Outcome] = ()
    started: float = 0.0
    error: MsgctlError | None = None

    @property
    def failure(self) -> str:
        """How the request failed as a whole: ``refused`` or ``unknown``; otherwise empty."""
        outcomes = {row.outcome for row in self.rows}
        if len(outcomes) != 1 or ACCEPTED in outcomes:
            return ""
        return outcomes.pop()


def intend(db: Database, job: int, intents: Iterable[Intent]) -> None:
    """Store the intents of requests. Called in a transaction."""
    rows = [
        (job, line, intent.attempt, intent.content, phone, intent.time, intent.request, SENDING)
        for intent in intents
        for line, phone in zip(intent.lines, intent.phones, strict=True)
    ]
    ending = ""  # a row that exists already is an error of the primary key
    if rows and rows[0][2] > 1:
        ending = """ON CONFLICT (job, line, attempt) DO UPDATE SET outcome = 'sending', time = excluded.time,
        request = excluded.request WHERE result.outcome = 'pending'"""
    db.insert_all(
        "INSERT INTO result (job, line, attempt, content, phone, time, request, outcome)", rows, ending=ending
    )


def record(db: Database, job: int, results: Sequence[RequestOutcome]) -> Counter[str]:
    """Store the outcomes of requests whose intents are stored. Called in a transaction.

    Return the changes of the job's counts and credits.
    """
    rows = [
        (
            *(job, line, intent.attempt, intent.content, phone, intent.time, intent.request),
            *(row.outcome, plain(row.id), plain(row.status), row.credits, plain(row.error)),
        )
        for intent, outcomes, *_ in results
        for line, phone, row in zip(intent.lines, intent.phones, outcomes, strict=True)
    ]
    db.insert_all(
        f"INSERT INTO result ({RESULT_COLUMNS})",
        rows,
        ending="""ON CONFLICT (job, line, attempt) DO UPDATE SET outcome = excluded.outcome, id = excluded.id,
        status = excluded.status, credits = excluded.credits, error = excluded.error
        WHERE result.request = excluded.request AND result.outcome = 'sending'""",
    )
    _add_to_usage(db, job, results)
    changes: Counter[str] = Counter()
    for result in results:
        changes[SENDING] -= len(result.rows)
        changes["credits"] += sum([row.credits or 0 for row in result.rows])
        changes.update([row.outcome for row in result.rows])
    return changes


def record_late(db: Database, job: int, results: Sequence[RequestOutcome]) -> None:
    """Store outcomes of requests that another process has marked as unknown. Called in a transaction.

    Each is stored only if its row still has that request, so that it never overwrites a newer attempt.
    """
    changes: Counter[str] = Counter()
    for intent, outcomes, *_ in results:
        for line, phone, row in zip(intent.lines, intent.phones, outcomes, strict=True):
            changed = db.change(
                """UPDATE result SET outcome = ?, id = ?, status = ?, credits = ?, error = ?
                WHERE job = ? AND line = ? AND attempt = ? AND request = ? AND outcome = 'unknown' AND error = ?""",
                (
                    *(row.outcome, plain(row.id), plain(row.status), row.credits, plain(row.error)),
                    *(job, line, intent.attempt, intent.request, ENDED_EARLY),
                ),
            )
            if not changed:
                continue
            _add_to_usage(db, job, [RequestOutcome(intent._replace(lines=[line], phones=[phone]), [row])])
            changes["credits"] += row.credits or 0
            if db.value("SELECT max(attempt) FROM result WHERE job = ? AND line = ?", (job, line)) == intent.attempt:
                changes[UNKNOWN] -= 1
                changes[row.outcome] += 1
    add_to_counts(db, job, changes)


def give_back(db: Database, job: int, intent: Intent) -> int:
    """Make the recipients of a request that was certainly not sent pending again; return how many."""
    given_back = 0
    change = "UPDATE result SET outcome = 'pending', request = 0"
    if intent.attempt == 1:
        change = "DELETE FROM result"  # no row means pending
    for lines in chunks(intent.lines):
        given_back += db.change(
            f"{change} WHERE job = ? AND line {any_of(lines)} AND attempt = ? AND request = ? AND outcome = 'sending'",
            (job, *lines, intent.attempt, intent.request),
        )
    return given_back


def is_sending(db: Database, job: int, intent: Intent) -> bool:
    """Return whether the outcome of a request is not stored yet."""
    query = "SELECT 1 FROM result WHERE job = ? AND line = ? AND attempt = ? AND request = ? AND outcome = 'sending'"
    return db.row(query, (job, min(intent.lines), intent.attempt, intent.request)) is not None


def sent_to(store: Store, job: int) -> int:
    """Return how many recipients a job has sent to, whatever the outcome, or is sending to."""
    return int(store.db.value("SELECT count(*) FROM result WHERE job = ? AND attempt = 1 AND request > 0", (job,)))


def was_refused(store: Store, job: Job) -> bool:
    """Return whether the recipients of a resend were refused."""
    query = """SELECT 1 FROM result JOIN result AS earlier ON earlier.job = result.job AND earlier.line = result.line
        WHERE result.job = ? AND result.attempt = ? AND result.outcome = 'pending'
        AND earlier.attempt < result.attempt AND earlier.outcome = 'refused' LIMIT 1"""
    return store.db.row(query, (job.number, job.attempt)) is not None


def common_refusal(store: Store, job: Job) -> str:
    """Return why all recipients of a job were refused; empty if some were not, or if the reasons differ."""
    if not job.refused or job.refused != job.sendable:
        return ""
    query = f"SELECT DISTINCT error FROM result WHERE job = ? AND outcome = ? AND {NEWEST} LIMIT 2"
    reasons = store.db.rows(query, (job.number, REFUSED))
    return clean(reasons[0][0] or "") if len(reasons) == 1 else ""


def lose(db: Database, job: int) -> None:
    """Mark all requests in flight as unknown: no process waits for their responses. Called in a transaction."""
    lost = db.change(
        "UPDATE result SET outcome = 'unknown', error = ? WHERE job = ? AND outcome = 'sending'", (ENDED_EARLY, job)
    )
    add_to_counts(db, job, Counter(sending=-lost, unknown=lost))


def add_to_counts(db: Database, job: int, changes: Counter[str]) -> None:
    """Add to the counts of a job, by column. Called in the transaction that changes the rows."""
    columns, values = additions(changes)
    if columns:
        db.defer(f"UPDATE job SET {', '.join(columns)} WHERE number = ?", (*values, job))


def additions(changes: Counter[str]) -> tuple[list[str], list[int]]:
    """Return the assignments of an UPDATE that adds to the counts of a job, and their values."""
    used = {name: number for name, number in changes.items() if number}
    return [f"{name} = {name} + ?" for name in used], [*used.values()]


def _add_to_usage(db: Database, job: int, results: Sequence[RequestOutcome]) -> None:
    """Add the messages and credits of new outcomes to the sums of a job. Called in the transaction that stores them."""
    sums: defaultdict[tuple[int, str], list[int]] = defaultdict(lambda: [0, 0])
    for result in results:
        intent = result.intent
        time = intent.time // QUARTER * QUARTER
        for phone, row in zip(intent.phones, result.rows, strict=True):
            if row.outcome == ACCEPTED or row.credits:
                total = sums[time, country_of(phone) or ""]
                total[0] += row.outcome == ACCEPTED
                total[1] += row.credits or 0
    db.insert_all(
        "INSERT INTO usage (job, time, country, messages, credits)",
        [(job, *key, *total) for key, total in sums.items()],
        ending="""ON CONFLICT (job, time, country) DO UPDATE SET messages = usage.messages + excluded.messages,
        credits = usage.credits + excluded.credits""",
    )


def last_outcomes(db: Database, job: int, lines: Collection[int] | None = None) -> dict[str, int]:
    """Count recipients by the outcome of their last attempt, for some lines or all."""
    condition, values = "", [job]
    if lines is not None:
        condition = f"AND line {any_of(lines)}"
        values += lines
    query = f"SELECT outcome, count(*) FROM result WHERE job = ? AND {NEWEST} {condition} GROUP BY outcome"
    return dict(db.rows(query, values))


def of_attempt(store: Store, job: Job) -> Counter[str]:
    """Count the recipients of a job's last attempt by outcome."""
    query = "SELECT outcome, count(*) FROM result WHERE job = ? AND attempt = ? GROUP BY outcome"
    return Counter(dict(store.db.rows(query, (job.number, job.attempt))))


def undo_resend(db: Database, job: int, attempt: int, lines: Sequence[int]) -> Counter[str]:
    """Delete rows of a resend that are pending: their recipients keep the earlier outcome. Called in a transaction.

    Return the changes of the job's counts.
    """
    changes = Counter(pending=-len(lines))
    for chunk in chunks(lines):
        query = f"DELETE FROM result WHERE job = ? AND attempt = ? AND line {any_of(chunk)}"
        db.change(query, (job, attempt, *chunk))
        changes.update(last_outcomes(db, job, chunk))
    return changes


def end_resend(db: Database, job: Job) -> None:
    """End a resend: recipients that it has not reached keep the earlier outcome. Called in a transaction."""
    open_rows = db.rows(
        "SELECT line FROM result WHERE job = ? AND attempt = ? AND outcome = 'pending'", (job.number, job.attempt)
    )
    add_to_counts(db, job.number, undo_resend(db, job.number, job.attempt, [line for (line,) in open_rows]))
    db.change("UPDATE job SET is_resending = 0 WHERE number = ?", (job.number,))


def check_counts(store: Store, job: Job) -> None:
    """Compare the counts of a job with its rows. Raises ConfigurationError (``damaged_store``) if they differ."""
    db = store.db
    query = "SELECT coalesce(outcome, 'pending'), count(*) FROM recipient WHERE job = ? GROUP BY 1"
    counts = Counter[str](dict(db.rows(query, (job.number,))))
    for outcome, number in last_outcomes(db, job.number).items():
        counts[outcome] += number
        counts[PENDING] -= number
    for name in (*LEFT_OUT, PENDING, SENDING, ACCEPTED, REFUSED, UNKNOWN):
        if counts[name] != getattr(job, name):
            raise db.damaged(f"job {job.id} has {counts[name]} recipients that are {name}, not {getattr(job, name)}")


class Charges(NamedTuple):
    """A job's accepted messages, the segments of accepted messages without a charge, and its unknown segments."""

    accepted: int
    uncharged: int
    unknown: int


def charges(store: Store, job: int) -> Charges:
    """Return the charges of all attempts, which the limit of credits adds to the credits of a job."""
    (row,) = store.db.rows(
        """SELECT sum(CASE WHEN outcome = 'accepted' THEN 1 ELSE 0 END),
        sum(CASE WHEN outcome = 'accepted' AND coalesce(credits, 0) = 0 THEN cost ELSE 0 END),
        sum(CASE WHEN outcome = 'unknown' AND coalesce(credits, 0) = 0 THEN cost ELSE 0 END)
        FROM result JOIN content ON content.job = result.job AND content.number = result.content
        WHERE result.job = ? AND request > 0""",
        (job,),
    )
    return Charges(*(int(number or 0) for number in row))


# --- delivery states

HasState = Callable[[str | None], bool]
"""Whether an accepted message is selected, by its delivery state.

A statement cannot do this: if states contain a time, a job has as many states as messages.
"""


class Sent(NamedTuple):
    """A message that was accepted, with the newest delivery state that is known."""

    line: int
    id: str
    phone: str | None
    state: str | None


def accepted(store: Store, job: int) -> Iterator[Sent]:
    """Yield the accepted messages of a job that have an ID, by line, 1,000 at a time."""
    query = f"""SELECT line, id, phone, state FROM result WHERE job = ? AND outcome = 'accepted'
        AND id IS NOT NULL AND {NEWEST} AND line > ? ORDER BY line LIMIT ?"""
    for page in pages(store, query, (job,), (0,)):
        yield from map(Sent._make, page)


def state_counts(store: Store, job: int) -> dict[str | None, int]:
    """Count the accepted messages of a job that have an ID by delivery state. None means an unknown state."""
    query = f"""SELECT state, count(*) FROM result WHERE job = ? AND outcome = 'accepted' AND id IS NOT NULL
        AND {NEWEST} GROUP BY state"""
    return dict(store.db.rows(query, (job,)))


def without_id(store: Store, job: int) -> int:
    """Count the accepted messages of a job that have no ID, so their states cannot be polled."""
    query = f"SELECT count(*) FROM result WHERE job = ? AND outcome = 'accepted' AND id IS NULL AND {NEWEST}"
    return int(store.db.value(query, (job,)))


def exclusion_counts(store: Store, job: int) -> dict[str, int]:
    """Count the recipients that a job left out while it was sending, by reason."""
    query = "SELECT error, count(*) FROM result WHERE job = ? AND outcome = 'excluded' GROUP BY error"
    return dict(store.db.rows(query, (job,)))


def phones_of(store: Store, account: str, id_: str) -> list[str | None]:
    """Return the recipients that share an ID; None is a recipient whose number is not known."""
    query = """SELECT DISTINCT phone FROM result WHERE id = ?
        AND job IN (SELECT number FROM job WHERE account = ?)"""
    return [phone for (phone,) in store.db.rows(query, (plain(id_), account))]


def store_states(store: Store, account: str, states: Iterable[tuple[str, str | None, str]]) -> None:
    """Store the newest delivery states: id, phone (None for all recipients who share the id) and state."""
    for chunk in chunks(states):
        with store.db.transaction(account):
            for id_, phone, state in chunk:
                condition, values = "", []
                if phone is not None:
                    condition, values = "AND phone = ?", [phone]
                store.db.change(
                    f"""UPDATE result SET state = ? WHERE id = ? {condition}
                    AND job IN (SELECT number FROM job WHERE account = ?)""",
                    (plain(state), plain(id_), *values, account),
                )
