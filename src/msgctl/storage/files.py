"""The user's private files: 0600 in folders of 0700, refused if others can read them, replaced whole or not at all.

They are in the platform's folders for configuration and state. A `FileFormat` describes what differs between the SQLite
files: the history, the ledgers of jobs, the sandbox's state.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shlex
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from msgctl.errors import ConfigurationError
from msgctl.text import clean, shorten

if TYPE_CHECKING:
    import sqlite3

MOST_WAIT = 10.0
"""Seconds that a change waits for one of another process."""
PAUSE = 0.01

MAKE_ROOM = "Free some space on the disk, then try again."
CHECK_PERMISSIONS = "Check the permissions of the file and its folder."


def make_folder(path: Path) -> None:
    """Make a folder and its parents (0700) if missing. Raises OSError."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        # Path.mkdir(parents=True) would make the parents with the mode that the umask leaves.
        if path.parent == path:
            raise
        make_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def read(path: Path) -> bytes | None:
    """Return the content of a private file, or None if there is no file.

    Raises ConfigurationError if other users can read the file or replace it, if it belongs to another user, is not a
    regular file, or cannot be read.
    """
    with explained("read", path):
        try:
            check(path, path.stat())
        except FileNotFoundError:
            return None
        check_folder(path.parent)
        return path.read_bytes()


def check(path: Path, status: os.stat_result, *, name: str = "", is_private: bool = True) -> None:
    """Check that a file is a regular one and, if it is private, that it belongs to this user and only they can read it.

    ``name`` is what messages call it beside its path. Raises ConfigurationError.
    """
    if not stat.S_ISREG(status.st_mode):
        kind = "a symbolic link, not a" if stat.S_ISLNK(status.st_mode) else "not a"
        fault, fix = f"is {kind} regular file", "Move it away, or name another file."
    elif is_private and status.st_uid != os.geteuid() and os.geteuid() != 0:
        fault, fix = "belongs to another user", f"sudo chown $USER {typed(path)}"
    elif is_private and status.st_mode & 0o077:
        mode = stat.S_IMODE(status.st_mode)
        fault, fix = f"is readable by other users (mode {mode:04o})", f"chmod 600 {typed(path)}"
    else:
        return
    raise ConfigurationError(f"{name.capitalize()} {shown(path)} {fault}".lstrip(), fix)


def check_folder(path: Path) -> None:
    """Refuse a folder in which every user can replace files. Raises ConfigurationError."""
    with suppress(OSError):  # a folder that cannot be examined fails when it is used
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise ConfigurationError(
                f"The folder {shown(path)} is writable by every user (mode {mode:04o})",
                f"chmod 700 {typed(path)}",
            )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, so that processes that change it do so one after the other.

    The lock is a file of its own, ``.NAME.lock``, since the file itself is replaced. It is beside the file that a
    symbolic link leads to, so that everyone takes the same lock. Raises ConfigurationError.
    """
    target = _target(path)
    lock = _beside(target, "lock")
    with explained("create", lock, "nothing was changed"):
        make_folder(path.parent)
        check_folder(path.parent)
        if target.exists():
            check(path, target.stat(), is_private=False)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        with explained("lock", lock, "nothing was changed"):
            _take(descriptor, lock)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, lock: Path) -> None:
    """Take a lock. Raises ConfigurationError if another process holds it for too long, and OSError."""
    deadline = time.monotonic() + MOST_WAIT
    while True:
        with suppress(BlockingIOError):
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if time.monotonic() > deadline:
            what = f"Another program holds {shown(lock)}"
            raise ConfigurationError(what, "Try again when it is done.", consequence="nothing was changed")
        time.sleep(PAUSE)


def write(path: Path, content: bytes) -> None:
    """Replace a file with a new one (0600), whole or not at all, even if the machine stops at any moment.

    A symbolic link stays, and the file that it leads to is replaced. The caller holds the lock, so a half-written file
    that is already there was left by a process that died. Raises ConfigurationError.
    """
    target = _target(path)
    new = _beside(target, "new")
    with explained("write", path, "nothing was changed"):
        new.unlink(missing_ok=True)
        try:
            descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(descriptor)
            new.replace(target)
        except BaseException:
            with suppress(OSError):
                new.unlink()
            raise
    with suppress(OSError):  # the new file is in place, whatever happens to the folder's entry now
        sync(target.parent)


def _target(path: Path) -> Path:
    """Return the path that all symbolic links lead to."""
    return Path(os.path.realpath(path))


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(f".{path.name}.{suffix}")


def sync(path: Path) -> None:
    """Write a file, or the entries of a folder, to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def explained(doing: str, path: Path, consequence: str = "") -> Iterator[None]:
    """Turn an OSError into ConfigurationError, with a hint: ``Cannot read PATH: Permission denied``."""
    try:
        yield
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        raise ConfigurationError(
            f"Cannot {doing} {shown(path)}: {error.strerror or type(error).__name__}",
            MAKE_ROOM if is_full else CHECK_PERMISSIONS,
            consequence=consequence,
        ) from error


