"""Import a file of recipients into a new ledger, before anything is sent."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from msgctl.errors import UsageError
from msgctl.jobs import repeats
from msgctl.jobs.exclusions import Exclusions
from msgctl.jobs.reader import InvalidRow, RecipientReader, Row, RowError
from msgctl.jobs.repeats import Repeat
from msgctl.jobs.schema import INDEX, LEDGER
from msgctl.jobs.sending_hours import NoSendingHoursError, ZoneFinder
from msgctl.jobs.spec import JobSpec
from msgctl.jobs.states import State
from msgctl.jobs.store import Store
from msgctl.jobs.template import Message, Renderer
from msgctl.phones import country_of
from msgctl.storage import database, files

MOST_EXAMPLES = 20
"""Rows that are listed for each problem; the ledger lists all."""

_CACHED_MESSAGES = 1024
_CACHE_KIB = 4096


@dataclass(slots=True)
class Tally:
    """The counts of a file. ``invalid_rows``, ``duplicate_rows`` and ``excluded_rows`` are the first of each.

    ``countries`` has the credits of each country (ISO 3166-1 alpha-2). ``most_expensive`` is a row whose message costs
    more than the first one: the first of those that cost most.
    """

    recipients: int = 0
    invalid: int = 0
    duplicate: int = 0
    excluded: int = 0
    blank: int = 0
    segments: int = 0
    credits: int = 0
    invalid_rows: list[InvalidRow] = field(default_factory=list)
    duplicate_rows: list[InvalidRow] = field(default_factory=list)
    excluded_rows: list[InvalidRow] = field(default_factory=list)
    first: Message | None = None
    countries: Counter[str] = field(default_factory=Counter)
    most_expensive: tuple[Row, Message] | None = None

    @property
    def messages(self) -> int:
        return self.recipients - self.invalid - self.duplicate - self.excluded


class Importer:
    """A ledger that is being written, under a temporary name until `finish`: a job appears whole or not at all."""

    def __init__(
        self,
        path: Path,
        spec: JobSpec,
        *,
        created: float,
        exclusions: Exclusions | None = None,
        zones: ZoneFinder | None = None,
    ) -> None:
        """``exclusions`` are phones that are left out; ``zones`` finds time zones, for a job with a window."""
        self._path = path
        self._new = path.with_name(f".{path.name}.new")
        self._spec = spec
        self._created = created
        self._exclusions = exclusions
        self._zones = zones
        self._cached: dict[tuple[str, str], int] = {}
        self._last: tuple[Message, str, int] | None = None
        self.tally = Tally()
        self.is_finished = False
        with LEDGER.explained(self._new):
            database.new_file(self._new)
            self._db = LEDGER.connect(self._new)
            # An unfinished ledger is worthless, so it does not need to survive a crash.
            self._db.execute("PRAGMA journal_mode = OFF")
            self._db.execute("PRAGMA synchronous = OFF")
            self._db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            self._db.execute("BEGIN")
            LEDGER.build(self._db)

    def read(self, rows: RecipientReader, renderer: Renderer) -> None:
        """Write every row. Raises UsageError if the file cannot be read to its end, and ConfigurationError."""
        own = [index for index, name in enumerate(rows.columns) if name and name != rows.phone_column]
        self._spec = replace(self._spec, columns=[rows.columns[index] for index in own])
        with LEDGER.explained(self._new):
            for row in rows:
                self.tally.recipients += 1
                if isinstance(row, InvalidRow):
                    self._reject(row)
                    continue
                self._add(row, renderer)
                if own:
                    cells = json.dumps([row.values[index] for index in own], ensure_ascii=False)
                    self._db.execute("INSERT INTO cells VALUES (?, ?)", (row.line, cells))
        self.tally.blank = rows.blank

    def _add(self, row: Row, renderer: Renderer) -> None:
        if self._exclusions and (reason := self._exclusions.reason(row.phone)):
            self.tally.excluded += 1
            self._leave_out(InvalidRow(row.line, row.phone, reason), State.EXCLUDED, self.tally.excluded_rows)
            return
        try:
            message = renderer.render(row)
            zones = self._zones.zones(row.phone) if self._zones else ""
        except NoSendingHoursError as error:
            self._reject(InvalidRow(row.line, row.phone, str(error)))
            return
        except RowError as error:
            self._reject(InvalidRow(row.line, row.phone, error.reason))
            return
        except UsageError as error:
            self._reject(InvalidRow(row.line, row.phone, error.message))
            return
        added = self._db.execute(
            "INSERT OR IGNORE INTO recipient (line, phone, message, state) VALUES (?, ?, ?, 'pending')",
            (row.line, row.phone, self._message(message, zones)),
        )
        if not added.rowcount:
            self._repeat(row)
            return
        self.tally.segments += message.segments
        self.tally.credits += message.cost
        self.tally.first = self.tally.first or message
        self.tally.countries[country_of(row.phone) or "other"] += message.cost
        so_far = self.tally.most_expensive[1] if self.tally.most_expensive else self.tally.first
        if message.cost > so_far.cost:
            self.tally.most_expensive = row, message

    def _message(self, message: Message, zones: str) -> int:
        """Return the number of a message for recipients in some time zones; equal ones have the same."""
        if self._last is None or self._last[0] is not message or self._last[1] != zones:
            self._last = (message, zones, self._number(message, zones))
        return self._last[2]

    def _number(self, message: Message, zones: str) -> int:
        text = json.dumps(message.parameters, ensure_ascii=False, separators=(",", ":"))
        number = self._cached.get((text, zones))
        if number is None:
            digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
            self._db.execute(
                "INSERT OR IGNORE INTO message (digest, zones, parameters, cost) VALUES (?, ?, ?, ?)",
                (digest, zones, text, message.cost),
            )
            (number,) = self._db.execute(
                "SELECT id FROM message WHERE digest = ? AND zones = ?", (digest, zones)
            ).fetchone()
            if len(self._cached) >= _CACHED_MESSAGES:
                self._cached.clear()
            self._cached[text, zones] = number
        return number

    def _reject(self, row: InvalidRow) -> None:
        self.tally.invalid += 1
        self._leave_out(row, State.INVALID, self.tally.invalid_rows)

    def _repeat(self, row: Row) -> None:
        (line,) = self._db.execute(
            "SELECT line FROM recipient WHERE phone = ? AND message IS NOT NULL", (row.phone,)
        ).fetchone()
        self.tally.duplicate += 1
        repeated = InvalidRow(row.line, row.phone, f"duplicate of line {line}")
        self._leave_out(repeated, State.DUPLICATE, self.tally.duplicate_rows)

    def _leave_out(self, row: InvalidRow, state: State, examples: list[InvalidRow]) -> None:
        if len(examples) < MOST_EXAMPLES:
            examples.append(row)
        self._db.execute("INSERT INTO recipient (line, phone, error, state) VALUES (?, ?, ?, ?)", (*row, state))

    def repeat(self, store: Store, now: float) -> Repeat | None:
        """Return a job that has sent, or will send, the same message to most of these recipients."""
        with LEDGER.explained(self._new):
            self._db.execute("COMMIT")
            try:
                return repeats.find(store, self._db, self._spec, self.tally.messages, now)
            finally:
                self._db.execute("BEGIN")

    def finish(self) -> None:
        """Make the ledger durable and give it its name. Raises ConfigurationError."""
        with LEDGER.explained(self._new):
            with closing(self._db) as db:
                facts = {"spec": self._spec.dump(), "created": repr(self._created)}
                if self._spec.at is not None:
                    facts["due"] = repr(self._spec.at)
                db.executemany("INSERT INTO job VALUES (?, ?)", facts.items())
                db.execute(INDEX)
                db.execute("COMMIT")
                # Set here, while no other process can have it open.
                db.execute("PRAGMA journal_mode = WAL")
            files.sync(self._new)
            self._new.rename(self._path)
            self.is_finished = True
            files.sync(self._path.parent)

    def discard(self) -> None:
        """Delete a ledger that was not finished."""
        with suppress(sqlite3.Error):
            self._db.close()
        with suppress(OSError):
            self._new.unlink(missing_ok=True)
