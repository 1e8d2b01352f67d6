"""SQLite files of the user. A `FileFormat` describes one kind: the history, a ledger, the sandbox's state."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

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
    which the statements in ``schema`` create, and those in ``upgrade`` create from the tables of the version before.
    ``fix`` is advice for a damaged file. A transaction waits up to ``max_wait`` seconds for another one. ``file`` is
    its name in the state directory, if there is only one file of this kind. A shared store imports the rows of
    ``table``.
    """

    name: str
    application: int
    version: int
    fix: str
    schema: tuple[str, ...]
    upgrade: tuple[str, ...] = ()
    max_wait: float = 10.0
    file: str = ""
    table: str = ""

    def path(self) -> Path:
        """Return the only file of this kind. Raises ConfigurationError."""
        return files.state(self.file)

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

    def connect(self, path: Path, *, read_only: bool = False) -> sqlite3.Connection:
        """Connect to an existing file for use by any thread, without checking its content.

        ``read_only`` works even on a read-only disk. Raises OSError and sqlite3.Error if it cannot be used.
        """
        import sqlite3

        mode = "rw"
        if read_only:
            # SQLite reads a write-ahead log only if it can write in the directory. Without a log, no data is missing.
            is_frozen = not os.access(path.parent, os.W_OK) and not path.with_name(path.name + "-wal").exists()
            mode = "ro&immutable=1" if is_frozen else "ro"
        return sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=self.max_wait,
            isolation_level=None,
            check_same_thread=False,
        )

    def open(self, path: Path, *, create: bool = False, read_only: bool = False) -> sqlite3.Connection:
        """Open a file of this kind and version; ``create`` creates a missing file and its directory (0600 in 0700).

        Raises ConfigurationError, OSError and sqlite3.Error.
        """
        if create:
            files.make_folder(path.parent)
            with suppress(FileExistsError):
                path.touch(0o600, exist_ok=False)  # SQLite would create it readable by all
        db = self.connect(path, read_only=read_only)
        with ExitStack() as stack:
            stack.callback(db.close)
            if not read_only:
                # With FULL, a power cut could undo the last commit: it can restore the rollback journal that SQLite has
                # deleted. For a write-ahead log, EXTRA is the same as FULL.
                db.execute("PRAGMA synchronous = EXTRA")
            if create and db.execute("PRAGMA application_id").fetchone() == (0,):
                with transaction(db):
                    if db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):  # it is still empty
                        self.build(db)
            (application,) = db.execute("PRAGMA application_id").fetchone()
            if application != self.application:
                if not path.stat().st_size:
                    raise ConfigurationError(f"{self.name.capitalize()} {files.shown(path)} is empty", self.fix)
                raise ConfigurationError(f"{files.shown(path)} is a database, but not {self.name}", "Rename it.")
            version = self._upgraded(db, read_only=read_only)
            what = f"{self.name.capitalize()} {files.shown(path)} was written by"
            if version > self.version:
                raise ConfigurationError(f"{what} a newer msgctl (schema {version})", "Update this msgctl.")
            if version < self.version:
                raise BrokenError(f"{what} an older msgctl (schema {version})", self.fix)
            stack.pop_all()
        return db

    def _upgraded(self, db: sqlite3.Connection, *, read_only: bool) -> int:
        """Return the version of a file's tables, after the upgrade if there is one.

        A ``read_only`` connection gets the new tables as empty temporary tables, which hide the former ones.
        """
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if not (self.upgrade and version == self.version - 1):
            return int(version)
        if read_only:
            for statement in self.upgrade:
                if statement.lstrip().startswith("CREATE TABLE"):
                    db.execute(statement.replace("CREATE TABLE", "CREATE TEMP TABLE", 1))
            return self.version
        with transaction(db):
            if db.execute("PRAGMA user_version").fetchone() == (version,):  # no process was faster
                for statement in self.upgrade:
                    db.execute(statement)
                db.execute(f"PRAGMA user_version = {self.version}")
        return self.version

    @contextmanager
    def opened(self, path: Path, *, create: bool = False, read_only: bool = False) -> Iterator[sqlite3.Connection]:
        """Open a file for a block, as `open` does, with errors explained. Raises ConfigurationError."""
        with self.explained(path):
            db = self.open(path, create=create, read_only=read_only)
            try:
                yield db
            finally:
                db.close()

    def verify(self, db: sqlite3.Connection, path: Path) -> None:
        """Check a file for damage. Raises BrokenError and sqlite3.Error.

        ``PRAGMA quick_check`` would miss a changed value that differs from the one in an index, such as a phone.
        """
        (found,) = db.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise BrokenError(f"{self.name.capitalize()} {files.shown(path)} is damaged: {found}", self.fix)

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


class Transactional(Protocol):
    """A connection to SQLite, or one that understands its transactions (`msgctl.storage.records.Connection`)."""

    @property
    def in_transaction(self) -> bool: ...
    def execute(self, statement: str, /) -> object: ...


@contextmanager
def transaction(db: Transactional, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Commit all changes of the block, or none."""
    db.execute(begin)
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
