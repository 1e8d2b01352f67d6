"""SQLite files of one user: private, known by their mark, and every fault explained."""

from __future__ import annotations

import os
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgctl.errors import ConfigurationError, place_of
from msgctl.text import clean

MOST_WAIT = 10.0
"""Seconds that a transaction waits for one of another process."""

_CHECK = "Check that you may read and write the file and its folder."
_HINTS = {
    sqlite3.SQLITE_FULL: "Free some space on the disk, then try again.",
    sqlite3.SQLITE_BUSY: "Another program holds it; try again when that is done.",
}
SENSELESS = (TypeError, ValueError, IndexError, OverflowError, AttributeError)
"""What is raised where something is made of values that are not what was put into a file."""


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Raise ConfigurationError, with what to do about it, for what SQLite or the file system refuses."""
    try:
        yield
    except sqlite3.Error as error:
        # The primary code is the low byte of the extended one.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        raise ConfigurationError(
            f"{clean(str(path))} cannot be used: {clean(str(error))}", _HINTS.get(code, _CHECK)
        ) from error
    except OSError as error:
        raise ConfigurationError(
            f"{clean(str(path))} cannot be used: {error.strerror or type(error).__name__}", _CHECK
        ) from error


@contextmanager
def understood(path: Path) -> Iterator[None]:
    """Like `explained`, around what is made of a file's content: anybody may have put something else into it."""
    with explained(path):
        try:
            yield
        except SENSELESS as error:
            raise sqlite3.DatabaseError(f"it holds what msgctl never put there ({place_of(error)})") from error


def require(kind: type, *values: object) -> None:
    """See that values out of a file are of the kind that was put there. Raises TypeError."""
    for value in values:
        if not isinstance(value, kind):
            raise TypeError(f"{type(value).__name__}, not {kind.__name__}")


def create(path: Path) -> sqlite3.Connection:
    """A new file (0600; SQLite would make it readable for all), and a connection to it. Raises FileExistsError."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
    return connect(path)


def connect(path: Path) -> sqlite3.Connection:
    """A connection to a file that is there, private and ours. Raises OSError, sqlite3.Error, ConfigurationError."""
    _check_file(path)
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=MOST_WAIT,
        isolation_level=None,
        check_same_thread=False,
    )


def check(db: sqlite3.Connection, path: Path, application: int, version: int) -> None:
    """See that a file is what it should be. Raises ConfigurationError."""
    (found,) = db.execute("PRAGMA application_id").fetchone()
    if found != application:
        raise ConfigurationError(f"{clean(str(path))} is a database, but of another kind", "Move it away.")
    (written,) = db.execute("PRAGMA user_version").fetchone()
    if written != version:
        age = "a newer" if written > version else "an older"
        raise ConfigurationError(f"{clean(str(path))} was written by {age} msgctl (schema {written})", "Use that one.")


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Commit what a block did, or nothing of it."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _check_file(path: Path) -> None:
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        raise ConfigurationError(f"{clean(str(path))} is not a plain file", "Move it away.")
    if status.st_uid != os.geteuid() and os.geteuid() != 0:
        raise ConfigurationError(f"{clean(str(path))} belongs to another user", "Move it away.")
    if status.st_mode & 0o077:
        raise ConfigurationError(
            f"others can read {clean(str(path))} (mode {stat.S_IMODE(status.st_mode):04o})",
            f"Make it private with: chmod 600 '{clean(str(path))}'",
        )
