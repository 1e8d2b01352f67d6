"""The file with the sandbox's state: refused files, and errors for damaged ones."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from msgctl.errors import ConfigurationError
from msgctl.sandbox import state
from msgctl.sandbox.state import BrokenError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A state with a few pages in it."""
    path = tmp_path / "sandbox.sqlite3"
    with closing(state.connect(path)) as db, state.transaction(db):
        db.executemany("INSERT INTO blocked VALUES (?, '', ?)", [(str(each), "a name " * 200) for each in range(50)])
    return path


@pytest.fixture
def db(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(path, timeout=0.01, isolation_level=None)) as db:
        yield db


def test_a_block_that_fails_changes_nothing(db: sqlite3.Connection) -> None:
    def fail() -> None:
        with state.transaction(db):
            db.execute("DELETE FROM blocked")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert db.execute("SELECT count(*) FROM blocked").fetchone() == (50,)


def test_a_database_of_another_program_is_refused(path: Path, db: sqlite3.Connection) -> None:
    db.execute("PRAGMA application_id = 7")
    with pytest.raises(ConfigurationError, match="but not the sandbox's state"):
        state.connect(path)


@pytest.mark.parametrize(
    ("version", "error", "age", "fix"),
    [(1, BrokenError, "an older", state.FIX), (99, ConfigurationError, "a newer", "Update this msgctl.")],
)
def test_a_file_of_another_version_is_refused(
    version: int, error: type[ConfigurationError], age: str, fix: str, path: Path, db: sqlite3.Connection
) -> None:
    db.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(ConfigurationError, match=f"sandbox.sqlite3.* {age} msgctl") as raised:
        state.connect(path)
    assert (type(raised.value), raised.value.hint) == (error, fix)


def test_the_error_for_a_damaged_file_contains_the_fix(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for start in range(4096, len(content), 4096):
        content[start : start + 100] = b"\xff" * 100
    path.write_bytes(content)
    with closing(sqlite3.connect(path)) as db, pytest.raises(BrokenError) as raised, state.explained(path):
        db.execute("SELECT count(*) FROM blocked WHERE name <> ''").fetchone()
    assert "sandbox.sqlite3" in raised.value.message
    assert raised.value.hint == state.FIX


def test_a_file_in_use_is_reported_after_the_wait(path: Path, db: sqlite3.Connection) -> None:
    with closing(state.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ConfigurationError, match="locked") as raised, state.explained(path):
            db.execute("BEGIN IMMEDIATE")
    assert "Another program" in str(raised.value.hint)
