"""Processes that use a store at once, or are killed between two changes."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

from msgctl.store.database import Database
from msgctl.store.store import Store, open_store
from support import PATIENCE

KILLED = 9
MAX_CHANGES = 100


class Work(Protocol):
    """Work of the process with a number."""

    def __call__(self, store: Store, /, n: int) -> object: ...


def child(location: str, work: Callable[[Store], object], *, changes: int | None = None) -> int:
    """Start a process that opens the store and does some work; it dies before a change if ``changes`` is given.

    Return its process ID.
    """
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        store = open_store(location, timeout=PATIENCE)
        if changes is not None:
            die_after([store.db], changes)
        work(store)
        status = 0
    except BaseException:  # noqa: BLE001 (the child must not run the rest of the tests)
        traceback.print_exc()
    finally:
        os._exit(status)


def die_after(databases: Sequence[Database], changes: int) -> None:
    """End this process before one of its next changes or commits, counted over all databases.

    To die before a query, or before a transaction begins, is to die before the next change: it leaves the same store.
    """
    remaining = [changes]
    for db in databases:
        db.rows = _counted(db.rows, remaining)  # type: ignore[method-assign]
        db.change = _counted(db.change, remaining)  # type: ignore[method-assign]


def _counted(method: Callable[..., Any], remaining: list[int]) -> Callable[..., Any]:
    def counted(statement: str, values: Sequence[Any] = ()) -> Any:
        if not statement.startswith(("SELECT", "BEGIN", "PRAGMA")):
            if remaining[0] <= 0:
                os._exit(KILLED)
            remaining[0] -= 1
        return method(statement, values)

    return counted


def before_lock(store: Store, change: Callable[[], object]) -> None:
    """Change the store right before its next transaction begins, as another process may do."""
    begin = store.db.begin

    def change_and_begin(lock: str) -> None:
        store.db.begin = begin  # type: ignore[method-assign]
        change()
        begin(lock)

    store.db.begin = change_and_begin  # type: ignore[method-assign]


def status_of(pid: int) -> int:
    """Wait for a process, and return its exit status."""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for a condition."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def killed_everywhere(location: str, work: Work, prepare: Callable[[int], int] = int) -> Iterator[int]:
    """Do some work in many processes. Each is killed one change later than the one before; the last one ends.

    ``prepare`` gets the number of a process, and returns the number that ``work`` gets, for example that of a job. It
    is yielded when the process is dead.
    """
    for changes in range(1, MAX_CHANGES):
        number = prepare(changes)
        status = status_of(child(location, partial(work, n=number), changes=changes))
        assert status in (0, KILLED)
        yield number
        if status == 0:
            assert changes > 1
            return
    raise AssertionError(f"the work needs more than {MAX_CHANGES} changes")
