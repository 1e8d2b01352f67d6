"""A seeded world in one process: its clocks, its disk, its kills, and the order in which threads run.

The tool runs unchanged, as whole command lines. Its threads are greenlets, and one runs at a time: at every *point* (a
queue, an event, a lock, a transaction, a change of the disk, a request) the seed decides who continues. Time passes
only while everyone waits, and then at once. So a seed always gives the same history.

A killed process gets no further than the point of its death: its threads unwind, but whatever they try to do to the
disk on the way raises `Killed` again. If no other process was running, the disk is put back to what it was at that
moment, with SQLite's log and half-written files. What was not synced yet is not taken away: SQLite's own durability is
trusted.

`PATCHED`, `REPLACED` and `run._Route` are all that ties the world to the inside of the tool.
"""

from __future__ import annotations

import errno
import fcntl
import os
import queue
import secrets
import shutil
import sqlite3
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

from greenlet import getcurrent, greenlet

BEGINNING = 1_790_000_000.0
"""A Monday in September 2026, in seconds since 1970."""
MOST_POINTS = 60_000
"""A history with more has no end."""
SHORT_WAITS = 40
"""After so many in which nothing happened the machine sleeps, so that a night does not take minutes."""


class Killed(BaseException):
    """Raised in the threads of a process that was killed."""


class StuckError(AssertionError):
    """Everyone waits for ever, or the history does not end."""


class Process:
    """A run of the tool, which dies at its point ``kill_at``; the disk is full at those from ``full[0]`` to ``[1]``."""

    def __init__(self, main: Callable[[], None], name: str, kill_at: int = 0, full: tuple[int, int] = (0, 0)) -> None:
        self.main = main
        self.name = name
        self.points = 0
        self.is_dead = self.was_killed = self.met_full_disk = False
        self.connections: list[sqlite3.Connection] = []
        self._kill_at = kill_at
        self._full = full

    def is_at_its_end(self) -> bool:
        self.points += 1
        return self.points == self._kill_at

    def has_full_disk(self) -> bool:
        is_full = self._full[0] <= self.points < self._full[1]
        self.met_full_disk |= is_full
        return is_full


class Task:
    """A thread of a process, which runs only while it has the turn."""

    def __init__(self, process: Process, name: str, target: Callable[[], object]) -> None:
        self.process = process
        self.name = f"{process.name} {name}"
        self.target = target
        self.is_main = target is process.main
        self.is_ready = True
        self.wake_at: float | None = None
        self.greenlet: greenlet


