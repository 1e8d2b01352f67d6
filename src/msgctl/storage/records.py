"""The records that decide who may get a message: --once keys, opt-outs and contacts.

They are in files on this machine, or in a database that several machines share (`msgctl.storage.shared`). Their
statements are written once, in SQL for both.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol

from msgctl.errors import ConfigurationError, StoreNotReachedError
from msgctl.storage import files
from msgctl.storage.database import FileFormat

RECORD_ERRORS = ConfigurationError, StoreNotReachedError
"""Errors of records that cannot be read or written."""


class RowCount(Protocol):
    """The number of rows that a statement has changed."""

    @property
    def rowcount(self) -> int: ...


class Cursor(RowCount, Protocol):
    """The result of a statement."""

    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection to records, as in `sqlite3`. Statements outside of a `transaction` are committed at once."""

    @property
    def in_transaction(self) -> bool: ...
    def execute(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ..., /) -> Cursor: ...
    def executemany(self, statement: str, values: Iterable[Any], /) -> RowCount: ...
    def close(self) -> None: ...


class Records(Protocol):
    """The records in one place. Each kind of record has the tables of a `FileFormat`.

    If they are shared, ``owner`` is the name of this machine, which other machines show, and ``place`` is the database.
    """

    is_shared: bool
    owner: str
    place: str

    def identity(self, kind: FileFormat) -> object:
        """Return a value that changes if the records are replaced, such as by a backup; None without records."""

    def explained(self, kind: FileFormat) -> AbstractContextManager[None]:
        """Convert errors of the database to `RECORD_ERRORS`."""

    def connect(self, kind: FileFormat) -> Connection:
        """Return a new connection for any thread. Use it in a block of `explained`."""

    def opened(self, kind: FileFormat) -> AbstractContextManager[Connection]:
        """Open a connection for a block, and convert errors. Only one thread may use it."""

    def locked(
        self, kind: FileFormat, name: str, is_enough: Callable[[Connection], bool], *, max_idle: float = ...
    ) -> AbstractContextManager[tuple[Connection, bool]]:
        """Hold a named lock for a block, and yield a connection and whether the lock is held.

        Wait while another process holds the lock, or until ``is_enough`` returns true: reading without it is enough. In
        a database, the lock is lost if the connection is idle for ``max_idle`` seconds; 0 means no limit.
        """

    def check(self) -> None:
        """Check that a shared database can be reached. Raises one of `RECORD_ERRORS`."""

    def set_wait(self, db: Connection, seconds: float) -> None:
        """Set the maximum time that a transaction waits for another one."""

    def stream(self, db: Connection, statement: str, values: Sequence[Any] | Mapping[str, Any]) -> Iterator[Any]:
        """Yield the rows of a query, without loading them all into memory."""

    def close(self) -> None: ...


class LocalRecords:
    """Records in files on this machine."""

    is_shared = False
    owner = ""
    place = ""

    def identity(self, kind: FileFormat) -> object:
        with files.explained("read", path := kind.path()):
            try:
                status = path.stat()
            except FileNotFoundError:
                return None
        return status.st_dev, status.st_ino

    def explained(self, kind: FileFormat) -> AbstractContextManager[None]:
        return kind.explained(kind.path())

    def connect(self, kind: FileFormat) -> Connection:
        return kind.open(kind.path(), create=True)

    def opened(self, kind: FileFormat) -> AbstractContextManager[Connection]:
        return kind.opened(kind.path(), create=True)

    @contextmanager
    def locked(
        self, kind: FileFormat, name: str, is_enough: Callable[[Connection], bool], *, max_idle: float = 0
    ) -> Iterator[tuple[Connection, bool]]:
        del is_enough, max_idle  # the system releases the lock when the process ends, so it is never held for long
        path = kind.path()
        with kind.explained(path):
            files.make_folder(path.parent)
        with _locked(path.with_name(f".{name}.lock")):
            with kind.explained(path):
                db = kind.open(path, create=True)
            with closing(db):
                yield db, True

    def check(self) -> None:
        pass

    def set_wait(self, db: Connection, seconds: float) -> None:
        db.execute(f"PRAGMA busy_timeout = {seconds * 1000:.0f}")

    def stream(self, db: Connection, statement: str, values: Sequence[Any] | Mapping[str, Any]) -> Iterator[Any]:
        return iter(db.execute(statement, values))

    def close(self) -> None:
        pass


LOCAL = LocalRecords()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock file for the block and then delete it; a process that waited for it creates a new one."""
    is_ours = False
    while not is_ours:
        with files.held(path) as descriptor:
            with suppress(FileNotFoundError):
                is_ours = os.path.samestat(path.stat(), os.fstat(descriptor))
            if is_ours:
                try:
                    yield
                finally:
                    with suppress(OSError):
                        path.unlink()
