"""Files of one user: 0600 in a folder of 0700, read only when nobody else can, replaced whole or not at all."""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from msgctl.errors import ConfigurationError
from msgctl.text import clean

MOST_BYTES = 1024 * 1024
"""The largest file that is read, in bytes."""


def folder(path: Path) -> Path:
    """Make a folder (0700) and those above it, where missing. Raises ConfigurationError."""
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable("make the folder", path, error) from error
    return path


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
        raise _unusable("read", path, error) from error
    try:
        check(clean(str(path)), path, os.fstat(descriptor))
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise _unusable("read", path, error) from error
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

    The lock is a file of its own, ``.NAME.lock``, since the file itself is replaced. Raises ConfigurationError.
    """
    folder(path.parent)
    lock = path.with_name(f".{path.name}.lock")
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise _unusable("lock", path, error) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            raise _unusable("lock", path, error) from error
        yield
    finally:
        os.close(descriptor)


def write(path: Path, content: bytes) -> None:
    """Replace a file by a new one (0600), whole or not at all, also if the machine stops at any moment.

    A symbolic link stays, and what it points to is replaced. Raises ConfigurationError.
    """
    target = Path(os.path.realpath(path))
    try:
        _replace(target, content)
    except OSError as error:
        raise _unusable("write", path, error) from error
    with suppress(OSError):  # the new file is in its place, whatever its folder's disk says now
        sync(target.parent)


def _replace(target: Path, content: bytes) -> None:
    import tempfile

    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".new", dir=target.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(descriptor)
        Path(name).replace(target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def sync(path: Path) -> None:
    """See that a file, or the names in a folder, are on the disk. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unusable(what: str, path: Path, error: OSError) -> ConfigurationError:
    return ConfigurationError(
        f"cannot {what} {clean(str(path))}: {error.strerror or type(error).__name__}; it is as it was",
        "Check the file and its folder, or name another in MSGCTL_CONFIG.",
    )
