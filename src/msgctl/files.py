"""The user's private files (0600 in directories of 0700), in the platform's directories for configuration and state.

A file is replaced completely or not at all.
"""

from __future__ import annotations

import errno
import fcntl
import os
import pwd
import shlex
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from msgctl.errors import ConfigurationError
from msgctl.text import clean, shorten

LOCK_WAIT = 10.0
"""Seconds that a change waits for a change by another process."""
PAUSE = 0.01

MAKE_ROOM = "Free some space on the disk, then try again."
CHECK_PERMISSIONS = "Check the permissions of the file and its directory."
STORE_ELSEWHERE = "Set MSGCTL_STORE to a file in a directory that this user can write."
STATE_ELSEWHERE = "Set XDG_STATE_HOME to a directory that this user can write."
READ_ONLY = "Its file system is mounted read-only: choose another directory, or mount it for writing."
NEEDS_LOCKS = "Its file system does not support locks. Set XDG_STATE_HOME to a directory on a local disk."


def make_folder(path: Path) -> None:
    """Create a directory and its parents (0700) if missing. Raises OSError.

    A new directory is synced: without that, a power cut could remove it with the synced files in it.
    """
    try:
        _make_directory(path)
    except FileNotFoundError:
        # Path.mkdir(parents=True) would create the parents with the default mode.
        make_folder(path.parent)
        _make_directory(path)


def _make_directory(path: Path) -> None:
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        pass  # if it is not a directory, opening a file in it fails
    else:
        try:
            sync(path.parent)
        except PermissionError:
            pass  # a directory that this user can write but not read
        except OSError as error:
            if error.errno != errno.EINVAL:  # a file system that cannot sync directories
                raise


@contextmanager
def locked(lock: Path, max_wait: float = 0.0, consequence: str = "") -> Iterator[bool]:
    """Hold the lock of a lock file in the block. Yield False if another process holds it for ``max_wait`` seconds.

    The system releases the lock however the process ends. Raises ConfigurationError.
    """
    with explained("lock", lock, consequence):
        make_folder(lock.parent)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        with explained("lock", lock, consequence):
            is_held = _take(descriptor, time.monotonic() + max_wait)
        yield is_held
    finally:
        os.close(descriptor)


def _take(descriptor: int, deadline: float) -> bool:
    while True:
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        if time.monotonic() >= deadline:
            return False
        time.sleep(PAUSE)


@contextmanager
def changing(path: Path) -> Iterator[None]:
    """Change a file while no other process changes it. Raises ConfigurationError.

    The lock is a separate file, ``.NAME.lock``, because the file itself is replaced. It is beside the target of a
    symbolic link, so that all processes use the same lock.
    """
    lock = _beside(_target(path), "lock")
    with locked(lock, LOCK_WAIT, "nothing was changed") as is_held:
        if not is_held:
            what = f"Another program has locked {shown(lock)}"
            raise ConfigurationError(what, "Try again when it is done.", consequence="nothing was changed")
        yield


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


def delete_database(path: Path) -> None:
    """Delete an SQLite database with the files beside it, if it exists. Raises ConfigurationError."""
    with explained("delete", path):
        # The database is last: without it, a log that is left would count as damage.
        for suffix in ("-wal", "-shm", "-journal", "-owners", ""):
            path.with_name(path.name + suffix).unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Write a file, or the entries of a directory, to the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def access_hint(path: Path, usual: str) -> str:
    """Return how to use a database on a read-only mount or of another user; otherwise, the usual hint."""
    with suppress(OSError):
        if os.statvfs(path).f_flag & os.ST_RDONLY:
            return READ_ONLY
        owner, user = path.stat().st_uid, os.geteuid()
        if user not in (0, owner):
            change = f"chown {_user(user)} {typed(path)}*"
            return f"It belongs to {_user(owner)}. Run msgctl as that user, or run as root: {change}"
    return usual


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:  # as in many containers
        return str(number)


@contextmanager
def explained(doing: str, path: Path, consequence: str = "", hint: str = CHECK_PERMISSIONS) -> Iterator[None]:
    """Convert an OSError to ConfigurationError, with a hint: ``Cannot read PATH: Permission denied``."""
    try:
        yield
    except OSError as error:
        hints: dict[int | None, str] = {
            errno.ENOSPC: MAKE_ROOM,
            errno.EDQUOT: MAKE_ROOM,
            errno.ENOLCK: NEEDS_LOCKS,
            errno.ENOTSUP: NEEDS_LOCKS,
            errno.EROFS: READ_ONLY,
        }
        raise ConfigurationError(
            f"Cannot {doing} {shown(path)}: {error.strerror or type(error).__name__}",
            hints.get(error.errno, hint),
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

    with _needs_home("MSGCTL_CONFIG"):
        return platformdirs.user_config_path("msgctl") / "config.toml"


def state_path(name: str, variable: str = "XDG_STATE_HOME") -> Path:
    """Return a file or directory in the platform's state directory, such as ``store.sqlite3``.

    Raises ConfigurationError if there is no home directory; its hint mentions a variable that can replace the home
    directory.
    """
    import platformdirs

    with _needs_home(variable):
        directory = platformdirs.user_state_path("msgctl")
    return directory / name


@contextmanager
def _needs_home(variable: str) -> Iterator[None]:
    """Convert the error for a user without an entry in the password database, as in many containers."""
    try:
        yield
    except RuntimeError:
        raise ConfigurationError(
            "There is no home directory: HOME is not set, and this user has no account",
            f"Set {variable} to a path that this user can write, or set HOME.",
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
