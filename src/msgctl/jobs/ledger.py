"""A job's ledger: one SQLite file with the state of every recipient, which survives the process, however that ends.

The intent of a request is committed before it is sent, and its result after. Commits are synchronous, so both survive
a power cut. One thread at a time uses a ledger; `store` makes sure that one process does.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgctl.jobs import queries
from msgctl.jobs.pending_cursor import PendingCursor
from msgctl.jobs.pending_writes import PendingWrites, Said
from msgctl.jobs.schema import LEDGER
from msgctl.jobs.spec import Intent, JobSpec, RequestResult, charged
from msgctl.jobs.states import IN_FLIGHT, TRANSITIONS, Event, Outcome, State

ENDED_EARLY = "msgctl ended before the response arrived"


class Ledger:
    """An open ledger; ``db`` is for this package alone. One that is ``read_only`` can be on a read-only disk.

    Raises ConfigurationError if the file is not a ledger, or cannot be read or written.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float], read_only: bool = False) -> None:
        self.path = path
        self.is_in_use = False
        self.clock = clock
        self._message: tuple[int | None, dict[str, Any], int, str] = (None, {}, 0, "")
        self._open_zones: frozenset[str] | None = None
        with LEDGER.explained(path):
            self.db = LEDGER.open(path, read_only=read_only)
            try:
                if not read_only:
                    self.db.execute("PRAGMA journal_mode = WAL")
                    self.db.execute("PRAGMA synchronous = FULL")
                self.spec = JobSpec.load(self.fact("spec") or "")
                self.created = float(self.fact("created") or 0)
                self.totals, self._number = queries.totals(self.db)
                self._cursor = PendingCursor(self.db)
                self._writes = PendingWrites(self.db)
            except BaseException:
                self.db.close()
                raise

    def close(self) -> None:
        if self.is_in_use:  # by an abandoned thread, which ends with the process
            return
        with LEDGER.explained(self.path):
            self.db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make all changes of the block durable together, or none of them. Raises ConfigurationError."""
        before, number = self.totals.copy(), self._number
        try:
            with LEDGER.explained(self.path):
                self.db.execute("BEGIN IMMEDIATE")
                yield
                self._writes.flush()
                self.db.execute("COMMIT")
        except BaseException:
            self.totals, self._number = before, number
            self._writes.clear()
            self._cursor.restart(self._open_zones)
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            raise

    def check(self) -> None:
        """Have SQLite look for damage. Raises ConfigurationError."""
        with LEDGER.explained(self.path):
            LEDGER.verify(self.db, self.path)

    def fact(self, name: str) -> str | None:
        """Return a fact about the whole job."""
        row = self.db.execute("SELECT value FROM job WHERE name = ?", (name,)).fetchone()
        return row and str(row[0])

    @property
    def due(self) -> float | None:
        """The time at which `msgctl job run-due` sends this job, in seconds since 1970; None if it does not."""
        due = self.fact("due")
        return None if due is None else float(due)

    def end_schedule(self) -> None:
        """Take the job away from `msgctl job run-due`: only its user resumes it from now on."""
        with self.transaction():
            self.db.execute("DELETE FROM job WHERE name = 'due'")

    def change(self, spec: JobSpec) -> None:
        """Replace the spec, whose limits may have changed."""
        if spec != self.spec:
            with self.transaction():
                self.db.execute("INSERT OR REPLACE INTO job VALUES ('spec', ?)", (spec.dump(),))
            self.spec = spec

    # --- sending

    def recover(self) -> None:
        """Mark requests left in flight by an earlier process as unknown, and those it should have sent again."""
        with self.transaction():
            self.db.execute(
                """INSERT INTO request (number, updated, error) SELECT DISTINCT request, ?, ? FROM recipient
                WHERE state IN ('sending', 'sending again')""",
                (self.clock(), ENDED_EARLY),
            )
            self.db.execute(
                """UPDATE recipient SET lost = lost + (SELECT cost FROM message WHERE message.id = recipient.message)
                WHERE state IN ('sending', 'sending again')"""
            )
            for state in IN_FLIGHT:
                self._move_all(state, Event.LOST)
            self._move_all(State.AGAIN, Event.RUN_ENDED)
        self._recount()

    def resend(self, *outcomes: Outcome) -> None:
        """Make refused or unknown recipients pending again."""
        with self.transaction():
            for each in outcomes:
                self.db.execute(
                    f"UPDATE recipient SET spent = spent + {queries.CHARGED}, credits = NULL WHERE state = ?",  # noqa: S608
                    (State(each),),
                )
                self._move_all(State(each), Event.RESEND)
        self._recount()

    def _move_all(self, state: State, event: Event) -> None:
        self.db.execute("UPDATE recipient SET state = ? WHERE state = ?", (TRANSITIONS[state, event], state))

    def _recount(self) -> None:
        with LEDGER.explained(self.path):
            self.totals, self._number = queries.totals(self.db)
        self._cursor.restart(self._open_zones)

    def open_to(self, zones: frozenset[str]) -> None:
        """Let only recipients in these time zones be sent to from now on, in the transaction that is open."""
        if zones != self._open_zones:
            self._writes.flush()
            self._open_zones = zones
            self._cursor.restart(zones)

    def pending_zones(self) -> list[str]:
        """Return the time zones of the pending recipients."""
        self._writes.flush()
        return queries.pending_zones(self.db)

    def next_cost(self) -> int | None:
        """Return the estimated credits of the next recipient; None if no recipient is pending."""
        message = self._cursor.message()
        return None if message is None else self._load(message)[1]

    def intend(self, most: int) -> Intent | None:
        """Write the intent of the next request, of at most so many recipients; None if none is pending.

        It counts from the commit of the surrounding transaction on.
        """
        group = self._cursor.take(most)
        if group is None:
            return None
        parameters, cost, zones = self._load(group.message)
        self._number += 1
        intent = Intent(self._number, group, parameters, cost, zones)
        after = TRANSITIONS[group.state, Event.INTENT]
        self._writes.intend(after, group.lines, self._number)
        self.totals.move(group.state, after, len(group.lines))
        self.totals.requests += 1
        self.totals.promised += intent.estimate
        return intent

    def record(self, result: RequestResult) -> None:
        """Write the result of a request that was in flight."""
        intent = result.intent
        before = TRANSITIONS[intent.group.state, Event.INTENT]
        alike: dict[tuple[str, str | None, str | None], dict[int, str | None]] = defaultdict(dict)
        for line, (_, outcome, id_, status, price) in zip(intent.group.lines, result.outcomes, strict=True):
            alike[outcome, status, price][line] = id_
        for (outcome, status, price), ids in alike.items():
            event = Event(outcome) if result.was_sent else Event.NOT_SENT
            after, credits_ = TRANSITIONS[before, event], charged(price)
            is_charge_unknown = event is Event.LOST or (event is Event.ACCEPTED and credits_ is None)
            lost = intent.cost if is_charge_unknown else 0
            self._writes.record(Said(after, status, price if credits_ is None else credits_, lost), ids)
            self.totals.move(before, after, len(ids))
            self.totals.credits += (credits_ or 0) * len(ids)
            self.totals.lost += lost * len(ids)
        self.totals.promised -= intent.estimate
        if result.was_sent:
            self._writes.end(intent.number, self.clock(), _why(result), result.body)
        else:
            self.totals.requests -= 1
            if intent.group.state is State.PENDING:
                self._cursor.put_back(intent.group)

    def note_deliveries(self, states: Iterable[tuple[int, str | None]]) -> None:
        """Write the delivery state of each line; None keeps the one that is known."""
        now = self.clock()
        self.db.executemany(
            "UPDATE recipient SET delivery = coalesce(?, delivery), checked = ? WHERE line = ?",
            ((state, now, line) for line, state in states),
        )

    def _load(self, message: int) -> tuple[dict[str, Any], int, str]:
        """Return the parameters of a message, its estimated credits, and the time zones of its recipients."""
        if self._message[0] != message:
            text, *rest = self.db.execute(
                "SELECT parameters, cost, zones FROM message WHERE id = ?", (message,)
            ).fetchone()
            self._message = (message, json.loads(text), *rest)
        return self._message[1:]


def _why(result: RequestResult) -> str | None:
    """Return why recipients were not accepted; a doubt about an earlier request remains."""
    why = result.error.message if result.error else None
    if why and result.intent.again:
        return f"an earlier request may have been carried out; the last one: {why}"
    return why


def due_of(path: Path) -> float | None:
    """Return when `msgctl job run-due` sends the job in a ledger; None if it does not. Counts no recipients."""
    with LEDGER.opened(path, read_only=True) as db:
        row = db.execute("SELECT value FROM job WHERE name = 'due'").fetchone()
    return None if row is None else float(row[0])


def facts(path: Path) -> tuple[JobSpec, float]:
    """Return the spec of a job and when it was created, in seconds since 1970. Raises ConfigurationError."""
    with LEDGER.opened(path, read_only=True) as db:
        found = dict(db.execute("SELECT name, value FROM job"))
        return JobSpec.load(found["spec"]), float(found["created"])
