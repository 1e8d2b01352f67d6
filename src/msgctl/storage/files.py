"""Files of one user: 0600 in a folder of 0700, read only when nobody else can, replaced whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgctl.errors import ConfigurationError
from msgctl.text import clean

MOST_BYTES = 1024 * 1024
"""The largest file that is read, in bytes."""
MOST_WAIT = 10.0
"""Seconds that a change waits for one of another process."""
PAUSE = 0.01

MAKE_ROOM = "Free some space on the disk, then try again."


def folder(path: Path) -> Path:
    """Make a folder and those above it (0700), where missing. Raises ConfigurationError."""
    try:
        make_folder(path)
    except OSError as error:
        raise _unusable("make the folder", path, error) from error
    return path


def make_folder(path: Path) -> None:
    """Make a folder and those above it (0700), where missing. Raises OSError."""
    try:
        path.mkdir(mode=0o700, exist_ok=True)
    except FileNotFoundError:
        # Not parents=True, which makes those above with the mode that the user's mask leaves.
        if path.parent == path:
            raise
        make_folder(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)


def read(path: Path) -> bytes | None:
    """The bytes of a file that only its owner can read; None where there is none.

    Raises ConfigurationError where others can read it, where it belongs to another user, is not a plain file, is over
    1 MiB, or cannot be read.
    """
    try:
        # O_NONBLOCK: a named pipe in the file's place must not make the command wait for ever.
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unusable("read", path, error, "") from error
    try:
        check(clean(str(path)), path, os.fstat(descriptor))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise _unusable("read", path, error, "") from error
    finally:
        os.close(descriptor)
    if len(content) > MOST_BYTES:
        raise ConfigurationError(f"{clean(str(path))} is over {MOST_BYTES} bytes long", "Is it the right file?")
    return content


def check(name: str, path: Path, status: os.stat_result, is_private: bool = True) -> None:
    """See that a file is a plain one and, where it is private, ours and nobody else's to read.

    ``name`` is what messages call it. Raises ConfigurationError.
    """
    if not stat.S_ISREG(status.st_mode):
        kind = "a symbolic link, and no" if stat.S_ISLNK(status.st_mode) else "not a"
        raise ConfigurationError(f"{name} is {kind} plain file", "Move it away, or name another file.")
    if not is_private:
        return
    if status.st_uid != os.geteuid() and os.geteuid() != 0:
        raise ConfigurationError(
            f"{name} belongs to another user", f"Take it over with: sudo chown $USER {_typed(path)}"
        )
    if status.st_mode & 0o077:
        raise ConfigurationError(
            f"others can read {name} (mode {stat.S_IMODE(status.st_mode):04o})",
            f"Make it private with: chmod 600 {_typed(path)}",
        )


def _typed(path: Path) -> str:
    """A path as it is typed in a shell."""
    import shlex  # only for what is wrong

    return clean(shlex.quote(str(path)))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of a file, so that two who read, change and write it do so one after the other.

    The lock is a file of its own, ``.NAME.lock``, since the file itself is replaced; it is beside what a symbolic link
    leads to, so that whoever comes by another way waits, too. Raises ConfigurationError, also where the file is there
    and not a plain one.
    """
    folder(path.parent)
    target = _target(path)
    with suppress(OSError):  # what cannot be looked at is found out by whoever reads it
        check(clean(str(path)), path, target.stat(), is_private=False)
    lock = _beside(target, "lock")
    try:
        descriptor = _opened_lock(lock)
    except OSError as error:
        raise _unusable("make the lock", lock, error) from error
    try:
        take(descriptor, lock)
        yield
    finally:
        os.close(descriptor)


def _opened_lock(lock: Path) -> int:
    """Open a lock, made where there is none.

    Only one that was made is given away, and no link is followed: whoever may write to the folder could have put one
    there, and root would give them what it leads to.
    """
    flags = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW
    with suppress(FileExistsError):
        descriptor = os.open(lock, flags | os.O_CREAT | os.O_EXCL, 0o600)
        _give(descriptor, lock.parent)
        return descriptor
    return os.open(lock, flags)


def take(descriptor: int, lock: Path) -> None:
    """Take a lock. Raises ConfigurationError where another program holds it for long: it may be suspended."""
    deadline = time.monotonic() + MOST_WAIT
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise ConfigurationError(
                    f"another program holds {clean(str(lock))}; nothing was changed", "Try again when it is done."
                ) from None
            time.sleep(PAUSE)
        except OSError as error:
            raise _unusable("lock", lock, error) from error
        else:
            return


def write(path: Path, content: bytes) -> None:
    """Replace a file by a new one (0600), whole or not at all, also if the machine stops at any moment.

    A symbolic link stays, and what it points to is replaced. It is for whoever holds the lock: what an earlier one left
    half written is taken away. Raises ConfigurationError.
    """
    target = _target(path)
    try:
        _replace(target, content)
    except OSError as error:
        raise _unusable("write", path, error) from error
    with suppress(OSError):  # the new file is in its place, whatever its folder's disk says now
        sync(target.parent)


def _replace(target: Path, content: bytes) -> None:
    new = _beside(target, "new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            _give(descriptor, target)
            os.fsync(descriptor)
        new.replace(target)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise


def _give(descriptor: int, like: Path) -> None:
    """Let a file that root makes belong to the owner of another, who could not use it any more."""
    if os.geteuid() == 0:
        with suppress(OSError):
            status = like.stat()
            os.fchown(descriptor, status.st_uid, status.st_gid)


def _target(path: Path) -> Path:
    """What a path leads to, through all symbolic links."""
    return Path(os.path.realpath(path))


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(f".{path.name}.{suffix}")


def sync(path: Path) -> None:
    """See that a file, or the names in a folder, are on the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unusable(what: str, path: Path, error: OSError, consequence: str = "; nothing was changed") -> ConfigurationError:
    return ConfigurationError(
        f"cannot {what} {clean(str(path))}: {error.strerror or type(error).__name__}{consequence}",
        MAKE_ROOM if is_full(error) else "Check the file and its folder, or name another in MSGCTL_CONFIG.",
    )


def is_full(error: OSError) -> bool:
    """Whether there was no room for what was to be written."""
    return error.errno in (errno.ENOSPC, errno.EDQUOT)
