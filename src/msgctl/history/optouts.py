"""The opt-out list: people who do not want messages, from any account. It is on this machine, or shared by several."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from threading import Lock
from typing import NamedTuple

from msgctl.operations import CHANNELS
from msgctl.storage import database
from msgctl.storage.database import FileFormat
from msgctl.storage.records import Connection, Records

ALL = "all"
"""The channel of people who have opted out of every channel."""

TABLE = """CREATE TABLE optouts (
    phone TEXT NOT NULL, channel TEXT NOT NULL, added REAL NOT NULL, PRIMARY KEY (phone, channel)
) WITHOUT ROWID"""

OPTOUTS = FileFormat(
    name="the opt-out list",
    file="optouts.sqlite3",
    table="optouts",
    application=0x6D736775,  # "msgu"
    version=2,
    fix="Restore it from a backup, or rename it and import the numbers again.",
    # Running jobs read the list for every commit, and wait while a long list is being imported.
    max_wait=60.0,
    schema=(TABLE,),
    upgrade=(
        "ALTER TABLE optouts RENAME TO without_channels",
        TABLE,
        "INSERT INTO optouts SELECT phone, 'all', added FROM without_channels",
        "DROP TABLE without_channels",
    ),
)


class OptOut(NamedTuple):
    """A number in international digits, its channel or `ALL`, and when it was added, in seconds since 1970."""

    phone: str
    channel: str
    added: float


def add(records: Records, entries: Iterable[tuple[str, str]], now: float) -> tuple[int, int]:
    """Add all numbers with their channels, or none; return how many were given and how many are new.

    A number that has opted out of all channels is not new for one of them.
    """
    with records.opened(OPTOUTS) as db:
        # Read the whole file before the list is locked: jobs send nothing while it is locked.
        with database.transaction(db, "BEGIN"):
            db.execute("CREATE TEMP TABLE given (phone TEXT NOT NULL, channel TEXT NOT NULL)")
            given = db.executemany("INSERT INTO given VALUES (?, ?)", entries).rowcount
        with database.transaction(db):
            new = db.execute(
                """INSERT INTO optouts SELECT phone, channel, ? FROM given
                WHERE NOT EXISTS (SELECT 1 FROM optouts AS old WHERE old.phone = given.phone AND old.channel = ?)
                ON CONFLICT DO NOTHING""",
                (now, ALL),
            ).rowcount
        db.execute("DROP TABLE given")
    return max(given, 0), new


def remove(records: Records, phones: Iterable[str], channel: str = ALL) -> list[str]:
    """Remove numbers for a channel, or for all; return the numbers that were on the list for it.

    A number that had opted out of all channels stays on the list for the others.
    """
    if records.identity(OPTOUTS) is None:
        return []
    others = json.dumps([each for each in CHANNELS if each != channel])
    removed = []
    with records.opened(OPTOUTS) as db, database.transaction(db):
        for phone in phones:
            if channel != ALL:
                db.execute(
                    """INSERT INTO optouts SELECT phone, value, added FROM optouts, json_each(?)
                    WHERE phone = ? AND channel = ? ON CONFLICT DO NOTHING""",
                    (others, phone, ALL),
                )
            deleted = db.execute(
                "DELETE FROM optouts WHERE phone = ? AND (channel IN (?, ?) OR ? = ?)",
                (phone, channel, ALL, channel, ALL),
            )
            if deleted.rowcount:
                removed.append(phone)
    return removed


def every(records: Records) -> Iterator[OptOut]:
    """Yield the whole list, sorted by number."""
    if records.identity(OPTOUTS) is not None:
        with records.opened(OPTOUTS) as db:
            query = "SELECT phone, channel, added FROM optouts ORDER BY phone, channel"
            yield from map(OptOut._make, records.stream(db, query, ()))


def of(records: Records, channel: str) -> Iterator[str]:
    """Yield the numbers that have opted out of a channel, or of all."""
    if records.identity(OPTOUTS) is not None:
        with records.opened(OPTOUTS) as db:
            query = "SELECT DISTINCT phone FROM optouts WHERE channel IN (?, ?)"
            yield from (phone for (phone,) in records.stream(db, query, (channel, ALL)))


def among(records: Records, phones: Collection[str], channel: str) -> list[str]:
    """Return the numbers in ``phones`` that have opted out of a channel, or of all."""
    if not phones or records.identity(OPTOUTS) is None:
        return []
    with records.opened(OPTOUTS) as db:
        return _among(db, phones, channel)


def _among(db: Connection, phones: Collection[str], channel: str) -> list[str]:
    query = """SELECT DISTINCT phone FROM optouts
        WHERE phone IN (SELECT value FROM json_each(?)) AND channel IN (?, ?)"""
    return [phone for (phone,) in db.execute(query, (json.dumps([*phones]), channel, ALL)).fetchall()]


class Watch:
    """The current list for one channel, kept open for a job that checks it for each commit; any thread may use it."""

    def __init__(self, records: Records, channel: str) -> None:
        self._records = records
        self._channel = channel
        self._lock = Lock()
        self._db: Connection | None = None
        self._identity: object = None

    def among(self, phones: Collection[str]) -> list[str]:
        """Return the numbers in ``phones`` that are on the list now. Raises one of `RECORD_ERRORS`."""
        if not phones:
            return []
        with self._lock, self._records.explained(OPTOUTS):
            identity = self._records.identity(OPTOUTS)
            if identity is None:
                return []
            if self._db is None or identity != self._identity:  # a new or restored file
                if self._db is not None:
                    self._db.close()
                self._db, self._identity = self._records.connect(OPTOUTS), identity
            return _among(self._db, phones, self._channel)

    def close(self) -> None:
        if self._db and self._lock.acquire(blocking=False):  # an abandoned thread may be using it
            self._db.close()
