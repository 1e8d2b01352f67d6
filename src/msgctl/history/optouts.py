"""The opt-out list: people who do not want messages from this machine's user, from any account."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from msgctl.storage import files
from msgctl.storage.files import FileFormat

if TYPE_CHECKING:
    import sqlite3

OPTOUTS = FileFormat(
    name="the opt-out list",
    application=0x6D736775,  # "msgu"
    version=1,
    fix="Restore it from a backup, or rename it and import the numbers again.",
    # Running jobs read the list for every commit, and wait while a long list is being imported.
    most_wait=60.0,
    schema=("CREATE TABLE optouts (phone TEXT PRIMARY KEY, added REAL NOT NULL) WITHOUT ROWID",),
)


def exist() -> bool:
    """Return whether there is an opt-out list. Raises ConfigurationError if that cannot be checked."""
    with files.explained("read", path := _path()):
        return path.exists()


class OptOut(NamedTuple):
    """A number, in international digits, and when it was added, in seconds since 1970."""

    phone: str
    added: float


def add(phones: Iterable[str], now: float) -> tuple[int, int]:
    """Add all numbers or none; return the number of all and of new ones."""
    with _opened(create=True) as db:
        # Read the whole file before the list is locked: jobs send nothing while it is locked.
        db.execute("CREATE TEMP TABLE given (phone TEXT NOT NULL)")
        with files.transaction(db, "BEGIN"):
            given = db.executemany("INSERT INTO given VALUES (?)", zip(phones)).rowcount
        with files.transaction(db):
            new = db.execute("INSERT OR IGNORE INTO optouts SELECT phone, ? FROM given", (now,)).rowcount
    return max(given, 0), new


def remove(phones: Iterable[str]) -> list[str]:
    """Remove numbers; return the numbers that were on the list."""
    with _opened() as db:
        return [phone for phone in phones if db.execute("DELETE FROM optouts WHERE phone = ?", (phone,)).rowcount]


def every() -> Iterator[OptOut]:
    """Yield the whole list, sorted by number."""
    with _opened() as db:
        yield from map(OptOut._make, db.execute("SELECT phone, added FROM optouts ORDER BY phone"))


def among(phones: Collection[str]) -> list[str]:
    """Return the numbers in ``phones`` that are on the list."""
    with closing(Watch()) as watch:
        return watch.among(phones)


class Watch:
    """The current list, kept open for a job that checks it for each commit; any thread may use it."""

    def __init__(self) -> None:
        self._path = _path()
        self._lock = Lock()
        self._db: sqlite3.Connection | None = None
        self._status: os.stat_result | None = None

    def among(self, phones: Collection[str]) -> list[str]:
        """Return the numbers in ``phones`` that are on the list now. Raises ConfigurationError."""
        if not phones:
            return []
        with self._lock, OPTOUTS.explained(self._path):
            try:
                status = self._path.stat()
            except FileNotFoundError:
                return []
            if not (self._db and self._status and os.path.samestat(status, self._status)):  # a new or restored file
                if self._db:
                    self._db.close()
                self._db, self._status = OPTOUTS.open(self._path, create=True), status
            query = "SELECT phone FROM optouts WHERE phone IN (SELECT value FROM json_each(?))"
            return [phone for (phone,) in self._db.execute(query, (json.dumps([*phones]),))]

    def close(self) -> None:
        if self._db and self._lock.acquire(blocking=False):  # an abandoned thread may be using it
            self._db.close()


@contextmanager
def _opened(*, create: bool = False) -> Iterator[sqlite3.Connection]:
    """Open the list; without ``create``, a missing list is empty. Raises ConfigurationError."""
    if create or exist():
        with OPTOUTS.opened(_path(), create=True) as db:
            yield db
        return
    import sqlite3  # few commands need it

    with closing(sqlite3.connect(":memory:")) as db:
        OPTOUTS.build(db)
        yield db


def _path() -> Path:
    return files.state("optouts.sqlite3")
