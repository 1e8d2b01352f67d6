"""The tables of a ledger, and the queries that read all of it.

The rows of the file are written once; each request adds its intent and its results. Recipients are yielded one at a
time, so that memory does not grow with their number.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from msgctl.errors import ConfigurationError
from msgctl.jobs.model import JobSpec, Totals
from msgctl.jobs.states import TRANSITIONS, Event, State
from msgctl.outcomes.judge import is_final, reaches
from msgctl.storage.database import BrokenError, FileFormat, transaction
from msgctl.storage.files import shown
from msgctl.text import shorten

_SCHEMA = (
    # Facts about the whole job: its spec (as JSON, without credentials), when it was created and is due. `commits` is
    # the number of transactions of its runs. `needs_log` exists while the ledger is not complete without its log.
    "CREATE TABLE job (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    # The messages: the parameters from the recipients' rows (as JSON), and the estimated credits of one recipient.
    """CREATE TABLE message (
        id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, parameters TEXT NOT NULL, cost INTEGER NOT NULL)""",
    # The rows of the file, which do not change. `cells` is a JSON array of their columns without the phone column.
    # `zones` are the recipient's time zones, if the job has a window. A row that is left out has an `error` instead of
    # a message. `phone` is sent unchanged. If the job was created without a number check, people are compared by
    # `international`, the international form of `phone`.
    """CREATE TABLE recipient (
        line INTEGER PRIMARY KEY, phone TEXT NOT NULL, international TEXT, message INTEGER, zones TEXT,
        state TEXT NOT NULL, error TEXT, cells TEXT)""",
    "CREATE UNIQUE INDEX recipient_phone ON recipient (phone) WHERE message IS NOT NULL",
    """CREATE UNIQUE INDEX recipient_international ON recipient (international)
        WHERE message IS NOT NULL AND international IS NOT NULL""",
    # One row per request: its recipients (a JSON array of lines), and its end, until which it is in flight. `body` is
    # kept if the outcome is in doubt, so that a message id in it is not lost.
    "CREATE TABLE request (number INTEGER PRIMARY KEY, lines TEXT NOT NULL, ended REAL, body TEXT)",
    "CREATE INDEX request_in_flight ON request (number) WHERE ended IS NULL",
    # The result of each recipient's newest request. `credits` are its own credits, `spent` the credits of earlier
    # requests, and `lost` the estimated credits that may have been charged without a response that reports it.
    # `delivery` is the newest delivery state, from the time `checked`.
    """CREATE TABLE result (
        line INTEGER PRIMARY KEY, request INTEGER NOT NULL, state TEXT NOT NULL, id TEXT, status TEXT, credits,
        spent INTEGER NOT NULL DEFAULT 0, lost INTEGER NOT NULL DEFAULT 0, error TEXT, delivery TEXT, checked REAL)""",
    # Recipients that another job sends to: a resend of this job, or the source of this resend. Until the other job
    # `has_begun`, its ledger may be missing.
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

SUFFIX = ".sqlite3"
"""The suffix of a ledger's file name, after the job's ID."""


KEPT_OPEN: set[sqlite3.Connection] = set()
"""Connections to ledgers that need their logs. Only the end of the process closes them; then SQLite deletes nothing."""


class LedgerFormat(FileFormat):
    """A SQLite file that is refused if changes that were written to it are missing.

    After an unclean end, the last changes are only in the write-ahead log, beside the file. A ledger without them would
    send to people who already got their message, so two records reveal the loss:

    - ``needs_log`` in the ledger, which reveals that the whole log is missing, even if the ledger was copied.
    - The number of commits in the job's lock file, which reveals that some of them are missing: the log is damaged, or
      the ledger was replaced with an older copy. It is written after each commit, and not synced. So after a power cut
      it is at most too low.
    """

    def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> sqlite3.Connection:
        """Open a ledger, like `FileFormat.open`. Raises BrokenError if changes are missing, too."""
        written = _read_commits(path)  # first, because another process may be writing
        # Closing a connection that may write would copy a damaged log to the ledger.
        db = super().open(path, read_only=True)
        try:
            self._check_changes(db, path, written)
            if read_only:
                return db
            writable = super().open(path, create=create)
        except BaseException:
            db.close()
            raise
        db.close()
        return writable

    @contextmanager
    def opened(self, path: Path, *, create: bool = False, read_only: bool = False) -> Iterator[sqlite3.Connection]:
        """Open a ledger for a block, like `FileFormat.opened`. Raises BrokenError for invalid values, too."""
        with self.reading(path):
            db = self.open(path, create=create, read_only=read_only)
            try:
                yield db
            finally:
                self.close(db, read_only=read_only)

    def close(self, db: sqlite3.Connection, *, read_only: bool = False) -> None:
        """Close a connection, unless the ledger needs its log: SQLite deletes the log with the last connection.

        The log of a killed process is evidence, and if the ledger is damaged, the only copy of its last changes.
        """
        try:
            needs_log = db.execute("SELECT 1 FROM job WHERE name = 'needs_log'").fetchone() is not None
        except sqlite3.Error:
            needs_log = True
        if needs_log and not read_only:
            KEPT_OPEN.add(db)
        else:
            KEPT_OPEN.discard(db)
            db.close()

    @contextmanager
    def reading(self, path: Path) -> Iterator[None]:
        """Turn the errors of a block that reads a ledger into ConfigurationError, even those about invalid values."""
        try:
            with self.explained(path):
                yield
        except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise self.damaged(path, str(error)) from error

    def damaged(self, path: Path, why: str) -> BrokenError:
        return BrokenError(f"{self.name.capitalize()} {shown(path)} is damaged: {shorten(why, 200)}", self.fix)

    def _check_changes(self, db: sqlite3.Connection, path: Path, written: int) -> None:
        """Raise BrokenError if the log is missing although it is needed, or if there are fewer commits than written."""
        found = dict(db.execute("SELECT name, value FROM job WHERE name IN ('needs_log', 'commits')"))
        log = path.with_name(f"{path.name}-wal")
        lost = f"{self.name.capitalize()} {shown(path)} lacks its last changes"
        # SQLite does not delete the log while this connection is open. It leaves an empty one when it only reads.
        if "needs_log" in found and not (log.exists() and log.stat().st_size):
            raise BrokenError(
                f"{lost}: msgctl was killed, and the write-ahead log {log.name} is missing or empty",
                f"Restore {log.name} beside it. Without that file, msgctl does not know to whom the job has sent.",
            )
        commits = found.get("commits", "0")
        if not commits.isdigit():
            raise self.damaged(path, f"commits = {commits}")
        if written > int(commits):
            raise BrokenError(f"{lost}: it is an older copy, or {log.name} is damaged or missing", self.fix)


def lock_of(path: Path) -> Path:
    """Return the lock file of a ledger."""
    return path.with_name(f".{path.name.removesuffix(SUFFIX)}.lock")


def _read_commits(path: Path) -> int:
    """Return the number of commits in the lock file of a ledger; 0 without a lock file."""
    try:
        text = lock_of(path).read_bytes()
    except FileNotFoundError:
        return 0
    return int(text) if text.strip().isdigit() else 0


def count_commit(path: Path, commits: int) -> None:
    """Write the number of commits to the lock file of a ledger. Raises OSError."""
    descriptor = os.open(lock_of(path), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        os.pwrite(descriptor, b"%d" % commits, 0)
    finally:
        os.close(descriptor)


LEDGER = LedgerFormat(
    name="the ledger",
    application=0x6D73676A,  # "msgj"
    version=8,
    fix="Restore it from a backup, or rename it; nothing else records which messages the job sent.",
    schema=_SCHEMA,
)

MAX_TIME = 1e11
"""Seconds since 1970; a later time is damage."""

_VALID = {
    "job": "typeof(value) = 'text'",
    "message": """typeof(parameters) = 'text' AND json_type(parameters) = 'object' AND typeof(cost) = 'integer'
        AND cost >= 0 AND NOT EXISTS (SELECT 1 FROM json_each(parameters)
            WHERE type NOT IN ('array', 'text') OR key NOT IN (SELECT value FROM json_each(:fields)))
        AND NOT EXISTS (SELECT value FROM json_each(:required) EXCEPT SELECT key FROM json_each(parameters))""",
    "recipient": """typeof(phone) = 'text' AND typeof(international) IN ('text', 'null')
        AND typeof(error) IN ('text', 'null') AND typeof(cells) IN ('text', 'null')
        AND (cells IS NULL OR (json_type(cells) = 'array' AND json_array_length(cells) = :columns))
        AND CASE WHEN message IS NULL THEN state IN ('invalid', 'duplicate', 'excluded')
            ELSE state = 'pending' AND phone GLOB '[0-9]*' AND phone NOT GLOB '*[^0-9]*'
                AND coalesce(international, '0') NOT GLOB '*[^0-9]*' AND zones IN (SELECT value FROM json_each(:zones))
                AND message IN (SELECT id FROM message) END""",
    "request": """typeof(lines) = 'text' AND json_type(lines) = 'array' AND json_array_length(lines) > 0
        AND typeof(body) IN ('text', 'null') AND (ended IS NULL OR (typeof(ended) = 'real' AND abs(ended) < :max_time))
        AND NOT EXISTS (SELECT 1 FROM json_each(lines) WHERE type <> 'integer'
            OR value NOT IN (SELECT line FROM recipient WHERE message IS NOT NULL)
            OR (ended IS NOT NULL AND NOT EXISTS (SELECT 1 FROM result WHERE line = value AND request >= number)))""",
    "result": """line IN (SELECT line FROM recipient WHERE message IS NOT NULL)
        AND (request = 0 OR request IN (SELECT number FROM request))
        AND state IN ('accepted', 'refused', 'unknown', 'pending', 'again', 'excluded')
        AND typeof(id) IN ('text', 'null') AND typeof(status) IN ('text', 'null')
        AND typeof(credits) IN ('integer', 'text', 'null') AND typeof(spent) = 'integer' AND typeof(lost) = 'integer'
        AND typeof(error) IN ('text', 'null') AND typeof(delivery) IN ('text', 'null')
        AND (checked IS NULL OR typeof(checked) = 'real')""",
    "handed_over": "typeof(line) = 'integer' AND typeof(job) = 'text' AND has_begun IN (0, 1)",
}
"""The condition that every row of a table meets."""

_TEXTS = (
    "SELECT group_concat(name || value) FROM job",
    "SELECT group_concat(parameters) FROM message GROUP BY id / 1000",
    "SELECT group_concat(coalesce(error, '') || coalesce(cells, '')) FROM recipient GROUP BY line / 1000",
    "SELECT group_concat(coalesce(body, '')) FROM request GROUP BY number / 1000",
    """SELECT group_concat(coalesce(id, '') || coalesce(status, '') || coalesce(credits, '') || coalesce(error, '')
        || coalesce(delivery, '')) FROM result GROUP BY line / 1000""",
    "SELECT group_concat(job) FROM handed_over",
)
"""Queries that read all text that may not be ASCII."""


def check_values(db: sqlite3.Connection, spec: JobSpec) -> None:
    """Check every value in a ledger. Raises ValueError and sqlite3.Error."""
    fields = spec.performs.fields
    required = [each.name for each in fields if each.required and each.name not in {"phone", *spec.fixed}]
    parameters = {
        "fields": json.dumps([each.name for each in fields]),
        "required": json.dumps(required),
        "columns": len(spec.columns),
        "zones": json.dumps(spec.zones),
        "max_time": MAX_TIME,
    }
    for table, condition in _VALID.items():
        query = f"SELECT 1 FROM {table} WHERE ({condition}) IS NOT TRUE LIMIT 1"  # noqa: S608
        if db.execute(query, parameters).fetchone():
            raise ValueError(f"a row of the table {table} is not valid")
    for query in _TEXTS:
        db.execute(query).fetchall()  # which fails for text that is not UTF-8


# The order of sending, created after all rows are inserted. SQLite adds the line to every index.
INDEX = "CREATE INDEX recipient_order ON recipient (zones, message) WHERE message IS NOT NULL"

OPTED_OUT = "opted out"
"""Why a recipient who opted out is left out."""
CHARGED = "CASE typeof(credits) WHEN 'integer' THEN credits ELSE 0 END"


@contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a ledger to write a few rows, even while another process runs its job.

    After the block they are durable, and in the ledger itself. Raises ConfigurationError.
    """
    with LEDGER.opened(path) as db:
        with transaction(db):
            yield db
        copy_log(db, path)


