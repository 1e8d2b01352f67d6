"""SQLite files of one user: made private, known by their mark, and every fault explained.

What differs between the history, the ledgers of jobs and the sandbox's state is a `Kind`; the rest stands here.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from msgctl.errors import ConfigurationError, place_of
from msgctl.storage import files as private
from msgctl.text import clean

_SENSELESS = (TypeError, ValueError, LookupError, OverflowError, AttributeError)
"""What is raised where something is made of values that are not what was put into a file."""

_CHECK = "Check that you may read and write the file and its folder."
_HINTS = {
    sqlite3.SQLITE_FULL: private.MAKE_ROOM,
    # Also told of a disk that is full, where SQLite finds that out in its index of the log, and of a quota.
    sqlite3.SQLITE_IOERR: "Check that the disk works, and that there is space left on it.",
    sqlite3.SQLITE_BUSY: "Another program holds it; try again when that is done.",
}
# Told of a file that is not SQLite's, is damaged, or lacks a table.
_BROKEN = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR}


class BrokenError(ConfigurationError):
    """A file that holds what this msgctl cannot read; only another one in its place helps."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file.

    ``name`` is what a message calls one, ``application`` the mark in its header, ``version`` that of its tables,
    ``mend`` what the user can do about a broken one, and ``most_wait`` how many seconds a transaction waits for one of
    another process. Nobody else may read one that ``is_private``, and no link may lead it elsewhere.
    """

    name: str
    application: int
    version: int
    mend: str
    most_wait: float
    is_private: bool = True

    def shown(self, path: Path) -> str:
        """What a message calls a file of this kind."""
        return f"{self.name} {clean(str(path))}"

    @contextmanager
    def explained(self, path: Path) -> Iterator[None]:
        """Raise ConfigurationError, with what to do about it, for what SQLite or the file system refuses."""
        unusable = f"{self.shown(path)} cannot be used"
        try:
            yield
        except sqlite3.Error as error:
            # The primary code is the low byte of the extended one.
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
            message = f"{unusable}: {clean(str(error))}"
            if code in _BROKEN:
                raise BrokenError(message, self.mend) from error
            raise ConfigurationError(message, _HINTS.get(code, _CHECK)) from error
        except OSError as error:
            message = f"{unusable}: {error.strerror or type(error).__name__}"
            raise ConfigurationError(message, private.MAKE_ROOM if private.is_full(error) else _CHECK) from error

    @contextmanager
    def understood(self, path: Path) -> Iterator[None]:
        """Like `explained`, around what is made of a file's content: anybody may have put something else into it."""
        with self.explained(path):
            try:
                yield
            except _SENSELESS as error:
                raise sqlite3.DatabaseError(f"it holds what msgctl never put there ({place_of(error)})") from error

    def connect(self, path: Path) -> sqlite3.Connection:
        """A connection to a file that is there, which any thread may use.

        Raises ConfigurationError where the file is not ours alone, OSError and sqlite3.Error where it cannot be used.
        """
        private.check(self.shown(path), path, path.lstat() if self.is_private else path.stat(), self.is_private)
        return sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=rw",
            uri=True,
            timeout=self.most_wait,
            isolation_level=None,
            check_same_thread=False,
        )

    def check(self, db: sqlite3.Connection, path: Path) -> None:
        """See that a file is of this kind and version. Raises ConfigurationError, and sqlite3.Error."""
        (application,) = db.execute("PRAGMA application_id").fetchone()
        if application != self.application:
            raise ConfigurationError(f"{clean(str(path))} is a database, but not {self.name}", "Move it away.")
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version != self.version:
            age = "a newer" if version > self.version else "an older"
            raise BrokenError(f"{self.shown(path)} was written by {age} msgctl (schema {version})", self.mend)

    def build(self, db: sqlite3.Connection, schema: Iterable[str]) -> None:
        """Make the tables, in the transaction that is open, and mark the file as one of this kind."""
        for statement in schema:
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {self.version}")
        db.execute(f"PRAGMA application_id = {self.application}")

    def prepare(self, db: sqlite3.Connection, path: Path, schema: Iterable[str]) -> None:
        """Make the tables where the file is empty; whoever else does so at the same time waits, and finds them.

        Raises ConfigurationError for what is not of this kind and version, and sqlite3.Error.
        """
        with transaction(db, "BEGIN"):
            if not _is_empty(db):
                self.check(db, path)
                return
        with transaction(db):
            if _is_empty(db):
                self.build(db, schema)


def create(path: Path) -> None:
    """Make an empty file (0600; SQLite would make it readable for all). Raises FileExistsError and OSError."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))


def provide(path: Path) -> None:
    """Make an empty file where there is none, and its folder (0700). Raises OSError."""
    private.make_folder(path.parent)
    with suppress(FileExistsError):
        create(path)


def delete(path: Path) -> None:
    """Delete a file with all that SQLite keeps beside it. Raises OSError."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


@contextmanager
def transaction(db: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Commit what a block did, or nothing of it."""
    db.execute(begin)
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def require(kind: type, *values: object) -> None:
    """See that values out of a file are of the kind that was put there. Raises TypeError."""
    for value in values:
        if not isinstance(value, kind):
            raise TypeError(f"{type(value).__name__}, not {kind.__name__}")


def _is_empty(db: sqlite3.Connection) -> bool:
    (application,) = db.execute("PRAGMA application_id").fetchone()
    (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    return not application and not tables
