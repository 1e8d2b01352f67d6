"""What hostile hands make of a SQLite file: of its bytes, its values, its rows, its tables."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from fuzz.damage import VALUES, Draw, damaged

Tables = Mapping[str, Sequence[str]]
"""The columns of each table, its key first."""

_ONE = "WHERE {key} IS (SELECT {key} FROM {table} LIMIT 1 OFFSET {row})"
STATEMENTS = {
    "one value": f"UPDATE {{table}} SET {{column}} = ? {_ONE}",
    "a column": "UPDATE {table} SET {column} = ?",
    "no row": f"DELETE FROM {{table}} {_ONE}",
    "no rows": "DELETE FROM {table}",
    "no table": "DROP TABLE {table}",
    "another name": "ALTER TABLE {table} RENAME COLUMN {column} TO other",
    "one column more": "ALTER TABLE {table} ADD COLUMN other",
    "another version": "PRAGMA user_version = {row}",
}
UNTYPED = (
    "CREATE TABLE new AS SELECT * FROM {table}",
    "DROP TABLE {table}",
    "ALTER TABLE new RENAME TO {table}",
)
"""What takes types, keys and constraints from a table, so that it holds what follows, whatever that is."""

numbers = st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, 1, -1, 2, 2**31, 2**53 + 1, 1e300, float("inf"), 0.5])
words = st.sampled_from(
    [
        *("", "accepted", "unknown", "under way", "waiting", "-1", "nan", "12,34"),
        "\x1b[2J",
        "\u202e",
        "a\nb",
        "x" * 2000,
    ]
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
cells = st.none() | numbers | words | texts | st.binary(max_size=6) | VALUES.map(json.dumps)
members = st.sampled_from(["", "sms", "operation", "fixed", "batch_size", "concurrency", "rate", "profile", "file"])


class Change(NamedTuple):
    """One change to a row of a table: to a ``member`` of the JSON in a column, or by one of `STATEMENTS`."""

    kind: str
    table: str
    key: str
    column: str
    row: int
    value: Any
    member: str = ""
    untyped: bool = False

    def make(self, db: sqlite3.Connection) -> None:
        for statement in UNTYPED if self.untyped else ():
            db.execute(self._filled(statement))
        if self.kind == "a member":
            self._change_member(db)
        else:
            statement = self._filled(STATEMENTS[self.kind])
            db.execute(statement, (self.value,) * statement.count("?"))

    def _filled(self, statement: str) -> str:
        return statement.format(table=self.table, key=self.key, column=self.column, row=self.row)

    def _change_member(self, db: sqlite3.Connection) -> None:
        for (text,) in db.execute(self._filled(f"SELECT {{column}} FROM {{table}} {_ONE}")).fetchall():
            document = json.loads(text)
            if isinstance(document, dict):
                document[self.member or next(iter(document), "")] = self.value
            else:
                document = [self.value, *document[1:]]
            db.execute(self._filled(STATEMENTS["one value"]), (json.dumps(document),))


@st.composite
def changes(draw: Draw, tables: Tables) -> Change:
    """One change to a database with these tables; most are to values."""
    kind = draw(st.sampled_from(["one value"] * 6 + ["a member"] * 5 + ["a column"] * 2 + list(STATEMENTS)))
    table = draw(st.sampled_from(sorted(tables)))
    column = draw(st.sampled_from(tables[table]))
    value = draw(VALUES if kind == "a member" else cells)
    untyped = kind in ("one value", "a column") and draw(st.booleans())
    return Change(kind, table, tables[table][0], column, draw(st.integers(0, 3)), value, draw(members), untyped)


def described(schema: Iterable[str]) -> Tables:
    """The tables that the statements of a schema make."""
    with closing(sqlite3.connect(":memory:")) as db:
        for statement in schema:
            db.execute(statement)
        return _tables(db)


def tables_of(path: Path) -> Tables:
    """The tables in a file."""
    with closing(sqlite3.connect(path)) as db:
        return _tables(db)


def _tables(db: sqlite3.Connection) -> Tables:
    names = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'").fetchall()
    return {name: [row[1] for row in db.execute(f"PRAGMA table_info({name})")] for (name,) in sorted(names)}


def change(path: Path, wanted: Iterable[Change] = ()) -> None:
    """Change a database, as far as it lets itself be changed, and bring all of it into its one file."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA synchronous = OFF")
        db.execute("PRAGMA journal_mode = DELETE")
        for each in wanted:
            with suppress(sqlite3.Error, ValueError, TypeError, OverflowError):
                each.make(db)


@st.composite
def damaged_pages(draw: Draw, content: bytes) -> bytes:
    """The bytes of a database with some of them others."""
    if draw(st.integers(0, 3)) == 0:
        whole: bytes = draw(damaged(content))
        return whole
    pages = bytearray(content)
    for _ in range(draw(st.integers(1, 6))):
        place = draw(st.integers(0, 100) | st.integers(0, len(pages) - 1))
        pages[place] = draw(st.integers(0, 255))
    return bytes(pages)
