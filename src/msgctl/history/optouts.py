"""The opt-out list: people who do not want messages from this machine's user, from any account."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from msgctl.operations import CHANNELS
from msgctl.storage import database, files
from msgctl.storage.database import FileFormat

if TYPE_CHECKING:
    import sqlite3

ALL = "all"
"""The channel of people who have opted out of every channel."""

TABLE = """CREATE TABLE optouts (
    phone TEXT NOT NULL, channel TEXT NOT NULL, added REAL NOT NULL, PRIMARY KEY (phone, channel)
) WITHOUT ROWID"""

OPTOUTS = FileFormat(
    name="the opt-out list",
    application=0x6D736775,  # "msgu"
    version=2,
    fix="Restore it from a backup, or rename it and import the numbers again.",
    # Running jobs read the list for every commit, and wait while a long list is being imported.
    most_wait=60.0,
    schema=(TABLE,),
    upgrade=(
        "ALTER TABLE optouts RENAME TO without_channels",
        TABLE,
        "INSERT INTO optouts SELECT phone, 'all', added FROM without_channels",
        "DROP TABLE without_channels",
    ),
)


def exist() -> bool:
    """Return whether there is an opt-out list. Raises ConfigurationError if that cannot be checked."""
    with files.explained("read", path := file()):
        return path.exists()


class OptOut(NamedTuple):
    """A number in international digits, its channel or `ALL`, and when it was added, in seconds since 1970."""

    phone: str
    channel: str
    added: float


def add(entries: Iterable[tuple[str, str]], now: float) -> tuple[int, int]:
    """Add all numbers with their channels, or none; return the number of all and of new ones.

    A number that has opted out of all channels is not new for one of them.
    """
    with _opened(create=True) as db:
        # Read the whole file before the list is locked: jobs send nothing while it is locked.
        db.execute("CREATE TEMP TABLE given (phone TEXT NOT NULL, channel TEXT NOT NULL)")
        with database.transaction(db, "BEGIN"):
            given = db.executemany("INSERT INTO given VALUES (?, ?)", entries).rowcount
        with database.transaction(db):
            new = db.execute(
                """INSERT OR IGNORE INTO optouts SELECT phone, channel, ? FROM given
                WHERE NOT EXISTS (SELECT 1 FROM optouts AS old WHERE old.phone = given.phone AND old.channel = ?)""",
                (now, ALL),
            ).rowcount
    return max(given, 0), new


def remove(phones: Iterable[str], channel: str = ALL) -> list[str]:
    """Remove numbers for a channel, or for all; return the numbers that were on the list for it.

    A number that had opted out of all channels stays on the list for the others.
    """
    others = json.dumps([each for each in CHANNELS if each != channel])
    removed = []
    with _opened() as db, database.transaction(db):
        for phone in phones:
            if channel != ALL:
                db.execute(
                    """INSERT OR IGNORE INTO optouts SELECT phone, value, added FROM optouts, json_each(?)
                    WHERE phone = ? AND channel = ?""",
                    (others, phone, ALL),
                )
            deleted = db.execute(
                "DELETE FROM optouts WHERE phone = ? AND (channel IN (?, ?) OR ? = ?)",
                (phone, channel, ALL, channel, ALL),
            )
            if deleted.rowcount:
                removed.append(phone)
    return removed


def every() -> Iterator[OptOut]:
    """Yield the whole list, sorted by number."""
    with _opened() as db:
        yield from map(OptOut._make, db.execute("SELECT phone, channel, added FROM optouts ORDER BY phone, channel"))


def of(channel: str) -> Iterator[str]:
    """Yield the numbers that have opted out of a channel, or of all."""
    with _opened() as db:
        query = "SELECT DISTINCT phone FROM optouts WHERE channel IN (?, ?)"
        yield from (phone for (phone,) in db.execute(query, (channel, ALL)))


def among(phones: Collection[str], channel: str) -> list[str]:
    """Return the numbers in ``phones`` that have opted out of a channel, or of all."""
    with closing(Watch(channel)) as watch:
        return watch.among(phones)


class Watch:
    """The current list for one channel, kept open for a job that checks it for each commit; any thread may use it."""

    def __init__(self, channel: str) -> None:
        self._channel = channel
        self._path = file()
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
            query = """SELECT DISTINCT phone FROM optouts
                WHERE phone IN (SELECT value FROM json_each(?)) AND channel IN (?, ?)"""
            values = json.dumps([*phones]), self._channel, ALL
            return [phone for (phone,) in self._db.execute(query, values)]

    def close(self) -> None:
        if self._db and self._lock.acquire(blocking=False):  # an abandoned thread may be using it
            self._db.close()


@contextmanager
def _opened(*, create: bool = False) -> Iterator[sqlite3.Connection]:
    """Open the list; without ``create``, a missing list is empty. Raises ConfigurationError."""
    if create or exist():
        with OPTOUTS.opened(file(), create=True) as db:
            yield db
        return
    import sqlite3  # few commands need it

    with closing(sqlite3.connect(":memory:")) as db:
        OPTOUTS.build(db)
        yield db


def file() -> Path:
    """Return the file of the opt-outs."""
    return files.state("optouts.sqlite3")
