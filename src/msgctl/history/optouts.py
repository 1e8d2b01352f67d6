"""The opt-out list: people who do not want messages from this machine's user, whatever the account."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from msgctl.storage import database
from msgctl.storage.database import FileFormat

OPTOUTS = FileFormat(
    name="the opt-out list",
    application=0x6D736775,  # "msgu"
    version=1,
    fix="Restore it from a backup, or move it away and import the numbers again.",
    most_wait=10.0,
)
_SCHEMA = ("CREATE TABLE optouts (phone TEXT PRIMARY KEY, added REAL NOT NULL) WITHOUT ROWID",)
_CHUNK = 10_000


class OptOut(NamedTuple):
    """A number, in international digits, and when it was added, in seconds since 1970."""

    phone: str
    added: float


def add(path: Path, phones: Iterable[str], now: float) -> tuple[int, int]:
    """Add numbers, all or none; return how many were given, and how many of them were new."""
    given = new = 0
    rest = iter(phones)
    with _opened(path, create=True) as db, database.transaction(db):
        while chunk := [(phone, now) for phone in islice(rest, _CHUNK)]:
            given += len(chunk)
            new += db.executemany("INSERT OR IGNORE INTO optouts VALUES (?, ?)", chunk).rowcount
    return given, new


def remove(path: Path, phones: Iterable[str]) -> list[str]:
    """Remove numbers; return those that were on the list."""
    with _opened(path, create=False) as db, database.transaction(db):
        return [phone for phone in phones if db.execute("DELETE FROM optouts WHERE phone = ?", (phone,)).rowcount]


def all_of(path: Path) -> Iterator[OptOut]:
    """Yield the whole list in the order of the numbers."""
    with _opened(path, create=False) as db:
        yield from map(OptOut._make, db.execute("SELECT phone, added FROM optouts ORDER BY phone"))


def among(path: Path, phones: Iterable[str]) -> list[str]:
    """Return those of some numbers that are on the list."""
    with _opened(path, create=False) as db:
        return [phone for phone in phones if db.execute("SELECT 1 FROM optouts WHERE phone = ?", (phone,)).fetchone()]


@contextmanager
def _opened(path: Path, *, create: bool) -> Iterator[sqlite3.Connection]:
    """Open the list; without ``create`` one that is not there is empty. Raises ConfigurationError."""
    with OPTOUTS.explained(path):
        if create:
            database.provide(path)
        with closing(OPTOUTS.connect(path) if create or path.exists() else _nothing()) as db:
            OPTOUTS.prepare(db, path, _SCHEMA)
            yield db


def _nothing() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)
