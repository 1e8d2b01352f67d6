"""The sandbox's state: one SQLite file that several threads and processes may use at the same time.

It is in WAL mode, so that readers and a writer do not wait for each other, and what was committed outlives the
process however it ends.
"""

from __future__ import annotations

import os
import sqlite3
from collections import deque
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Lock

from msgctl.sandbox.schema import FIRST_CREDITS, SCHEMA, STATE, TABLES
from msgctl.storage import database
from msgctl.storage import files as private
from msgctl.storage.database import BrokenError, transaction

_ACCOUNT = f"INSERT INTO account (credits) VALUES ({FIRST_CREDITS})"  # noqa: S608 - the number is ours


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
        with STATE.understood(path):
            database.provide(path)
            with _alone(path.parent), closing(_connect(path)) as db:
                _prepare(db, path)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A transaction that sees one moment of the state and must not change it."""
        with STATE.understood(self.path), self._connection() as db, transaction(db, "BEGIN"):
            yield db

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that is alone in writing; it is undone whole where the block raises."""
        with STATE.understood(self.path), self._writer, self._connection() as db, transaction(db):
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
    except BrokenError:
        with STATE.explained(path):
            database.delete(path)


def _connect(path: Path) -> sqlite3.Connection:
    db = STATE.connect(path)
    try:
        db.row_factory = sqlite3.Row
        # In WAL mode this may lose the last commits to a power cut, but none to a killed process.
        db.execute("PRAGMA synchronous = NORMAL")
    except sqlite3.Error:
        db.close()
        raise
    return db


def _prepare(db: sqlite3.Connection, path: Path) -> None:
    """Make what the file lacks. Raises ConfigurationError for what is not ours."""
    STATE.prepare(db, path, (*SCHEMA, _ACCOUNT))
    db.execute("PRAGMA journal_mode = WAL")


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One process, or thread, at a time: SQLite does not wait where two change the journal mode of a new file."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        private.take(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _empty(path: Path) -> None:
    state = State(path)
    try:
        with state.writing() as db:
            for table in TABLES:
                db.execute(f"DELETE FROM {table}")  # noqa: S608 - the names are ours
            db.execute(_ACCOUNT)
    finally:
        state.close()
