"""Sessions of simulated processes with the store. A session may end, and a commit may be lost.

With SQLite, this simulates faults that only a server has. With PostgreSQL, the server really ends the session.
"""

from __future__ import annotations

import select
from collections.abc import Collection, Generator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.waiting import Ready, Wait

from faults.machine import Process
from msgctl.errors import StoreNotReachedError
from msgctl.store.database import Row
from msgctl.store.move import PRIMARY_KEYS
from msgctl.store.postgresql import PostgreSQL
from msgctl.store.sqlite import SQLite
from msgctl.store.store import open_store
from support.postgres import Cluster

REAL_WAIT = 0.005
"""Seconds in which a statement of PostgreSQL usually ends, unless it waits for a lock."""


def arrive(session: SQLiteSession | PostgreSQLSession, statement: str) -> None:
    """Simulate a fault before a statement, but not while the session is being opened, because it may be used again."""
    world = session.process.world
    if not session.is_open:
        return
    world.now += session.process.delay + session.process.sync * (statement == "COMMIT")
    if world.point() != "disconnect":
        return
    if statement == "COMMIT" and world.random.random() < 0.5:
        session.store_commit()  # the process gets no confirmation
    session.process.lose_connections()


class Stores:
    """A store that is empty at the start of each history. Idle sessions are used again, because this is faster."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.store = open_store(location)
        self._idle: list[Any] = []

    def connect(self, process: Process) -> Any:
        session = self._idle.pop() if self._idle else self.create(process)
        session.process = process
        process.sessions.append(session)
        return session

    def create(self, process: Process) -> Any:
        raise NotImplementedError

    def disconnect(self, process: Process) -> None:
        """Keep the sessions of a process that has ended, if another process can use them."""
        self._idle += [session for session in process.sessions if session.is_usable()]

    def empty(self) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self.store.close()
        for session in self._idle:
            session.close()


class SQLiteSession(SQLite):
    """A session with a file that behaves like a session with a server."""

    def __init__(self, stores: SQLiteStores, process: Process) -> None:
        self.locks = stores.locks
        self.owners: set[int] = set()
        self.process = process
        self.is_open = self.is_lost = False
        super().__init__(Path(stores.location))
        self.is_open = True
        SQLite.change(self, "PRAGMA synchronous = OFF")  # `power` tests power cuts

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        self._arrive(statement)
        return super().rows(statement, values)

    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        self._arrive(statement)
        changed = super().change(statement, values)
        if statement == "COMMIT":
            self.process.world.point()
        return changed

    def _arrive(self, statement: str) -> None:
        arrive(self, statement)
        if self.is_lost:
            raise StoreNotReachedError("The connection was lost")

    def store_commit(self) -> None:
        super().change("COMMIT")

    def lose(self) -> None:
        self.release_locks()
        self.roll_back()
        self.is_lost = True

    def release_locks(self) -> None:
        self.locks -= self.owners

    def hold(self, owner: int) -> None:
        self.owners.add(owner)
        self.locks.add(owner)

    def alive(self, owners: Collection[int]) -> set[int]:
        return {*owners} & self.locks

    def reconnect(self) -> None:
        self.is_lost = False
        self.locks |= self.owners

    def is_usable(self) -> bool:
        self.lose()
        self.owners.clear()
        self.is_lost = False
        return True


class SQLiteStores(Stores):
    """A SQLite store and its sessions."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self.locks: set[int] = set()
        """The owners that seem alive to other processes."""

    def create(self, process: Process) -> SQLiteSession:
        return SQLiteSession(self, process)

    def empty(self) -> None:
        with self.store.db.transaction():
            for table in (*PRIMARY_KEYS, "sqlite_sequence"):
                self.store.db.change(f"DELETE FROM {table}")


class PostgreSQLSession(PostgreSQL):
    """A session with a server. While it waits for a lock, the other threads run."""

    def __init__(self, stores: PostgreSQLStores, process: Process) -> None:
        self._stores = stores
        self.process = process
        self.is_open = self.is_lost = False
        super().__init__(stores.location)
        self.is_open = True

    def _connect(self) -> Any:
        session = super()._connect()
        session.wait = partial(self._wait, session)  # type: ignore[method-assign]
        return session

    def _wait(self, session: psycopg.Connection[Row], statement: Generator[Any, Any, Any], *_: object) -> Any:
        try:
            wanted = next(statement)
            while True:
                wanted = statement.send(self._ready(session, wanted))
        except StopIteration as end:
            return end.value
        finally:
            with suppress(Exception):  # a pipeline of a session that was lost
                statement.close()

    def _ready(self, session: psycopg.Connection[Row], wanted: Wait) -> Ready:
        """Wait for the server, and let the seed decide who continues while it waits for a lock of another session."""
        world, pid = self.process.world, session.info.backend_pid
        socket = session.pgconn.socket
        while True:
            reading, writing, _ = select.select(
                [socket] if wanted & Wait.R else [], [socket] if wanted & Wait.W else [], [], REAL_WAIT
            )
            if reading or writing:
                return Ready((Ready.R if reading else 0) | (Ready.W if writing else 0))
            if self._stores.is_blocked(pid):
                world.wait(lambda: not self._stores.is_blocked(pid), None)

    def _execute(self, statement: str, values: Sequence[Any] = ()) -> psycopg.Cursor[Row]:
        arrive(self, statement)
        cursor = super()._execute(statement, values)
        if statement == "COMMIT":
            self.process.world.point()
        return cursor

    def begin(self, lock: str) -> None:
        arrive(self, "BEGIN")
        super().begin(lock)

    def store_commit(self) -> None:
        super()._execute("COMMIT")

    def lose(self) -> None:
        if not self.is_lost:
            self.is_lost = True
            self._stores.end_session(self._session.info.backend_pid)

    def release_locks(self) -> None:
        if not self.is_lost and self._session.info.transaction_status is not TransactionStatus.ACTIVE:
            super()._execute("SELECT pg_advisory_unlock_all()")

    def reconnect(self) -> None:
        super().reconnect()
        self.is_lost = False

    def is_usable(self) -> bool:
        is_idle = self._session.info.transaction_status is TransactionStatus.IDLE
        if self.is_lost or not is_idle:
            self.lose()
            self.close()
            return False
        self._owners.clear()
        super()._execute("SELECT pg_advisory_unlock_all(), set_config('idle_session_timeout', '0', false)")
        return True


class PostgreSQLStores(Stores):
    """A PostgreSQL store and its sessions."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster.url())
        self._admin = psycopg.connect(cluster.url("admin"), autocommit=True)

    def create(self, process: Process) -> PostgreSQLSession:
        return PostgreSQLSession(self, process)

    def is_blocked(self, pid: int) -> bool:
        """Return whether a session waits for a lock."""
        row = self._admin.execute("SELECT cardinality(pg_blocking_pids(%s))", (pid,)).fetchone()
        return bool(row and row[0])

    def end_session(self, pid: int) -> None:
        self._admin.execute("SELECT pg_terminate_backend(%s, 10000)", (pid,))

    def empty(self) -> None:
        tables = ", ".join(f"msgctl.{table}" for table in PRIMARY_KEYS)
        self._admin.execute(f"TRUNCATE {tables} RESTART IDENTITY".encode())

    def close(self) -> None:
        super().close()
        self._admin.close()
