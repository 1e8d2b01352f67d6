"""The directory of jobs: which jobs exist, which are running, and the lock that lets one process run a job."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from msgctl.errors import ConfigurationError, UsageError
from msgctl.jobs.index import Index
from msgctl.jobs.schema import LEDGER, SUFFIX, lock_of
from msgctl.storage import database, files
from msgctl.values import quote

_ID = re.compile(r"[0-9]{8}-[0-9a-f]{6}", re.ASCII)
_LEFTOVER = re.compile(rf"\.?({_ID.pattern}){re.escape(SUFFIX)}(\.new|-wal|-shm)", re.ASCII)
"""An unfinished ledger, or a file beside one."""
MAX_CHECK = 0.1
"""Seconds that a process holds the lock of a job only to check it."""


class AlreadyRunningError(ConfigurationError):
    """Another process has the lock of a job or of a command."""


class Store:
    """The ledgers in a directory, one file per job: ``ID.sqlite3``, where ID is a date and a random part."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def new_id(self, now: float) -> str:
        """Return an unused id for a job created at ``now`` (seconds since 1970)."""
        day = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d")
        while os.path.lexists(self.path(job := f"{day}-{secrets.token_hex(3)}")):
            pass
        return job

    def path(self, job: str) -> Path:
        return self.folder / f"{job}{SUFFIX}"

    def ids(self) -> list[str]:
        """Return the ids of all jobs, oldest date first. Raises ConfigurationError."""
        with LEDGER.explained(self.folder), suppress(FileNotFoundError):
            names = [entry.name for entry in os.scandir(self.folder) if entry.name.endswith(SUFFIX)]
            return sorted(job for name in names if _ID.fullmatch(job := name.removesuffix(SUFFIX)))
        return []

    def index(self) -> Index:
        """Return the index of all jobs, for a ``with`` block. Raises ConfigurationError."""
        return Index(self.folder, self.ids())

    def find(self, job: str | None) -> str:
        """Return the id of the newest job with this id or name; None finds the newest job that has begun.

        Raises UsageError if no job has it, and ConfigurationError if an unreadable ledger may be the newest.
        """
        if job is not None and _ID.fullmatch(job) and os.path.lexists(self.path(job)):
            return job
        found: list[tuple[float, str]] = []
        others: list[tuple[float, str]] = []
        unreadable: list[tuple[float, ConfigurationError]] = []
        with self.index() as index:
            for each in index.jobs:
                try:
                    known = index.facts(each)
                except ConfigurationError as error:
                    unreadable.append((self.changed(each), error))
                else:
                    if known.has_begun if job is None else job == known.spec.name:
                        found.append((known.created, each))
                    else:
                        others.append((known.created, each))
        newest = max(found)[0] if found else 0.0
        if hidden := [each for changed, each in unreadable if changed > newest]:
            raise hidden[-1]
        if not found:
            if job is None and others:
                raise UsageError("No job has begun", f"Show the scheduled job: msgctl job show {max(others)[1]}")
            if job is None:
                raise UsageError("There are no jobs", "Create one with: msgctl sms bulk FILE")
            raise UsageError(f"There is no job {quote(job)}", "List the jobs: msgctl job list")
        return max(found)[1]

    def changed(self, job: str) -> float:
        """Return when a job's ledger was last changed, in seconds since 1970; 0 if it no longer exists."""
        ledger, latest = self.path(job), 0.0
        with suppress(OSError):
            latest = ledger.lstat().st_mtime
            latest = max(latest, ledger.with_name(f"{ledger.name}-wal").lstat().st_mtime)
        return latest

    def is_running(self, job: str) -> bool:
        """Return whether a process is running a job. Raises ConfigurationError if that cannot be checked."""
        return files.is_held(self._lock(job))

    @contextmanager
    def locked(self, job: str) -> Iterator[None]:
        """Hold the lock of a job or a command; the system releases it at any end of the process.

        Raises AlreadyRunningError if another process holds it, and ConfigurationError if it cannot be used.
        """
        with ExitStack() as stack:
            with files.explained("lock", self._lock(job)):
                files.make_folder(self.folder)
            try:
                stack.enter_context(files.held(self._lock(job), MAX_CHECK))
            except files.HeldError:
                error = AlreadyRunningError(f"Job {job} is already running", f"Check progress: msgctl job show {job}")
                raise error from None
            yield

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Hold the lock of the directory, so that jobs begin one after the other, and each sees all earlier jobs.

        Raises ConfigurationError.
        """
        with files.held(self.folder, flags=os.O_RDONLY):
            yield

    def delete(self, job: str) -> None:
        """Delete a job; the caller holds its lock. Raises ConfigurationError."""
        with LEDGER.explained(self.path(job)):
            # The ledger is deleted first: without its log it would lose the requests in flight.
            self.path(job).unlink()
            files.sync(self.folder)
            database.delete(self.path(job))
            self.index().forget(job)
            self.remove_lock(job)

    def tidy(self) -> None:
        """Delete the remains of unfinished imports and removals."""
        with suppress(OSError, ConfigurationError):  # the next run tries again
            for left in os.scandir(self.folder):
                found = _LEFTOVER.fullmatch(left.name)
                if found and not os.path.lexists(self.path(found[1])) and not self.is_running(found[1]):
                    (self.folder / left.name).unlink(missing_ok=True)
                    self.remove_lock(found[1])

    def remove_lock(self, job: str) -> None:
        self._lock(job).unlink(missing_ok=True)

    def _lock(self, job: str) -> Path:
        return lock_of(self.path(job))
