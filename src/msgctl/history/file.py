"""The file of the history: made, checked, and opened, with what to do where that is refused."""

from __future__ import annotations

import os
import shlex
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgctl.errors import ConfigurationError
from msgctl.text import clean

APPLICATION_ID = 0x6D736768
"""The mark in the file's header that tells it from other SQLite files: ``msgh``."""

VERSION = 1

MOST_WAIT = 2.0
"""Seconds that a transaction waits for one of another process."""

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
    f"PRAGMA user_version = {VERSION}",
    f"PRAGMA application_id = {APPLICATION_ID}",
)

_CLEAR = "Move it away, or make it new with: msgctl history clear"
_MAY_WRITE = "Check that you may write the file and its folder."
_BROKEN = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR}
_HINTS = {
    sqlite3.SQLITE_FULL: "Free some space on the disk.",
    sqlite3.SQLITE_BUSY: "Another program holds it; try again when that is done.",
}


class BrokenError(ConfigurationError):
    """The file is no history that this msgctl can read; only making it new helps."""


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Raise ConfigurationError, with what to do about it, for what SQLite or the file system refuses."""
    shown = clean(str(path))
    try:
        yield
    except sqlite3.Error as error:
        # The primary code is the low byte of the extended one.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        message = f"the history {shown} cannot be used: {clean(str(error))}"
        if code in _BROKEN:
            raise BrokenError(message, _CLEAR) from error
        raise ConfigurationError(message, _HINTS.get(code, _MAY_WRITE)) from error
    except UnicodeDecodeError as error:
        raise BrokenError(f"the history {shown} cannot be used: it holds what is no text", _CLEAR) from error
    except OSError as error:
        message = f"the history {shown} cannot be used: {error.strerror or type(error).__name__}"
        raise ConfigurationError(message, _MAY_WRITE) from error


def connect(path: Path) -> sqlite3.Connection:
    """A connection to the file, which is made with its folder (0600 in 0700) where there is none.

    Raises ConfigurationError where the file is not safe or not ours, sqlite3.Error and OSError where it cannot be used.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # SQLite would make the file readable for all.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    _check(path, path.lstat())
    db = sqlite3.connect(path, timeout=MOST_WAIT, isolation_level=None)
    try:
        _prepare(db, path)
    except BaseException:
        db.close()
        raise
    return db


def _check(path: Path, status: os.stat_result) -> None:
    """What was sent, and to whom, is nobody else's business, and a link could lead it anywhere."""
    shown, typed = clean(str(path)), clean(shlex.quote(str(path)))
    if not stat.S_ISREG(status.st_mode):
        kind = "a symbolic link, and no" if stat.S_ISLNK(status.st_mode) else "not a"
        raise ConfigurationError(f"the history {shown} is {kind} plain file", "Move it away.")
    if status.st_uid != os.geteuid() and os.geteuid() != 0:
        raise ConfigurationError(
            f"the history {shown} belongs to another user", f"Take it over with: sudo chown $USER {typed}"
        )
    if status.st_mode & 0o077:
        raise ConfigurationError(
            f"others can read the history {shown} (mode {stat.S_IMODE(status.st_mode):04o})",
            f"Make it private with: chmod 600 {typed}",
        )


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables where there are none. Raises ConfigurationError for what is not ours."""
    with transaction(db, "BEGIN"):
        ready = _is_ready(db, path)
    if not ready:
        with transaction(db, "BEGIN IMMEDIATE"):
            for statement in () if _is_ready(db, path) else _SCHEMA:
                db.execute(statement)
    # Another process that changes it at this moment, or is at work in a new file, keeps this one from it: until next
    # time it does without.
    db.execute("PRAGMA busy_timeout = 0")
    with suppress(sqlite3.OperationalError):
        db.execute("PRAGMA journal_mode = WAL")
    db.execute(f"PRAGMA busy_timeout = {MOST_WAIT * 1000:.0f}")


def _is_ready(db: sqlite3.Connection, path: Path) -> bool:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not tables and not application:
        return False
    if application != APPLICATION_ID:
        raise ConfigurationError(f"{clean(str(path))} is a database, but not the history", "Move it away.")
    if version != VERSION:
        age = "a newer" if version > VERSION else "an older"
        raise BrokenError(f"the history {clean(str(path))} was written by {age} msgctl (schema {version})", _CLEAR)
    return True


@contextmanager
def transaction(db: sqlite3.Connection, begin: str) -> Iterator[None]:
    """A transaction, which is undone whole where the block raises."""
    db.execute(begin)
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