class World:
    """``now`` is the monotonic clock, ``wall`` the other one; ``trace`` tells what happened."""

    def __init__(self, seed: int, disk: Path) -> None:
        self.random = Random(seed)
        self.disk = disk
        self.now = 0.0
        self.wall = BEGINNING + self.random.randrange(14 * 86400)
        self.sets_clock = self.random.random() < 0.1
        self.has_slow_disk = self.random.random() < 0.3
        self.trace: list[str] = []
        self.running: Task | None = None
        self._stays = self.random.choice((0.1, 0.5, 0.9))  # how often a thread keeps its turn
        self._failures: list[BaseException] = []
        self._tasks: list[Task] = []
        self._hub = getcurrent()
        self.ident = threading.get_ident()
        self._short_waits = 0
        self._copy: Path | None = None

    def run(self, *processes: Process) -> None:
        """Run processes to their ends, begun within seconds. Raises StuckError, and what they let through."""
        for process in processes:
            begun = self.start(process, "main", process.main)
            if process is not processes[0]:
                begun.is_ready, begun.wake_at = False, self.now + self.random.choice((0, 0.2, 2))
        while (task := self._chosen()) is not None:
            self.running = task
            task.greenlet.switch()  # until a thread ends
        self.running = None
        if self._copy is not None:
            shutil.rmtree(self.disk)
            self._copy.rename(self.disk)
            self._copy = None
        if self._failures:
            raise self._failures[0]

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.wall += seconds

    # --- called by the thread that runs

    def note(self, what: str) -> None:
        self.trace.append(f"{self.wall:.3f} {self.running.name if self.running else '-'}: {what}")

    def alive(self) -> Task:
        """Return the thread that runs; its process ends here if it was killed."""
        assert self.running is not None
        if self.running.process.is_dead:
            raise Killed
        return self.running

    def point(self, what: str) -> None:
        """Let the seed decide who continues, and whether the process dies here."""
        task = self.alive()
        self.note(what)
        if task.process.is_at_its_end():
            self._kill(task.process)
        elif len(self.trace) > MOST_POINTS:
            self._give_up("the history does not end")
        elif self.random.random() >= self._stays:
            self._pass_turn(task)
        self.alive()

    def block(self, until: float | None) -> None:
        """Wait until a time of the monotonic clock, or until `wake`."""
        task = self.alive()
        task.is_ready, task.wake_at = False, until
        self._pass_turn(task)
        self.alive()

    def wake(self, task: Task) -> None:
        task.is_ready, task.wake_at = True, None

    def sleep(self, seconds: float) -> None:
        self.point(f"sleep {seconds:.3f}")
        self.block(self.now + seconds)

    def progress(self) -> None:
        """Let time pass slowly again: something happened."""
        self._short_waits = 0

    def start(self, process: Process, name: str, target: Callable[[], object]) -> Task:
        task = Task(process, name, target)
        task.greenlet = greenlet(lambda: self._body(task), self._hub)
        self._tasks.append(task)
        return task

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Do something that is not the tool's, such as the service's own work: it has no points."""
        task, self.running = self.running, None
        try:
            yield
        finally:
            self.running = task

    # --- turns and time

    def _body(self, task: Task) -> None:
        process = task.process
        try:
            self.alive()
            task.target()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 (`run` raises it)
            self._failures.append(error)
        self._tasks.remove(task)
        if task.is_main:
            self._stop(process)  # its other threads end with it
        if all(each.process is not process for each in self._tasks):
            for connection in process.connections:
                connection.close()

    def _pass_turn(self, task: Task) -> None:
        """Let the seed choose who runs now; return when it is this thread's turn again."""
        self.running = chosen = self._chosen()
        if chosen is not None and chosen is not task:
            chosen.greenlet.switch()

    def _chosen(self) -> Task | None:
        while self._tasks:
            if ready := [task for task in self._tasks if task.is_ready]:
                return self.random.choice(ready)
            times = [task.wake_at for task in self._tasks if task.wake_at is not None]
            if times:
                self._pass_time(min(times))
            else:
                self._give_up("everyone waits for ever: " + ", ".join(task.name for task in self._tasks))
        return None

    def _pass_time(self, until: float) -> None:
        self._short_waits += 1
        if self._short_waits > SHORT_WAITS:
            until = max(until, self.now + self.random.uniform(60, 5400))
        self.wait(until - self.now)
        self.now = max(self.now, until)
        if self.sets_clock and self.random.random() < 0.01:
            self.wall += self.random.uniform(-3600, 6 * 3600)
        for task in self._tasks:
            if task.wake_at is not None and task.wake_at <= self.now:
                self.wake(task)

    def _kill(self, process: Process) -> None:
        self.note("killed")
        process.was_killed = True
        if all(task.process is process for task in self._tasks):
            self._copy = self.disk.with_name("copy")
            with self.outside():
                shutil.copytree(self.disk, self._copy, ignore=shutil.ignore_patterns("*-shm"))
        self._stop(process)

    def _stop(self, process: Process) -> None:
        process.is_dead = True
        for task in self._tasks:
            if task.process is process:
                self.wake(task)

    def _give_up(self, why: str) -> None:
        self._failures.insert(0, StuckError(why))
        for task in self._tasks:
            self._stop(task.process)


# --- what the tool finds in place of the system's

_world: World | None = None


@contextmanager
def entered(world: World) -> Iterator[None]:
    """Make this the world of the patched functions."""
    global _world  # noqa: PLW0603 (they have no other way to find it)
    _world = world
    try:
        yield
    finally:
        _world = None


def _inside() -> World | None:
    """Return the world if the caller is one of its threads."""
    return _world if _world and _world.running and threading.get_ident() == _world.ident else None


def _here() -> World:
    assert _world is not None
    return _world


class Thread:
    def __init__(self, target: Callable[[], object], name: str = "", daemon: bool = True) -> None:
        self._target, self._name = target, name

    def start(self) -> None:
        _here().start(_here().alive().process, self._name, self._target)
        _here().point(f"start {self._name}")


class _Waitable:
    def __init__(self) -> None:
        self._waiting: list[Task] = []

    def _wait(self, until: float | None) -> None:
        task = _here().alive()
        self._waiting.append(task)
        _here().block(until)
        if task in self._waiting:
            self._waiting.remove(task)

    def _wake(self) -> None:
        for task in self._waiting:
            _here().wake(task)
        self._waiting.clear()


class Event(_Waitable):
    _is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        self._wake()

    def wait(self, timeout: float | None = None) -> bool:
        _here().point("wait")
        if not self._is_set:
            self._wait(None if timeout is None else _here().now + timeout)
        return self._is_set


