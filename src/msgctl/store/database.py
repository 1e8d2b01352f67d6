"""The methods that SQLite and PostgreSQL have in common. Statements have ``?`` for values and are the same for both."""

from __future__ import annotations

import json
import os
import shlex
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import chain, islice
from typing import Any

from msgctl.errors import NOTHING_SENT, ConfigurationError, Hint, MsgctlError, StoreMovedError
from msgctl.text import clean

Row = tuple[Any, ...]

MAX_VALUES = 500
"""Maximum rows or values in one statement. SQLite allows 32,766 values."""


MOVE = "SELECT value FROM meta WHERE name = 'move'"
"""The query for the `Mark` of a store (JSON)."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The mark of a store that takes part in a move.

    ``state`` is ``arriving``, ``moving`` or ``moved``. ``place`` is the new store as people write it; a file is on
    ``machine``. ``store`` is the ID of the other store. A store that is arriving has the ``owner`` that copies,
    and the ``table`` and the key of the last row that has arrived.
    """

    state: str
    place: str
    machine: str
    store: str
    owner: int | None = None
    table: str = ""
    after: Sequence[Any] = ()

    def dump(self) -> str:
        """Return the mark as JSON, always the same text for the same mark."""
        return json.dumps(asdict(self))

    @classmethod
    def load(cls, text: str) -> Mark:
        """Return the mark in JSON of `dump`."""
        return cls(**json.loads(text))

    @property
    def place_and_machine(self) -> str:
        """The new store, with its machine if it is a file."""
        return f"{self.place} on {clean(self.machine)}" if self.machine else self.place

    @property
    def is_usable_here(self) -> bool:
        """Whether the new store is a database, or a file that is on this machine; machines may have the same name."""
        return not self.machine or (self.machine == socket.gethostname() and os.access(self.place, os.R_OK))


