"""A seeded world in one process: its clocks, its disk, its kills, and the order in which threads run.

The tool runs unchanged, as whole command lines. Its threads are greenlets, and one runs at a time: at every *point* (a
queue, an event, a lock, a transaction, a change of the disk, a request) the seed decides who continues. Time passes
only while everyone waits, and then at once. So a seed always gives the same history.

As in Python, the main thread of a process handles a signal when it next continues.

A killed process gets no further than the point of its death: its threads unwind, but whatever they try to do to the
disk on the way raises `Killed` again. If no other process was running, the disk is put back to what it was at that
moment, with SQLite's log and half-written files. What was not synced yet is not taken away: SQLite's own durability is
trusted.

`PATCHED`, `REPLACED` and `run.simulation` have all that depends on the internals of the tool.
"""

from __future__ import annotations

import errno
import fcntl
import os
import queue
import secrets
import shutil
import signal
import sqlite3
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any
from unittest import mock

from greenlet import getcurrent, greenlet

BEGINNING = 1_790_000_000.0
"""A Monday in September 2026, in seconds since 1970."""
MAX_POINTS = 60_000
"""A history with more points does not end."""
SHORT_WAITS = 40
"""After so many short waits in which nothing happened, the machine sleeps, so that a night does not take minutes."""


class Killed(BaseException):
    """Raised in the threads of a process that was killed."""


class WrongError(AssertionError):
    """The tool sent what it should not, left someone out, reported something false, or does not end."""


class Process:
    """A run of the tool.

    It is killed at its point ``kill_at``. The disk is full from point ``full[0]`` to ``full[1]``. ``signals`` are the
    signals that it gets, by point.
    """

    def __init__(
        self, name: str, kill_at: int = 0, full: tuple[int, int] = (0, 0), signals: Mapping[int, int] | None = None
    ) -> None:
        self.name = name
        self.kill_at = kill_at
        self.full = full
        self.signals = signals or {}
        self.points = 0
        self.arrived: list[int] = []
        """Signals that have arrived and are not handled yet."""
        self.handled: list[int] = []
        self.handlers: dict[int, Any] = {}
        self.is_dead = self.was_disturbed = False
        self.connections: list[sqlite3.Connection] = []
        self.renamed: list[str] = []
        """The new names of files."""

    def has_full_disk(self) -> bool:
        is_full = self.full[0] <= self.points < self.full[1]
        self.was_disturbed |= is_full
        return is_full


class Task:
    """A thread of a process; it waits for something to happen, or for a time of the monotonic clock."""

    def __init__(self, process: Process, name: str, body: greenlet) -> None:
        self.process = process
        self.name = f"{process.name} {name}"
        self.handles_signals = name == "main"
        self.body = body
        self.waits_for: Callable[[], object] | None = None
        self.until: float | None = None


