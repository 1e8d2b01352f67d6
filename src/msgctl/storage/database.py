"""SQLite files of the user, beside the store: the state of the sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msgctl.errors import ConfigurationError
from msgctl.storage import files

if TYPE_CHECKING:
    import sqlite3

SIDE_FILES = ("-wal", "-shm", "-journal")
"""The suffixes of the files that SQLite keeps beside a database."""


class BrokenError(ConfigurationError):
    """A file that this version of msgctl cannot read, and that must be replaced."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A kind of SQLite file.

    ``name`` is its name in messages. Its header contains ``application``, and ``version`` is the version of its tables,
    which the statements in ``schema`` create. ``fix`` is advice for a damaged file. A transaction waits up to
    ``max_wait`` seconds for another one.
    """

    name: str
    application: int
    version: int
    fix: str
    schema: tuple[str, ...]
    max_wait: float

    @contextmanager
    def explained(self, path: Path) -> Iterator[None]:
        """Convert errors of SQLite and the file system to ConfigurationError, with a hint."""
        import sqlite3

        try:
            with files.explained(f"use {self.name}", path):
                yield
        except sqlite3.Error as error:
            kind, hint = ConfigurationError, files.CHECK_PERMISSIONS
            # The primary code is the low byte of the extended one.
            match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF:
                case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_ERROR:  # the tables are missing
                    kind, hint = BrokenError, self.fix
                case sqlite3.SQLITE_FULL:
                    hint = files.MAKE_ROOM
                case sqlite3.SQLITE_IOERR:  # includes a full disk or quota
                    hint = "Check that the disk works and has space left."
                case sqlite3.SQLITE_BUSY:
                    hint = "Another program is using it. Try again when it is done."
            raise kind(f"Cannot use {self.name} {files.shown(path)}: {error}", hint) from error

    def connect(self, path: Path) -> sqlite3.Connection:
        """Connect to an existing file for use by any thread, without checking its content. Raises sqlite3.Error."""
        import sqlite3

        return sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=rw",
            uri=True,
            timeout=self.max_wait,
            isolation_level=None,
            check_same_thread=False,
        )

    def open(self, path: Path) -> sqlite3.Connection:
        """Open a file of this kind and version; create it and its directory (0600 in 0700) if it is missing.

        Raises ConfigurationError, OSError and sqlite3.Error.
        """
        files.make_folder(path.parent)
        with suppress(FileExistsError):
            path.touch(0o600, exist_ok=False)  # SQLite would create it readable by all
        db = self.connect(path)
        with ExitStack() as stack:
            stack.callback(db.close)
            # With FULL, a power cut could undo the last commit: it can restore the rollback journal that SQLite has
            # deleted. For a write-ahead log, EXTRA is the same as FULL.
            db.execute("PRAGMA synchronous = EXTRA")
            if db.execute("PRAGMA application_id").fetchone() == (0,):
                with transaction(db):
                    if db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):  # it is still empty
                        self.build(db)
            (application,) = db.execute("PRAGMA application_id").fetchone()
            if application != self.application:
                raise ConfigurationError(f"{files.shown(path)} is a database, but not {self.name}", "Rename it.")
            (version,) = db.execute("PRAGMA user_version").fetchone()
            what = f"{self.name.capitalize()} {files.shown(path)} was written by"
            if version > self.version:
                raise ConfigurationError(f"{what} a newer msgctl (schema {version})", "Update this msgctl.")
            if version < self.version:
                raise BrokenError(f"{what} an older msgctl (schema {version})", self.fix)
            stack.pop_all()
        return db

    def build(self, db: sqlite3.Connection) -> None:
        """Create the tables in the open transaction, and set the file's kind and version."""
        for statement in self.schema:
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {self.version}")
        db.execute(f"PRAGMA application_id = {self.application}")


def delete(path: Path) -> None:
    """Delete a file and the files that SQLite keeps beside it. Raises OSError."""
    for suffix in ("", *SIDE_FILES):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


@contextmanager
def transaction(db: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Commit all changes of the block, or none."""
    db.execute(begin)
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
