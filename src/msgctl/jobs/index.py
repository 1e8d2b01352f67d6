"""An index of the jobs, so that commands about all jobs do not have to open each ledger.

It is derived from the ledgers, and the ledgers decide: an entry counts only while the ledger and its write-ahead log
are the same files, with the same sizes and times, as when it was read. A missing or damaged index is built again.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, NamedTuple, Self, TypeVar

from msgctl.errors import ConfigurationError
from msgctl.jobs.ledger import JobFacts, facts
from msgctl.jobs.model import JobSpec
from msgctl.jobs.schema import LEDGER, SUFFIX
from msgctl.phones import country_of
from msgctl.storage import database
from msgctl.storage.database import BrokenError, FileFormat, transaction

FORMAT = FileFormat(
    name="the index of jobs",
    application=0x6D736769,  # "msgi"
    version=1,
    fix="Delete it; msgctl builds it again.",
    max_wait=1.0,
    schema=(
        # The result of one query of a ledger (as JSON), and the ledger's stamp at that time.
        """CREATE TABLE entry (
            query TEXT NOT NULL, job TEXT NOT NULL, stamp TEXT NOT NULL, value TEXT NOT NULL,
            PRIMARY KEY (query, job)) WITHOUT ROWID""",
    ),
)
NAME = ".index"

SETTLED = 2.0
"""Seconds after its last change at which a ledger may be indexed. Two changes within one tick of the file system's
clock leave the same time."""

_IS_OPEN = "SELECT EXISTS (SELECT 1 FROM outcome WHERE state IN ('pending', 'sending', 'again', 'sending again'))"
# An infinite or negative charge, or one of more than twelve digits, is a mistake of the service, as in the history.
_SUMS = """SELECT minute, country, sum(accepted), total(CASE WHEN charged BETWEEN 0 AND 999999999999 THEN charged END)
    FROM (SELECT CAST(ended / 60 AS INTEGER) * 60 AS minute, country(phone) AS country,
        result.state = 'accepted' AS accepted, coalesce(CAST(credits AS NUMERIC), 0) + spent AS charged
        FROM recipient JOIN result USING (line) JOIN request ON number = request)
    GROUP BY minute, country"""

Found = TypeVar("Found")
"""The result of a query of a ledger."""


class MinuteSum(NamedTuple):
    """The accepted messages of a job in one minute (seconds since 1970) to one country, and the credits charged."""

    minute: int
    country: str | None
    messages: int
    credits: float


class Index:
    """The index of the jobs in a directory; it is written at the end of a ``with`` block.

    Every method raises ConfigurationError if the ledger of the job cannot be read.
    """

    def __init__(self, folder: Path, jobs: Sequence[str]) -> None:
        self.jobs = jobs
        self._folder = folder
        self._entries: dict[str, dict[str, tuple[str, str]]] = {}
        self._new: list[tuple[str, str, str, str]] = []
        self._is_broken = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self._new:
            return
        path = self._folder / NAME
        with suppress(ConfigurationError, OSError):  # the next command tries again
            if self._is_broken:
                database.delete(path)
            with FORMAT.opened(path, create=True) as db, transaction(db):
                db.executemany("INSERT OR REPLACE INTO entry VALUES (?, ?, ?, ?)", self._new)
                gone = "DELETE FROM entry WHERE job NOT IN (SELECT value FROM json_each(?))"
                db.execute(gone, (json.dumps([*self.jobs]),))

    def forget(self, job: str) -> None:
        """Delete a job from the index."""
        path = self._folder / NAME
        with suppress(ConfigurationError, OSError):  # the next change of the index tries again
            if {*self.jobs} <= {job}:
                database.delete(path)
            elif os.path.lexists(path):
                with FORMAT.opened(path) as db:
                    db.execute("PRAGMA secure_delete = ON")
                    db.execute("DELETE FROM entry WHERE job = ?", (job,))

    def facts(self, job: str) -> JobFacts:
        """Return the facts about a job."""

        def read(ledger: Path) -> list[Any]:
            found = facts(ledger)
            return [asdict(found.spec), *found[1:]]

        return self._find("facts", job, read, lambda value: JobFacts(JobSpec(**value[0]), *value[1:]))

    def is_open(self, job: str) -> bool:
        """Return whether a job has pending recipients, or recipients in flight."""

        def read(ledger: Path) -> bool:
            with LEDGER.opened(ledger, read_only=True) as db:
                return bool(db.execute(_IS_OPEN).fetchone()[0])

        return self._find("open", job, read, bool)

    def sums(self, job: str) -> list[MinuteSum]:
        """Return the messages and credits of a job."""

        def read(ledger: Path) -> list[Any]:
            with LEDGER.opened(ledger, read_only=True) as db:
                db.create_function("country", 1, country_of)
                return db.execute(_SUMS).fetchall()

        return self._find("sums", job, read, lambda value: [MinuteSum(*each) for each in value])

    def _find(self, query: str, job: str, read: Callable[[Path], Any], parse: Callable[[Any], Found]) -> Found:
        """Return the indexed result of a query if the ledger has not changed since; otherwise read the ledger."""
        stamp, changed = self._stamp(job)
        known = self._load(query).get(job)
        if known is not None and known[0] == stamp:
            with suppress(LookupError, TypeError, ValueError):  # another msgctl wrote it
                return parse(json.loads(known[1]))
        found = read(self._folder / f"{job}{SUFFIX}")
        if time.time() - changed > SETTLED:
            self._new.append((query, job, stamp, json.dumps(found)))
        return parse(found)

    def _load(self, query: str) -> dict[str, tuple[str, str]]:
        """Read the entries of a query, all at once."""
        if query not in self._entries:
            self._entries[query] = {}
            path = self._folder / NAME
            if os.path.lexists(path):
                try:
                    with FORMAT.opened(path) as db:
                        rows = db.execute("SELECT job, stamp, value FROM entry WHERE query = ?", (query,))
                        self._entries[query] = {job: (stamp, value) for job, stamp, value in rows}
                except BrokenError:
                    self._is_broken = True
                except ConfigurationError:  # the disk is read-only, or another process takes long to write
                    pass
        return self._entries[query]

    def _stamp(self, job: str) -> tuple[str, float]:
        """Return a stamp that identifies the content of a ledger, and the time of its last change."""
        stamp, changed = "", 0.0
        ledger = f"{self._folder}/{job}{SUFFIX}"
        for path in (ledger, f"{ledger}-wal"):
            with suppress(FileNotFoundError):
                status = os.lstat(path)
                if status.st_size:  # SQLite leaves an empty log after it only reads
                    stamp += f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} "
                    changed = max(changed, status.st_mtime)
        return stamp, changed