def copy_log(db: sqlite3.Connection, path: Path) -> None:
    """Copy all of the write-ahead log to the ledger itself. Raises ConfigurationError if another process reads it."""
    (is_busy, *_) = db.execute("PRAGMA wal_checkpoint(FULL)").fetchone()
    if is_busy:
        raise ConfigurationError(
            f"Cannot use {LEDGER.name} {shown(path)}: another program is reading it", "Try again when it is done."
        )


class Recipient(NamedTuple):
    """A row of the file with its state and the result of its message."""

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
    return read_time(latest)


def read_time(value: str | float) -> float:
    """Return a time in a ledger, in seconds since 1970. Raises ValueError if no clock has it."""
    if not abs(time := float(value)) < MAX_TIME:
        raise ValueError(f"not a time: {value}")
    return time


def pending_zones(db: sqlite3.Connection, zones: Iterable[str]) -> list[str]:
    """Return the time zones in ``zones`` that have pending recipients."""
    one = "SELECT 1 FROM outcome WHERE message IS NOT NULL AND zones = ? AND state IN ('pending', 'again') LIMIT 1"
    return [each for each in zones if db.execute(one, (each,)).fetchone()]


def recipients(db: sqlite3.Connection, states: Collection[State]) -> Iterator[Recipient]:
    """Yield the rows in the given states, in the order of the file."""
    marks = ",".join("?" * len(states))
    for row in db.execute(
        f"""SELECT line, phone, state, id, status, delivery, credits, error, cells
        FROM outcome WHERE state IN ({marks}) ORDER BY line""",  # noqa: S608
        tuple(states),
    ):
        if bytes in map(type, row):
            raise TypeError(f"a value in line {row[0]} is not text")
        yield Recipient(*row)._replace(state=State(row[2]))


