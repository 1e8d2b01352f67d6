"""The owner of a job: take a job, take it over from a process that died, stop it, cancel it, resend in it.

The epoch of a job grows whenever a process takes it. Every transaction of an owner begins with a check of the epoch. So
a process that has lost its job writes and sends nothing more (see `msgctl.store.batches`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from msgctl.errors import Hint, UsageError
from msgctl.outcomes.outcome import ACCEPTED, PENDING, SENDING, UNKNOWN
from msgctl.store import jobs, results
from msgctl.store.batches import OwnedJob
from msgctl.store.database import any_of
from msgctl.store.jobs import ONLY_RESEND, Job
from msgctl.store.lifecycle import Command, changed_elsewhere, check_allowed
from msgctl.store.results import NEWEST, HasState
from msgctl.store.schema import ENDED
from msgctl.store.store import Store, pages


@contextmanager
def _changing(store: Store, number: int) -> Iterator[Job]:
    """Begin a transaction that changes a job, check whether its owner is alive, and yield the job."""
    account = store.db.value("SELECT account FROM job WHERE number = ?", (number,))
    with store.db.transaction(str(account)):
        # PostgreSQL locks the row: a removal, which has another lock, comes before this transaction or after it.
        store.db.change("UPDATE job SET epoch = epoch WHERE number = ?", (number,))
        yield jobs.get(store, number)


def take(
    store: Store, number: int, command: Command = "resume", settings: str | None = None, *, expected: str | None = None
) -> OwnedJob:
    """Become the owner of a job that no other process runs, perhaps with new settings (JSON), and return it.

    ``expected`` are the settings that the new ones change: another process may have changed them, too. A scheduled job
    stays scheduled while it runs, so that run-due continues it after a kill. Requests that an earlier owner left in
    flight become unknown. Raises ConditionError, and UsageError if it was cancelled.
    """
    db = store.db
    owner = store.owner  # its lock is held before other processes can see it
    db.limit_idle(True)
    with _changing(store, number) as job:
        check_allowed(job, command)
        if command == "resend" and not job.is_resending:  # a person confirmed only its recipients
            raise changed_elsewhere(job, "its resend has ended")
        if settings is not None and expected not in (None, job.settings):  # such as a lower limit of credits
            raise changed_elsewhere(job, "its settings are different now")
        state = "scheduled" if job.state == "scheduled" else "active"
        is_resending, now = job.is_resending, store.now()
        if command in ("bulk", "resume"):
            is_resending = min(is_resending, 1)
        db.change(
            """UPDATE job SET owner = ?, machine = ?, epoch = epoch + 1, state = ?, stopping = NULL, ending = '',
            is_resending = ?, settings = coalesce(?, settings), begun = coalesce(begun, ?), updated = ?
            WHERE number = ?""",
            (owner, store.machine, state, is_resending, settings, now, now, number),
        )
        results.lose(db, number)
        taken = jobs.get(store, number)  # after the transaction, another process may have increased the epoch
    return OwnedJob(store, taken)


def ask_to_stop(store: Store, number: int, state: str) -> Job:
    """Ask the owner of a job to end in a state (``paused`` or ``cancelled``); without a live owner, end it now.

    Return the job. While it is running, its owner lets requests in flight finish; call this again until it has stopped,
    because the owner may die. A job that is done stays done. An unfinished resend is undone: its recipients keep the
    earlier outcome.
    """
    db = store.db
    with _changing(store, number) as job:
        if job.state in ENDED and not job.stopping and job.removed is None:
            return job
        check_allowed(job, "cancel")
        if job.stopping == "cancelled":
            state = "cancelled"  # a pause does not take a cancel back
        if job.is_running:
            db.change("UPDATE job SET stopping = ? WHERE number = ?", (state, number))
            return job  # even if its owner has died meanwhile: it may come back, until the next call ends the job
        db.change(
            "UPDATE job SET owner = NULL, epoch = epoch + 1, state = ?, stopping = NULL, updated = ? WHERE number = ?",
            (state, store.now(), number),
        )
        results.lose(db, number)
        if state == "cancelled":
            results.end_resend(db, jobs.get(store, number))
        # In the transaction, because another process may take the job after it.
        return jobs.get(store, number)


def resend(
    store: Store,
    number: int,
    outcomes: Collection[str],
    has_state: HasState | None = None,
    *,
    expected: int | None = None,
) -> int:
    """Begin a resend: the selected recipients become pending in another attempt. Return how many there are.

    ``outcomes`` and ``has_state`` select them by their last attempt, as in `recipients.with_results`. ``expected`` is
    the number that the user has confirmed. Raises UsageError if the number has changed, or if an earlier resend has not
    ended. Raises ConditionError if the job is running.
    """
    db = store.db
    with _changing(store, number) as job:
        _check_resend(store, job)
        results.lose(db, number)
        earlier: Counter[str] = Counter()
        columns = ("job", "line", "attempt", "content", "phone", "time", "request", "outcome")
        for attempts in _selected(store, number, outcomes, has_state):
            earlier.update([last.outcome for last in attempts])
            rows = [
                (number, last.line, job.attempt + 1, last.content, last.phone, store.now(), 0, PENDING)
                for last in attempts
            ]
            db.fill("result", columns, rows)
        count = earlier.total()
        if expected is not None and count != expected:
            raise UsageError("The recipients of the resend have changed since the question", "Run the command again.")
        if count:
            is_resending = 1 if job.state == "scheduled" else ONLY_RESEND
            moved = ", ".join(f"{outcome} = {outcome} - {earlier[outcome]}" for outcome in earlier)
            db.change(
                f"""UPDATE job SET attempt = attempt + 1, is_resending = ?, pending = pending + ?, {moved},
                owner = NULL, epoch = epoch + 1, updated = ?,
                state = CASE WHEN state = 'scheduled' THEN state ELSE 'active' END WHERE number = ?""",
                (is_resending, count, store.now(), number),
            )
    return count


def _check_resend(store: Store, job: Job) -> None:
    check_allowed(job, "resend")
    if job.is_resending and results.of_attempt(store, job)[PENDING]:
        raise UsageError(
            f'An earlier resend of the job "{job.reference}" has not ended',
            Hint("Continue it first: ", f"job resume {job.typed}"),
        )


class Resendable(NamedTuple):
    """The size of a resend: its recipients, all segments, and the segments of its shortest message."""

    recipients: int
    segments: int
    least: int


def resendable(store: Store, number: int, outcomes: Collection[str], has_state: HasState | None = None) -> Resendable:
    """Return the size of a resend that begins now. Raises the errors of `resend`."""
    _check_resend(store, jobs.get(store, number))
    costs: Counter[int] = Counter()
    for attempts in _selected(store, number, outcomes, has_state):
        costs.update([last.cost for last in attempts])
    segments = sum(cost * recipients for cost, recipients in costs.items())
    return Resendable(costs.total(), segments, min(costs, default=0))


class _LastAttempt(NamedTuple):
    line: int
    outcome: str
    state: str | None
    content: int
    phone: str | None
    cost: int


def _selected(
    store: Store, number: int, outcomes: Collection[str], has_state: HasState | None
) -> Iterator[list[_LastAttempt]]:
    """Yield the last attempts of the selected recipients by line, at most 1,000 together."""
    wanted = {*outcomes}
    if UNKNOWN in wanted:
        wanted.add(SENDING)
    read = {*wanted, ACCEPTED} if has_state else wanted
    query = f"""SELECT line, outcome, state, result.content, phone, coalesce(cost, 0) FROM result
        LEFT JOIN content ON content.job = result.job AND content.number = result.content
        WHERE result.job = ? AND outcome {any_of(read)} AND {NEWEST} AND line > ? ORDER BY line LIMIT ?"""
    for page in pages(store, query, (number, *read), (0,)):
        attempts = map(_LastAttempt._make, page)
        yield [last for last in attempts if last.outcome in wanted or (has_state and has_state(last.state))]


def schedule(store: Store, number: int, settings: str, due: int) -> None:
    """Schedule a job that no process runs, with its settings (JSON), because a person resumes it.

    Raises ConditionError, and UsageError if it was cancelled.
    """
    with _changing(store, number) as job:
        check_allowed(job, "resume")
        store.db.change(
            """UPDATE job SET state = 'scheduled', stopping = NULL, settings = ?, due = ?, owner = NULL,
            epoch = epoch + 1, is_resending = ?, updated = ? WHERE number = ?""",
            (settings, due, min(job.is_resending, 1), store.now(), number),
        )
        results.lose(store.db, number)
