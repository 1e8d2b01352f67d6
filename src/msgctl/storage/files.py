"""The user's private files: 0600 in directories of 0700, refused if other users can read or replace them.

The files are in the platform's directories for configuration and state. A file is replaced completely or not at all. A
`FileFormat` describes one kind of SQLite file: the history, a ledger, the sandbox's state.

Other users of the machine are hostile. So a file and its directory must belong to this user or to root, and no other
user may be able to put another file in its place.
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

MAX_WAIT = 10.0
"""Seconds that a change waits for a change by another process."""
PAUSE = 0.01

MAKE_ROOM = "Free some space on the disk, then try again."
CHECK_PERMISSIONS = "Check the permissions of the file and its directory."
NEEDS_LOCKS = "Its file system does not support locks. Set XDG_STATE_HOME to a directory on a local disk."

MAX_LINKS = 40
"""Maximum symbolic links that are followed from one path, as in Linux."""

SIDE_FILES = ("-wal", "-shm", "-journal")
"""The suffixes of the files that SQLite keeps beside a database."""


def make_folder(path: Path) -> None:
    """Create a directory and its parents (0700) if missing. Raises OSError, or ConfigurationError if it is unsafe."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        # Path.mkdir(parents=True) would create the parents with the default mode.
        if path.parent == path:
            raise
        make_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
    check_directory(path)


def read(path: Path) -> bytes | None:
    """Return the content of a private file, or None if it does not exist. A file of root may be readable by its group.

    The file is opened once, and the open file is checked, because the path could lead to another file a moment later.
    Raises ConfigurationError if `check` or `check_directory` refuses it, or if it cannot be read.
    """
    with explained("read", path):
        try:
            # Without O_NONBLOCK, opening a named pipe would wait for a writer.
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        except FileNotFoundError:
            return None
        except PermissionError:
            _check_readable(path, path.stat())  # the error suggests the command that fixes it
            raise
        try:
            _check_readable(path, os.fstat(descriptor))
            _check_directories(path)
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read()
        finally:
            os.close(descriptor)


def read_limited(path: Path, limit: int) -> bytes:
    """Return the content of a file of any owner, which may be endless. Raises ConfigurationError."""
    with explained("read", path), path.open("rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ConfigurationError(
            f"{shown(path)} is larger than {limit // 2**20} MiB, the limit", "Specify another file."
        )
    return content


def check(path: Path, status: os.stat_result, name: str = "", *, allowed: int = 0o700) -> None:
    """Check that a file is regular, belongs to this user or root, and has no permissions other than the allowed ones.

    Messages contain ``name`` and the path. Raises ConfigurationError.
    """
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISREG(status.st_mode):
        kind = "a symbolic link, not a" if stat.S_ISLNK(status.st_mode) else "not a"
        fault, fix = f"is {kind} regular file", "Rename it, or specify another file."
    elif not _is_trusted(status):
        fault, fix = "belongs to another user: check its contents before you take it over", _chown(path)
    elif mode & 0o777 & ~allowed:
        fault = f"is {'writable' if mode & 0o022 else 'readable'} by other users (mode {mode:04o})"
        fix = f"{_sudo(status)}chmod {'640' if _sudo(status) else '600'} {typed(path)}"
    else:
        return
    raise ConfigurationError(f"{name[:1].upper()}{name[1:]} {shown(path)} {fault}".lstrip(), fix)


def _check_readable(path: Path, status: os.stat_result) -> None:
    """Check a file like `check`, but allow a file of root to be readable by its group."""
    check(path, status, allowed=0o740 if status.st_uid == 0 else 0o700)


def check_directory(path: Path) -> None:
    """Refuse a directory in which another user can replace files. Raises ConfigurationError.

    With the sticky bit, as in /tmp, only the owner of a file can replace it.
    """
    try:
        status = path.stat()
    except OSError:
        return  # it is missing, or a later step fails
    mode = stat.S_IMODE(status.st_mode)
    is_shared = mode & stat.S_IWOTH or (mode & stat.S_IWGRP and status.st_gid != os.getegid())
    if not _is_trusted(status):
        fault, fix = "belongs to another user: check its contents before you take it over", _chown(path)
    elif is_shared and not mode & stat.S_ISVTX:
        fault = f"is writable by {'every user' if mode & stat.S_IWOTH else 'another group'} (mode {mode:04o})"
        fix = f"{_sudo(status)}chmod go-w {typed(path)}"
    else:
        return
    raise ConfigurationError(f"The directory {shown(path)} {fault}", fix)


def _check_directories(path: Path) -> None:
    """Check the directory of a file, and of each symbolic link on the way to it. Raises ConfigurationError."""
    for _ in range(MAX_LINKS):
        check_directory(path.parent)
        if not path.is_symlink():
            return
        path = path.parent / path.readlink()