class World:
    """``now`` is the monotonic clock, ``wall`` the other one; ``trace`` tells what happened."""

    def __init__(self, seed: int, disk: Path) -> None:
        global _world  # noqa: PLW0603 (patched functions have no other way to find it)
        _world = self
        self.random = Random(seed)
        self.disk = disk
        self.now = 0.0
        self.wall = BEGINNING + self.random.randrange(14 * 86400)
        self.trace: list[str] = []
        self.running: Task | None = None
        self.short_waits = 0
        self.ident = threading.get_ident()
        self._stays = self.random.choice((0.1, 0.5, 0.9))  # how often a thread keeps its turn
        self._failure: BaseException | None = None
        self._tasks: list[Task] = []
        self._hub = getcurrent()
        self._copy: Path | None = None
        self._left_open: list[sqlite3.Connection] = []

    def run(self, processes: dict[Process, Callable[[], None]]) -> None:
        """Run processes to their ends, begun within seconds. Raises WrongError, and what they let through."""
        for process, main in processes.items():
            self.start(process, "main", main)
            self._tasks[-1].waits_for = lambda: False
            self._tasks[-1].until = self.now + self.random.choice((0, 0.2, 2, 20))
        while (chosen := self._chosen()) is not None:
            self.running = chosen
            chosen.body.switch()  # until a thread ends
        self.running = None
        if self._copy is not None:
            shutil.rmtree(self.disk)
            self._copy.rename(self.disk)
            self._copy = None
        if self._failure is not None:
            raise self._failure

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.wall += seconds

    # --- called by the thread that runs

    def note(self, what: str) -> None:
        self.trace.append(f"{self.wall:.3f} {self.running.name if self.running else '-'}: {what}")

    def alive(self) -> Task:
        """Return the thread that runs; it ends here if its process was killed."""
        assert self.running is not None
        if self.running.process.is_dead:
            raise Killed
        return self.running

    def point(self, what: str) -> None:
        """Let the seed decide who continues, and whether the process dies here."""
        task = self.alive()
        process = task.process
        process.points += 1
        self.note(what)
        if process.points in process.signals:
            self.note(f"{signal.Signals(process.signals[process.points]).name} arrives")
            process.arrived.append(process.signals[process.points])
        if process.points == process.kill_at:
            self._kill(process)
        elif len(self.trace) > MAX_POINTS:
            self._give_up("the history does not end")
        elif self.random.random() >= self._stays:
            self._pass_turn()
        self._continue()

    def until(self, happened: Callable[[], object], timeout: float | None) -> None:
        """Wait until something happened, or for so many seconds."""
        task = self.alive()
        until = None if timeout is None else self.now + timeout
        is_over = False
        while not is_over:
            task.waits_for, task.until = happened, until
            self._pass_turn()
            is_over = bool(self._is_ready(task)) and not (task.handles_signals and task.process.arrived)
            task.waits_for = None
            self._continue()

    def sleep(self, seconds: float) -> None:
        self.point(f"sleep {seconds:.3f}")
        self.until(lambda: False, seconds)

    def start(self, process: Process, name: str, target: Callable[[], object]) -> None:
        def body() -> None:
            try:
                self.alive()
                target()
            except Killed:
                pass
            except BaseException as error:  # noqa: BLE001 (`run` raises it)
                self._failure = self._failure or error
            process.is_dead |= name == "main"  # its other threads end with it
            self._tasks.remove(task)
            if all(each.process is not process for each in self._tasks):
                self._left_open += process.connections
                for connection in process.connections:
                    connection.rollback()
                if self._left_open and not self._tasks:
                    self._keep_disk()  # no process closes what it leaves open: SQLite would delete the log
                    for connection in [*self._left_open]:
                        connection.close()
                    self._left_open.clear()

        task = Task(process, name, greenlet(body, self._hub))
        self._tasks.append(task)

    @contextmanager
    def outside(self) -> Iterator[None]:
        """Do something that is not the tool's, such as the service's own work: it has no points."""
        task, self.running = self.running, None
        yield
        self.running = task

    # --- turns and time

    def _continue(self) -> None:
        """Handle the signals that arrived before this thread continues."""
        task = self.alive()
        process = task.process
        while task.handles_signals and process.arrived:
            number = process.arrived.pop(0)
            process.handled.append(number)
            handler: Any = process.handlers.get(number, signal.SIG_DFL)
            if handler is signal.SIG_DFL:
                self._kill(process)
            elif handler is not signal.SIG_IGN:
                try:
                    handler(number, None)
                except KeyboardInterrupt:
                    process.was_disturbed = True
                    raise
            self.alive()

    def _pass_turn(self) -> None:
        before, self.running = self.running, self._chosen()
        if self.running is not before and self.running is not None:
            self.running.body.switch()

    def _chosen(self) -> Task | None:
        while self._tasks:
            if ready := [task for task in self._tasks if self._is_ready(task)]:
                return self.random.choice(ready)
            times = [task.until for task in self._tasks if task.until is not None]
            if times:
                self._pass_time(min(times))
            else:
                self._give_up("every thread waits indefinitely: " + ", ".join(task.name for task in self._tasks))
        return None

    def _is_ready(self, task: Task) -> object:
        is_late = task.until is not None and task.until <= self.now
        if is_late or task.process.is_dead or (task.handles_signals and task.process.arrived):
            return True
        return task.waits_for is None or task.waits_for()

    def _pass_time(self, until: float) -> None:
        self.short_waits += 1
        if self.short_waits > SHORT_WAITS:
            until = max(until, self.now + self.random.uniform(60, 5400))
        self.wait(until - self.now)
        self.now = max(self.now, until)

    def _kill(self, process: Process) -> None:
        self.note("killed")
        process.is_dead = process.was_disturbed = True
        if all(task.process is process for task in self._tasks):
            self._keep_disk()

    def _keep_disk(self) -> None:
        """Copy the disk as it is now; it is put back at the end. No other process is running."""
        if self._copy is None:
            self._copy = self.disk.with_name("copy")
            with self.outside():
                shutil.copytree(self.disk, self._copy, ignore=shutil.ignore_patterns("*-shm"))

    def _give_up(self, why: str) -> None:
        self._failure = WrongError(why)
        for task in self._tasks:
            task.process.is_dead = True


# --- what the tool finds in place of the system's

_world: World


class Thread:
    def __init__(self, target: Callable[[], object], name: str = "", daemon: bool = True) -> None:
        self._target, self._name = target, name

    def start(self) -> None:
        _world.start(_world.alive().process, self._name, self._target)
        _world.point(f"start {self._name}")


