"""A ledger read from its beginning to its end, as a stream: neither memory nor time grow with what was read before."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from msgctl.jobs.ledger import Ledger
from msgctl.jobs.records import Entry, Fate, unpack
from msgctl.jobs.schema import LEDGER
from msgctl.jobs.states import State
from msgctl.storage import database

_MOST_OPEN = 256


class Recipient(NamedTuple):
    """A recipient with its latest request (None before the first), what the service said of it, its delivery state."""

    line: int
    phone: str
    fate: Fate | None
    entry: Entry | None
    delivery_state: str | None


def excluded(ledger: Ledger) -> Iterator[tuple[int, str, str, str]]:
    """Line, phone, outcome and reason of the rows that nobody can send to, in the order of the file."""
    with LEDGER.understood(ledger.path):
        for row in ledger.db.execute("SELECT line, phone, outcome, reason FROM excluded ORDER BY line"):
            database.require(int, row[0])
            database.require(str, *row[1:])
            yield row


def recipients(ledger: Ledger) -> Iterator[Recipient]:
    """The recipients that can be sent to, in the order of the file."""
    fates = _Fates(ledger.db)
    with LEDGER.understood(ledger.path):
        (contents,) = ledger.db.execute("SELECT max(id) FROM content").fetchone()
        # With one content its key has the order of lines already, and nothing needs to be sorted.
        where = "WHERE content = 1" if contents == 1 else ""
        for content, line, phone, state in ledger.db.execute(
            f"""SELECT content, line, phone, (SELECT state FROM delivery WHERE delivery.line = recipient.line)
            FROM recipient {where} ORDER BY line"""  # noqa: S608 (both texts are ours)
        ):
            database.require(int, content, line)
            database.require(str, phone, state or "")
            yield Recipient(line, phone, *fates.of(content, line), state)


def accepted(ledger: Ledger) -> Iterator[tuple[int, str]]:
    """Line and message id of all that was accepted, in the order in which it left."""
    with LEDGER.understood(ledger.path):
        for content, first, last, answer in ledger.db.execute(
            "SELECT content, first, last, answer FROM request WHERE state = ? ORDER BY number", (State.ACCEPTED,)
        ):
            lines = ledger.db.execute(
                "SELECT line FROM recipient WHERE content = ? AND line BETWEEN ? AND ? ORDER BY line",
                (content, first, last),
            ).fetchall()
            for (line,), entry in zip(lines, _entries(answer), strict=False):
                if entry and entry.id:
                    database.require(int, line)
                    yield line, entry.id


def charges(ledger: Ledger) -> Iterator[tuple[int, Sequence[Entry | None]]]:
    """For each request that was accepted the estimated credits a recipient, and what was charged."""
    with LEDGER.understood(ledger.path):
        for cost, answer in ledger.db.execute(
            "SELECT estimate / size, answer FROM request WHERE state = ?", (State.ACCEPTED,)
        ):
            yield cost, _entries(answer)


@dataclass(slots=True)
class _Open:
    """A request that is being walked through: its last line, and how many of its recipients were passed."""

    first: int
    last: int
    fate: Fate
    entries: Sequence[Entry | None]
    passed: int


class _Fates:
    """Finds the request of one recipient after the other; of several contents that alternate, too."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._open: OrderedDict[int, _Open] = OrderedDict()

    def of(self, content: int, line: int) -> tuple[Fate | None, Entry | None]:
        """What became of the recipient on a line. Lines have to come in rising order."""
        request = self._open.get(content)
        if request is None or line > request.last:
            request = self._find(content, line)
            if request is None:
                return None, None
        entry = request.entries[request.passed] if request.passed < len(request.entries) else None
        request.passed += 1
        return request.fate, entry

    def _find(self, content: int, line: int) -> _Open | None:
        row = self._db.execute(
            """SELECT first, last, state, error, answer FROM request WHERE content = ? AND first <= ?
            ORDER BY first DESC LIMIT 1""",
            (content, line),
        ).fetchone()
        if row is None or row[1] < line:
            return None
        first, last, state, error, answer = row
        database.require(int, first, last)
        database.require(str, error or "")
        (passed,) = self._db.execute(
            "SELECT count(*) FROM recipient WHERE content = ? AND line >= ? AND line < ?", (content, first, line)
        ).fetchone()
        found = _Open(first, last, Fate(State(state), error), _entries(answer), passed)
        self._open[content] = found
        self._open.move_to_end(content)
        if len(self._open) > _MOST_OPEN:
            self._open.popitem(last=False)
        return found


def _entries(answer: str | None) -> list[Entry | None]:
    entries = unpack(answer)
    for entry in entries:
        database.require(str, *(each or "" for each in entry or ()))
    return entries