def _is_trusted(status: os.stat_result) -> bool:
    return status.st_uid in (0, os.geteuid())


def _sudo(status: os.stat_result) -> str:
    """Return ``sudo`` and a space if this user needs it to change a file, or an empty string."""
    return "" if os.geteuid() in (0, status.st_uid) else "sudo "


def _chown(path: Path) -> str:
    return f"chown root {typed(path)}" if os.geteuid() == 0 else f"sudo chown $USER {typed(path)}"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, so that processes change it one after the other.

    The lock is a separate file, ``.NAME.lock``, because the file itself is replaced. It is beside the target of a
    symbolic link, so that all processes use the same lock. Raises ConfigurationError.
    """
    target = _target(path)
    lock, unchanged = _beside(target, "lock"), "nothing was changed"
    with explained("lock", lock, unchanged):
        make_folder(path.parent)
        _check_directories(path)
        if target.exists():
            _check_readable(path, target.stat())
    with held(lock, MAX_WAIT, consequence=unchanged) as descriptor:
        check(lock, os.fstat(descriptor))
        yield


class HeldError(ConfigurationError):
    """Another process holds a lock."""


@contextmanager
def held(
    path: Path,
    wait: float | None = None,
    *,
    flags: int = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW,
    consequence: str = "",
) -> Iterator[int]:
    """Hold the lock of a file, and yield its descriptor. The system releases the lock at any end of the process.

    ``flags`` open the file; by default, a missing one is created (0600). Raises HeldError if another process holds the
    lock for longer than ``wait`` seconds (default: wait indefinitely), and ConfigurationError.
    """
    with explained("lock", path, consequence):
        descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        with explained("lock", path, consequence):
            if wait is None:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            elif not _take(descriptor, wait):
                what = f"Another program holds {shown(path)}"
                raise HeldError(what, "Try again when it is done.", consequence=consequence)
        yield descriptor
    finally:
        os.close(descriptor)


def _take(descriptor: int, wait: float) -> bool:
    """Take a lock, or return False if another process holds it for too long. Raises OSError."""
    deadline = time.monotonic() + wait
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(PAUSE)


def is_held(path: Path) -> bool:
    """Return whether a process holds the lock of a file. Raises ConfigurationError."""
    with explained("lock", path), suppress(FileNotFoundError), path.open("rb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def write(path: Path, content: bytes) -> None:
    """Replace a file with a new one (0600), completely or not at all, even if the machine stops at any moment.

    The target of a symbolic link is replaced, not the link. If root replaces a file that its group can read, the new
    file stays readable by the group. The caller holds the lock, so an existing temporary file is from a process that
    was killed. Raises ConfigurationError.
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
                if os.geteuid() == 0 and target.exists() and (old := target.stat()).st_mode & stat.S_IRGRP:
                    os.fchown(descriptor, -1, old.st_gid)
                    os.fchmod(descriptor, 0o640)
                os.fsync(descriptor)
            new.replace(target)
        except BaseException:
            with suppress(OSError):
                new.unlink()
            raise
    with suppress(OSError):  # the new file is already in place
        sync(target.parent)


def _target(path: Path) -> Path:
    """Return the path with all symbolic links resolved."""
    return Path(os.path.realpath(path))


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(f".{path.name}.{suffix}")


def sync(path: Path) -> None:
    """Write a file, or the entries of a directory, to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def explained(doing: str, path: Path, consequence: str = "") -> Iterator[None]:
    """Convert an OSError to ConfigurationError, with a hint: ``Cannot read PATH: Permission denied``."""
    try:
        yield
    except OSError as error:
        hints = {
            errno.ENOSPC: MAKE_ROOM,
            errno.EDQUOT: MAKE_ROOM,
            errno.ENOLCK: NEEDS_LOCKS,
            errno.ENOTSUP: NEEDS_LOCKS,
        }
        raise ConfigurationError(
            f"Cannot {doing} {shown(path)}: {error.strerror or type(error).__name__}",
            hints.get(error.errno or 0, CHECK_PERMISSIONS),
            consequence=consequence,
        ) from error


def config_file(environ: Mapping[str, str]) -> Path:
    """Return the file in MSGCTL_CONFIG, or else ``config.toml`` in the platform's configuration directory.

    Raises ConfigurationError without a home directory, or if the variable begins with ``~`` and an unknown user.
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

    with _needs_home():
        return platformdirs.user_config_path("msgctl") / "config.toml"


def state(name: str) -> Path:
    """Return a file or directory in the platform's state directory, such as ``history.sqlite3``.

    Raises ConfigurationError if another user can replace files there, or if there is no home directory.
    """
    import platformdirs

    with _needs_home():
        directory = platformdirs.user_state_path("msgctl")
    check_directory(directory)
    return directory / name


