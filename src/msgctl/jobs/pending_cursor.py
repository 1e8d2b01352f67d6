"""Read the recipients who wait to be sent to, in the order in which they are sent."""

from __future__ import annotations

import json
import sqlite3
from collections import deque
from operator import itemgetter
from typing import NamedTuple

from msgctl.jobs.states import State

_READ_AHEAD = 2_000


class Group(NamedTuple):
    """Recipients of one message and one state, who can share a request."""

    message: int
    state: State
    lines: list[int]
    phones: list[str]


class PendingCursor:
    """Walks through the pending recipients once; those who were not sent to are put back with `put_back`."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self.restart()

    def restart(self) -> None:
        """Begin again: find all who are pending in the ledger."""
        self._place = (-1, -1)
        self._groups: deque[Group] = deque()
        self._is_end = False

    def put_back(self, group: Group) -> None:
        self._groups.appendleft(group)

    def message(self) -> int | None:
        """Return the message of the next recipient; None at the end."""
        if not self._groups:
            self._read()
        return self._groups[0].message if self._groups else None

    def take(self, most: int) -> Group | None:
        """Return the next recipients, at most so many; None at the end."""
        if self.message() is None:
            return None
        group = self._groups.popleft()
        if len(group.lines) < most and not self._groups:
            group = self._extended(group)
        if len(group.lines) > most:
            self.put_back(group._replace(lines=group.lines[most:], phones=group.phones[most:]))
        return group._replace(lines=group.lines[:most], phones=group.phones[:most])

    def _extended(self, group: Group) -> Group:
        """Join a group with the rest of it that was not read yet."""
        self._read()
        if self._groups and self._groups[0][:2] == group[:2]:
            rest = self._groups.popleft()
            return group._replace(lines=[*group.lines, *rest.lines], phones=[*group.phones, *rest.phones])
        return group

    def _read(self) -> None:
        """Read ahead. All rows come as one: the thread would wait for its turn among all senders at every row."""
        if self._is_end:
            return
        (text,) = self._db.execute(
            """SELECT json_group_array(json_array(message, state, line, phone)) FROM (
            SELECT message, state, line, phone FROM recipient
            WHERE message IS NOT NULL AND (message, line) > (?, ?) AND state IN ('pending', 'again')
            ORDER BY message, line LIMIT ?)""",
            (*self._place, _READ_AHEAD),
        ).fetchone()
        rows = sorted(json.loads(text), key=itemgetter(0, 2))  # SQLite keeps the order, but does not promise it
        self._is_end = len(rows) < _READ_AHEAD
        for message, state, line, phone in rows:
            self._place = (message, line)
            if not self._groups or self._groups[-1][:2] != (message, state):
                self._groups.append(Group(message, State(state), [], []))
            self._groups[-1].lines.append(line)
            self._groups[-1].phones.append(phone)
