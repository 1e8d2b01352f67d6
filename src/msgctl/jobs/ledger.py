"""A job's ledger: one SQLite file that knows of every recipient what became of it, whatever becomes of the process.

The intent of a request is committed before it leaves, and its answer after. Commits are synchronous, so both outlive
a power cut. A ledger is used by one thread at a time; that one process works on it is seen to by `store`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any

from msgctl.errors import OutcomeUnknownError
from msgctl.jobs.batch import MOST_ROWS, Batch, Known, New
from msgctl.jobs.records import Intent, Order, Result, Totals
from msgctl.jobs.schema import LEDGER
from msgctl.jobs.states import OUTCOMES, Event, Outcome, State, step
from msgctl.jobs.upcoming import Upcoming
from msgctl.storage import database


class Ledger:
    """An open ledger; ``db`` is for this package alone.

    Raises ConfigurationError where the file is none, or cannot be read or written.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float]) -> None:
        self.path = path
        self.is_in_use = False
        self._clock = clock
        # What this process knows without asking: what it has under way, whether nothing waits, and the last content.
        self._under_way: dict[int, tuple[State, int, int]] = {}
        self._none_waits = False
        self._last_content: tuple[int, dict[str, Any], int] = (0, {}, 0)
        with LEDGER.understood(path):
            self.db = LEDGER.connect(path)
            try:
                LEDGER.check(self.db, path)
                self.db.execute("PRAGMA journal_mode = WAL")
                self.db.execute("PRAGMA synchronous = FULL")
                self.order = self._read_order()
                self.totals = self._count()
                self._number, *place = self._furthest()
                self._upcoming = Upcoming(self.db, (place[0], place[1]))
                self._batch = Batch(self.db)
            except BaseException:
                self.db.close()
                raise

    def close(self) -> None:
        if self.is_in_use:  # by a thread that nobody waits for any more: the process ends, and with it the connection
            return
        with LEDGER.explained(self.path):
            self.db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make all changes of a block durable together, or none of them. Raises ConfigurationError.

        What waits in the batch is a transaction by itself; one is begun where there is more (`writing`).
        """
        before = copy(self.totals), self._number, dict(self._under_way)
        place = self._upcoming.place
        try:
            with LEDGER.understood(self.path), self._undone_if_it_fails():
                yield
                self._batch.write()
                if self.db.in_transaction:
                    self.db.execute("COMMIT")
        except BaseException:
            self.totals, self._number, self._under_way = before
            self._upcoming.go_back(place)
            self._batch.clear()
            self._none_waits = False
            raise

    @contextmanager
    def _undone_if_it_fails(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            raise

    def writing(self) -> sqlite3.Connection:
        """The connection, for what is to be written until the end of the `transaction` around it."""
        if not self.db.in_transaction:
            self.db.execute("BEGIN IMMEDIATE")
        return self.db

    def _flush(self) -> None:
        """Let statements find what waits in the batch."""
        if self._batch:
            self.writing()
            self._batch.write()

    # --- what leaves

    def recover(self) -> None:
        """Take what an earlier process left under way for unknown: nobody is here any more to hear the answer."""
        unheard = OutcomeUnknownError("msgctl ended before the answer was here")
        with self.transaction():
            for number in (*self._numbers(State.UNDER_WAY), *self._numbers(State.UNDER_WAY_AGAIN)):
                self.record(Result(number, Event.LOSS, fault=unheard))
            self._flush()
            self._put(State.AGAIN, Event.CALLED_OFF)

    def change(self, order: Order) -> None:
        """Replace the order, whose limits may be others from now on."""
        if order != self.order:
            with self.transaction():
                self.put_member("order", json.dumps(order.document()))
            self.order = order

    def send_again(self, *states: State) -> None:
        """Let the requests in some states wait for their turn again; the user has asked for it."""
        with self.transaction():
            for state in states:
                self._put(state, Event.RESENDING)

    def intend(self, most: int) -> Intent | None:
        """Write the intent of the next request, of at most ``most`` recipients.

        None where nothing is pending. It counts from the commit of the surrounding transaction on.
        """
        waiting = self._waiting()
        return self._intend_again(*waiting, most) if waiting else self._intend_anew(most)

    def peek(self) -> int | None:
        """Estimated credits of each recipient of the next request; None where nothing is pending."""
        if waiting := self._waiting():
            _, size, estimate = self._request(waiting[0])
            return estimate // size
        content = self._upcoming.content()
        return None if content is None else self._content(content)[1]

    def record(self, result: Result) -> int:
        """Write what became of a request that was under way; the estimated credits of each of its recipients."""
        under_way = self._under_way.pop(result.number, None)
        state, size, estimate = under_way or self._request(result.number)
        after = step(state, result.event)
        charged = result.charged
        not_left = result.event is Event.NEVER_LEFT
        # What was charged without being said is as doubtful as what became of a lost request.
        doubtful = estimate if result.event is Event.LOSS else result.unpriced * (estimate // size)
        known = Known(-not_left, doubtful, charged, result.missing, result.packed, _why(result, after))
        self._batch.record(result.number, self._clock(), after, known)
        if len(self._batch) >= MOST_ROWS:
            self._flush()
        self._move(state, after, size, result.missing)
        self._none_waits &= after is not State.WAITING
        self.totals.credits += charged
        self.totals.requests -= not_left
        self.totals.promised -= estimate
        self.totals.doubtful += doubtful
        return estimate // size

    def _intend_anew(self, most: int) -> Intent | None:
        group = self._upcoming.take(most)
        if group is None:
            return None
        content, lines, phones = group
        parameters, cost = self._content(content)
        size, state = len(lines), step(None, Event.INTENT)
        self._number += 1
        new = New(content, lines[0], lines[-1], size, cost * size)
        self._batch.intend(self._number, self._clock(), state, new)
        if len(self._batch) >= MOST_ROWS:
            self._flush()
        self._under_way[self._number] = (state, size, cost * size)
        self._move(None, state, size, 0)
        self.totals.requests += 1
        self.totals.promised += cost * size
        return Intent(self._number, phones, parameters, cost * size)

    def _intend_again(self, number: int, content: int, first: int, most: int) -> Intent:
        if self._request(number)[1] > most:
            self._split(number, content, first, most)
        state, size, estimate = self._request(number)
        after = step(state, Event.INTENT)
        self.writing().execute(
            "UPDATE request SET state = ?, attempts = attempts + 1, updated = ? WHERE number = ?",
            (after, self._clock(), number),
        )
        self._move(state, after, size, 0)
        self.totals.requests += 1
        self.totals.promised += estimate
        group = Upcoming(self.db, (content, first - 1)).take(size)
        phones = group.phones if group else ()
        if len(phones) != size:
            raise ValueError("a request of other recipients than it says")
        return Intent(number, phones, self._content(content)[0], estimate)

    def _split(self, number: int, content: int, first: int, most: int) -> None:
        """Make two of a request that waits, the first of ``most`` recipients: the limits may have become narrower."""
        _, size, estimate = self._request(number)
        cost = estimate // size
        lines = self.db.execute(
            "SELECT line FROM recipient WHERE content = ? AND line >= ? ORDER BY line LIMIT ?",
            (content, first, most + 1),
        ).fetchall()
        self._number += 1
        self.writing().execute(
            """INSERT INTO request (number, content, first, last, size, estimate, state, attempts, error, updated)
            SELECT ?, content, ?, last, ?, ?, state, 0, error, updated FROM request WHERE number = ?""",
            (self._number, lines[most][0], size - most, cost * (size - most), number),
        )
        self.writing().execute(
            "UPDATE request SET last = ?, size = ?, estimate = ? WHERE number = ?",
            (lines[most - 1][0], most, cost * most, number),
        )

    def _put(self, state: State, event: Event) -> None:
        """Take all requests in a state, none of which is under way, into another one."""
        after = step(state, event)
        size = self.in_state(state)
        self.writing().execute(
            "UPDATE request SET state = ?, updated = ? WHERE state = ?", (after, self._clock(), state)
        )
        self._none_waits = False
        self._move(state, after, size, 0)

    def in_state(self, state: State) -> int:
        """How many recipients have a request in a state."""
        (size,) = self.db.execute("SELECT total(size) FROM request WHERE state = ?", (state,)).fetchone()
        return int(size)

    def _waiting(self) -> tuple[int, int, int] | None:
        """Number, content and first line of the first request that waits for its turn again."""
        if self._none_waits:
            return None
        self._flush()
        row: tuple[int, int, int] | None = self.db.execute(
            "SELECT number, content, first FROM request WHERE state IN ('waiting', 'again') ORDER BY number LIMIT 1"
        ).fetchone()
        self._none_waits = row is None
        return row

    def _move(self, state: State | None, after: State, size: int, missing: int) -> None:
        """Take the recipients of a request from one total to another."""
        self._add(_counted(state), -size)
        self._add(_counted(after), size - missing)
        self._add(Outcome.UNKNOWN, missing)
        self.totals.under_way += size * ((after is State.UNDER_WAY) - (state is State.UNDER_WAY))

    def _add(self, outcome: Outcome, size: int) -> None:
        setattr(self.totals, outcome, getattr(self.totals, outcome) + size)

    def _request(self, number: int) -> tuple[State, int, int]:
        self._flush()
        state, size, estimate = self.db.execute(
            "SELECT state, size, estimate FROM request WHERE number = ?", (number,)
        ).fetchone()
        return State(state), size, estimate

    def _numbers(self, state: State) -> list[int]:
        rows = self.db.execute("SELECT number FROM request WHERE state = ? ORDER BY number", (state,))
        return [number for (number,) in rows]

    def _content(self, content: int) -> tuple[dict[str, Any], int]:
        if self._last_content[0] != content:
            text, cost = self.db.execute("SELECT parameters, cost FROM content WHERE id = ?", (content,)).fetchone()
            parameters = json.loads(text)
            database.require(dict, parameters)
            self._last_content = (content, parameters, cost)
        return self._last_content[1:]

    # --- what there is

    @property
    def created(self) -> float:
        """When the job was made, in seconds since 1970."""
        return float(self.member("created") or 0)

    def updated(self) -> float:
        """When something last became of it."""
        (latest,) = self.db.execute("SELECT max(updated) FROM request").fetchone()
        return latest or self.created

    def _read_order(self) -> Order:
        return Order.of(json.loads(self.member("order") or ""))

    def member(self, name: str) -> str | None:
        """What is said of the job as a whole, by its name."""
        row = self.db.execute("SELECT value FROM job WHERE name = ?", (name,)).fetchone()
        return row and str(row[0])

    def put_member(self, name: str, value: str) -> None:
        self.writing().execute("INSERT OR REPLACE INTO job VALUES (?, ?)", (name, value))

    def _furthest(self) -> tuple[int, int, int]:
        """The highest number of a request, and content and line of the last recipient that has one."""
        (number,) = self.db.execute("SELECT max(number) FROM request").fetchone()
        place = self.db.execute(
            "SELECT content, last FROM request ORDER BY content DESC, first DESC LIMIT 1"
        ).fetchone()
        return (number, *place) if place else (0, 0, -1)

    def _count(self) -> Totals:
        totals = Totals()
        totals.pending = int(self.member("sendable") or 0)
        for outcome, size in self.db.execute("SELECT outcome, count(*) FROM excluded GROUP BY outcome"):
            setattr(totals, Outcome(outcome), size)
        self.totals = totals
        for state, size, missing, attempts, charged, lost, estimate in self.db.execute(
            """SELECT state, sum(size), sum(missing), sum(attempts), sum(credits), sum(lost), sum(estimate)
            FROM request GROUP BY state"""
        ):
            database.require(int, size, missing, attempts, charged, lost, estimate)
            self._move(None, State(state), size, missing)
            totals.requests += attempts
            totals.credits += charged
            totals.promised += estimate if state in (State.UNDER_WAY, State.UNDER_WAY_AGAIN) else 0
            totals.doubtful += lost
        return totals


def _counted(state: State | None) -> Outcome:
    """The total that recipients count to: what is under way is pending as long as somebody waits for its answer."""
    return Outcome.PENDING if state in (None, State.UNDER_WAY) else OUTCOMES[state]


def _why(result: Result, after: State) -> str | None:
    """Why a request was not accepted; what was in doubt before stays so, whatever becomes of another try."""
    why = result.fault.message if result.fault else None
    if after is State.UNKNOWN and result.event is not Event.LOSS:
        return f"an earlier request may have been carried out; of the last one: {why}"
    return why
