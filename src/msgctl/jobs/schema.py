"""The tables of a ledger, and the queries that read all of it.

The rows of the file are written once; each request adds its intent and its results. Recipients are yielded one at a
time, so that memory does not grow with their number.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from msgctl.delivery import is_final, reaches
from msgctl.jobs.model import Totals
from msgctl.jobs.states import TRANSITIONS, Event, State
from msgctl.storage.files import FileFormat, transaction

_SCHEMA = (
    # Facts about the whole job: its spec (as JSON, without credentials), when it was created and is due.
    "CREATE TABLE job (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    # What recipients get: the parameters from their row (as JSON), and the estimated credits of one recipient.
    """CREATE TABLE message (
        id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, parameters TEXT NOT NULL, cost INTEGER NOT NULL)""",
    # The rows of the file, which do not change. `cells` are their columns except the phone's, as a JSON array; `zones`
    # are the recipient's time zones, if the job has a window. A row that is not sent to has no message, but an `error`.
    # `phone` is sent as it is. If the job was created without a number check, people are compared by
    # `international`, its international form.
    """CREATE TABLE recipient (
        line INTEGER PRIMARY KEY, phone TEXT NOT NULL, international TEXT, message INTEGER, zones TEXT,
        state TEXT NOT NULL, error TEXT, cells TEXT)""",
    "CREATE UNIQUE INDEX recipient_phone ON recipient (phone) WHERE message IS NOT NULL",
    """CREATE UNIQUE INDEX recipient_international ON recipient (international)
        WHERE message IS NOT NULL AND international IS NOT NULL""",
    # One row per request: its recipients (a JSON array of lines), and when it ended; it is in flight until then.
    # `body` is kept if the response leaves the outcome in doubt: a message id in it must not be lost.
    "CREATE TABLE request (number INTEGER PRIMARY KEY, lines TEXT NOT NULL, ended REAL, body TEXT)",
    "CREATE INDEX request_in_flight ON request (number) WHERE ended IS NULL",
    # The result of each recipient's newest request. `credits` are its own, `spent` those of earlier ones; `lost` are
    # estimated credits that may have been charged without a response that says so. `delivery` is the newest delivery
    # state, asked for at the time `checked`.
    """CREATE TABLE result (
        line INTEGER PRIMARY KEY, request INTEGER NOT NULL, state TEXT NOT NULL, id TEXT, status TEXT, credits,
        spent INTEGER NOT NULL DEFAULT 0, lost INTEGER NOT NULL DEFAULT 0, error TEXT, delivery TEXT, checked REAL)""",
    # Recipients to whom another job sends instead: a resend of this job, or the job of which this is a resend. Before
    # that job `has_begun`, its ledger may be missing.
    """CREATE TABLE handed_over (line INTEGER PRIMARY KEY, job TEXT NOT NULL, has_begun INTEGER NOT NULL)""",
    """CREATE VIEW in_flight AS
        SELECT lines.value AS line FROM request, json_each(request.lines) AS lines WHERE ended IS NULL""",
    # The rows of the file with their current state.
    """CREATE VIEW outcome AS
        SELECT recipient.line, phone, message, zones, id, status, credits, delivery, cells,
        coalesce(result.error, recipient.error) AS error,
        CASE WHEN recipient.line NOT IN in_flight THEN coalesce(result.state, recipient.state)
            WHEN result.state = 'again' THEN 'sending again' ELSE 'sending' END AS state
        FROM recipient LEFT JOIN result ON result.line = recipient.line""",
)

LEDGER = FileFormat(
    name="the ledger",
    application=0x6D73676A,  # "msgj"
    version=6,
    fix="Restore it from a backup, or move it away; nothing else records what the job sent.",
    schema=_SCHEMA,
)

SUFFIX = ".sqlite3"
"""How the name of a ledger's file ends, after the job's ID."""

# Created when all rows are inserted: the order in which recipients are sent to. SQLite adds the line to every index.
INDEX = "CREATE INDEX recipient_order ON recipient (zones, message) WHERE message IS NOT NULL"

CHARGED = "CASE typeof(credits) WHEN 'integer' THEN credits ELSE 0 END"


@contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a ledger to write a few rows, even while another process runs its job. They are durable after the block.

    Raises ConfigurationError.
    """
    with LEDGER.opened(path) as db:
        db.execute("PRAGMA synchronous = FULL")
        with transaction(db):
            yield db


class Recipient(NamedTuple):
    """A row of the file with its state, and what is known of its message."""

    line: int
    phone: str
    state: State
    id: str | None
    status: str | None
    delivery: str | None
    credits: int | str | None
    error: str | None
    cells: str | None


