"""A seeded machine room in one process: clocks, kills, lost connections, and the order in which threads run.

msgctl's own code runs unchanged: the store, and the writer and the senders of a job. Its threads are greenlets, and one
runs at a time. At every *point* (a statement, a queue, an event, a request) the seed decides who continues, and whether
a fault happens. Time passes only while everyone waits, or in a jump. So a seed always gives the same history.
"""

from __future__ import annotations

import queue
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from types import SimpleNamespace
from typing import Any, Protocol
from unittest import mock

from greenlet import getcurrent, greenlet

from msgctl.store.database import Database
from msgctl.store.store import Store

NOON = 1_790_164_800.0
"""A Wednesday, in seconds since 1970: no limit of a week begins during a history."""
HOUR = 3600.0
MAX_POINTS = 50_000
"""A history with more points does not end."""


class Killed(BaseException):
    """Raised in the threads of a process that was killed."""


class WrongError(AssertionError):
    """msgctl broke a promise, or a history does not end."""


class Session(Protocol):
    """A connection of a process with the store."""

    def lose(self) -> None:
        """End it: its locks are free, its transaction is undone, and its statements fail."""

    def release_locks(self) -> None:
        """Lose the locks, although the session lives."""

    def is_usable(self) -> bool:
        """Reset it for another process; return whether that is possible."""


class Process:
    """A process of a machine. ``faults`` maps points to faults; the clock may be wrong by ``offset`` seconds.

    Each statement of its store takes ``delay`` seconds, and each commit also ``sync`` seconds.
    """

    def __init__(self, world: World, name: str, faults: dict[int, str], offset: float = 0.0) -> None:
        self.world = world
        self.name = name
        self.faults = faults
        self.offset = offset
        self.delay = self.sync = 0.0
        self.points = 0
        self.is_dead = False
        self.suspended_until = 0.0
        self.sessions: list[Session] = []

    def open(self) -> Store:
        """Open the store, as a process does at its start."""
        return Store(self.world.connect(self), self.clock)

    def clock(self) -> float:
        return self.world.now + NOON + self.offset

    def release_locks(self) -> None:
        for session in self.sessions:
            session.release_locks()

    def lose_connections(self) -> None:
        for session in self.sessions:
            session.lose()


class Task:
    """A thread of a process. It waits for something to happen, or for a time."""

    def __init__(self, process: Process, body: greenlet) -> None:
        self.process = process
        self.body = body
        self.happened: Callable[[], object] | None = None
        self.until: float | None = None


