"""A job's ledger: one SQLite file that knows of every recipient what became of it, whatever becomes of the process.

The intent of a request is committed before it leaves, and its answer after. Commits are synchronous, so both outlive
a power cut. A ledger is used by one thread at a time; that one process works on it is seen to by `store`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any

from msgctl import database
from msgctl.errors import OutcomeUnknownError
from msgctl.jobs import schema
from msgctl.jobs.records import Ahead, Entry, Heard, Intent, Order, Result, Totals
from msgctl.jobs.states import OUTCOMES, Event, Outcome, State, step


class Ledger:
    """An open ledger; ``db`` is for this package alone.

    Raises ConfigurationError where the file is none, or cannot be read or written."""

    def __init__(self, path: Path, *, clock: Callable[[], float]) -> None:
        self.path = path
        self._clock = clock
        with database.explained(path):
            self.db = database.connect(path)
            try:
                database.check(self.db, path, schema.APPLICATION_ID, schema.VERSION)
                self.db.execute("PRAGMA journal_mode = WAL")
                self.db.execute("PRAGMA synchronous = FULL")
                self.order = self._read_order()
                self.totals = self._count()
                self._end = self._furthest()
            except (TypeError, ValueError) as error:
                self.db.close()
                raise sqlite3.DatabaseError("it holds what no ledger holds") from error
            except BaseException:
                self.db.close()
                raise

    def close(self) -> None:
        with database.explained(self.path):
            self.db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make all changes of a block durable together, or none of them. Raises ConfigurationError."""
        before, end = copy(self.totals), self._end
        try:
            with database.explained(self.path), database.transaction(self.db):
                yield
        except BaseException:
            self.totals, self._end = before, end
            raise

    # --- what leaves

    def recover(self) -> None:
        """Take what an earlier process left under way for unknown: nobody is here any more to hear the answer."""
        with self.transaction():
            for number in self._numbers(State.UNDER_WAY):
                self.record(
                    Result(number, Event.LOSS, fault=OutcomeUnknownError("msgctl ended before the answer was here"))
                )

    def change(self, order: Order) -> None:
        """Replace the order, whose limits may be others from now on."""
        if order != self.order:
            with self.transaction():
                self._set("order", json.dumps(order.document()))
            self.order = order

    def send_again(self, *states: State) -> None:
        """Let the requests in some states wait for their turn again; the user has asked for it."""
        with self.transaction():
            for state in states:
                for number in self._numbers(state):
                    self._send_again(number, state)

    def intend(self, most: int) -> Intent | None:
        """Write the intent of the next request, of at most ``most`` recipients where it is a new one.

        None where nothing is pending. It counts from the commit of the surrounding transaction on.
        """
        row = self.db.execute(
            "SELECT number, content, first, last FROM request WHERE state = 'waiting' ORDER BY number LIMIT 1"
        ).fetchone()
        return self._intend_again(*row) if row else self._intend_anew(most)

    def peek(self) -> Ahead | None:
        """What the next request will be; None where nothing is pending."""
        row = self.db.execute(
            "SELECT estimate, size FROM request WHERE state = 'waiting' ORDER BY number LIMIT 1"
        ).fetchone()
        if row:
            return Ahead(row[0] // row[1], row[1])
        place = self._place()
        return Ahead(self._content(place[0])[1], None) if place else None

    def record(self, result: Result) -> int:
        """Write what became of a request that was under way; the estimated credits of each of its recipients."""
        state, size, estimate = self._request(result.number)
        after = step(state, result.event)
        missing = sum(entry is None for entry in result.entries)
        charged = sum(_charged(entry, estimate // size) for entry in result.entries)
        self.db.execute(
            """UPDATE request SET state = ?, credits = credits + ?, missing = ?, answer = ?, error = ?, updated = ?,
            attempts = attempts - ? WHERE number = ?""",
            (after, charged, missing, _dump(result.entries),
             result.fault and result.fault.message, self._clock(),
             result.event is Event.NEVER_LEFT, result.number),
        )  # fmt: skip
        self._move(state, after, size, missing)
        self.totals.credits += charged
        self.totals.requests -= result.event is Event.NEVER_LEFT
        self.totals.promised -= estimate
        if after is State.UNKNOWN:
            self.totals.doubtful += estimate
        return estimate // size

    def _intend_anew(self, most: int) -> Intent | None:
        place = self._place()
        if place is None:
            return None
        content, after = place
        rows = self.db.execute(
            "SELECT line, phone FROM recipient WHERE content = ? AND line > ? ORDER BY line LIMIT ?",
            (content, after, most),
        ).fetchall()
        parameters, cost = self._content(content)
        first, last, size = rows[0][0], rows[-1][0], len(rows)
        state = step(None, Event.INTENT)
        number = self.db.execute(
            """INSERT INTO request (content, first, last, size, estimate, state, attempts, updated)
            VALUES (?, ?, ?, ?, ?, ?, 1, ?)""",
            (content, first, last, size, cost * size, state, self._clock()),
        ).lastrowid
        self._end = (content, last)
        self._move(None, state, size, 0)
        self.totals.requests += 1
        self.totals.promised += cost * size
        return Intent(number or 0, tuple(phone for _, phone in rows), parameters, cost * size)

    def _intend_again(self, number: int, content: int, first: int, last: int) -> Intent:
        state, size, estimate = self._request(number)
        after = step(state, Event.INTENT)
        self.db.execute(
            "UPDATE request SET state = ?, attempts = attempts + 1, updated = ? WHERE number = ?",
            (after, self._clock(), number),
        )
        self._move(state, after, size, 0)
        self.totals.requests += 1
        self.totals.promised += estimate
        phones = tuple(phone for _, phone in self._recipients(content, first, last))
        return Intent(number, phones, self._content(content)[0], estimate)

    def _send_again(self, number: int, state: State) -> None:
        _, size, estimate = self._request(number)
        after = step(state, Event.RESENDING)
        # What an unknown request may have cost stays on the account, now as something that was lost.
        self.db.execute(
            "UPDATE request SET state = ?, lost = lost + ?, updated = ? WHERE number = ?",
            (after, estimate if state is State.UNKNOWN else 0, self._clock(), number),
        )
        self._move(state, after, size, 0)

    def _place(self) -> tuple[int, int] | None:
        """The content of the next recipient without a request, and the line that it comes after."""
        content, line = self._end
        row = self.db.execute(
            "SELECT content FROM recipient WHERE (content, line) > (?, ?) ORDER BY content, line LIMIT 1",
            (content, line),
        ).fetchone()
        if row is None:
            return None
        return (content, line) if row[0] == content else (row[0], -1)

    def _move(self, state: State | None, after: State, size: int, missing: int) -> None:
        """Take the recipients of a request from one total to another."""
        self._add(_counted(state), -size)
        self._add(_counted(after), size - missing)
        self._add(Outcome.UNKNOWN, missing)
        self.totals.under_way += size * ((after is State.UNDER_WAY) - (state is State.UNDER_WAY))

    def _add(self, outcome: Outcome, size: int) -> None:
        setattr(self.totals, outcome, getattr(self.totals, outcome) + size)

    def _request(self, number: int) -> tuple[State, int, int]:
        state, size, estimate = self.db.execute(
            "SELECT state, size, estimate FROM request WHERE number = ?", (number,)
        ).fetchone()
        return State(state), size, estimate

    def _numbers(self, state: State) -> list[int]:
        rows = self.db.execute("SELECT number FROM request WHERE state = ? ORDER BY number", (state,))
        return [number for (number,) in rows]

    def _recipients(self, content: int, first: int, last: int) -> list[tuple[int, str]]:
        return self.db.execute(
            "SELECT line, phone FROM recipient WHERE content = ? AND line BETWEEN ? AND ? ORDER BY line",
            (content, first, last),
        ).fetchall()

    def _content(self, content: int) -> tuple[dict[str, Any], int]:
        parameters, cost = self.db.execute("SELECT parameters, cost FROM content WHERE id = ?", (content,)).fetchone()
        return json.loads(parameters), cost

    # --- delivery states

    def begin_round(self) -> int:
        """The number of the round of questions that was stopped, or else of a new one."""
        number = int(self._member("round") or 0)
        if self._member("round_is_open") == "yes":
            return number
        with self.transaction():
            self._set("round", str(number + 1))
            self._set("round_is_open", "yes")
        return number + 1

    def end_round(self) -> None:
        with self.transaction():
            self._set("round_is_open", "no")

    def note_states(self, number: int, heard: Iterable[Heard]) -> None:
        """Write what was heard in a round; a state that is known stays where a question failed.

        A question that got no answer was not asked.
        """
        with self.transaction():
            self.db.executemany(
                """INSERT INTO delivery (line, state, error, round) VALUES (?, ?, ?, ?) ON CONFLICT (line) DO UPDATE
                SET state = coalesce(excluded.state, state), error = excluded.error, round = excluded.round""",
                (
                    (each.line, each.state, each.fault and each.fault.message, number if each.is_answered else 0)
                    for each in heard
                ),
            )

    def delivery_state(self, line: int) -> tuple[str | None, int]:
        """The delivery state of a recipient and the round in which it was asked for; None and 0 before the first."""
        row = self.db.execute("SELECT state, round FROM delivery WHERE line = ?", (line,)).fetchone()
        return row or (None, 0)

    def delivery_states(self) -> dict[str, int]:
        """How many recipients are in each delivery state, the most frequent first."""
        with database.explained(self.path):
            return dict(
                self.db.execute(
                    "SELECT state, count(*) FROM delivery WHERE state IS NOT NULL GROUP BY state ORDER BY 2 DESC, 1"
                )
            )

    # --- what there is

    @property
    def created(self) -> float:
        """When the job was made, in seconds since 1970."""
        return float(self._member("created") or 0)

    def updated(self) -> float:
        """When something last became of it."""
        (latest,) = self.db.execute("SELECT max(updated) FROM request").fetchone()
        return latest or self.created

    def _read_order(self) -> Order:
        return Order(**json.loads(self._member("order") or ""))

    def _member(self, name: str) -> str | None:
        row = self.db.execute("SELECT value FROM job WHERE name = ?", (name,)).fetchone()
        return row and str(row[0])

    def _set(self, name: str, value: str) -> None:
        self.db.execute("INSERT OR REPLACE INTO job VALUES (?, ?)", (name, value))

    def _furthest(self) -> tuple[int, int]:
        """Content and line of the last recipient that has a request."""
        row = self.db.execute("SELECT content, last FROM request ORDER BY number DESC LIMIT 1").fetchone()
        return row or (0, -1)

    def _count(self) -> Totals:
        totals = Totals()
        totals.pending = int(self._member("sendable") or 0)
        for outcome, size in self.db.execute("SELECT outcome, count(*) FROM excluded GROUP BY outcome"):
            setattr(totals, Outcome(outcome), size)
        self.totals = totals
        for state, size, missing, attempts, charged, lost, estimate in self.db.execute(
            """SELECT state, sum(size), sum(missing), sum(attempts), sum(credits), sum(lost), sum(estimate)
            FROM request GROUP BY state"""
        ):
            self._move(None, State(state), size, missing)
            totals.requests += attempts
            totals.credits += charged
            totals.promised += estimate if state == State.UNDER_WAY else 0
            totals.doubtful += lost + (estimate if state == State.UNKNOWN else 0)
        return totals


def _counted(state: State | None) -> Outcome:
    """The total that recipients count to: what is under way is pending as long as somebody waits for its answer."""
    return Outcome.PENDING if state in (None, State.UNDER_WAY) else OUTCOMES[state]


def _charged(entry: Entry | None, estimate: int) -> int:
    """Credits of a recipient; the estimate where the service did not say."""
    charged = entry.charged if entry else None
    return estimate if charged is None else charged


def _dump(entries: tuple[Entry | None, ...]) -> str | None:
    return json.dumps(entries, ensure_ascii=False, separators=(",", ":")) if entries else None