@contextmanager
def _needs_home() -> Iterator[None]:
    """Convert the error for a user without an entry in the password database, as in many containers."""
    try:
        yield
    except RuntimeError:
        raise ConfigurationError(
            "There is no home directory: HOME is not set, and this user has no account", "Set HOME to a directory."
        ) from None


def shown(path: Path) -> str:
    """Return a path for a message, with ``~`` for the home directory."""
    home, below = _split_home(path)
    return clean(home + below)


def typed(path: Path) -> str:
    """Return a path for a shell command, quoted if necessary."""
    home, below = _split_home(path)
    return clean(home + shlex.quote(below))


def _split_home(path: Path) -> tuple[str, str]:
    """Return ``~/`` and the rest of a path in the home directory; otherwise an empty string and the whole path."""
    home = os.environ.get("HOME", "").rstrip("/") + "/"
    text = str(path)
    return ("~/", text.removeprefix(home)) if len(home) > 1 and text.startswith(home) else ("", text)


# --- SQLite files


class BrokenError(ConfigurationError):
    """A file that this version of msgctl cannot read, and that must be replaced."""


@dataclass(frozen=True, slots=True)
class FileFormat:
    """A kind of SQLite file.

    ``name`` is its name in messages. Its header contains ``application``, and ``version`` is the version of its tables,
    which the statements in ``schema`` create, and those in ``upgrade`` create from the tables of the version before.
    ``fix`` is advice for a damaged file. A transaction waits up to ``most_wait`` seconds for another one.
    """

    name: str
    application: int
    version: int
    fix: str
    schema: tuple[str, ...]
    upgrade: tuple[str, ...] = ()
    most_wait: float = 10.0

    @contextmanager
    def explained(self, path: Path) -> Iterator[None]:
        """Convert errors of SQLite and the file system to ConfigurationError, with a hint."""
        import sqlite3

        try:
            with explained(f"use {self.name}", path):
                yield
        except sqlite3.Error as error:
            kind, hint = ConfigurationError, CHECK_PERMISSIONS
            # The primary code is the low byte of the extended one.
            match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF:
                case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_ERROR:  # the tables are missing
                    kind, hint = BrokenError, self.fix
                case sqlite3.SQLITE_FULL:
                    hint = MAKE_ROOM
                case sqlite3.SQLITE_IOERR:  # includes a full disk or quota
                    hint = "Check that the disk works and has space left."
                case sqlite3.SQLITE_BUSY:
                    hint = "Another program is using it. Try again when it is done."
            raise kind(f"Cannot use {self.name} {shown(path)}: {error}", hint) from error

    def connect(self, path: Path, *, read_only: bool = False) -> sqlite3.Connection:
        """Connect to an existing file for use by any thread, without checking its content.

        ``read_only`` works even on a read-only disk. Raises ConfigurationError if the file, its directory or a file
        that SQLite keeps beside it is not safe, and OSError and sqlite3.Error if it cannot be used.
        """
        import sqlite3

        # SQLite opens a file by name. In a directory that passes the check, no other user can replace the file
        # afterwards. Closing a separate descriptor of the file would release the locks of this process.
        check_directory(path.parent)
        check(path, path.lstat(), self.name)
        for ending in SIDE_FILES:
            with suppress(FileNotFoundError):
                beside = path.with_name(path.name + ending)
                check(beside, beside.lstat(), self.name, allowed=0o755)
        mode = "rw"
        if read_only:
            # SQLite reads a write-ahead log only if it can write in the directory. Without a log, no data is missing.
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
        """Open a file of this kind and version; ``create`` creates a missing file and its directory (0600 in 0700).

        Raises ConfigurationError, OSError and sqlite3.Error.
        """
        if create:
            make_folder(path.parent)
            with suppress(FileExistsError):
                path.touch(0o600, exist_ok=False)  # SQLite would create it readable by all
        db = self.connect(path, read_only=read_only)
        with ExitStack() as stack:
            stack.callback(db.close)
            if create and db.execute("PRAGMA application_id").fetchone() == (0,):
                with transaction(db):
                    if db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):  # it is still empty
                        self.build(db)
            (application,) = db.execute("PRAGMA application_id").fetchone()
            if application != self.application:
                raise ConfigurationError(f"{shown(path)} is a database, but not {self.name}", "Rename it.")
            version = self._upgraded(db)
            if version != self.version:
                age = "a newer" if version > self.version else "an older"
                what = f"{self.name.capitalize()} {shown(path)} was written by {age} msgctl (schema {version})"
                raise BrokenError(what, self.fix)
            stack.pop_all()
        return db

    def _upgraded(self, db: sqlite3.Connection) -> int:
        """Return the version of a file's tables, after the upgrade if there is one."""
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if not (self.upgrade and version == self.version - 1):
            return int(version)
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
            raise BrokenError(f"{self.name.capitalize()} {shown(path)} is damaged: {found}", self.fix)

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
