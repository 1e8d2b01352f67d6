"""Requests that are written to a ledger together, in two statements, however many they are.

At every statement the thread that writes lets the others run, and has to wait for its turn again among all those that
send: with one statement a request that takes longer than the disk.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import chain
from typing import Any

_INTENTS = """INSERT INTO request (number, content, first, last, size, estimate, state, attempts, updated)
    VALUES {rows}"""
_RESULTS = """WITH heard (number, state, charged, missing, answer, error, updated, not_left, doubtful)
    AS (VALUES {rows})
    UPDATE request SET state = heard.state, credits = credits + charged, missing = heard.missing,
    answer = heard.answer, error = heard.error, updated = heard.updated, attempts = attempts - not_left,
    lost = lost + doubtful
    FROM heard WHERE request.number = heard.number"""


class Batch:
    """``intents`` and ``results`` are rows in the order of the columns above; `write` writes and forgets them."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.intents: list[tuple[Any, ...]] = []
        self.results: list[tuple[Any, ...]] = []

    def clear(self) -> None:
        self.intents, self.results = [], []

    def write(self) -> None:
        intents, results = self.intents, self.results
        self.clear()
        self._execute(_INTENTS, intents)
        self._execute(_RESULTS, results)

    def _execute(self, statement: str, rows: Sequence[tuple[Any, ...]]) -> None:
        if rows:
            places = f"({','.join('?' * len(rows[0]))})"
            text = statement.format(rows=",".join([places] * len(rows)))
            self._db.execute(text, tuple(chain.from_iterable(rows)))
