"""A job's ledger: one SQLite file with the state of every recipient, which survives the process, however that ends.

The intent of a request is committed before it is sent, and its result after. Commits are synchronous, so both survive
a power cut. One thread at a time uses a ledger; `store` makes sure that only one process runs its job.

At every statement and row, Python's sqlite3 releases the GIL, and the thread waits to get it back. So many recipients
are read and changed at once, as JSON.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from msgctl.jobs import database
from msgctl.jobs.database import LEDGER
from msgctl.jobs.spec import Intent, JobSpec, RequestResult, charged
from msgctl.jobs.states import TRANSITIONS, Event, Outcome, State

ENDED_EARLY = "msgctl ended before the response arrived"

_READ_AHEAD = 5_000
"""Recipients that are read at once."""

_PENDING = """SELECT json_group_array(json_array(message, state, lines, phones)) FROM (
    SELECT message, state, group_concat(line) AS lines, group_concat(phone) AS phones FROM (
        SELECT message, coalesce(result.state, 'pending') AS state, line, phone
        FROM recipient LEFT JOIN result USING (line)
        WHERE message IS NOT NULL AND zones = ? AND {after} AND line NOT IN in_flight
        AND coalesce(result.state, 'pending') IN ('pending', 'again') ORDER BY message, line LIMIT ?)
    GROUP BY message, state)"""
_REQUESTED = "INSERT INTO request (number, lines) SELECT CAST(key AS INTEGER), value FROM json_each(?)"
_ENDED = """UPDATE request SET ended = ?, body = said.value
    FROM json_each(?) AS said WHERE number = CAST(said.key AS INTEGER) AND ended IS NULL"""
_NOT_SENT = "DELETE FROM request WHERE number IN (SELECT value FROM json_each(?)) AND ended IS NULL"
_RESULT = """INSERT INTO result (line, id, request, state, status, credits, lost, error)
    SELECT CAST(key AS INTEGER), value, ?, ?, ?, ?, ?, ? FROM json_each(?) WHERE true ON CONFLICT (line) DO UPDATE
    SET id = excluded.id, request = max(request, excluded.request), state = excluded.state, status = excluded.status,
    credits = excluded.credits, lost = lost + excluded.lost, error = excluded.error"""
_OPTED_OUT = """INSERT INTO result (line, request, state, error) SELECT line, 0, ?, 'opted out' FROM outcome
    WHERE message IS NOT NULL AND phone = ? AND state = ?
    ON CONFLICT (line) DO UPDATE SET state = excluded.state, error = excluded.error"""
_LOST = """INSERT INTO result (line, request, state, lost, error) SELECT recipient.line, number, ?, cost, ?
    FROM request, json_each(request.lines) AS lines JOIN recipient ON recipient.line = lines.value
    JOIN message ON message.id = message WHERE ended IS NULL ON CONFLICT (line) DO UPDATE
    SET request = excluded.request, state = excluded.state, lost = lost + excluded.lost, error = excluded.error"""


class _Group(NamedTuple):
    """Pending recipients of one message, one state and the same time zones, who can share a request."""

    message: int
    state: State
    lines: list[int]
    phones: list[str]
    zones: str


class _Said(NamedTuple):
    """The result of a request for some of its recipients; ``request`` is 0 if it was not sent."""

    request: int
    state: State
    status: str | None
    credits: int | str | None
    lost: int
    error: str | None


class Ledger:
    """An open ledger; ``db`` is only for this package. One that is ``read_only`` can be on a read-only disk.

    ``open_zones`` are the time zones to whose recipients may be sent now. Raises ConfigurationError if the file is not
    a ledger, or cannot be read or written.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float], read_only: bool = False) -> None:
        self.path = path
        self.is_in_use = False
        self.clock = clock
        with LEDGER.explained(path):
            self.db = LEDGER.open(path, read_only=read_only)
            try:
                if not read_only:
                    self.db.execute("PRAGMA journal_mode = WAL")
                    self.db.execute("PRAGMA synchronous = FULL")
                self.spec = JobSpec.load(self.fact("spec") or "")
                self.created = float(self.fact("created") or 0)
                self.totals, self._number = database.totals(self.db)
            except BaseException:
                self.db.close()
                raise
        self.open_zones: Sequence[str] = self.spec.zones
        self._message: tuple[int | None, dict[str, Any], int] = (None, {}, 0)
        self._ahead: deque[_Group] = deque()
        self._read_to: dict[str, tuple[int, int]] = {}
        self._intents: dict[int, Sequence[int]] = {}
        self._results: dict[_Said, dict[int, str | None]] = defaultdict(dict)
        self._ended: dict[int, str | None] = {}
        self._not_sent: list[int] = []

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
                self._flush()
                self.db.execute("COMMIT")
        except BaseException:
            self.totals, self._number = before, number
            for unwritten in (self._intents, self._results, self._ended, self._not_sent):
                unwritten.clear()
            self._read_again()
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

    def recover(self) -> None:
        """Mark as unknown the recipients that an earlier process left in flight or had yet to send to again."""
        with self.transaction():
            self.db.execute(_LOST, (TRANSITIONS[State.SENDING, Event.LOST], ENDED_EARLY))
            self.db.execute("UPDATE request SET ended = ? WHERE ended IS NULL", (self.clock(),))
            self._move_all(State.AGAIN, Event.RUN_ENDED)
        self._recount()

    def resend(self, *outcomes: Outcome) -> None:
        """Make refused or unknown recipients pending again."""
        with self.transaction():
            for each in outcomes:
                self.db.execute(
                    f"UPDATE result SET spent = spent + {database.CHARGED}, credits = NULL WHERE state = ?",  # noqa: S608
                    (State(each),),
                )
                self._move_all(State(each), Event.RESEND)
        self._recount()

    def leave_out(self, phones: Iterable[str]) -> int:
        """Leave out pending recipients, and those to be sent to again, with these numbers. Return how many.

        Called in a transaction.
        """
        self._flush()
        self._read_again()
        changes = [(state, TRANSITIONS[state, Event.OPTED_OUT]) for state in (State.PENDING, State.AGAIN)]
        left_out = 0
        for phone in phones:
            for state, after in changes:
                number = self.db.execute(_OPTED_OUT, (after, phone, state)).rowcount
                self.totals.move(state, after, number)
                left_out += number
        return left_out

    def _move_all(self, state: State, event: Event) -> None:
        self.db.execute("UPDATE result SET state = ? WHERE state = ?", (TRANSITIONS[state, event], state))

    def _recount(self) -> None:
        with LEDGER.explained(self.path):
            self.totals, self._number = database.totals(self.db)
        self._read_again()

    # --- sending, in a transaction

    def open_to(self, zones: Sequence[str]) -> None:
        """Let only recipients in these time zones be sent to from now on."""
        if zones != self.open_zones:
            self.open_zones = zones
            self._read_again()

    def pending_zones(self) -> list[str]:
        """Return the time zones of the pending recipients."""
        self._flush()
        return database.pending_zones(self.db, self.spec.zones)

    def next_cost(self) -> int | None:
        """Return the estimated credits of the next recipient; None if no recipient is pending."""
        return self._load(self._ahead[0].message)[1] if self._look_ahead() else None

    def intend(self, most: int) -> Intent | None:
        """Write the intent of the next request, of at most so many recipients; None if none is pending.

        It is durable once the surrounding transaction is committed.
        """
        if not self._look_ahead():
            return None
        message, state, lines, phones, zones = group = self._ahead.popleft()
        if len(lines) > most:
            self._ahead.appendleft(group._replace(lines=lines[most:], phones=phones[most:]))
        self._number += 1
        intent = Intent(self._number, state, lines[:most], phones[:most], *self._load(message), zones)
        after = TRANSITIONS[state, Event.INTENT]
        self._intents[self._number] = intent.lines
        self.totals.move(state, after, len(intent.lines))
        self.totals.requests += 1
        self.totals.promised += intent.estimate
        return intent

    def record(self, result: RequestResult) -> None:
        """Write the result of a request that was in flight."""
        intent = result.intent
        before = TRANSITIONS[intent.state, Event.INTENT]
        alike: dict[tuple[str, str | None, str | None], dict[int, str | None]] = defaultdict(dict)
        for line, (_, outcome, id_, status, price) in zip(intent.lines, result.outcomes, strict=True):
            alike[outcome, status, price][line] = id_
        for (outcome, status, price), ids in alike.items():
            event = Event(outcome) if result.was_sent else Event.NOT_SENT
            after, credits_ = TRANSITIONS[before, event], charged(price)
            is_charge_unknown = event is Event.LOST or (event is Event.ACCEPTED and credits_ is None)
            lost = intent.cost if is_charge_unknown else 0
            if after is not State.PENDING:
                number = intent.number if result.was_sent else 0
                price_ = price if credits_ is None else credits_
                self._results[_Said(number, after, status, price_, lost, _why(result))].update(ids)
            self.totals.move(before, after, len(ids))
            self.totals.credits += (credits_ or 0) * len(ids)
            self.totals.lost += lost * len(ids)
        self.totals.promised -= intent.estimate
        if result.was_sent:
            self._ended[intent.number] = result.body
        else:
            self._not_sent.append(intent.number)
            self.totals.requests -= 1
            if intent.state is State.PENDING and intent.zones in self.open_zones:
                (message,) = self.db.execute(
                    "SELECT message FROM recipient WHERE line = ?", intent.lines[:1]
                ).fetchone()
                self._ahead.appendleft(_Group(message, intent.state, [*intent.lines], [*intent.phones], intent.zones))

    def note_delivery(self, line: int, state: str | None) -> None:
        """Write the delivery state of a line; None keeps the one that is known."""
        self.db.execute(
            "UPDATE result SET delivery = coalesce(?, delivery), checked = ? WHERE line = ?",
            (state, self.clock(), line),
        )

    def _look_ahead(self) -> bool:
        """Read the next recipients if all were handed out. Return whether any are pending."""
        if not self._ahead:
            self._flush()
            any(self._read(zones) for zones in self.open_zones)
        return bool(self._ahead)

    def _read(self, zones: str) -> bool:
        """Read the next recipients in some time zones, after those read before. Return whether any are pending."""
        message, line = self._read_to.get(zones, (0, 0))
        # A multiple of the batch size, so that requests are full if all recipients get one message.
        number = max(1, _READ_AHEAD // self.spec.batch_size) * self.spec.batch_size
        for after, values in (("message = ? AND line > ?", (message, line)), ("message > ?", (message,))):
            (text,) = self.db.execute(_PENDING.format(after=after), (zones, *values, number)).fetchone()
            for message, state, lines, phones in json.loads(text):
                group = _Group(message, State(state), [*map(int, lines.split(","))], phones.split(","), zones)
                self._ahead.append(group)
                self._read_to[zones] = max(self._read_to.get(zones, (0, 0)), (message, max(group.lines)))
            if self._ahead:
                return True
        return False

    def _read_again(self) -> None:
        """Read from the beginning next time."""
        self._ahead.clear()
        self._read_to.clear()

    def _flush(self) -> None:
        """Write the collected changes to the database."""
        for said, ids in self._results.items():
            self._change(_RESULT, said, ids)
        if self._ended:
            self._change(_ENDED, (self.clock(),), self._ended)
        if self._not_sent:
            self._change(_NOT_SENT, (), self._not_sent)
        if self._intents:
            self._change(_REQUESTED, (), self._intents)
        for written in (self._results, self._ended, self._not_sent, self._intents):
            written.clear()

    def _change(self, statement: str, values: Sequence[object], rows: Sized) -> None:
        if self.db.execute(statement, (*values, json.dumps(rows))).rowcount != len(rows):
            raise sqlite3.DatabaseError("another process has changed it")

    def _load(self, message: int) -> tuple[dict[str, Any], int]:
        """Return the parameters of a message and its estimated credits."""
        if self._message[0] != message:
            (text, cost) = self.db.execute("SELECT parameters, cost FROM message WHERE id = ?", (message,)).fetchone()
            self._message = (message, json.loads(text), cost)
        return self._message[1:]


def _why(result: RequestResult) -> str | None:
    """Return why recipients were not accepted, and that an earlier request may have been carried out."""
    why = result.error.message if result.error else None
    if why and result.intent.state is State.AGAIN:
        return f"an earlier request may have been carried out; the last one: {why}"
    return why


def facts(path: Path) -> tuple[JobSpec, float, float | None]:
    """Return the spec of a job, and when it was created and is due, in seconds since 1970. Raises ConfigurationError.

    This does not count the recipients, which takes long.
    """
    with LEDGER.opened(path, read_only=True) as db:
        found = dict(db.execute("SELECT name, value FROM job"))
        due = found.get("due")
        return JobSpec.load(found["spec"]), float(found["created"]), None if due is None else float(due)