class World:
    """``now`` is the time since the machines were booted. ``connect`` returns a new session of a process."""

    def __init__(self, seed: str, connect: Callable[[Process], Database]) -> None:
        self.random = random.Random(seed)
        self.connect = connect
        self.now = 0.0
        self.trace: list[str] = []
        self.points = 0
        self.failure: BaseException | None = None
        self._tasks: list[Task] = []
        self._running: Task | None = None
        self._hub = getcurrent()
        self._keeps_turn = self.random.choice((0.2, 0.6, 0.9))

    # --- called by the threads

    @property
    def process(self) -> Process:
        """The process that runs."""
        assert self._running
        return self._running.process

    def note(self, what: str) -> None:
        name = self._running.process.name if self._running else "-"
        self.trace.append(f"{self.now:.3f} {name}: {what}")

    def point(self) -> str:
        """Let the seed decide who continues. Return the fault that happens here, if the caller must do it."""
        task = self._running
        if task is None:
            return ""
        process = task.process
        self._check_alive(task)
        process.points += 1
        self.points += 1
        if self.points > MAX_POINTS:
            raise WrongError("the history does not end")
        fault = process.faults.get(process.points, "")
        if fault:
            self.note(fault)
            self._suffer(process, fault)
        if fault in ("kill", "suspend") or self.random.random() > self._keeps_turn:
            self._hub.switch()
        self._check_alive(task)
        return fault

    def _suffer(self, process: Process, fault: str) -> None:
        if fault == "kill":
            process.is_dead = True
            process.lose_connections()
        elif fault == "suspend":  # longer than a session may be idle
            process.lose_connections()
            process.suspended_until = self.now + self.random.choice((2.0, 90.0, HOUR))
        elif fault == "lose lock":
            process.release_locks()
        elif fault == "slow":
            self.now += self.random.uniform(0.1, 2.0)

    def wait(self, happened: Callable[[], object], timeout: float | None) -> None:
        """Wait until something has happened, or for this many seconds."""
        task = self._running
        if task is None:
            return
        task.happened, task.until = happened, None if timeout is None else self.now + timeout
        self._hub.switch()
        task.happened = None
        self._check_alive(task)

    def sleep(self, seconds: float) -> None:
        self.wait(lambda: False, seconds)

    def start(self, target: Callable[[], object], process: Process | None = None) -> None:
        """Start a thread, of this process if no other is given."""
        process = process or self.process

        def run() -> None:
            try:
                with suppress(Killed):
                    self._check_alive(task)
                    target()
            except BaseException as error:  # noqa: BLE001 (`run` raises it)
                self.failure = self.failure or error
            self._tasks.remove(task)

        task = Task(process, greenlet(run, self._hub))
        self._tasks.append(task)

    def _check_alive(self, task: Task) -> None:
        if task.process.is_dead:
            raise Killed

    # --- the scheduler

    def run(self) -> None:
        """Run all threads to their ends. Raises what they let through."""
        while self._tasks and self.failure is None:
            ready = [task for task in self._tasks if self._is_ready(task)]
            if ready:
                self._running = ready[int(self.random.random() * len(ready))]
                self._running.body.switch()
                self._running = None
            else:
                self._pass_time()
        for task in [*self._tasks]:
            with suppress(Killed):  # a thread that has not begun raises it here
                task.body.throw(Killed)
        self._tasks.clear()
        if self.failure is not None:
            raise self.failure

    def _is_ready(self, task: Task) -> bool:
        if task.process.is_dead:
            return True
        if self.now < task.process.suspended_until:
            return False
        if task.happened is None:
            return True
        is_late = task.until is not None and task.until <= self.now
        return is_late or bool(task.happened())

    def _pass_time(self) -> None:
        times = [max(task.until or 0.0, task.process.suspended_until) for task in self._tasks]
        later = [each for each in times if each > self.now]
        if not later:
            raise WrongError("every thread waits indefinitely")
        self.now = min(later)

    @contextmanager
    def patched(self) -> Iterator[None]:
        """Replace the system's clocks and threads."""
        random.seed(self.random.random())
        replaced: dict[str, object] = {
            "time.clock_gettime": lambda _: self.now,
            "time.monotonic": lambda: self.now,
            "time.time": lambda: self.now + NOON,
            "time.sleep": self.sleep,
            "msgctl.jobs.sending.Thread": lambda target, **_: SimpleNamespace(start=lambda: self.start(target)),
            "msgctl.jobs.sending.SimpleQueue": lambda: _Queue(self),
            "msgctl.jobs.sending.Event": lambda: _Event(self),
        }
        with ExitStack() as stack:
            for name, value in replaced.items():
                stack.enter_context(mock.patch(name, value))
            yield


class _Event(threading.Event):
    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def wait(self, timeout: float | None = None) -> bool:
        self._world.wait(self.is_set, timeout)
        return self.is_set()


class _Queue:
    def __init__(self, world: World) -> None:
        self._world = world
        self._items: list[Any] = []

    def put(self, item: Any) -> None:
        self._items.append(item)
        self._world.point()

    def get(self, timeout: float | None = None) -> Any:
        if not self._items:
            self._world.wait(lambda: self._items, timeout)
        if not self._items:
            raise queue.Empty
        return self._items.pop(0)