class SimpleQueue(_Waitable):
    def __init__(self) -> None:
        super().__init__()
        self._items: deque[Any] = deque()

    def put(self, item: Any) -> None:
        self._items.append(item)
        self._wake()
        _here().point("put")

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        _here().point("get")
        until = None if timeout is None else _here().now + timeout
        while not self._items:
            if not block or (until is not None and _here().now >= until):
                raise queue.Empty
            self._wait(until)
        return self._items.popleft()


class Connection(sqlite3.Connection):
    """A connection whose process may die, whose disk may be full or slow, and which waits in the world's time."""

    def attach(self, world: World, patience: float) -> None:
        self._world, self._process, self._patience = world, world.alive().process, patience
        self._process.connections.append(self)

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        world = self._world
        if self._process.is_dead:
            raise Killed
        if sql.startswith("BEGIN"):
            world.point(sql)
            self._before = self.total_changes
        elif sql == "COMMIT":
            world.point(sql)
            if self.total_changes != self._before and self._process.has_full_disk():
                error = sqlite3.OperationalError("database or disk is full")
                error.sqlite_errorcode = sqlite3.SQLITE_FULL
                raise error
        until = world.now + self._patience
        while True:
            try:
                cursor = super().execute(sql, parameters)
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or world.now >= until:
                    raise
                world.block(world.now + 0.05)
        if sql == "COMMIT":
            world.progress()
            world.point("committed")
            if world.has_slow_disk and world.random.random() < 0.1:
                world.sleep(world.random.choice((0.01, 2, 3600)))
        return cursor


Patch = Callable[[Callable[..., Any]], Callable[..., Any]]
"""Makes the function that takes the place of a real one."""


def _changing(real: Callable[..., Any]) -> Callable[..., Any]:
    """A change of the disk: a point, and nothing that a dead process can do."""

    def call(*given: Any, **named: Any) -> Any:
        world = _inside()
        if world and (real.__name__ != "open" or given[1] & os.O_CREAT):
            world.point(real.__name__)
            if real.__name__ in ("open", "mkdir", "fsync") and world.alive().process.has_full_disk():
                raise OSError(errno.ENOSPC, "No space left on device")
        return real(*given, **named)

    return call


def _locking(real: Callable[..., Any]) -> Callable[..., Any]:
    def call(descriptor: int, operation: int) -> Any:
        world = _inside()
        while world and not operation & (fcntl.LOCK_NB | fcntl.LOCK_UN):
            try:
                return real(descriptor, operation | fcntl.LOCK_NB)
            except BlockingIOError:
                world.block(world.now + 0.01)
        return real(descriptor, operation)

    return call


def _connecting(real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, timeout: float = 5.0, **named: Any) -> Any:
        if not (world := _inside()):
            return real(*arguments, timeout=timeout, **named)
        connection = real(*arguments, timeout=0, factory=Connection, **named)
        connection.attach(world, timeout)
        return connection

    return call


def _instead(simulated: Callable[..., Any]) -> Patch:
    """Have the threads of the world call another function, with the world before the arguments."""
    return lambda real: lambda *given: simulated(world, *given) if (world := _inside()) else real(*given)


PATCHED: list[tuple[Any, str, Patch]] = [
    *((os, name, _changing) for name in ("open", "unlink", "rename", "replace", "mkdir", "fsync")),
    (fcntl, "flock", _locking),
    (sqlite3, "connect", _connecting),
    (time, "sleep", _instead(World.sleep)),
    (time, "monotonic", _instead(lambda world: world.now)),
    (secrets, "token_hex", _instead(lambda world, size: world.random.randbytes(size).hex())),
]
"""Functions of the standard library, and what takes their place in a simulated process."""

REPLACED: list[tuple[Any, Any]] = [
    (threading.Thread, Thread),
    (threading.Event, Event),
    (queue.SimpleQueue, SimpleQueue),
]
"""What the modules of `msgctl.jobs` have imported, and what they get instead."""


@contextmanager
def patched(*more: tuple[Any, str, Any]) -> Iterator[None]:
    """Make the tool use the world; ``more`` are an object, a name and a value each. Import msgctl.jobs before."""
    changes = [(owner, name, make(getattr(owner, name))) for owner, name, make in PATCHED] + [*more]
    for module in [module for name, module in sys.modules.items() if name.startswith("msgctl.jobs.")]:
        for name, value in vars(module).items():
            changes += [(module, name, new) for old, new in REPLACED if value is old]
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    for owner, name, value in changes:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)