def totals(db: sqlite3.Connection) -> tuple[Totals, int]:
    """Return the totals of a ledger, and the highest number of a request."""
    found = Totals()
    with transaction(db, "BEGIN"):
        for state, number in db.execute("SELECT state, count(*) FROM recipient GROUP BY state"):
            found.states[State(state)] = number
        for state, number, charged, lost in db.execute(
            f"SELECT state, count(*), sum({CHARGED} + spent), sum(lost) FROM result GROUP BY state"  # noqa: S608
        ):
            found.move(State.PENDING, State(state), number)
            found.credits += charged
            found.lost += lost
        for state, number, promised in db.execute(
            """SELECT coalesce(result.state, 'pending') AS before, count(*), sum(cost)
            FROM in_flight JOIN recipient USING (line) JOIN message ON message.id = message
            LEFT JOIN result USING (line) GROUP BY before"""
        ):
            found.move(State(state), TRANSITIONS[State(state), Event.INTENT], number)
            found.promised += promised
        found.requests, highest = db.execute("SELECT count(*), coalesce(max(number), 0) FROM request").fetchone()
    return found, highest


def updated(db: sqlite3.Connection) -> float:
    """Return when the last request ended, in seconds since 1970; 0 before the first."""
    (latest,) = db.execute("SELECT coalesce(max(ended), 0) FROM request").fetchone()
    return float(latest)


def pending_zones(db: sqlite3.Connection, zones: Iterable[str]) -> list[str]:
    """Return those of the given time zones that have pending recipients."""
    one = "SELECT 1 FROM outcome WHERE message IS NOT NULL AND zones = ? AND state IN ('pending', 'again') LIMIT 1"
    return [each for each in zones if db.execute(one, (each,)).fetchone()]


def recipients(db: sqlite3.Connection, states: Collection[State]) -> Iterator[Recipient]:
    """Yield the rows in the given states, in the order of the file."""
    marks = ",".join("?" * len(states))
    for row in db.execute(
        f"""SELECT line, phone, state, id, status, delivery, credits, error, cells FROM outcome
        WHERE state IN ({marks}) ORDER BY line""",  # noqa: S608
        tuple(states),
    ):
        yield Recipient(*row)._replace(state=State(row[2]))


def message_of(db: sqlite3.Connection, line: int) -> tuple[str, int]:
    """Return the parameters (as JSON) and the estimated credits of a recipient's message."""
    found: tuple[str, int] = db.execute(
        "SELECT parameters, cost FROM recipient JOIN message ON message.id = message WHERE line = ?", (line,)
    ).fetchone()
    return found


class Undecided(NamedTuple):
    """Recipients of accepted messages with one id and without a final state."""

    id: str
    lines: Sequence[int]
    phones: Sequence[str]


def to_check(db: sqlite3.Connection, until: Sequence[str] = ()) -> Iterator[Undecided]:
    """Yield the accepted messages without a final state by id, the least recently checked first.

    States that reach one of ``until`` count as final. Recipients share an id if the service sent only the id of
    their dispatch.
    """
    for message, rows in db.execute(
        """SELECT id, json_group_array(json_array(line, phone, delivery)) FROM result JOIN recipient USING (line)
        WHERE result.state = 'accepted' AND id IS NOT NULL GROUP BY id ORDER BY min(coalesce(checked, 0)), min(line)"""
    ):
        found = [
            (line, phone)
            for line, phone, delivery in json.loads(rows)
            if delivery is None or not (is_final(delivery) or any(reaches(delivery, each) for each in until))
        ]
        if found:
            yield Undecided(message, *zip(*found, strict=True))


def deliveries(db: sqlite3.Connection) -> dict[str, int]:
    """Count messages by delivery state, the most frequent first."""
    return dict(
        db.execute(
            """SELECT delivery, count(*) FROM result WHERE delivery IS NOT NULL GROUP BY delivery
            ORDER BY count(*) DESC, delivery"""
        )
    )


def prices(db: sqlite3.Connection, area: Callable[[str], str]) -> dict[str, tuple[Fraction | None, int]]:
    """Return the highest ratio of charge to estimate in each area, and the estimated credits of unknown charges there.

    ``area`` returns the area of a phone. The ratio is None before the first charge.
    """
    db.create_function("area", 1, area)
    found: dict[str, tuple[Fraction | None, int]] = {}
    for name, cost, highest, lost in db.execute(
        f"""SELECT area(phone), cost, max(CASE result.state WHEN 'accepted' THEN {CHARGED} ELSE 0 END), sum(lost)
        FROM result JOIN recipient USING (line) JOIN message ON message.id = message WHERE cost > 0 GROUP BY 1, 2"""  # noqa: S608
    ):
        price, so_far = found.get(name, (None, 0))
        if highest:
            price = max(price or Fraction(0), Fraction(highest, cost))
        found[name] = price, so_far + lost
    return found
