"""The file of the history: its tables, and how it is made and opened."""

from __future__ import annotations

import sqlite3
from contextlib import suppress
from pathlib import Path

from msgctl.storage import database
from msgctl.storage.database import FileFormat

HISTORY = FileFormat(
    name="the history",
    application=0x6D736768,  # "msgh"
    version=1,
    fix="Move it away, or start afresh with: msgctl history clear",
    most_wait=2.0,
)

# A number is never used again, also after a clearance: an answer that comes late must not be noted elsewhere.
# time is in UTC, YYYY-MM-DDTHH:MM:SSZ, which sorts as text.
_SCHEMA = (
    """
    CREATE TABLE dispatches (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        time TEXT NOT NULL,
        profile TEXT NOT NULL,
        base_url TEXT NOT NULL,
        command TEXT NOT NULL,
        message TEXT NOT NULL
    )
    """,
    """
    CREATE TABLE entries (
        dispatch INTEGER NOT NULL,
        position INTEGER NOT NULL,
        phone TEXT,
        outcome TEXT NOT NULL,
        id TEXT,
        status TEXT,
        credits TEXT,
        PRIMARY KEY (dispatch, position)
    ) WITHOUT ROWID
    """,
)


def connect(path: Path) -> sqlite3.Connection:
    """A connection to the file, which is made with its folder (0600 in 0700) where there is none.

    Raises ConfigurationError where the file is not safe or not ours, sqlite3.Error and OSError where it cannot be used.
    """
    database.provide(path)
    db = HISTORY.connect(path)
    try:
        HISTORY.prepare(db, path, _SCHEMA)
        _use_log(db)
    except BaseException:
        db.close()
        raise
    return db


def _use_log(db: sqlite3.Connection) -> None:
    # Another process that changes it at this moment, or is at work in a new file, keeps this one from it: until next
    # time it does without.
    db.execute("PRAGMA busy_timeout = 0")
    with suppress(sqlite3.OperationalError):
        db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA busy_timeout = {HISTORY.most_wait * 1000:.0f}")