def config_file(environ: Mapping[str, str]) -> Path:
    """Return the file that MSGCTL_CONFIG names, else ``config.toml`` in the platform's configuration folder.

    Raises ConfigurationError if there is no home folder, or the variable names that of an unknown user.
    """
    named = environ.get("MSGCTL_CONFIG")
    if named:
        try:
            return Path(named).expanduser().absolute()
        except (RuntimeError, OSError):
            raise ConfigurationError(
                f'MSGCTL_CONFIG must be a path, not "{shorten(named)}"', "Give an absolute path."
            ) from None
    import platformdirs

    try:
        return platformdirs.user_config_path("msgctl") / "config.toml"
    except RuntimeError:
        raise _no_home() from None


OPTOUTS = "optouts.sqlite3"


def state(name: str) -> Path:
    """Return a file or folder in the platform's state folder, such as ``history.sqlite3``.

    Raises ConfigurationError if there is no home folder.
    """
    import platformdirs

    try:
        return platformdirs.user_state_path("msgctl") / name
    except RuntimeError:
        raise _no_home() from None


def _no_home() -> ConfigurationError:
    """Return the error for a user without an entry in the password database, as in many containers."""
    return ConfigurationError(
        "There is no home folder: HOME is not set, and this user has no account", "Set HOME to a folder."
    )


def has_optouts() -> bool:
    """Return whether there is an opt-out list. Raises ConfigurationError if that cannot be checked."""
    with explained("read", path := state(OPTOUTS)):
        return path.exists()


def shown(path: Path) -> str:
    """Return a path for a message, with ``~`` for the home folder."""
    home, below = _split_home(path)
    return clean(home + below)


def typed(path: Path) -> str:
    """Return a path as one types it in a shell: quoted if necessary."""
    home, below = _split_home(path)
    return clean(home + shlex.quote(below))


def _split_home(path: Path) -> tuple[str, str]:
    """Return ``~/`` and the rest of a path below the home folder; nothing and the whole path for another one."""
    home = os.environ.get("HOME", "").rstrip("/") + "/"
    text = str(path)
    return ("~/", text.removeprefix(home)) if len(home) > 1 and text.startswith(home) else ("", text)


# --- SQLite files


class BrokenError(ConfigurationError):
    """A file that this version of msgctl cannot read, and that must be replaced."""


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
        import sqlite3

        try:
            with explained(f"use {self.name}", path):
                yield
        except sqlite3.Error as error:
            kind, hint = ConfigurationError, CHECK_PERMISSIONS
            # The primary code is the low byte of the extended one.
            match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF:
                case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_ERROR:  # or without the tables
                    kind, hint = BrokenError, self.fix
                case sqlite3.SQLITE_FULL:
                    hint = MAKE_ROOM
                case sqlite3.SQLITE_IOERR:  # also for a full disk or quota
                    hint = "Check that the disk works and has space left."
                case sqlite3.SQLITE_BUSY:
                    hint = "Another program is using it. Try again when it is done."
            raise kind(f"Cannot use {self.name} {shown(path)}: {error}", hint) from error

    def connect(self, path: Path, *, read_only: bool = False) -> sqlite3.Connection:
        """Connect to an existing file, whatever is in it, for use by any thread.

        ``read_only`` also works on a disk that cannot be written to. Raises ConfigurationError if the file is not
        private, OSError and sqlite3.Error if it cannot be used.
        """
        import sqlite3

        status = path.lstat() if self.is_private else path.stat()
        check(path, status, name=self.name, is_private=self.is_private)
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
            make_folder(path.parent)
            with suppress(FileExistsError):
                path.touch(0o600, exist_ok=False)  # SQLite would make it readable for all
        db = self.connect(path, read_only=read_only)
        with ExitStack() as stack:
            stack.callback(db.close)
            if create and db.execute("PRAGMA application_id").fetchone() == (0,):
                with transaction(db):
                    if db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):  # no process was faster
                        self.build(db)
            (application,) = db.execute("PRAGMA application_id").fetchone()
            if application != self.application:
                raise ConfigurationError(f"{shown(path)} is a database, but not {self.name}", "Move it away.")
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version != self.version:
                age = "a newer" if version > self.version else "an older"
                what = f"{self.name.capitalize()} {shown(path)} was written by {age} msgctl (schema {version})"
                raise BrokenError(what, self.fix)
            stack.pop_all()
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

    def verify(self, db: sqlite3.Connection, path: Path) -> None:
        """Check a file for damage (``PRAGMA quick_check``). Raises BrokenError and sqlite3.Error."""
        (found,) = db.execute("PRAGMA quick_check(1)").fetchone()
        if found != "ok":
            raise BrokenError(f"{self.name.capitalize()} {shown(path)} is damaged: {found}", self.fix)

    def build(self, db: sqlite3.Connection) -> None:
        """Make the tables, in the open transaction, and mark the file as one of this kind."""
        for statement in self.schema:
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {self.version}")
        db.execute(f"PRAGMA application_id = {self.application}")


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
