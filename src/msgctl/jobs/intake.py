"""From a file of recipients to a new ledger, before anything is sent."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path

from msgctl.errors import UsageError
from msgctl.jobs.records import Order
from msgctl.jobs.rows import Fault, Row
from msgctl.jobs.schema import INDEXES, LEDGER, SCHEMA
from msgctl.jobs.states import Outcome
from msgctl.jobs.template import UnfilledError
from msgctl.jobs.wording import Content, Wording
from msgctl.storage import database
from msgctl.storage import files as private

MOST_EXAMPLES = 20
"""Rows that are named for each thing that is wrong; the ledger names all."""

_REMEMBERED = 1024
_CACHE_KIB = 4096


@dataclass(slots=True)
class Tally:
    """A file in numbers: rows, those that nobody can send to, and what the others amount to.

    ``invalid_rows`` and ``duplicate_rows`` name the first of each, with line, phone and reason.
    """

    recipients: int = 0
    invalid: int = 0
    duplicate: int = 0
    segments: int = 0
    credits: int = 0
    invalid_rows: list[Fault] = field(default_factory=list)
    duplicate_rows: list[Fault] = field(default_factory=list)
    first: Content | None = None

    @property
    def messages(self) -> int:
        return self.recipients - self.invalid - self.duplicate


class Intake:
    """A ledger that is being written, under a name of its own until `finish`: a job is there whole or not at all."""

    def __init__(self, path: Path, order: Order, *, created: float) -> None:
        self._path = path
        self._new = path.with_name(f".{path.name}.new")
        self._order = order
        self._created = created
        self._contents: dict[str, int] = {}
        self._last: tuple[Content, int] | None = None
        self.tally = Tally()
        self.is_finished = False
        with LEDGER.explained(self._new):
            database.create(self._new)
            self._db = LEDGER.connect(self._new)
            # Nothing of it counts before it is whole, so nothing of it needs to survive.
            self._db.execute("PRAGMA journal_mode = OFF")
            self._db.execute("PRAGMA synchronous = OFF")
            self._db.execute(f"PRAGMA cache_size = -{_CACHE_KIB}")
            self._db.execute("BEGIN")
            LEDGER.build(self._db, SCHEMA)

    def take(self, rows: Iterable[Row | Fault], wording: Wording) -> None:
        """Write every row. Raises UsageError for a file that cannot be read to its end, and ConfigurationError."""
        with LEDGER.explained(self._new):
            for row in rows:
                self.tally.recipients += 1
                if isinstance(row, Fault):
                    self._refuse(row)
                else:
                    self._take(row, wording)

    def _take(self, row: Row, wording: Wording) -> None:
        try:
            content = wording.content(row)
        except UnfilledError as error:
            self._refuse(Fault(row.line, row.phone, error.reason))
        except UsageError as error:
            self._refuse(Fault(row.line, row.phone, error.message))
        else:
            self._add(row, content)

    def _add(self, row: Row, content: Content) -> None:
        tally = self.tally
        added = self._db.execute(
            "INSERT OR IGNORE INTO recipient VALUES (?, ?, ?)", (self._content(content), row.line, row.phone)
        )
        if not added.rowcount:
            self._repeat(row)
            return
        tally.segments += content.segments
        tally.credits += content.cost
        tally.first = tally.first or content

    def _content(self, content: Content) -> int:
        """The number of a content; the same one for the same parameters."""
        if self._last is None or self._last[0] is not content:
            self._last = (content, self._number(content))
        return self._last[1]

    def _number(self, content: Content) -> int:
        text = json.dumps(content.parameters, ensure_ascii=False, separators=(",", ":"))
        number = self._contents.get(text)
        if number is None:
            digest = hashlib.blake2b(text.encode(), digest_size=16).digest()
            self._db.execute(
                "INSERT OR IGNORE INTO content (digest, parameters, cost) VALUES (?, ?, ?)",
                (digest, text, content.cost),
            )
            (number,) = self._db.execute("SELECT id FROM content WHERE digest = ?", (digest,)).fetchone()
            if len(self._contents) >= _REMEMBERED:
                self._contents.clear()
            self._contents[text] = number
        return number

    def _refuse(self, fault: Fault) -> None:
        self.tally.invalid += 1
        self._exclude(fault, Outcome.INVALID, self.tally.invalid_rows)

    def _repeat(self, row: Row) -> None:
        (line,) = self._db.execute("SELECT line FROM recipient WHERE phone = ?", (row.phone,)).fetchone()
        self.tally.duplicate += 1
        fault = Fault(row.line, row.phone, f"the number stands in line {line} already")
        self._exclude(fault, Outcome.DUPLICATE, self.tally.duplicate_rows)

    def _exclude(self, fault: Fault, outcome: Outcome, examples: list[Fault]) -> None:
        if len(examples) < MOST_EXAMPLES:
            examples.append(fault)
        self._db.execute("INSERT INTO excluded VALUES (?, ?, ?, ?)", (fault.line, fault.phone, outcome, fault.reason))

    def finish(self) -> None:
        """Make the job be there: whole, on the disk, under its name. Raises ConfigurationError."""
        members = {
            "order": json.dumps(self._order.document()),
            "created": repr(self._created),
            "sendable": str(self.tally.messages),
        }
        with LEDGER.explained(self._new):
            with closing(self._db) as db:
                db.executemany("INSERT INTO job VALUES (?, ?)", members.items())
                for statement in INDEXES:
                    db.execute(statement)
                db.execute("COMMIT")
                # Set here, where nobody else can have it open yet.
                db.execute("PRAGMA journal_mode = WAL")
            private.sync(self._new)
            self._new.rename(self._path)
            self.is_finished = True
            private.sync(self._path.parent)

    def discard(self) -> None:
        """Forget a ledger that was not finished."""
        with suppress(sqlite3.Error):
            self._db.close()
        with suppress(OSError):
            self._new.unlink(missing_ok=True)
