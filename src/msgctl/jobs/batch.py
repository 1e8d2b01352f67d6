"""What becomes of requests, written to a ledger together: one statement, however many they are.

At every statement the thread that writes lets the others run, and has to wait for its turn again among all those that
send. One statement is a transaction by itself, too, and needs none to begin and end it.
"""

from __future__ import annotations

import sqlite3
from itertools import chain
from typing import Any, NamedTuple

from msgctl.jobs.states import State

_COLUMNS = 14
MOST_ROWS = 999 // _COLUMNS
"""SQLite before 3.32 takes 999 values in a statement."""

_PLACES = f"({','.join('?' * _COLUMNS)})"
# A state is required. A new request, which alone has a size, gets none in the place of one that is there: somebody else
# has made that, and nothing may leave.
_STATEMENT = """INSERT INTO request (number, updated, state, content, first, last, size, estimate, attempts,
    lost, credits, missing, answer, error) VALUES {rows}
    ON CONFLICT (number) DO UPDATE SET updated = excluded.updated,
    state = CASE excluded.size WHEN 0 THEN excluded.state END,
    attempts = attempts + excluded.attempts, lost = lost + excluded.lost, credits = credits + excluded.credits,
    missing = excluded.missing, answer = excluded.answer, error = excluded.error"""


class New(NamedTuple):
    """A request that is made: its recipients are those of the content from the first line to the last."""

    content: int
    first: int
    last: int
    size: int
    estimate: int
    attempts: int = 1


class Known(NamedTuple):
    """What has become of a request since: ``attempts`` is to be added, ``lost`` and ``credits`` are, too."""

    attempts: int
    lost: int
    credits: int
    missing: int
    answer: str | None
    error: str | None


class Batch:
    """Rows that wait to be written to the ledger behind a connection."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._rows: list[tuple[Any, ...]] = []

    def __len__(self) -> int:
        return len(self._rows)

    def intend(self, number: int, updated: float, state: State, new: New) -> None:
        """Have a new request written, in a state, at a time in seconds since 1970."""
        self._rows.append((number, updated, state, *new, 0, 0, 0, None, None))

    def record(self, number: int, updated: float, state: State, known: Known) -> None:
        """Have what became of a request written, which is in the ledger or waits to be."""
        self._rows.append((number, updated, state, 0, 0, 0, 0, 0, *known))

    def clear(self) -> None:
        self._rows = []

    def write(self) -> None:
        """Write what waits, all or nothing."""
        rows, self._rows = self._rows, []
        if rows:
            self._db.execute(_STATEMENT.format(rows=",".join([_PLACES] * len(rows))), [*chain.from_iterable(rows)])
