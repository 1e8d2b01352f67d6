"""The folder of jobs: which there are, which is being worked on, and who may work on one."""

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
from msgctl.jobs.schema import LEDGER
from msgctl.storage import files as private
from msgctl.values import quote

SUFFIX = ".sqlite3"
_ID = re.compile(r"[0-9]{8}-[0-9a-f]{6}", re.ASCII)
_LEFT = re.compile(rf"\.({_ID.pattern}){re.escape(SUFFIX)}\.(new|gone)", re.ASCII)
"""A ledger that did not come to be, or was not removed to the end."""
_TRIES, _PAUSE = 5, 0.02


class Store:
    """The ledgers in a folder, one file a job: ``ID.sqlite3``, where ID is the day it was made and a random part."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def new_id(self, now: float) -> str:
        """An id that no job has, for one made at ``now`` (seconds since 1970)."""
        day = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d")
        while self.path(job := f"{day}-{secrets.token_hex(3)}").exists():
            pass
        return job

    def path(self, job: str) -> Path:
        return self.folder / f"{job}{SUFFIX}"

    def ids(self) -> list[str]:
        """The ids of all jobs, the oldest day first. Raises ConfigurationError."""
        with LEDGER.explained(self.folder), suppress(FileNotFoundError):
            names = [entry.name for entry in os.scandir(self.folder) if entry.name.endswith(SUFFIX)]
            return sorted(job for name in names if _ID.fullmatch(job := name.removesuffix(SUFFIX)))
        return []

    def find(self, job: str) -> Path:
        """The ledger of a job. Raises UsageError where there is none."""
        if not (_ID.fullmatch(job) and os.path.lexists(self.path(job))):
            raise UsageError(f"there is no job {quote(job)}", "See: msgctl job list")
        return self.path(job)

    def is_running(self, job: str) -> bool:
        """Whether a process is at work on a job."""
        try:
            descriptor = os.open(self._lock(job), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
        return False

    @contextmanager
    def held(self, job: str) -> Iterator[None]:
        """Be alone in working on a job; the system ends that with the process, however it ends.

        Raises ConfigurationError where another process is at work on it.
        """
        private.folder(self.folder)
        with LEDGER.explained(self._lock(job)):
            descriptor = os.open(self._lock(job), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if not _locked(descriptor):
                raise ConfigurationError(
                    f"another msgctl is at work on job {job}", f"See how far it is: msgctl job show {job}"
                )
            yield
        finally:
            os.close(descriptor)

    def remove(self, job: str) -> None:
        """Delete a job that nobody is at work on. Raises ConfigurationError."""
        path = self.path(job)
        with self.held(job), LEDGER.explained(path):
            # Without its log a ledger would forget what was under way: it is no job any more before that goes.
            path.rename(path.with_name(f".{path.name}.gone"))
            private.sync(self.folder)
            self._delete_log(job)
            path.with_name(f".{path.name}.gone").unlink(missing_ok=True)
            self.forget_lock(job)

    def tidy(self) -> None:
        """Delete what jobs left that did not come to be, or were not removed to the end."""
        with suppress(OSError):  # it is for the next one to do then
            for left in self.folder.iterdir():
                if (found := _LEFT.fullmatch(left.name)) and not self.is_running(found[1]):
                    self._clear_away(left, found[1])

    def _clear_away(self, left: Path, job: str) -> None:
        with suppress(OSError):
            if not self.path(job).exists():
                self._delete_log(job)
            left.unlink()
            self.forget_lock(job)

    def _delete_log(self, job: str) -> None:
        """Delete what SQLite keeps beside a ledger."""
        for suffix in ("-wal", "-shm", "-journal"):
            self.folder.joinpath(f"{job}{SUFFIX}{suffix}").unlink(missing_ok=True)

    def forget_lock(self, job: str) -> None:
        """Take away the lock of a job that came to nothing."""
        self._lock(job).unlink(missing_ok=True)

    def _lock(self, job: str) -> Path:
        return self.folder / f".{job}.lock"


def _locked(descriptor: int) -> bool:
    """Take the lock; somebody who only looks whether it is taken holds it for a moment."""
    for _ in range(_TRIES):
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(_PAUSE)
    return False
