"""Collect changes to a ledger and write them together, with few statements.

At every statement the writing thread lets the others run, and must wait for its turn again. So many recipients are
changed at once: a JSON object has their lines as its keys.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from msgctl.jobs.states import State

_INTENTS = """UPDATE recipient SET state = ?, request = sent.value
    FROM json_each(?) AS sent WHERE line = CAST(sent.key AS INTEGER) AND state IN ('pending', 'again')"""
_RESULTS = """UPDATE recipient SET state = ?, status = ?, credits = ?, lost = lost + ?, id = said.value
    FROM json_each(?) AS said WHERE line = CAST(said.key AS INTEGER) AND state IN ('sending', 'sending again')"""
_REQUESTS = """INSERT INTO request (number, updated, error, body)
    SELECT json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
    json_extract(value, '$[3]') FROM json_each(?)"""


class Said(NamedTuple):
    """The result of a request, for the recipients who share it."""

    state: State
    status: str | None
    credits: int | str | None
    lost: int


class PendingWrites:
    """Changes that wait to be written to the database behind a connection."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.clear()

    def clear(self) -> None:
        self._intents: dict[State, dict[int, int]] = defaultdict(dict)
        self._results: dict[Said, dict[int, str | None]] = defaultdict(dict)
        self._requests: list[tuple[int, float, str | None, str | None]] = []

    def intend(self, state: State, lines: list[int], number: int) -> None:
        """Put recipients into the state of a new request."""
        self._intents[state].update(dict.fromkeys(lines, number))

    def record(self, said: Said, ids: dict[int, str | None]) -> None:
        """Write the outcome of recipients, and the message ID of each line."""
        self._results[said].update(ids)

    def end(self, number: int, updated: float, error: str | None, body: str | None) -> None:
        """Write how a request that was sent ended."""
        self._requests.append((number, updated, error, body))

    def flush(self) -> None:
        """Execute the changes, results first: a recipient who was not sent to can be in a new request already."""
        for said, ids in self._results.items():
            self._update(_RESULTS, said, ids)
        if self._requests:
            self._db.execute(_REQUESTS, (_encoded(self._requests),))
        for state, numbers in self._intents.items():
            self._update(_INTENTS, (state,), numbers)
        self.clear()

    def _update(self, statement: str, values: Sequence[object], lines: Mapping[int, object]) -> None:
        if self._db.execute(statement, (*values, _encoded(lines))).rowcount != len(lines):
            raise sqlite3.DatabaseError("another process has changed it")


def _encoded(value: object) -> str:
    """Return JSON in which half of a surrogate pair, which SQLite cannot store, is a question mark."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace").decode()
