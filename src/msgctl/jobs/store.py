"""The folder of jobs: the jobs in it, which of them are running, and the lock that lets one process run a job."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from msgctl.errors import ConfigurationError, UsageError
from msgctl.jobs.database import LEDGER
from msgctl.jobs.ledger import facts
from msgctl.storage import files
from msgctl.values import quote

SUFFIX = ".sqlite3"
_ID = re.compile(r"[0-9]{8}-[0-9a-f]{6}", re.ASCII)
_LEFTOVER = re.compile(rf"\.?({_ID.pattern}){re.escape(SUFFIX)}(\.new|-wal|-shm)", re.ASCII)
"""A ledger whose import was not finished, and what is beside one."""
_TRIES, _PAUSE = 5, 0.02


class Store:
    """The ledgers in a folder, one file per job: ``ID.sqlite3``, where ID is its day and a random part."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def new_id(self, now: float) -> str:
        """Return an id that no job has, for one made at ``now`` (seconds since 1970)."""
        day = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d")
        while os.path.lexists(self.path(job := f"{day}-{secrets.token_hex(3)}")):
            pass
        return job

    def path(self, job: str) -> Path:
        return self.folder / f"{job}{SUFFIX}"

    def ids(self) -> list[str]:
        """Return the ids of all jobs, the oldest day first. Raises ConfigurationError."""
        with LEDGER.explained(self.folder), suppress(FileNotFoundError):
            names = [entry.name for entry in os.scandir(self.folder) if entry.name.endswith(SUFFIX)]
            return sorted(job for name in names if _ID.fullmatch(job := name.removesuffix(SUFFIX)))
        return []

    def find(self, job: str | None) -> str:
        """Return the id of the newest job with an id or a name; None finds the newest of all.

        Raises UsageError if no job has it, and ConfigurationError if an unreadable ledger may be the newest.
        """
        if job is not None and _ID.fullmatch(job) and os.path.lexists(self.path(job)):
            return job
        found: list[tuple[float, str]] = []
        unreadable: list[tuple[float, ConfigurationError]] = []
        for each in self.ids():
            try:
                spec, created, _ = facts(self.path(each))
            except ConfigurationError as error:
                unreadable.append((self.changed(each), error))
            else:
                if job in (None, spec.name):
                    found.append((created, each))
        newest = max(found)[0] if found else 0.0
        if hidden := [each for changed, each in unreadable if changed > newest]:
            raise hidden[-1]
        if not found:
            what = "There are no jobs" if job is None else f"There is no job {quote(job)}"
            raise UsageError(what, "List the jobs: msgctl job list")
        return max(found)[1]

    def changed(self, job: str) -> float:
        """Return when a job's ledger was last changed, in seconds since 1970; 0 if it is not there any more."""
        with suppress(OSError):
            return self.path(job).lstat().st_mtime
        return 0.0

    def is_running(self, job: str) -> bool:
        """Return whether a process is running a job."""
        try:
            with self._lock(job).open("rb") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    @contextmanager
    def locked(self, job: str) -> Iterator[None]:
        """Hold the lock of a job, or of a command; the system releases it when the process ends, however it ends.

        Raises ConfigurationError if another process holds it.
        """
        with LEDGER.explained(self._lock(job)):
            files.make_folder(self.folder)
            descriptor = os.open(self._lock(job), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor):
            if not _take(descriptor):
                raise ConfigurationError(f"Job {job} is already running", f"Check progress: msgctl job show {job}")
            yield

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Hold the lock of the folder: jobs begin one after the other, so that each sees those before it."""
        descriptor = os.open(self.folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def remove(self, job: str) -> None:
        """Delete a job that is not running. Raises ConfigurationError."""
        with self.locked(job), LEDGER.explained(self.path(job)):
            # The ledger goes first: without its log it would lose what was in flight.
            self.path(job).unlink()
            files.sync(self.folder)
            files.delete(self.path(job))
            self.remove_lock(job)

    def tidy(self) -> None:
        """Delete what unfinished imports and removals left."""
        with suppress(OSError):  # the next run tries again
            for left in self.folder.iterdir():
                found = _LEFTOVER.fullmatch(left.name)
                if found and not os.path.lexists(self.path(found[1])) and not self.is_running(found[1]):
                    left.unlink(missing_ok=True)
                    self.remove_lock(found[1])

    def remove_lock(self, job: str) -> None:
        self._lock(job).unlink(missing_ok=True)

    def _lock(self, job: str) -> Path:
        return self.folder / f".{job}.lock"


def _take(descriptor: int) -> bool:
    """Take the lock; a process that only checks it holds it for a moment."""
    for _ in range(_TRIES):
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(_PAUSE)
    return False
