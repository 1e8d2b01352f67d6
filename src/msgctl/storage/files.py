"""The user's private files: 0600 in directories of 0700, refused if other users can read or replace them.

The files are in the platform's directories for configuration and state. A file is replaced completely or not at all.

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
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from msgctl.errors import ConfigurationError
from msgctl.text import clean, shorten

if TYPE_CHECKING:
    pass

MAX_WAIT = 10.0
"""Seconds that a change waits for a change by another process."""
PAUSE = 0.01

MAKE_ROOM = "Free some space on the disk, then try again."
CHECK_PERMISSIONS = "Check the permissions of the file and its directory."
NEEDS_LOCKS = "Its file system does not support locks. Set XDG_STATE_HOME to a directory on a local disk."

MAX_LINKS = 40
"""Maximum symbolic links that are followed from one path, as in Linux."""


def make_folder(path: Path) -> None:
    """Create a directory and its parents (0700) if missing. Raises OSError, or ConfigurationError if it is unsafe.

    A new directory is durable, because a power cut that removes it would remove the synced files in it, too.
    """
    try:
        _make_directory(path)
    except FileNotFoundError:
        # Path.mkdir(parents=True) would create the parents with the default mode.
        if path.parent == path:
            raise
        make_folder(path.parent)
        _make_directory(path)
    check_directory(path)


def _make_directory(path: Path) -> None:
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        if not path.is_dir():
            raise
    else:
        try:
            sync(path.parent)
        except PermissionError:
            pass  # a directory that this user can write but not read
        except OSError as error:
            if error.errno != errno.EINVAL:  # a file system that cannot sync directories
                raise


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
    """Wait for a lock. Return whether it was taken before another process held it for too long. Raises OSError."""
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
