"""The owner of a job: take a job, take it over from a process that died, stop it, cancel it, resend in it.

The epoch of a job grows whenever a process takes it. Every transaction of an owner begins with a condition on the
epoch, so a process that has lost its job writes and sends nothing more (see `msgctl.store.batches`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from msgctl.errors import ConditionError, UsageError
from msgctl.store import jobs, results
from msgctl.store.batches import OwnedJob
from msgctl.store.database import any_of
from msgctl.store.jobs import ONLY_RESEND, Job
from msgctl.store.results import NEWEST, HasState
from msgctl.store.schema import ENDED
from msgctl.store.store import Store, pages
from msgctl.text import clean


@contextmanager
def _changing(store: Store, number: int) -> Iterator[Job]:
    """Begin a transaction that changes a job, and yield the job. It also checks whether its owner is alive."""
    account = store.db.value("SELECT account FROM job WHERE number = ?", (number,))
    with store.db.transaction(str(account)):
        # PostgreSQL locks the row: a removal, which has another lock, comes before this transaction or after it.
        store.db.change("UPDATE job SET epoch = epoch WHERE number = ?", (number,))
        yield jobs.get(store, number)


@contextmanager
def _idle(store: Store, number: int) -> Iterator[Job]:
    """Begin a transaction that changes a job that no process runs."""
    with _changing(store, number) as job:
        _check_idle(job)
        yield job


def _check_idle(job: Job) -> None:
    if job.removed is not None:
        raise _removed(job)
    if job.is_running:
        raise running_elsewhere(job)


def _removed(job: Job) -> ConditionError:
    return ConditionError(
        f'The job "{job.reference}" was removed', consequence="nothing was sent", reason="job_removed"
    )


def take(store: Store, number: int, *, state: str = "active", is_resumed: bool = False) -> OwnedJob:
    """Become the owner of a job that no other process runs, and return it.

    ``state`` is the state while it runs: ``scheduled`` if run-due continues it after a kill, else ``active``.
    ``is_resumed`` means that a person resumes it: after a resend, it sends to the other recipients, too. Requests that
    an earlier owner left in flight become unknown. Raises ConditionError (``job_removed``; ``running_elsewhere``
    if another process is running the job, or if a job to take as ``scheduled`` no longer has this state) and UsageError
    (cancelled).
    """
    db = store.db
    owner = store.owner  # its lock is held before other processes can see it
    db.limit_idle(True)
    with _idle(store, number) as job:
        if state == "scheduled" and job.shown_state != "scheduled":
            raise ConditionError(
                f'Another process has changed the job "{job.reference}": it is {job.shown_state} now',
                f"Check it: msgctl job show {job.typed}",
                consequence="nothing was sent",
                reason="running_elsewhere",
            )
        check_not_cancelled(job)
        db.change(
            """UPDATE job SET owner = ?, machine = ?, epoch = epoch + 1, state = ?, stopping = NULL, ending = '',
            begun = coalesce(begun, ?), updated = ? WHERE number = ?""",
            (owner, store.machine, state, store.now(), store.now(), number),
        )
        if is_resumed:
            _release(store, job)
        results.lose(db, number)
        taken = jobs.get(store, number)  # after the transaction, another process may have increased the epoch
    return OwnedJob(store, taken)


def _release(store: Store, job: Job) -> None:
    """Let a job send to its other recipients after a resend. Called in a transaction."""
    if job.is_resending:
        store.db.change("UPDATE job SET is_resending = 1 WHERE number = ?", (job.number,))


def running_elsewhere(job: Job) -> ConditionError:
    """Return the error for a job that another process runs."""
    return ConditionError(
        f'The job "{job.reference}" is running on {clean(job.machine)} in another process',
        f"Wait for it. To end it permanently: msgctl job cancel {job.typed}",
        consequence="nothing was sent",
        reason="running_elsewhere",
    )


def check_not_cancelled(job: Job, only: str = "pending") -> None:
    """Raise UsageError if a job was cancelled. Its hint is about the recipients that ``only`` selects."""
    if "cancelled" in (job.state, job.stopping):
        raise UsageError(
            f'The job "{job.reference}" was cancelled: it never sends again',
            f"Save its {only} recipients for a new job: msgctl job report {job.typed} --only {only} --save rest.csv",
        )


def ask_to_stop(store: Store, number: int, state: str) -> Job:
    """Ask the owner of a job to end in a state (``paused`` or ``cancelled``); without a live owner, end it now.

    Return the job. While it is running, its owner lets requests in flight finish; call this again until it has stopped,
    because the owner may die. A job that is done stays done. An unfinished resend is undone: its recipients keep the
    earlier outcome.
    """
    db = store.db
    with _changing(store, number) as job:
        if job.removed is not None:
            raise _removed(job)
        if job.state in ENDED and not job.stopping:
            return job
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

    ``outcomes`` and ``has_state`` select them by their last attempt, as in `recipients.report`. ``expected`` is the
    number that the user has confirmed. Raises UsageError if the number has changed, or if an earlier resend has not
    ended. Raises ConditionError if the job is running.
    """
    db = store.db
    with _changing(store, number) as job:
        _check_resend(job)
        results.lose(db, number)
        earlier: Counter[str] = Counter()
        columns = ("job", "line", "attempt", "content", "phone", "time", "request", "outcome")
        for attempts in _selected(store, number, outcomes, has_state):
            earlier.update([last.outcome for last in attempts])
            rows = [
                (number, last.line, job.attempt + 1, last.content, last.phone, store.now(), 0, "pending")
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


def _check_resend(job: Job) -> None:
    _check_idle(job)
    check_not_cancelled(job)
    if job.is_resending and job.pending:
        raise UsageError(
            f'An earlier resend of the job "{job.reference}" has not ended',
            f"Continue it first: msgctl job resume {job.typed}",
        )


class Resendable(NamedTuple):
    """The recipients of a resend: their number, the segments of all their messages, and of the shortest one."""

    recipients: int
    segments: int
    least: int


def resendable(store: Store, number: int, outcomes: Collection[str], has_state: HasState | None = None) -> Resendable:
    """Return the recipients that a resend would have now. Raises the errors of `resend`."""
    _check_resend(jobs.get(store, number))
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
    if "unknown" in wanted:
        wanted.add("sending")
    read = {*wanted, "accepted"} if has_state else wanted
    query = f"""SELECT line, outcome, state, result.content, phone, coalesce(cost, 0) FROM result
        LEFT JOIN content ON content.job = result.job AND content.number = result.content
        WHERE result.job = ? AND outcome {any_of(read)} AND {NEWEST} AND line > ? ORDER BY line LIMIT ?"""
    for page in pages(store, query, (number, *read), (0,)):
        attempts = map(_LastAttempt._make, page)
        yield [last for last in attempts if last.outcome in wanted or (has_state and has_state(last.state))]


def change_settings(store: Store, number: int, settings: str) -> None:
    """Replace the settings (JSON) of a job that no process runs. Raises ConditionError."""
    with _idle(store, number):
        store.db.change("UPDATE job SET settings = ? WHERE number = ?", (settings, number))


def schedule(store: Store, number: int, settings: str, due: int) -> None:
    """Schedule a job that no process runs, with its settings (JSON), because a person resumes it.

    Raises ConditionError, and UsageError if it was cancelled.
    """
    with _idle(store, number) as job:
        check_not_cancelled(job)
        store.db.change(
            """UPDATE job SET state = 'scheduled', stopping = NULL, settings = ?, due = ?, owner = NULL,
            epoch = epoch + 1, updated = ? WHERE number = ?""",
            (settings, due, store.now(), number),
        )
        _release(store, job)
        results.lose(store.db, number)
