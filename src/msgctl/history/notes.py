"""The history: what was sent from this machine, in one SQLite file that several processes may use at the same time.

A dispatch is noted before its request leaves, which is on the disk then (synchronous = FULL), and again when it is
known what came of it. Whoever is killed in between leaves the outcome ``unknown`` behind. In WAL mode that takes four
waits for the disk where a rollback journal takes seven, and whoever reads the history keeps nobody from sending.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from msgctl.history.file import HISTORY, connect
from msgctl.http.response import Number
from msgctl.storage import database
from msgctl.storage.database import BrokenError
from msgctl.text import storable

MOST_DISPATCHES = 10_000
"""The newest dispatches, which are kept."""
ROUND = 100
"""Older ones are deleted once in so many dispatches."""

COLUMNS = ("time", "profile", "command", "phone", "outcome", "id", "status", "credits", "message")
_ENTRIES = f"SELECT {', '.join(COLUMNS)} FROM entries JOIN dispatches ON number = dispatch"  # noqa: S608

_NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,17})(\.[0-9]{1,9})?", re.ASCII)

Document = dict[str, Any]


class Outcome(Enum):
    """What came of a dispatch for one recipient, as far as this machine knows."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    UNKNOWN = "unknown"
    NOT_SENT = "not-sent"


@dataclass(frozen=True, slots=True)
class Dispatch:
    """What is about to be sent, by which command, and where to; ``time`` is UTC, YYYY-MM-DDTHH:MM:SSZ."""

    time: str
    profile: str
    base_url: str
    command: str
    message: str


@dataclass(frozen=True, slots=True)
class Entry:
    """What is known of one recipient; ``id``, ``status`` and ``credits`` are the service's."""

    phone: str | None
    outcome: Outcome = Outcome.UNKNOWN
    id: str | None = None
    status: str | None = None
    credits: str | None = None


class History:
    """An open history, made with its folder (0600 in 0700) where there is none.

    Raises ConfigurationError, here and from every method, where the file is not safe, is no history (`BrokenError`),
    or cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with HISTORY.understood(path):
            self._db = connect(path)

    def close(self) -> None:
        with suppress(sqlite3.Error):  # what was committed is there all the same
            self._db.close()

    def intend(self, dispatch: Dispatch, phones: Iterable[str | None]) -> int:
        """Note a dispatch that is about to be made, its outcome still unknown, and return its number.

        It is on the disk when this returns.
        """
        noted = (dispatch.time, dispatch.profile, dispatch.base_url, dispatch.command, dispatch.message)
        with self._writing("FULL"):
            self._db.execute(
                "INSERT INTO dispatches (time, profile, base_url, command, message) VALUES (?, ?, ?, ?, ?)",
                [storable(text) for text in noted],
            )
            number: int = self._db.execute("SELECT last_insert_rowid()").fetchone()[0]
            self._insert(number, map(Entry, phones))
        return number

    def settle(self, number: int, entries: Iterable[Entry]) -> None:
        """Note what came of a dispatch, unless it was cleared meanwhile; now and then, forget the oldest ones."""
        with self._writing("NORMAL"):
            self._db.execute("DELETE FROM entries WHERE dispatch = ?", [number])
            if self._db.execute("SELECT 1 FROM dispatches WHERE number = ?", [number]).fetchone():
                self._insert(number, entries)
            if number % ROUND == 0:
                oldest = number - MOST_DISPATCHES
                self._db.execute("DELETE FROM dispatches WHERE number <= ?", [oldest])
                self._db.execute("DELETE FROM entries WHERE dispatch <= ?", [oldest])

    def entries(
        self, limit: int, since: str | None = None, phone: str | None = None, profile: str | None = None
    ) -> list[Document]:
        """The newest ``limit`` entries, the oldest of them first; ``since`` is a time as in `Dispatch`."""
        wanted = {"since": since, "phone": phone, "profile": profile, "limit": limit}
        found = self._read(
            "(:since IS NULL OR time >= :since) AND (:phone IS NULL OR phone = :phone)"
            " AND (:profile IS NULL OR profile = :profile) ORDER BY dispatch DESC, position DESC LIMIT :limit",
            wanted,
        )
        return found[::-1]

    def last(self, profile: str, base_url: str) -> list[Document]:
        """The entries of the newest dispatch of a profile to a base URL; empty where there is none."""
        return self._read(
            "dispatch = (SELECT max(number) FROM dispatches WHERE profile = :profile AND base_url = :base_url)"
            " ORDER BY position",
            {"profile": profile, "base_url": base_url},
        )

    def clear(self, profile: str | None = None) -> int:
        """Forget every dispatch, or those of one profile; how many entries they had. Nothing stays in the file."""
        with HISTORY.explained(self._path):
            self._db.execute("PRAGMA secure_delete = ON")
        with self._writing("FULL"):
            self._db.execute(
                "DELETE FROM dispatches WHERE :profile IS NULL OR profile = :profile", {"profile": profile}
            )
            return self._db.execute(
                "DELETE FROM entries WHERE dispatch NOT IN (SELECT number FROM dispatches)"
            ).rowcount

    def _insert(self, number: int, entries: Iterable[Entry]) -> None:
        rows = (
            (number, position, each.phone, each.outcome.value, each.id, each.status, each.credits)
            for position, each in enumerate(entries)
        )
        self._db.executemany(
            "INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)",
            ([storable(value) if isinstance(value, str) else value for value in row] for row in rows),
        )

    @contextmanager
    def _writing(self, synchronous: str) -> Iterator[None]:
        with HISTORY.explained(self._path):
            self._db.execute(f"PRAGMA synchronous = {synchronous}")
            with database.transaction(self._db):
                yield

    def _read(self, condition: str, values: Document) -> list[Document]:
        with HISTORY.understood(self._path):
            return [_document(row) for row in self._db.execute(f"{_ENTRIES} WHERE {condition}", values)]


@contextmanager
def reading(path: Path) -> Iterator[History | None]:
    """The history in a file, for the time of the block; None where there is no file. Raises ConfigurationError."""
    with HISTORY.explained(path):
        is_there = os.path.lexists(path)
    if not is_there:
        yield None
        return
    history = History(path)
    try:
        yield history
    finally:
        history.close()


def clear(path: Path, profile: str | None = None) -> int | None:
    """Empty the history, of one profile alone where it is given; how many entries it had.

    None where it is broken, and was deleted. Raises ConfigurationError.
    """
    try:
        with reading(path) as history:
            return 0 if history is None else history.clear(profile)
    except BrokenError:
        if profile is not None:
            raise
        with HISTORY.explained(path):
            database.delete(path)
        return None


def _document(row: tuple[Any, ...]) -> Document:
    """An entry as it is shown. The file may hold anything, wherever."""
    texts = [value if isinstance(value, str) else None for value in row]
    document: Document = dict(zip(COLUMNS, texts, strict=True))
    charged = document["credits"]
    document["credits"] = Number(charged) if charged is not None and _NUMBER.fullmatch(charged) else None
    return document