def message_of(db: sqlite3.Connection, line: int) -> tuple[str, int]:
    """Return the parameters (as JSON) and the estimated credits of a recipient's message."""
    found: tuple[str, int] = db.execute(
        "SELECT parameters, cost FROM recipient JOIN message ON message.id = message WHERE line = ?", (line,)
    ).fetchone()
    return found


class Undecided(NamedTuple):
    """Recipients of accepted messages that share an id and have no final state."""

    id: str
    lines: Sequence[int]
    phones: Sequence[str]


def _is_undecided(delivery: str | None, until: Sequence[str]) -> bool:
    return delivery is None or not (is_final(delivery) or any(reaches(delivery, each) for each in until))


def undecided(db: sqlite3.Connection, until: Sequence[str] = ()) -> int:
    """Count the recipients that `to_check` yields."""
    found = db.execute(
        """SELECT delivery, count(*) FROM result JOIN recipient USING (line)
        WHERE result.state = 'accepted' AND id IS NOT NULL GROUP BY delivery"""
    )
    return sum(number for delivery, number in found if _is_undecided(delivery, until))


def to_check(db: sqlite3.Connection, until: Sequence[str] = ()) -> Generator[Undecided, None, None]:
    """Yield the accepted messages without a final state by id, the least recently checked first.

    States that reach one in ``until`` count as final. Recipients share an id if the service sent only an id for their
    dispatch.
    """
    for message, rows in db.execute(
        """SELECT id, json_group_array(json_array(line, phone, delivery)) FROM result JOIN recipient USING (line)
        WHERE result.state = 'accepted' AND id IS NOT NULL GROUP BY id ORDER BY min(coalesce(checked, 0)), min(line)"""
    ):
        found = [(line, phone) for line, phone, delivery in json.loads(rows) if _is_undecided(delivery, until)]
        if found:
            yield Undecided(message, *zip(*found, strict=True))


