"""Read the pending recipients in the order in which they are sent to."""

from __future__ import annotations

import json
import sqlite3
from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from msgctl.jobs.states import State

_READ_AHEAD = 2_000

# All groups come as one row: at every row the thread would wait for its turn among all senders. There are two searches
# since SQLite does not use its index for (message, line) > (?, ?).
_OPEN = """?4 IS NULL OR EXISTS (SELECT 1 FROM message WHERE id = recipient.message
    AND zones IN (SELECT value FROM json_each(?4)))"""
_ROWS = f"""SELECT message, state, line, phone FROM recipient
    WHERE state IN ('pending', 'again') AND ({_OPEN}) AND message"""  # noqa: S608
_NEXT = f"""SELECT json_group_array(json_array(message, state, lines, phones, last)) FROM (
    SELECT message, state, group_concat(line) AS lines, group_concat(phone) AS phones, max(line) AS last FROM (
    SELECT * FROM ({_ROWS} = ?1 AND line > ?2 ORDER BY line LIMIT ?3) UNION ALL
    SELECT * FROM ({_ROWS} > ?1 ORDER BY message, line LIMIT ?3) LIMIT ?3) GROUP BY message, state)"""  # noqa: S608


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

    def restart(self, zones: Iterable[str] | None = None) -> None:
        """Begin again: find all who are pending in the ledger, or only those in some time zones."""
        self._zones = None if zones is None else json.dumps([*zones])
        self._place = (-1, -1)
        self._groups: deque[Group] = deque()
        self._is_end = False

    def put_back(self, group: Group) -> None:
        """Put recipients back, except those that are still to be read: they would come twice."""
        passed = [line for line in group.lines if self._is_end or (group.message, line) <= self._place]
        if passed:
            self._groups.appendleft(group._replace(lines=passed, phones=group.phones[: len(passed)]))

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
            self._groups.appendleft(group._replace(lines=group.lines[most:], phones=group.phones[most:]))
        return group._replace(lines=group.lines[:most], phones=group.phones[:most])

    def _extended(self, group: Group) -> Group:
        """Join a group with the rest of it that was not read yet."""
        self._read()
        if self._groups and self._groups[0][:2] == group[:2]:
            rest = self._groups.popleft()
            return group._replace(lines=[*group.lines, *rest.lines], phones=[*group.phones, *rest.phones])
        return group

    def _read(self) -> None:
        if self._is_end:
            return
        (text,) = self._db.execute(_NEXT, (*self._place, _READ_AHEAD, self._zones)).fetchone()
        found = json.loads(text)
        for message, state, lines, phones, last in found:
            group = Group(message, State(state), [*map(int, lines.split(","))], phones.split(","))
            self._place = max(self._place, (message, last))
            self._groups.append(group)
        self._is_end = not found
