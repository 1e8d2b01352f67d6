"""The opt-out list: people who do not want messages from this machine's user, whatever the account."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from msgctl.storage import files
from msgctl.storage.files import FileFormat

OPTOUTS = FileFormat(
    name="the opt-out list",
    application=0x6D736775,  # "msgu"
    version=1,
    fix="Restore it from a backup, or move it away and import the numbers again.",
    schema=("CREATE TABLE optouts (phone TEXT PRIMARY KEY, added REAL NOT NULL) WITHOUT ROWID",),
)


class OptOut(NamedTuple):
    """A number, in international digits, and when it was added, in seconds since 1970."""

    phone: str
    added: float


def add(phones: Iterable[str], now: float) -> tuple[int, int]:
    """Add numbers, all or none; return how many were given, and how many of them were new."""
    given = new = 0
    with _opened(create=True) as db, files.transaction(db):
        for phone in phones:
            given += 1
            new += db.execute("INSERT OR IGNORE INTO optouts VALUES (?, ?)", (phone, now)).rowcount
    return given, new


def remove(phones: Iterable[str]) -> list[str]:
    """Remove numbers; return those that were on the list."""
    with _opened() as db:
        return [phone for phone in phones if db.execute("DELETE FROM optouts WHERE phone = ?", (phone,)).rowcount]


def every() -> Iterator[OptOut]:
    """Yield the whole list in the order of the numbers."""
    with _opened() as db:
        yield from map(OptOut._make, db.execute("SELECT phone, added FROM optouts ORDER BY phone"))


def among(phones: Iterable[str]) -> list[str]:
    """Return those of some numbers that are on the list."""
    with _opened() as db:
        return [phone for phone in phones if db.execute("SELECT 1 FROM optouts WHERE phone = ?", (phone,)).fetchone()]


@contextmanager
def _opened(*, create: bool = False) -> Iterator[sqlite3.Connection]:
    """Open the list; without ``create`` one that is not there is empty. Raises ConfigurationError."""
    if create or files.has_optouts():
        with OPTOUTS.opened(files.state(files.OPTOUTS), create=True) as db:
            yield db
        return
    db = sqlite3.connect(":memory:")
    OPTOUTS.build(db)
    yield db
