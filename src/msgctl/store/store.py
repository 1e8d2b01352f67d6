"""Open the store, and take ownership of jobs and keys: other processes see the locks of this process."""

from __future__ import annotations

import secrets
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from msgctl.config.urls import is_store_url
from msgctl.store import upgrades
from msgctl.store.database import Database, Row, unusable

KEEP = 90 * 86_400_000
"""Milliseconds that keys, names and digests are kept, even after everything else is removed."""
SLICE = 1000
"""Maximum rows deleted in one transaction, so that other processes can write in between."""
PAUSE = 0.004
"""Seconds between two transactions of an import, a removal, or a job that leaves out many people."""
CLOCK_INTERVAL = 300.0
"""Seconds after which a job reads the clock of a server again."""


def boot_time() -> float:
    """Return a time in seconds that passes even while the machine is suspended, if the system has such a clock."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class ServerClock:
    """The clock of a database server. Between readings, changes of this machine's clock do not affect it."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.read()

    def read(self) -> None:
        """Read the server's clock."""
        before = boot_time()
        milliseconds = self._db.time() or 0
        self.read_at = boot_time()
        self._ahead = milliseconds / 1000 - (before + self.read_at) / 2

    def __call__(self) -> float:
        return boot_time() + self._ahead


class Store:
    """An open store: ``db`` is its connection, for one thread at a time.

    ``clock`` returns seconds since 1970. It is the clock of a database on a server, or else of this machine, and
    decides for all users of the store. ``machine`` is the name of this machine; other machines show it. ``location`` is
    the path or URL that opens it again.
    """

    def __init__(self, db: Database, clock: Callable[[], float] | None = None, location: str | Path = "") -> None:
        self.db = db
        self.location = location
        self._server_clock = ServerClock(db) if clock is None and db.time() is not None else None
        self.clock: Callable[[], float] = self._server_clock or clock or time.time
        self.machine = socket.gethostname()
        self.is_in_use = False
        """Whether a thread that this process abandons may still use the connection."""
        self._owner: int | None = None

    @property
    def machine_error(self) -> float:
        """How many seconds this machine's clock is ahead of the clock of a server."""
        return time.time() - self.clock() if self._server_clock else 0.0

    def check_clock(self) -> None:
        """Read the clock of a server again after a few minutes. Raises the errors of `Database`."""
        if self._server_clock and boot_time() > self._server_clock.read_at + CLOCK_INTERVAL:
            self._server_clock.read()

    def now(self) -> int:
        """Return the time in milliseconds since 1970."""
        return int(self.clock() * 1000)

    @property
    def owner(self) -> int:
        """The number of this process as an owner. The first use takes its lock, which the process then holds."""
        if self._owner is None:
            number = secrets.randbits(62)
            self.db.hold(number)
            self._owner = number
        return self._owner

    def is_owned(self, owner: int | None) -> bool:
        """Return whether a process that is alive owns something."""
        return owner is not None and (owner == self._owner or bool(self.db.alive([owner])))

    def check_writes(self) -> None:
        """Take the lock of this process and write without a change, as a send does. Raises the errors of `Database`."""
        self.owner  # noqa: B018 (it takes the lock)
        with self.db.transaction("check"):
            self.db.change("UPDATE meta SET value = value WHERE name = 'version'")

    def close(self) -> None:
        """Close the store, and release the locks of this process."""
        self.db.close(is_in_use=self.is_in_use)


def pages(store: Store, query: str, values: Sequence[Any], after: Sequence[Any]) -> Iterator[list[Row]]:
    """Yield the rows of a query by their key, at most 1,000 together, without an open cursor.

    The first columns are the key, which begins above ``after``. The query ends with ``AND (KEY) > (?) ORDER BY KEY
    LIMIT ?``; its other ``values`` come first.
    """
    while True:
        rows = store.db.rows(query, (*values, *after, SLICE))
        if rows:
            yield rows
        if len(rows) < SLICE:
            return
        after = rows[-1][: len(after)]


def open_store(
    location: str | Path,
    *,
    timeout: float = 30.0,
    clock: Callable[[], float] | None = None,
    is_moving: bool = False,
    creates: bool = True,
) -> Store:
    """Open the store at a path or a URL, and create it if it is missing.

    Without ``creates``, raise MissingStoreError if it is missing.
    ``clock`` replaces the clock of the store. A store that was moved to another one, or whose move has not ended, is
    only opened with ``is_moving``. Raises StoreNotReachedError if the store cannot be reached within ``timeout``
    seconds, and ConfigurationError.
    """
    if isinstance(location, str) and is_store_url(location):
        from msgctl.store.postgresql import PostgreSQL

        db: Database = PostgreSQL(location, timeout)
    elif isinstance(location, str) and "://" in location:
        raise unusable(
            "The URL of the store is not valid", "Write a path, or a URL like postgresql://user@host/database."
        )
    else:
        from msgctl.store.sqlite import SQLite

        db = SQLite(Path(location), timeout, creates=creates)
    try:
        db.check(creates=creates)
        upgrades.upgrade(db)
        if not is_moving:
            db.refuse_moved()
    except BaseException:
        db.close()
        raise
    db.refuses_moved = not is_moving
    return Store(db, clock, location)