class Event:
    def __init__(self) -> None:
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True

    def wait(self, timeout: float | None = None) -> bool:
        _world.point("wait")
        _world.until(self.is_set, timeout)
        return self._is_set


class Lock:
    def __init__(self) -> None:
        self._is_held = False

    def acquire(self, blocking: bool = True) -> bool:
        if blocking and self._is_held:
            _world.until(lambda: not self._is_held, None)
        is_free, self._is_held = not self._is_held, True
        return is_free

    def release(self) -> None:
        self._is_held = False

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class SimpleQueue:
    def __init__(self) -> None:
        self._items: list[Any] = []

    def put(self, item: Any) -> None:
        self._items.append(item)
        _world.point("put")

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        _world.point("get")
        if block:
            _world.until(lambda: self._items, timeout)
        if not self._items:
            raise queue.Empty
        return self._items.pop(0)


class Connection(sqlite3.Connection):
    """A connection whose process may die, whose disk may be full, and which waits in the world's time."""

    def attach(self, process: Process, patience: float) -> None:
        process.connections.append(self)
        self._process, self._patience = process, patience

    def close(self) -> None:
        super().close()
        with suppress(ValueError):
            self._process.connections.remove(self)

    def execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        world = _world
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
        end = world.now + self._patience
        while True:
            try:
                cursor = super().execute(sql, parameters)
                break
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or world.now >= end:
                    raise
                world.until(lambda: False, 0.05)
        if sql == "COMMIT":
            world.short_waits = 0
            world.point("committed")
        return cursor


def _change(real: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """A change of the disk: a point, and nothing that a dead process can do."""
    if real.__name__ != "open" or given[1] & os.O_CREAT:
        _world.point(real.__name__)
        if real.__name__ in ("open", "mkdir", "fsync") and _world.alive().process.has_full_disk():
            raise OSError(errno.ENOSPC, "No space left on device")
    if real.__name__ == "rename":
        _world.alive().process.renamed.append(Path(given[1]).name)
    return real(*given, **named)


def _lock(real: Callable[..., Any], descriptor: int, operation: int) -> Any:
    while not operation & (fcntl.LOCK_NB | fcntl.LOCK_UN):
        try:
            return real(descriptor, operation | fcntl.LOCK_NB)
        except BlockingIOError:
            _world.until(lambda: False, 0.01)
    return real(descriptor, operation)


def _connect(real: Callable[..., Any], *given: Any, timeout: float = 5.0, **named: Any) -> Any:
    connection = real(*given, timeout=0, factory=Connection, **named)
    connection.attach(_world.alive().process, timeout)
    return connection


def _handle(_: Any, number: int, handler: Any) -> None:
    _world.alive().process.handlers[number] = handler


PATCHED: list[tuple[Any, str, Callable[..., Any]]] = [
    *((os, name, _change) for name in ("open", "unlink", "rename", "replace", "mkdir", "fsync")),
    (fcntl, "flock", _lock),
    (signal, "signal", _handle),
    (signal, "getsignal", lambda _, number: _world.alive().process.handlers.get(number, signal.SIG_DFL)),
    (signal, "setitimer", lambda *_: _world.alive().process.arrived.append(signal.SIGALRM)),
    (sqlite3, "connect", _connect),
    (time, "sleep", lambda _, seconds: _world.sleep(seconds)),
    (time, "monotonic", lambda _: _world.now),
    (secrets, "token_hex", lambda _, size: _world.random.randbytes(size).hex()),
]
"""Functions of the standard library, and what takes their place, with the real one before its arguments."""

REPLACED: list[tuple[Any, Any]] = [
    (threading.Thread, Thread),
    (threading.Event, Event),
    (threading.Lock, Lock),
    (queue.SimpleQueue, SimpleQueue),
]
"""Classes that msgctl.jobs and msgctl.history import, each with its replacement."""


def patches() -> Iterator[Any]:
    """Yield patches that run the tool in the simulated world. Import msgctl.jobs and msgctl.history first."""

    def instead(simulated: Callable[..., Any], real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            if _world.running and threading.get_ident() == _world.ident:
                return simulated(real, *given, **named)
            return real(*given, **named)

        return call

    yield mock.patch.object(sys, "unraisablehook", sys.unraisablehook)
    yield mock.patch.dict(globals(), _world=mock.Mock(running=None))  # until there is one
    for owner, name, simulated in PATCHED:
        yield mock.patch.object(owner, name, instead(simulated, getattr(owner, name)))
    for module in [
        module for name, module in sys.modules.items() if name.startswith(("msgctl.jobs.", "msgctl.history."))
    ]:
        for name, value in [*vars(module).items()]:
            yield from (mock.patch.object(module, name, new) for old, new in REPLACED if value is old)