def refusals_at_the_end(db: sqlite3.Connection, number: int) -> str | None:
    """Return the newest request's error if the newest ``number`` requests were all refused as a whole, else None."""
    rows = db.execute(
        """SELECT min(state = 'refused'), max(error) FROM (SELECT number FROM request ORDER BY number DESC LIMIT ?)
        LEFT JOIN result ON request = number GROUP BY number ORDER BY number DESC""",
        (number,),
    ).fetchall()
    is_refused = len(rows) == number and all(refused for refused, _ in rows)
    return str(rows[0][1]) if is_refused else None


def left_out(db: sqlite3.Connection, reason: str) -> int:
    """Count the recipients who are left out for a reason, such as `OPTED_OUT`."""
    query = "SELECT count(*) FROM outcome WHERE state = 'excluded' AND error = ?"
    return int(db.execute(query, (reason,)).fetchone()[0])


def deliveries(db: sqlite3.Connection) -> dict[str, int]:
    """Count messages by delivery state, the most frequent first."""
    found = db.execute(
        """SELECT CAST(delivery AS TEXT), count(*) FROM result WHERE delivery IS NOT NULL GROUP BY delivery
        ORDER BY count(*) DESC, delivery"""
    )
    return dict(found)


def prices(db: sqlite3.Connection, area: Callable[[str], str]) -> dict[str, tuple[Fraction | None, int]]:
    """Return each area's highest ratio of charge to estimate, and its estimated credits with an unknown charge.

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
