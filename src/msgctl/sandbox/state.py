"""The sandbox's state: one SQLite file that several threads and processes may use at the same time.

It is in WAL mode, so that readers and a writer do not wait for each other, and what was committed outlives the
process however it ends.
"""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Lock

from msgctl.database import SENSELESS
from msgctl.errors import ConfigurationError, place_of
from msgctl.sandbox import schema
from msgctl.text import clean

MOST_WAIT = 30.0
"""Seconds that a transaction waits for one of another process."""

_RESET = "Move it away; the sandbox of this machine is made new by: msgctl sandbox reset"
_CHECK = "Check that you may write the file and its folder."
_HINTS = {
    sqlite3.SQLITE_NOTADB: _RESET,
    sqlite3.SQLITE_CORRUPT: _RESET,
    sqlite3.SQLITE_ERROR: _RESET,
    sqlite3.SQLITE_FULL: "Free some space on the disk, then try again.",
    sqlite3.SQLITE_BUSY: "Another program holds it; try again when that is done.",
}


class State:
    """An open state file, made with its folder (0600 in 0700) where there is none.

    Raises ConfigurationError, here and from both kinds of transaction, where the file is not a sandbox state, comes
    from a newer msgctl, or cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        # Connections that no thread is using. They outlive the threads: a server may start one a client.
        self._idle: deque[sqlite3.Connection] = deque()
        # Waiting here is fair and wakes at once, while SQLite's own wait sleeps and looks again.
        self._writer = Lock()
        with explained(path):
            _make_folder(path.parent)
            with _alone(path.parent), closing(_connect(path)) as db:
                _prepare(db, path)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A transaction that sees one moment of the state and must not change it."""
        with explained(self.path), self._connection() as db, _transaction(db, "BEGIN"):
            yield db

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is alone in writing; it is undone whole where the block raises."""
        with explained(self.path), self._writer, self._connection() as db, _transaction(db, "BEGIN IMMEDIATE"):
            yield db

    def close(self) -> None:
        """Close what no thread is using. The state can still be used: it is opened again."""
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        try:
            db = self._idle.pop()
        except IndexError:
            db = _connect(self.path)
        try:
            yield db
        except sqlite3.Error:
            db.close()
            raise
        except BaseException:
            self._idle.append(db)
            raise
        self._idle.append(db)


def remove(path: Path) -> None:
    """Make the state new: empty it, for a server may be using it; or delete its files where it is broken.

    Raises ConfigurationError where the files cannot be removed.
    """
    try:
        if path.exists():
            _empty(path)
    except ConfigurationError as error:
        if error.hint != _RESET:  # it is sound, and in use, or cannot be written
            raise
        with explained(path):
            for suffix in ("", "-wal", "-shm", "-journal"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Raise ConfigurationError, with what to do about it, for what SQLite or the file system refuses.

    What is in the file may be anything: where that makes no sense, it is broken.
    """
    unusable = f"the sandbox's state {clean(str(path))} cannot be used"
    try:
        yield
    except sqlite3.Error as error:
        # The primary code is the low byte of the extended one.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        raise ConfigurationError(f"{unusable}: {clean(str(error))}", _HINTS.get(code, _CHECK)) from error
    except (*SENSELESS, KeyError) as error:
        raise ConfigurationError(
            f"{unusable}: it holds what was never put there ({place_of(error)})", _RESET
        ) from error
    except OSError as error:
        raise ConfigurationError(f"{unusable}: {error.strerror or type(error).__name__}", _CHECK) from error


def _make_folder(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _connect(path: Path) -> sqlite3.Connection:
    # SQLite would make the file readable for all.
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    db = sqlite3.connect(path, timeout=MOST_WAIT, isolation_level=None, check_same_thread=False)
    try:
        db.row_factory = sqlite3.Row
        # In WAL mode this may lose the last commits to a power cut, but none to a killed process.
        db.execute("PRAGMA synchronous = NORMAL")
    except sqlite3.Error:
        db.close()
        raise
    return db


@contextmanager
def _transaction(db: sqlite3.Connection, begin: str) -> Iterator[None]:
    db.execute(begin)
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _is_ready(db: sqlite3.Connection, path: Path) -> bool:
    """Whether the tables are there; false for an empty file. Raises ConfigurationError for what is not ours."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if not tables and not application:
        return False
    if application != schema.APPLICATION_ID:
        raise ConfigurationError(f"{clean(str(path))} is a database, but not the sandbox's state", _RESET)
    if version != schema.VERSION:
        age = "a newer" if version > schema.VERSION else "an older"
        shown = clean(str(path))
        raise ConfigurationError(f"the sandbox's state {shown} was written by {age} msgctl (schema {version})", _RESET)
    return True


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    """Make the tables where there are none."""
    with _transaction(db, "BEGIN"):
        if _is_ready(db, path):
            return
    db.execute("PRAGMA journal_mode = WAL")
    with _transaction(db, "BEGIN IMMEDIATE"):
        for statement in schema.SCHEMA:
            db.execute(statement)
        db.execute("INSERT INTO account (credits) VALUES (?)", (schema.FIRST_CREDITS,))
        db.execute(f"PRAGMA user_version = {schema.VERSION}")
        db.execute(f"PRAGMA application_id = {schema.APPLICATION_ID}")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process, or thread, at a time: SQLite does not wait where two change the journal mode of a new file."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _empty(path: Path) -> None:
    state = State(path)
    try:
        with state.writing() as db:
            for table in schema.TABLES:
                db.execute(f"DELETE FROM {table}")  # noqa: S608 - the names are ours
            db.execute("INSERT INTO account (credits) VALUES (?)", (schema.FIRST_CREDITS,))
    finally:
        state.close()
