"""A job's ledger: one SQLite file with the state of every recipient, which survives any end of the process.

The intent of a request is committed before the request is sent, and its result afterwards. Commits are synchronous, so
both survive a power cut. One thread at a time uses a ledger; `store` ensures that only one process runs its job.

Python's sqlite3 releases the GIL at every statement and row, and the thread then waits for it. Recipients are therefore
read and changed many at a time, as JSON.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Sized
from contextlib import contextmanager, suppress
from itertools import compress, islice
from pathlib import Path
from typing import Any, NamedTuple

from msgctl.errors import UsageError
from msgctl.jobs import schema
from msgctl.jobs.frequency import Frequency
from msgctl.jobs.model import Intent, JobSpec, RequestResult
from msgctl.jobs.schedule import described
from msgctl.jobs.schema import LEDGER
from msgctl.jobs.states import TRANSITIONS, Event, Outcome, State
from msgctl.outcomes.judge import RecipientOutcome, charged
from msgctl.storage.database import transaction

ENDED_EARLY = "msgctl ended before the response arrived"

MAX_DIGESTS = 100
"""Maximum messages of a job for `JobFacts` to list their digests."""

_READ_AHEAD = 5_000
"""Recipients that are read together."""

_MESSAGES_TOGETHER = 100
"""Personalised messages that are read together; each has up to 64 KiB."""

_MESSAGES = """SELECT json_group_array(json_array(id, parameters, cost)) FROM message
    WHERE id IN (SELECT value FROM json_each(?))"""
_PENDING = """SELECT json_group_array(json_array(message, state, lines, phones, international)) FROM (
    SELECT message, state, group_concat(line) AS lines, group_concat(phone) AS phones,
    group_concat(international) AS international FROM (
        SELECT message, coalesce(result.state, 'pending') AS state, line, phone, international
        FROM recipient LEFT JOIN result USING (line)
        WHERE message IS NOT NULL AND zones = ? AND {after} AND line NOT IN in_flight
        AND coalesce(result.state, 'pending') IN ('pending', 'again') ORDER BY message, line LIMIT ?)
    GROUP BY message, state)"""
_REQUESTED = "INSERT INTO request (number, lines) SELECT CAST(key AS INTEGER), value FROM json_each(?)"
_ENDED = """UPDATE request SET ended = ?, body = response.value
    FROM json_each(?) AS response WHERE number = CAST(response.key AS INTEGER) AND ended IS NULL"""
_REQUESTS = "SELECT count(*), count(*) - count(ended), min(ended), max(ended) FROM request"
_NOT_SENT = "DELETE FROM request WHERE number IN (SELECT value FROM json_each(?)) AND ended IS NULL"
_RESULT = """INSERT INTO result (line, id, request, state, status, credits, lost, error)
    SELECT CAST(key AS INTEGER), value, ?, ?, ?, ?, ?, ? FROM json_each(?) WHERE true ON CONFLICT (line) DO UPDATE
    SET id = excluded.id, request = max(request, excluded.request), state = excluded.state, status = excluded.status,
    credits = excluded.credits, lost = lost + excluded.lost, error = excluded.error"""
_UNSENT_TO = """SELECT json_group_array(json_array(line, coalesce(result.state, 'pending'))) FROM (
        SELECT line FROM json_each(:phones) JOIN recipient ON phone = value WHERE message IS NOT NULL
        UNION SELECT line FROM json_each(:phones) JOIN recipient ON international = value
        WHERE message IS NOT NULL AND international IS NOT NULL)
    LEFT JOIN result USING (line)
    WHERE coalesce(result.state, 'pending') IN ('pending', 'again') AND line NOT IN in_flight"""
_NOT_SENT_TO = """SELECT coalesce(international, phone) FROM (
        SELECT line FROM json_each(:people) JOIN recipient ON phone = value WHERE message IS NOT NULL
        UNION SELECT line FROM json_each(:people) JOIN recipient ON international = value
        WHERE message IS NOT NULL AND international IS NOT NULL)
    JOIN recipient USING (line) LEFT JOIN result USING (line)
    WHERE coalesce(result.state, 'pending') IN ('pending', 'refused', 'excluded') AND line NOT IN in_flight"""
_LEFT_OUT = """INSERT INTO result (line, request, state, error) SELECT value, 0, ?, ? FROM json_each(?)
    WHERE true ON CONFLICT (line) DO UPDATE SET state = excluded.state, error = excluded.error"""
_LOST = """INSERT INTO result (line, request, state, lost, error) SELECT recipient.line, number, ?, cost, ?
    FROM request, json_each(request.lines) AS lines JOIN recipient ON recipient.line = lines.value
    JOIN message ON message.id = message WHERE ended IS NULL ON CONFLICT (line) DO UPDATE
    SET request = excluded.request, state = excluded.state, lost = lost + excluded.lost, error = excluded.error"""


class _Group(NamedTuple):
    """Pending recipients of one message, one state and the same time zones, who can share a request.

    ``international`` has their international numbers if ``phones`` were not checked; otherwise it is empty.
    """

    message: int
    state: State
    lines: Sequence[int]
    phones: Sequence[str]
    international: Sequence[str]
    zones: str

    def without(self, lines: Collection[int]) -> _Group:
        """Return the group without the recipients of some lines."""
        kept = [line not in lines for line in self.lines]
        return self._replace(
            lines=[*compress(self.lines, kept)],
            phones=[*compress(self.phones, kept)],
            international=[*compress(self.international, kept)],
        )


class _SharedResult(NamedTuple):
    """A result that several recipients of a request share; ``request`` is 0 if it was not sent."""

    request: int
    state: State
    status: str | None
    credits: int | str | None
    lost: int
    error: str | None


class Ledger:
    """An open ledger; ``db`` is only for this package. A ``read_only`` ledger can be on a read-only disk.

    The window is open in the time zones ``open_zones``. Raises ConfigurationError if the file is not a ledger, or
    cannot be read or written.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float], read_only: bool = False) -> None:
        self.path = path
        self.is_in_use = False
        self._needs_log = False
        self._is_read_only = read_only
        self.clock = clock
        with LEDGER.reading(path):
            self.db = LEDGER.open(path, read_only=read_only)
            try:
                if not read_only:
                    self.db.execute("PRAGMA journal_mode = WAL")
                self.spec = JobSpec.load(self.fact("spec") or "")
                if self.spec.window is not None:
                    described(self.spec.window, self.spec.days)
                if self.spec.at_most is not None:
                    Frequency.parse(self.spec.at_most)
                self.created = schema.read_time(self.fact("created") or "0")
                self.totals, self._number = schema.totals(self.db)
            except UsageError as error:  # about the window or the limit
                LEDGER.close(self.db, read_only=read_only)
                raise LEDGER.damaged(path, error.message) from error
            except BaseException:
                LEDGER.close(self.db, read_only=read_only)
                raise
        self.open_zones: Sequence[str] = self.spec.zones
        self._messages: dict[int, tuple[dict[str, Any], int]] = {}
        """The parameters and the estimated credits of the next messages, by number."""
        self._ahead: deque[_Group] = deque()
        self._read_to: dict[str, tuple[int, int]] = {}
        self._intents: dict[int, Sequence[int]] = {}
        self._results: dict[_SharedResult, dict[int, str | None]] = defaultdict(dict)
        self._ended: dict[int, str | None] = {}
        self._not_sent: list[int] = []

    def close(self) -> None:
        """Close the ledger; afterwards it is complete without its log, unless a thread still uses it."""
        if self.is_in_use:  # an abandoned thread uses it until the process ends
            return
        if self._needs_log:
            try:
                with transaction(self.db):
                    self.db.execute("DELETE FROM job WHERE name = 'needs_log'")
            except sqlite3.Error:  # for example, the disk is full: the ledger keeps its log
                return
        with LEDGER.explained(self.path):
            LEDGER.close(self.db, read_only=self._is_read_only)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Make all changes of the block durable together, or none of them. Raises ConfigurationError."""
        before, number = self.totals.copy(), self._number
        try:
            with LEDGER.explained(self.path):
                self._begin()
                self.db.execute("BEGIN IMMEDIATE")
                yield
                self._flush()
                self.db.execute("UPDATE job SET value = value + 1 WHERE name = 'commits'")
                commits = int(self.fact("commits") or 0)
                self.db.execute("COMMIT")
                with suppress(OSError):  # a full disk: the changes are durable, and the number may be too low
                    schema.count_commit(self.path, commits)
        except BaseException:
            self.totals, self._number = before, number
            for unwritten in (self._intents, self._results, self._ended, self._not_sent):
                unwritten.clear()
            self._read_again()
            if self.db.in_transaction:
                self.db.execute("ROLLBACK")
            raise

    def _begin(self) -> None:
        """Record in the ledger itself, before the first change, that it is not complete without its log until `close`.

        A crash at any moment leaves a ledger that can be used: the record is only removed together with the changes,
        and SQLite deletes the log after it has copied them.
        """
        if not self._needs_log:
            with transaction(self.db):
                self.db.execute("INSERT OR REPLACE INTO job VALUES ('needs_log', '')")
                self.db.execute("INSERT OR IGNORE INTO job VALUES ('commits', '0')")
            schema.KEPT_OPEN.add(self.db)
            schema.copy_log(self.db, self.path)
            self._needs_log = True

    def check(self) -> None:
        """Check all of the ledger for damage. Raises ConfigurationError."""
        with LEDGER.reading(self.path):
            LEDGER.verify(self.db, self.path)
            schema.check_values(self.db, self.spec)

    def fact(self, name: str) -> str | None:
        """Return a fact about the whole job."""
        row = self.db.execute("SELECT value FROM job WHERE name = ?", (name,)).fetchone()
        return row and str(row[0])

    def international(self, phone: str) -> str:
        """Return the international number of a recipient."""
        query = "SELECT coalesce(international, phone) FROM recipient WHERE phone = ? AND message IS NOT NULL"
        return str(self.db.execute(query, (phone,)).fetchone()[0])

    @property
    def due(self) -> float | None:
        """The time at which `msgctl job run-due` sends this job, in seconds since 1970; None if it does not."""
        due = self.fact("due")
        with LEDGER.reading(self.path):
            return None if due is None else schema.read_time(due)

    def end_schedule(self) -> None:
        """Remove the job from `msgctl job run-due`: only the user can resume it then.

        This uses a separate connection, because an abandoned thread may still use the ledger's own connection.
        """
        with schema.writing(self.path) as db:
            db.execute("DELETE FROM job WHERE name = 'due'")

    def change(self, spec: JobSpec) -> None:
        """Replace the spec, to change its limits."""
        if spec != self.spec:
            with self.transaction():
                self.db.execute("INSERT OR REPLACE INTO job VALUES ('spec', ?)", (spec.dump(),))
            self.spec = spec

    def recover(self) -> None:
        """Mark as unknown the recipients that an earlier process left in flight or should have resent to.

        Raises ConfigurationError, even for damage that it does not concern.
        """
        self.check()
        with self.transaction():
            self.db.execute(_LOST, (TRANSITIONS[State.SENDING, Event.LOST], ENDED_EARLY))
            self.db.execute("UPDATE request SET ended = ? WHERE ended IS NULL", (self.clock(),))
            after = TRANSITIONS[State.AGAIN, Event.RUN_ENDED]
            self.db.execute("UPDATE result SET state = ? WHERE state = ?", (after, State.AGAIN))
        self._recount()

    def resend(self, *outcomes: Outcome, taken_back: Iterable[int] = ()) -> None:
        """Make refused or unknown recipients pending again, except recipients handed over to another job.

        ``taken_back`` lists lines that are no longer handed over.
        """
        with self.transaction():
            self.db.execute(
                "DELETE FROM handed_over WHERE line IN (SELECT value FROM json_each(?))", (json.dumps([*taken_back]),)
            )
            for each in outcomes:
                self.db.execute(
                    f"""UPDATE result SET state = ?, spent = spent + {schema.CHARGED}, credits = NULL
                    WHERE state = ? AND line NOT IN (SELECT line FROM handed_over)""",  # noqa: S608
                    (TRANSITIONS[State(each), Event.RESEND], State(each)),
                )
        self._recount()

    def not_sent_to(self, people: Sequence[str]) -> set[str]:
        """Return the international numbers to which the job has certainly not sent. Called before a run."""
        with LEDGER.reading(self.path):
            return {found for (found,) in self.db.execute(_NOT_SENT_TO, {"people": json.dumps(people)})}

    def leave_out(self, phones: Iterable[str], reason: str) -> int:
        """Leave out recipients with these numbers who are pending or to be resent to. Return how many.

        Called in a transaction.
        """
        self._flush()
        left_out = 0
        remaining = iter(phones)
        while some := [*islice(remaining, _READ_AHEAD)]:
            (text,) = self.db.execute(_UNSENT_TO, {"phones": json.dumps(some)}).fetchone()
            found = {int(line): State(state) for line, state in json.loads(text)}
            for state in {*found.values()}:
                lines = [line for line in found if found[line] is state]
                after = TRANSITIONS[state, Event.LEFT_OUT]
                self._change(_LEFT_OUT, (after, reason), lines)
                self.totals.move(state, after, len(lines))
            if found:
                groups = [group.without(found) for group in self._ahead]
                self._ahead = deque(group for group in groups if group.lines)
            left_out += len(found)
        return left_out

    def _recount(self) -> None:
        with LEDGER.explained(self.path):
            self.totals, self._number = schema.totals(self.db)
        self._read_again()

    # --- sending, in a transaction

    def open_to(self, zones: Sequence[str]) -> None:
        """Send only to recipients in these time zones from now on."""
        if zones != self.open_zones:
            self.open_zones = zones
            self._read_again()

    def pending_zones(self) -> list[str]:
        """Return the time zones of the pending recipients."""
        self._flush()
        return schema.pending_zones(self.db, self.spec.zones)

    def upcoming(self, max_size: int) -> tuple[int, Sequence[str]]:
        """Return the estimated credits of the next recipient, and at most ``max_size`` phones for its request.

        Return 0 and no phones if no recipient is pending.
        """
        if not self._look_ahead():
            return 0, ()
        group = self._ahead[0]
        return self._load_message(group.message)[1], group.phones[:max_size]

    def intend(self, max_size: int) -> Intent | None:
        """Write the intent of the next request, to at most ``max_size`` recipients; None if no recipient is pending.

        It is durable once the surrounding transaction is committed.
        """
        if not self._look_ahead():
            return None
        message, state, lines, phones, international, zones = self._ahead.popleft()
        if len(lines) > max_size:
            rest = _Group(message, state, lines[max_size:], phones[max_size:], international[max_size:], zones)
            self._ahead.appendleft(rest)
        self._number += 1
        intent = Intent(
            *(self._number, state, lines[:max_size], phones[:max_size]),
            *self._load_message(message),
            zones=zones,
            message=message,
            international=international[:max_size],
        )
        after = TRANSITIONS[state, Event.INTENT]
        self._intents[self._number] = intent.lines
        self.totals.move(state, after, len(intent.lines))
        self.totals.requests += 1
        self.totals.promised += intent.estimate
        return intent

    def numbers_ahead(self) -> list[str]:
        """Return all numbers under which the next recipients may be on the opt-out list."""
        return [number for group in self._ahead for number in (*group.phones, *group.international)]

    def people_ahead(self) -> list[str]:
        """Return the international numbers of the next recipients."""
        return [number for group in self._ahead for number in group.international or group.phones]

    def withdraw(self, intents: Sequence[Intent]) -> None:
        """Undo the intents of the open transaction, so that their recipients are next again."""
        self._flush()
        for intent in reversed(intents):
            self.totals.move(TRANSITIONS[intent.state, Event.INTENT], intent.state, len(intent.lines))
            self.totals.promised -= intent.estimate
            self.totals.requests -= 1
            self._not_sent.append(intent.number)
            self._read_next(intent)

    def _read_next(self, intent: Intent) -> None:
        """Put the recipients of an unsent request first again, if the window is open in their time zones."""
        if intent.zones in self.open_zones:
            numbers = intent.lines, intent.phones, intent.international
            self._ahead.appendleft(_Group(intent.message, intent.state, *numbers, intent.zones))

    def record(self, result: RequestResult) -> None:
        """Write the result of a request that was in flight."""
        intent = result.intent
        before = TRANSITIONS[intent.state, Event.INTENT]
        alike: dict[RecipientOutcome, dict[int, str | None]] = defaultdict(dict)
        for line, each in zip(intent.lines, result.outcomes, strict=True):
            alike[each._replace(phone=None, id=None)][line] = each.id
        for found, ids in alike.items():
            event = Event(found.outcome) if result.was_sent else Event.NOT_SENT
            after, (paid, lost) = TRANSITIONS[before, event], result.charge(found)
            if after is not State.PENDING:
                number = intent.number if result.was_sent else 0
                shown = found.credits if charged(found.credits) is None else paid
                self._results[_SharedResult(number, after, found.status, shown, lost, _why(result))].update(ids)
            self.totals.move(before, after, len(ids))
            self.totals.credits += paid * len(ids)
            self.totals.lost += lost * len(ids)
        self.totals.promised -= intent.estimate
        if result.was_sent:
            self._ended[intent.number] = result.body
        else:
            self._not_sent.append(intent.number)
            self.totals.requests -= 1
            if intent.state is State.PENDING:
                self._read_next(intent)

    def note_delivery(self, line: int, state: str | None) -> None:
        """Write the delivery state of a line; None keeps the known state."""
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
        """Read the next recipients in some time zones, after earlier reads. Return whether any are pending."""
        message, line = self._read_to.get(zones, (0, 0))
        # A multiple of the batch size, so that requests are full if all recipients get one message.
        number = max(1, _READ_AHEAD // self.spec.batch_size) * self.spec.batch_size
        for after, values in (("message = ? AND line > ?", (message, line)), ("message > ?", (message,))):
            (text,) = self.db.execute(_PENDING.format(after=after), (zones, *values, number)).fetchone()
            for message, state, lines, phones, international in json.loads(text):
                numbers = phones.split(","), international.split(",") if international else ()
                group = _Group(message, State(state), [*map(int, lines.split(","))], *numbers, zones)
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
        for result, ids in self._results.items():
            self._change(_RESULT, result, ids)
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

    def _load_message(self, message: int) -> tuple[dict[str, Any], int]:
        """Return the parameters of a message and its estimated credits."""
        if message not in self._messages:
            numbers = [message, *(group.message for group in islice(self._ahead, _MESSAGES_TOGETHER))]
            (text,) = self.db.execute(_MESSAGES, (json.dumps(numbers),)).fetchone()
            self._messages = {number: (json.loads(parameters), cost) for number, parameters, cost in json.loads(text)}
        return self._messages[message]


def _why(result: RequestResult) -> str | None:
    """Return why recipients were not accepted, and that an earlier request may have been carried out."""
    why = result.error.message if result.error else None
    if why and result.intent.state is State.AGAIN:
        return f"an earlier request may have been carried out; the last one: {why}"
    return why


class JobFacts(NamedTuple):
    """The facts about a job that need no slow count of its recipients. Times are in seconds since 1970.

    A job has begun if it made a request, or if it is not scheduled. ``first`` and ``last`` are the times of its first
    and last response, None before the first. ``digests`` are the digests of its messages in hexadecimal, None if there
    are many messages.
    """

    spec: JobSpec
    created: float
    due: float | None
    has_begun: bool
    first: float | None
    last: float | None
    is_in_flight: bool
    digests: Sequence[str] | None


def facts(path: Path) -> JobFacts:
    """Return the facts about a job. Raises ConfigurationError."""
    with LEDGER.opened(path, read_only=True) as db:
        found = dict(db.execute("SELECT name, value FROM job"))
        number, in_flight, first, last = db.execute(_REQUESTS).fetchone()
        rows = db.execute("SELECT hex(digest) FROM message LIMIT ?", (MAX_DIGESTS + 1,)).fetchall()
        due = None if (text := found.get("due")) is None else schema.read_time(text)
        return JobFacts(
            spec=JobSpec.load(found["spec"]),
            created=schema.read_time(found["created"]),
            due=due,
            has_begun=due is None or number > 0,
            first=None if first is None else schema.read_time(first),
            last=None if last is None else schema.read_time(last),
            is_in_flight=in_flight > 0,
            digests=[digest for (digest,) in rows] if len(rows) <= MAX_DIGESTS else None,
        )
