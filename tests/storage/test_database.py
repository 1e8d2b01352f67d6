"""SQLite files of the user: refused files, and errors for damaged ones."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from msgctl.errors import ConfigurationError
from msgctl.storage import database
from msgctl.storage.database import BrokenError, FileFormat

NOTES = FileFormat(
    name="the notes",
    application=0x6E6F7465,
    version=2,
    fix="Write them again.",
    schema=("CREATE TABLE notes (note TEXT)",),
    max_wait=0.01,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A file of the format, with a few pages in it."""
    path = tmp_path / "notes.sqlite3"
    with closing(NOTES.open(path)) as db, database.transaction(db):
        db.executemany("INSERT INTO notes VALUES (?)", [("a note " * 200,)] * 50)
    return path


@pytest.fixture
def db(path: Path) -> Iterator[sqlite3.Connection]:
    with closing(NOTES.connect(path)) as db:
        yield db


def test_a_block_that_fails_changes_nothing(db: sqlite3.Connection) -> None:
    def fail() -> None:
        with database.transaction(db):
            db.execute("DELETE FROM notes")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert db.execute("SELECT count(*) FROM notes").fetchone() == (50,)


def test_a_database_of_another_program_is_refused(path: Path, db: sqlite3.Connection) -> None:
    db.execute("PRAGMA application_id = 7")
    with pytest.raises(ConfigurationError, match="but not the notes"):
        NOTES.open(path)


@pytest.mark.parametrize(
    ("version", "error", "age", "fix"),
    [(1, BrokenError, "an older", NOTES.fix), (3, ConfigurationError, "a newer", "Update this msgctl.")],
)
def test_a_file_of_another_version_is_refused(
    version: int, error: type[ConfigurationError], age: str, fix: str, path: Path, db: sqlite3.Connection
) -> None:
    db.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(ConfigurationError, match=f"notes.sqlite3.* {age} msgctl") as raised:
        NOTES.open(path)
    assert (type(raised.value), raised.value.hint) == (error, fix)


def test_the_error_for_a_damaged_file_contains_the_fix(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for start in range(4096, len(content), 4096):
        content[start : start + 100] = b"\xff" * 100
    path.write_bytes(content)
    with closing(NOTES.connect(path)) as db, pytest.raises(BrokenError) as raised, NOTES.explained(path):
        db.execute("SELECT count(*) FROM notes").fetchone()
    assert "notes.sqlite3" in raised.value.message
    assert raised.value.hint == NOTES.fix


@pytest.mark.parametrize("content", [b"this is not SQLite" * 100, b"SQLite format 3\0" + b"\xff" * 500])
def test_the_error_for_a_file_that_is_not_a_database_contains_the_fix(content: bytes, path: Path) -> None:
    path.write_bytes(content)
    with pytest.raises(BrokenError) as raised, NOTES.explained(path):
        NOTES.open(path)
    assert raised.value.exit_code == 3
    assert "notes.sqlite3" in raised.value.message
    assert raised.value.hint == NOTES.fix


def test_a_file_in_use_is_reported_after_the_wait(path: Path, db: sqlite3.Connection) -> None:
    with closing(NOTES.connect(path)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ConfigurationError, match="locked") as raised, NOTES.explained(path):
            db.execute("BEGIN IMMEDIATE")
    assert "Another program" in str(raised.value.hint)