class Database(ABC):
    """A connection, for one thread at a time. Statements outside of a `transaction` are committed at once.

    ``place`` is the file or the database in messages, without a password. Every method raises StoreNotReachedError if
    the database cannot be reached within the time limit, and ConfigurationError if it cannot be used.
    """

    place: str
    delete_command: str
    """The shell command that deletes the store."""
    refuses_moved = False
    """Whether no transaction begins while the store is moved, because its changes would be lost."""

    @abstractmethod
    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Return the rows of a query, or of a change with RETURNING."""

    @abstractmethod
    def change(self, statement: str, values: Sequence[Any] = ()) -> int:
        """Execute a statement, and return the number of rows that it changed."""

    def defer(
        self,
        statement: str,
        values: Sequence[Any] = (),
        *,
        expected: int | None = None,
        error: Callable[[], MsgctlError] | None = None,
    ) -> None:
        """Execute a change in a transaction, at the latest before its commit.

        PostgreSQL gets it together with the next statement, which saves a round trip. Raises ``error``, or else
        ConfigurationError (``damaged_store``), if it changes more or fewer rows than ``expected``.
        """

        def check(changed: int) -> None:
            if expected is not None and changed != expected:
                raise error() if error else self.damaged("another program has changed results")

        self._defer(statement, values, check)

    def _defer(self, statement: str, values: Sequence[Any], check: Callable[[int], None]) -> None:
        check(self.change(statement, values))

    def time(self) -> int | None:
        """Return the time of the database in milliseconds since 1970; None if it is the time of this machine."""
        return None

    @abstractmethod
    def columns(self, table: str) -> list[str]:
        """Return the names of the columns of a table."""

    @abstractmethod
    def continue_numbers(self) -> None:
        """Give new jobs higher numbers than the jobs that were copied from another store."""

    @abstractmethod
    def exclude_others(self) -> None:
        """Wait until no other transaction is open, and let none begin until this one ends."""

    @abstractmethod
    def check(self, *, creates: bool = True) -> None:
        """Check that this is a complete store. On a server, create missing tables, or raise MissingStoreError."""

    def create(self, statement: str) -> None:
        """Execute a statement of the schema."""
        self.change(statement)

    @abstractmethod
    def begin(self, lock: str) -> None:
        """Begin a transaction that writes. Transactions with the same lock run one after the other."""

    @abstractmethod
    def commit(self) -> None:
        """Make the changes of the transaction durable."""

    @abstractmethod
    def roll_back(self) -> None:
        """Undo the transaction, if there is one. Raises nothing."""

    @abstractmethod
    def hold(self, owner: int) -> None:
        """Hold the lock of an owner until this process or the connection ends."""

    @abstractmethod
    def limit_idle(self, is_limited: bool) -> None:
        """Set whether the server ends this session, and so releases its locks, after almost a minute of silence.

        A process that sends a job is never silent for that long.
        """

    @abstractmethod
    def alive(self, owners: Collection[int]) -> set[int]:
        """Return the owners that are alive: a process holds their locks."""

    @abstractmethod
    def shrink(self) -> None:
        """Return the space of deleted rows to the system, if the database does not do so by itself."""

    @abstractmethod
    def reconnect(self) -> None:
        """Replace a lost connection; locks must be held again."""

    @abstractmethod
    def close(self, *, is_in_use: bool = False) -> None:
        """Close the connection. Raises nothing.

        ``is_in_use`` means that a thread may execute a statement, and closing the connection would crash the process:
        it stays open, and its locks are released.
        """

    def row(self, statement: str, values: Sequence[Any] = ()) -> Row | None:
        """Return the first row of a query."""
        rows = self.rows(statement, values)
        return rows[0] if rows else None

    def value(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """Return the first value of the first row of a query, or None."""
        row = self.row(statement, values)
        return row[0] if row else None

    def insert(self, statement: str, rows: Sequence[Row], *, ending: str = "") -> int:
        """Insert rows with one statement for many of them, and return the number of rows that it changed.

        ``statement`` ends before VALUES; ``ending`` follows the rows. Python's sqlite3 waits for the interpreter lock
        after each execution, so one statement per row would be slow beside busy threads.
        """
        return sum(self.change(text, values) for text, values, _ in _groups(statement, rows, ending))

    def insert_all(self, statement: str, rows: Sequence[Row], *, ending: str = "") -> None:
        """Insert rows like `insert`, with `defer`. Raises ConfigurationError if ``ending`` leaves a row unchanged."""
        for text, values, number in _groups(statement, rows, ending):
            self.defer(text, values, expected=number)

    def fill(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Insert many rows of a file or of another store. Called after the first statement of a transaction."""
        self.insert(f"INSERT INTO {table} ({', '.join(columns)})", rows)

    @contextmanager
    def transaction(self, lock: str = "") -> Iterator[None]:
        """Make all changes of the block durable, or none. ``lock`` is usually the account."""
        self.begin(lock)
        try:
            yield
            self.commit()
        except BaseException:
            self.roll_back()
            raise

    def refuse_moved(self, text: str | None = None) -> None:
        """Raise ConfigurationError if the store was moved to another one, or if a move is in progress.

        ``text`` is the result of the query `MOVE`. If it is omitted, the query is run.
        """
        text = text or self.value(MOVE)
        if text is None:
            return
        mark = Mark.load(text)
        if mark.state == "moved":
            what = f"The store {self.place} was moved to {mark.place_and_machine}"
            if not mark.is_usable_here:
                fix = (
                    f"Machines cannot share a file. To share the store, move it to PostgreSQL on {clean(mark.machine)}."
                )
                raise unusable(what, fix)
            raise StoreMovedError(what, "Use the new store, in the profile or in MSGCTL_STORE.", mark.place)
        what = f"The store {self.place} is being moved to {mark.place_and_machine}"
        if mark.state == "arriving":
            what = f"Not everything has arrived in the store {self.place}"
        new = shlex.quote(mark.place)
        raise unusable(what, Hint("Finish the move, with the old store in use: ", f"store move --to {new}"))

    def damaged(self, fault: str, fix: str = "Restore it from a backup, or rename it.") -> ConfigurationError:
        """Return the error for a store with missing or wrong content."""
        hint = f"{fix} A new store does not know earlier sends."
        return unusable(f"The store {self.place} is damaged: {fault}", hint, "damaged_store")


def unusable(what: str, hint: str, reason: str = "") -> ConfigurationError:
    """Return the error for a store that cannot be used."""
    return ConfigurationError(what, hint, consequence=NOTHING_SENT, reason=reason)


def _groups(statement: str, rows: Sequence[Row], ending: str) -> Iterator[tuple[str, list[Any], int]]:
    """Yield statements that insert many rows, with their values and the number of their rows."""
    for chunk in chunks(rows):
        group = "(" + ", ".join("?" * len(chunk[0])) + ")"
        text = f"{statement} VALUES {', '.join([group] * len(chunk))} {ending}"
        yield text, list(chain.from_iterable(chunk)), len(chunk)


def chunks(values: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield lists of at most `MAX_VALUES` values."""
    iterator = iter(values)
    while chunk := list(islice(iterator, MAX_VALUES)):
        yield chunk


def any_of(values: Collection[Any]) -> str:
    """Return ``IN (?, …)`` for some values."""
    return f"IN ({', '.join('?' * len(values))})"


def plain(text: str | None) -> str | None:
    """Return text that both databases can store: no lone surrogate and no NUL."""
    if text is None or (text.isascii() and "\0" not in text):  # fast path for the usual case: a fifth of the time
        return text
    return text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
