"""Who is next: the recipients of a ledger that have no request yet, in the order in which they leave."""

from __future__ import annotations

import sqlite3
from bisect import bisect_right
from typing import NamedTuple

_READ_AHEAD = 2_000


class Group(NamedTuple):
    """Recipients of one content who share a request: their lines and phones."""

    content: int
    lines: list[int]
    phones: tuple[str, ...]


class Upcoming:
    """Reads recipients ahead, a few thousand at a time.

    ``place`` is the content and the line of the last one that was taken; it can be set back.
    """

    def __init__(self, db: sqlite3.Connection, place: tuple[int, int]) -> None:
        self._db = db
        self.go_back(place)

    @property
    def place(self) -> tuple[int, int]:
        return self._place

    def go_back(self, place: tuple[int, int]) -> None:
        self._place = place
        self._keys: list[tuple[int, int]] = []
        self._phones: list[str] = []
        self._taken = 0
        self._is_end = False

    def content(self) -> int | None:
        """The content of the next recipient; None at the end."""
        self._provide(1)
        return self._keys[self._taken][0] if self._taken < len(self._keys) else None

    def take(self, most: int) -> Group | None:
        """The next recipients, up to ``most`` of one content; None at the end."""
        self._provide(most)
        content = self.content()
        if content is None:
            return None
        end = min(self._taken + most, len(self._keys))
        end = bisect_right(self._keys, content, self._taken, end, key=lambda key: key[0])
        keys, phones = self._keys[self._taken : end], self._phones[self._taken : end]
        self._place, self._taken = keys[-1], end
        return Group(content, [line for _, line in keys], tuple(phones))

    def _provide(self, number: int) -> None:
        """See that so many are read, where there are as many."""
        if self._is_end or len(self._keys) - self._taken >= number:
            return
        wanted = max(number, _READ_AHEAD)
        self.go_back(self._place)
        # One row: at every row the thread has to wait for its turn among all those that send.
        columns = self._db.execute(
            """SELECT group_concat(content), group_concat(line), group_concat(phone)
            FROM (SELECT content, line, phone FROM recipient WHERE (content, line) > (?, ?)
            ORDER BY content, line LIMIT ?)""",
            (*self._place, wanted),
        ).fetchone()
        if columns[0] is not None:
            contents, lines, phones = (column.split(",") for column in columns)
            self._keys, self._phones = [*zip(map(int, contents), map(int, lines), strict=True)], phones
        if self._keys != sorted(self._keys) or len(self._keys) != len(self._phones):
            raise sqlite3.DatabaseError("its recipients cannot be read")  # the order is kept, but not promised
        self._is_end = len(self._keys) < wanted
