"""Processes that use a store at once, or are killed between two statements."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable
from typing import Any

from msgctl.store.database import Database
from msgctl.store.store import Store, open_store

KILLED = 9


def child(location: str, work: Callable[[Store], object], *, statements: int | None = None) -> int:
    """Start a process that opens the store and does some work; it dies before a statement if ``statements`` is given.

    Return its process ID.
    """
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        store = open_store(location, timeout=20)
        if statements is not None:
            _die_after(store.db, statements)
        work(store)
        status = 0
    except BaseException:  # noqa: BLE001 (the child must not run the rest of the tests)
        traceback.print_exc()
    finally:
        os._exit(status)


def _die_after(db: Database, statements: int) -> None:
    remaining = [statements]
    db.rows = _counted(db.rows, remaining)  # type: ignore[method-assign]
    db.change = _counted(db.change, remaining)  # type: ignore[method-assign]
    begin = db.begin

    def counted_begin(lock: str) -> None:
        begin(lock)
        remaining[0] -= 1
        if remaining[0] <= 0:
            os._exit(KILLED)

    db.begin = counted_begin  # type: ignore[method-assign]


def _counted(method: Callable[..., Any], remaining: list[int]) -> Callable[..., Any]:
    def counted(*values: Any) -> Any:
        if remaining[0] <= 0:
            os._exit(KILLED)
        remaining[0] -= 1
        return method(*values)

    return counted


def status_of(pid: int) -> int:
    """Wait for a process, and return its exit status."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait up to 20 seconds for a condition."""
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
