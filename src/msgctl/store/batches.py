"""The batches of a job that this process owns: one transaction stores outcomes and the next intents.

`msgctl.jobs.sending` explains the protocol.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from msgctl.errors import ConditionError, Hint
from msgctl.outcomes.outcome import ACCEPTED, PENDING, SENDING
from msgctl.store import jobs, people, results
from msgctl.store.jobs import JOB_COLUMNS, Job
from msgctl.store.queue import ExclusionRules, Queue
from msgctl.store.results import INTENT_LIFE, Intent, RequestOutcome
from msgctl.store.schema import ENDED
from msgctl.store.store import Store, boot_time
from msgctl.text import clean

OLD = 0.2
"""If a commit takes longer than this many seconds, the opt-outs are read again."""


class LostJobError(ConditionError):
    """Another process has taken the job over, so this process must send nothing more for it."""


class OwnedJob:
    """A job that this process owns: its next recipients, intents and outcomes.

    ``job`` is the row of the job after the last batch; another process may have asked it to stop (``job.stopping``).
    """

    def __init__(self, store: Store, job: Job) -> None:
        self._store = store
        self._db = store.db
        self._queue = Queue(store)
        self._changes: Counter[str] = Counter()
        self._highest_price = 0
        self._intents: list[Intent] = []
        self.job = job

    @contextmanager
    def batch(self, rules: ExclusionRules, wanted: int = 1) -> Iterator[None]:
        """Store everything in the block durably, or nothing. ``wanted`` is the number of intents to store.

        In the block, first call `record`, then `upcoming` and `intend`. Raises LostJobError if another process owns the
        job, StoreNotReachedError and ConfigurationError; then no intent of the block may be sent. After
        StoreNotReachedError, call `reconnect`: the block may or may not be stored.
        """
        self._changes, self._intents, self._highest_price = Counter(), [], 0
        self._store.check_clock()
        try:
            with self._db.transaction(self.job.account):
                self._fence()
                self._queue.begin(self.job, rules, wanted)
                yield
                results.intend(self._db, self.job.number, self._intents)
                job = self._counted()
        except BaseException:
            self._queue = Queue(self._store)  # reads from the beginning, because nothing was stored
            raise
        self.job = job

    def renewed(self, intents: Sequence[Intent], channel: str) -> list[Intent]:
        """Return the intents of the last batch that may be sent. Called after its commit.

        After a slow commit, opt-outs of ``channel`` and the owner of the job may have changed, so one statement reads
        both again. Raises LostJobError, and StoreNotReachedError.
        """
        if not intents or boot_time() < intents[0].expires - INTENT_LIFE + OLD:
            return [*intents]
        expires = boot_time() + INTENT_LIFE
        rows = self._db.rows(
            """SELECT epoch, refused.request FROM job LEFT JOIN
                (SELECT DISTINCT result.job, request FROM result JOIN optout ON optout.phone = result.phone
                WHERE result.job = ? AND attempt = ? AND outcome IN ('pending', 'sending') AND request >= ?
                AND channel IN (?, ?)) AS refused ON refused.job = job.number
            WHERE number = ?""",
            (self.job.number, intents[0].attempt, intents[0].request, people.ALL, channel, self.job.number),
        )
        if rows[0][0] != self.job.epoch:
            raise self._lost()
        refused = {request for _, request in rows}
        return [intent._replace(expires=expires) for intent in intents if intent.request not in refused]

    def _fence(self) -> None:
        """Begin a transaction with the check that no process has taken the job over."""
        self._db.defer(
            "UPDATE job SET updated = ? WHERE number = ? AND epoch = ?",
            (self._store.now(), self.job.number, self.job.epoch),
            expected=1,
            error=self._lost,
        )

    def _lost(self) -> LostJobError:
        machine = self._db.value("SELECT machine FROM job WHERE number = ?", (self.job.number,))
        return LostJobError(
            f'Another process on {clean(machine or "another machine")} has taken over the job "{self.job.reference}"',
            Hint("Check it: ", f"job show {self.job.typed}"),
            consequence="this one sends nothing more",
            reason="running_elsewhere",
        )

    def _counted(self) -> Job:
        """Store the counts, and return the job with them."""
        self._changes.update(self._queue.changes)
        columns, values = results.additions(self._changes)
        columns += ["request = ?", "highest_price = CASE WHEN highest_price < ? THEN ? ELSE highest_price END"]
        rows = self._db.rows(
            f"UPDATE job SET {', '.join(columns)} WHERE number = ? RETURNING {JOB_COLUMNS}",
            (*values, self.job.request, self._highest_price, self._highest_price, self.job.number),
        )
        return Job(*rows[0])

    def record(self, outcomes: Sequence[RequestOutcome]) -> None:
        """Store the outcomes of requests that were intended in an earlier batch.

        The recipients of a request that was not sent are pending again.
        """
        sent = [outcome for outcome in outcomes if outcome.rows]
        self._changes.update(results.record(self._db, self.job.number, sent))
        for intent, rows, *_ in outcomes:
            if not rows:
                number = results.give_back(self._db, self.job.number, intent)
                self._changes.update(sending=-number, pending=number, requests=-bool(number))
                self._queue.go_back(intent.content, min(intent.lines))
        self._highest_price = max(self._highest_price, _highest_price(outcomes))

    def record_late(self, outcomes: Sequence[RequestOutcome]) -> None:
        """Store outcomes after LostJobError, each only if its row still has that request. Not in a batch."""
        price = _highest_price(outcomes)
        with self._db.transaction(self.job.account):
            results.record_late(self._db, self.job.number, [outcome for outcome in outcomes if outcome.rows])
            self._db.change(
                "UPDATE job SET highest_price = ? WHERE number = ? AND highest_price < ?",
                (price, self.job.number, price),
            )

    @property
    def must_continue(self) -> bool:
        """Whether this batch has left out its maximum of people. The next batch reads the recipients after them."""
        return self._queue.is_full

    def upcoming(self, size: int) -> tuple[int, int] | None:
        """Return how many recipients the next request may have (at most ``size``), and the segments of each.

        Return None if no recipient is pending, or if the next batch `must_continue`.
        """
        rows = self._queue.next(size)
        if not rows:
            return None
        return len(rows), self._queue.content(rows[0].content).cost

    def intend(self, size: int) -> Intent | None:
        """Store and return the intent of the next request, with at most ``size`` recipients; None as in `upcoming`."""
        rows = self._queue.next(size)
        if not rows:
            return None
        self._queue.take(rows[-1])
        content = self._queue.content(rows[0].content)
        self.job.request += 1
        intent = Intent(
            request=self.job.request,
            attempt=self._queue.attempt,
            content=rows[0].content,
            parameters=content.parameters,
            cost=content.cost,
            lines=[row.line for row in rows],
            phones=[row.phone for row in rows],
            time=self._store.now(),
            expires=self._queue.checked + INTENT_LIFE,
        )
        self._intents.append(intent)
        self._changes[PENDING] -= len(rows)
        self._changes[SENDING] += len(rows)
        self._changes["requests"] += 1
        return intent

    def reconnect(self, outcomes: Sequence[RequestOutcome]) -> None:
        """Connect again after StoreNotReachedError.

        ``outcomes`` are the outcomes and the unsent intents of the batches that were being committed when the
        connection broke. The store may or may not contain them. Raises LostJobError if another process has taken over
        the job, after storing the outcomes.
        """
        self._db.reconnect()
        try:
            with self.batch(ExclusionRules("")):
                number = self.job.number
                self.record([outcome for outcome in outcomes if results.is_sending(self._db, number, outcome.intent)])
        except LostJobError:
            self.record_late(outcomes)
            raise

    def finish(self, state: str, *, due: int | None = None, ending: str = "") -> Job:
        """Release the job and set its state (``paused``, ``scheduled`` or ``done``); ``ending`` is JSON.

        A job that is not done gets the state that another process has asked for. Requests that are still in flight
        become unknown. For ``done``, check that every recipient has a result. Raises LostJobError.
        """
        db, number = self._db, self.job.number
        with db.transaction(self.job.account):
            self._fence()
            results.lose(db, number)
            job = jobs.get(self._store, number)
            if job.stopping and state != "done":
                state, due = job.stopping, None
            if job.is_resending and (state in ENDED or not results.of_attempt(self._store, job)[PENDING]):
                results.end_resend(db, job)
            if state == "done":
                results.check_counts(self._store, jobs.get(self._store, number))
            db.change(
                """UPDATE job SET state = ?, due = ?, ending = ?, owner = NULL, stopping = NULL, updated = ?
                WHERE number = ? AND epoch = ?""",
                (state, due, ending, self._store.now(), number, self.job.epoch),
            )
            db.limit_idle(False)
        self.job = jobs.get(self._store, number)
        return self.job


def _highest_price(outcomes: Iterable[RequestOutcome]) -> int:
    """Return the highest charge for one segment of an accepted message, in millionths."""
    return max(
        (
            -(-row.credits // intent.cost)
            for intent, rows, *_ in outcomes
            for row in rows
            if row.outcome == ACCEPTED and row.credits and intent.cost
        ),
        default=0,
    )
