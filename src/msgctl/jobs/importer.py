"""Import recipients from a file or an earlier job into a new ledger, before anything is sent."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from msgctl.errors import UsageError
from msgctl.jobs import repeats, schema
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.model import JobSpec
from msgctl.jobs.reader import InvalidRow, Recipients, Row
from msgctl.jobs.repeats import Repeats
from msgctl.jobs.report import Report
from msgctl.jobs.schedule import ZoneFinder
from msgctl.jobs.schema import INDEX, LEDGER
from msgctl.jobs.states import LEFT_OUT, State
from msgctl.jobs.store import Store
from msgctl.jobs.template import Message, Render
from msgctl.operations import SEND_SMS, message_digest
from msgctl.phones import country_of
from msgctl.storage import files

MAX_EXAMPLES = 20
"""Maximum rows that are listed for each problem; the ledger lists all."""

_CACHED_MESSAGES = 1024
_CACHE_KIB = 4096


@dataclass(slots=True)
class Tally:
    """The counts of a file. ``counts`` are the rows left out, by state; ``examples`` are the first rows of each state.

    ``reasons`` counts the excluded rows by reason. ``left_out`` are the symbols that --gsm7 left out.
    ``countries`` are the estimated credits by country (alpha-2). ``without_country`` are rows that are invalid only
    because no country is known. ``repeats`` are recipients who recently got the message, or will get it.
    ``most_expensive`` is the first of the most expensive rows, if it costs more than the first row.
    """

    messages: int = 0
    blank: int = 0
    segments: int = 0
    credits: int = 0
    counts: Counter[State] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    examples: dict[State, list[InvalidRow]] = field(default_factory=lambda: {state: [] for state in LEFT_OUT})
    first: Message | None = None
    countries: Counter[str] = field(default_factory=Counter)
    most_expensive: tuple[Row, Message] | None = None
    repeats: int = 0
    left_out: dict[str, None] = field(default_factory=dict)
    without_country: int = 0

    @property
    def recipients(self) -> int:
        return self.messages + self.counts.total()

    def leave_out(self, row: InvalidRow, state: State) -> None:
        self.counts[state] += 1
        if state is State.EXCLUDED:
            self.reasons[row.reason] += 1
        if len(self.examples[state]) < MAX_EXAMPLES:
            self.examples[state].append(row._replace(values=()))

    def add(self, row: Row, message: Message) -> None:
        self.messages += 1
        self.segments += message.segments
        self.left_out.update(dict.fromkeys(message.left_out))
        self.credits += message.cost
        self.first = self.first or message
        self.countries[country_of(row.phone) or "other"] += message.cost
        so_far = self.most_expensive[1] if self.most_expensive else self.first
        if message.cost > so_far.cost:
            self.most_expensive = row, message


class Importer:
    """Writes a ledger under a temporary name until `finish`, so that a job appears completely or not at all."""

    def __init__(
        self,
        path: Path,
        spec: JobSpec,
        *,
        created: float,
        zones: ZoneFinder | None = None,
        international: Callable[[str], str] | None = None,
        may_exclude_repeats: bool = False,
    ) -> None:
        """``zones`` finds time zones, for a job with a window.

        ``international`` returns the international number of a phone. It is None if all phones are international.
        `exclude_repeats` needs ``may_exclude_repeats``.
        """
        self._path = path
        self._new = path.with_name(f".{path.name}.new")
        self._spec = spec
        self._created = created
        self._zones = zones
        self._international = international
        self._may_exclude_repeats = may_exclude_repeats
        self._cached: dict[str, int] = {}
        self._last: tuple[Message, int] | None = None
        self._reasons: list[str] = []
        self.tally = Tally()
        self.is_finished = False
        with LEDGER.explained(self._new):
            self._new.touch(0o600, exist_ok=False)
            self._db = LEDGER.connect(self._new)
            # An unfinished ledger has no use, so it does not need to survive a crash.
            self._db.execute("PRAGMA journal_mode = OFF")
            self._db.execute("PRAGMA synchronous = OFF")
            self._db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            self._db.execute("ATTACH '' AS aside")  # a temporary file, which SQLite deletes
            self._db.execute("BEGIN")
            LEDGER.build(self._db)
            self._db.execute("CREATE TABLE aside.excluded (phone, reason)")
            self._db.execute("CREATE TABLE aside.rendered (message INTEGER PRIMARY KEY, text)")
            for statement in repeats.SCHEMA:
                self._db.execute(statement)

    def exclude(self, phones: Iterable[str], reason: str) -> None:
        """Leave out some numbers; call this before `read`. Raises the iterable's errors, and ConfigurationError."""
        insert = f"INSERT INTO aside.excluded VALUES (?, {len(self._reasons)})"  # noqa: S608 (a number)
        with LEDGER.explained(self._new):
            if self._db.executemany(insert, zip(phones)).rowcount > 0:
                self._reasons.append(reason)

    def read(self, recipients: Recipients, render: Render) -> None:
        """Write every row. Raises UsageError if the file cannot be read to its end, and ConfigurationError."""
        own = [index for index, name in enumerate(recipients.columns) if name and name != recipients.phone_column]
        self._spec = replace(self._spec, columns=[recipients.columns[index] for index in own])
        with LEDGER.explained(self._new):
            if self._reasons:
                self._db.execute("CREATE INDEX aside.of_phone ON excluded (phone)")
            for row in recipients.rows:
                if row is None:
                    self.tally.blank += 1
                    continue
                cells = json.dumps([row.values[index] for index in own]) if own and row.values else None
                if isinstance(row, InvalidRow):
                    self._leave_out(row, State.INVALID, cells)
                else:
                    self._add(row, cells, render)
        if self._zones:
            self._spec = replace(self._spec, zones=self._zones.found)

    def _add(self, row: Row, cells: str | None, render: Render) -> None:
        international = self._international(row.phone) if self._international else None
        if reason := self._excluded(row.phone, international):
            self._leave_out(InvalidRow(row.line, row.phone, reason), State.EXCLUDED, cells)
            return
        try:
            message = render(row)
            zones = self._zones.zones(row.phone) if self._zones else ""
        except UsageError as error:
            self._leave_out(InvalidRow(row.line, row.phone, error.message), State.INVALID, cells)
            return
        added = self._db.execute(
            """INSERT OR IGNORE INTO recipient (line, phone, international, message, zones, state, cells)
            VALUES (?, ?, ?, ?, ?, 'pending', ?)""",
            (row.line, row.phone, international, self._message(message), zones, cells),
        )
        if added.rowcount:
            self.tally.add(row, message)
            return
        (line,) = self._db.execute(
            """SELECT min(line) FROM recipient
            WHERE message IS NOT NULL AND (phone = ? OR (international = ? AND international IS NOT NULL))""",
            (row.phone, international),
        ).fetchone()
        self._leave_out(InvalidRow(row.line, row.phone, f"duplicate of line {line}"), State.DUPLICATE, cells)

    def _excluded(self, *spellings: str | None) -> str | None:
        """Return why a number is left out; None if it is not."""
        if not self._reasons:
            return None
        row = self._db.execute("SELECT reason FROM aside.excluded WHERE phone IN (?, ?)", spellings).fetchone()
        return None if row is None else self._reasons[row[0]]

    def _message(self, message: Message) -> int:
        """Return the number of a message; equal messages share a number."""
        if self._last is None or self._last[0] is not message:
            self._last = (message, self._number(message))
        return self._last[1]

    def _number(self, message: Message) -> int:
        text = json.dumps(message.parameters)
        number = self._cached.get(text)
        if number is None:
            digest = message_digest(self._spec.performs, self._spec.fixed, text)
            self._db.execute(
                "INSERT OR IGNORE INTO message (digest, parameters, cost) VALUES (?, ?, ?)",
                (digest, text, message.cost),
            )
            (number,) = self._db.execute("SELECT id FROM message WHERE digest = ?", (digest,)).fetchone()
            if self._may_exclude_repeats:
                self._db.execute("INSERT OR IGNORE INTO aside.rendered VALUES (?, ?)", (number, json.dumps(message)))
            if len(self._cached) >= _CACHED_MESSAGES:
                self._cached.clear()
            self._cached[text] = number
        return number

    def _leave_out(self, row: InvalidRow, state: State, cells: str | None) -> None:
        self.tally.leave_out(row, state)
        self._db.execute(
            "INSERT INTO recipient (line, phone, error, state, cells) VALUES (?, ?, ?, ?, ?)",
            (row.line, row.phone, row.reason, state, cells),
        )

    def repeats(self, store: Store, contacts: Iterable[tuple[bytes, str, str | None]], now: float) -> Repeats:
        """Find recipients who recently got the message, or will get it (see `msgctl.jobs.repeats.find`)."""
        with LEDGER.explained(self._new):
            self._db.execute("COMMIT")
            try:
                found = repeats.find(store, self._db, self._spec, contacts, now)
            finally:
                self._db.execute("BEGIN")
        self.tally.repeats = found.people
        return found

    def exclude_repeats(self) -> None:
        """Leave out the recipients that `repeats` found, and count the others again."""
        before, self.tally = self.tally, Tally()
        with LEDGER.explained(self._new):
            self._db.execute(
                """UPDATE recipient SET message = NULL, state = ?, error = (
                    SELECT coalesce('repeat of job ' || job, 'repeat of a single send')
                    FROM aside.repeat WHERE repeat.line = recipient.line)
                WHERE message IS NOT NULL AND line IN (SELECT line FROM aside.repeat)""",
                (State.EXCLUDED,),
            )
            for line, phone, reason, text in self._db.execute(
                """SELECT line, phone, recipient.error, text FROM recipient LEFT JOIN aside.rendered USING (message)
                WHERE text IS NOT NULL OR line IN (SELECT line FROM aside.repeat) ORDER BY line"""
            ):
                if text is None:
                    before.leave_out(InvalidRow(line, phone, reason), State.EXCLUDED)
                else:
                    self.tally.add(Row(line, phone, ()), Message(*json.loads(text)))
        self.tally.blank, self.tally.repeats = before.blank, before.repeats
        self.tally.reasons = before.reasons
        self.tally.counts, self.tally.examples = before.counts, before.examples
        self.tally.left_out, self.tally.without_country = before.left_out, before.without_country

    def fingerprint(self, content: str) -> str:
        """Return a digest of all rows and of ``content``, to recognize them again. Raises ConfigurationError."""
        digest = sha256(content.encode())
        with LEDGER.explained(self._new):
            for row in self._db.execute("SELECT phone, cells FROM recipient ORDER BY line"):
                digest.update(json.dumps(row).encode())
        return digest.hexdigest()

    def lines(self) -> list[int]:
        """Return the lines of the recipients that the job will send to. Raises ConfigurationError."""
        with LEDGER.explained(self._new):
            return [line for (line,) in self._db.execute("SELECT line FROM recipient WHERE message IS NOT NULL")]

    def messages(self) -> Iterator[tuple[bytes, str]]:
        """Yield the digest of each recipient's message, and the international number. Raises ConfigurationError."""
        query = """SELECT digest, coalesce(international, phone) FROM recipient
            JOIN message ON message.id = recipient.message"""
        with LEDGER.explained(self._new):
            yield from self._db.execute(query)

    def finish(self) -> None:
        """Make the ledger durable and give it its final name. Raises ConfigurationError."""
        with LEDGER.explained(self._new):
            with closing(self._db) as db:
                facts = {"spec": self._spec.dump(), "created": repr(self._created)}
                if self._spec.at is not None:
                    facts["due"] = repr(self._spec.at)
                db.executemany("INSERT INTO job VALUES (?, ?)", facts.items())
                db.execute(INDEX)
                db.execute("COMMIT")
                # Set here, because no other process can have opened the file yet.
                db.execute("PRAGMA journal_mode = WAL")
            files.sync(self._new)
            self._new.rename(self._path)
            self.is_finished = True
            files.sync(self._path.parent)

    def discard(self) -> None:
        """Delete an unfinished ledger."""
        with suppress(sqlite3.Error):
            self._db.close()
        with suppress(OSError):
            self._new.unlink()


def former_recipients(ledger: Ledger, report: Report, without: Collection[int]) -> Recipients:
    """Return the recipients in a job's report, except the lines in ``without``."""

    def rows() -> Iterator[Row]:
        for row in report:
            if row["line"] in without:
                continue
            values = [*row.values()][report.first_of_file :]
            yield Row(row["line"], row["phone"], tuple(value or "" for value in values))

    return Recipients(ledger.spec.columns, "", rows())


def former_message(ledger: Ledger, row: Row) -> Message:
    """Return the message that a recipient of a job got; an SMS costs one credit per segment."""
    text, cost = schema.message_of(ledger.db, row.line)
    segments = cost if ledger.spec.performs is SEND_SMS else 0
    return Message(json.loads(text), segments, cost)
