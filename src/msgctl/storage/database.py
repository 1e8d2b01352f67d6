"""The user's SQLite files: private, marked with what they hold, with every error explained.

A `FileFormat` describes what differs between the history, the ledgers of jobs and the sandbox's state.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from msgctl.errors import ConfigurationError
from msgctl.storage import files

_HINTS = {
    sqlite3.SQLITE_FULL: files.MAKE_ROOM,
    # SQLite also reports a full disk or quota like this.
    sqlite3.SQLITE_IOERR: "Check that the disk works and has space left.",
    sqlite3.SQLITE_BUSY: "Another program is using it. Try again when it is done.",
}
_DAMAGED = {sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR}
"""Not a SQLite file, a damaged one, or one without the tables."""


class BrokenError(ConfigurationError):
    """A file that this msgctl cannot read; only replacing it helps."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A kind of SQLite file.

    ``name`` is what messages call it, ``application`` the mark in its header, ``version`` that of its tables, ``fix``
    what the user can do about a damaged one, ``most_wait`` the seconds that a transaction waits for another one, and
    ``schema`` the statements that make its tables. A private file must not be readable by others, nor be a symbolic
    link.
    """

    name: str
    application: int
    version: int
    fix: str
    schema: tuple[str, ...]
    most_wait: float = 10.0
    is_private: bool = True

    @contextmanager
    def explained(self, path: Path) -> Iterator[None]:
        """Turn errors of SQLite and the file system into ConfigurationError, with a hint."""
        try:
            with files.explained(f"use {self.name}", path):
                yield
        except sqlite3.Error as error:
            # The primary code is the low byte of the extended one.
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
            kind, hint = ConfigurationError, _HINTS.get(code, files.CHECK_PERMISSIONS)
            if code in _DAMAGED:
                kind, hint = BrokenError, self.fix
            raise kind(f"Cannot use {self.name} {files.shown(path)}: {error}", hint) from error

    def connect(self, path: Path, *, read_only: bool = False) -> sqlite3.Connection:
        """Connect to an existing file, whatever is in it, for use by any thread.

        ``read_only`` also works on a disk that cannot be written to. Raises ConfigurationError if the file is not ours
        alone, OSError and sqlite3.Error if it cannot be used.
        """
        status = path.lstat() if self.is_private else path.stat()
        files.check(path, status, name=self.name, is_private=self.is_private)
        mode = "rw"
        if read_only:
            # SQLite reads a write-ahead log only if it may write beside it. Without a log, nothing is missing.
            is_frozen = not os.access(path.parent, os.W_OK) and not path.with_name(path.name + "-wal").exists()
            mode = "ro&immutable=1" if is_frozen else "ro"
        return sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=self.most_wait,
            isolation_level=None,
            check_same_thread=False,
        )

    def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> sqlite3.Connection:
        """Open a file of this kind and version; ``create`` makes a missing one and its folder (0600 in 0700).

        Raises ConfigurationError, OSError and sqlite3.Error.
        """
        if create:
            files.make_folder(path.parent)
            with suppress(FileExistsError):
                new_file(path)
        db = self.connect(path, read_only=read_only)
        try:
            if create and db.execute("PRAGMA application_id").fetchone() == (0,):
                with transaction(db):
                    if db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):  # no process was faster
                        self.build(db)
            self.check(db, path)
        except BaseException:
            db.close()
            raise
        return db

    @contextmanager
    def opened(self, path: Path, *, create: bool = False, read_only: bool = False) -> Iterator[sqlite3.Connection]:
        """Open a file for a block, as `open` does, with errors explained. Raises ConfigurationError."""
        with self.explained(path):
            db = self.open(path, create=create, read_only=read_only)
            try:
                yield db
            finally:
                db.close()

    def check(self, db: sqlite3.Connection, path: Path) -> None:
        """Check that a file is of this kind and version. Raises ConfigurationError and sqlite3.Error."""
        (application,) = db.execute("PRAGMA application_id").fetchone()
        if application != self.application:
            raise ConfigurationError(f"{files.shown(path)} is a database, but not {self.name}", "Move it away.")
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version != self.version:
            age = "a newer" if version > self.version else "an older"
            what = f"{self.name} {files.shown(path)} was written by {age} msgctl (schema {version})"
            raise BrokenError(what, self.fix)

    def verify(self, db: sqlite3.Connection, path: Path) -> None:
        """Check a file for damage (``PRAGMA quick_check``). Raises BrokenError and sqlite3.Error."""
        (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise BrokenError(f"{self.name} {files.shown(path)} is damaged: {found}", self.fix)

    def build(self, db: sqlite3.Connection) -> None:
        """Make the tables, in the open transaction, and mark the file as one of this kind."""
        for statement in self.schema:
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {self.version}")
        db.execute(f"PRAGMA application_id = {self.application}")


def new_file(path: Path) -> None:
    """Make an empty file (0600; SQLite would make it readable for all). Raises FileExistsError and OSError."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))


def delete(path: Path) -> None:
    """Delete a file and what SQLite keeps beside it. Raises OSError."""
    for suffix in ("", "-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


@contextmanager
def transaction(db: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Commit what the block does, or nothing of it."""
    db.execute(begin)
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
