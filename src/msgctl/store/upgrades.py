"""The ordered steps that create and upgrade the tables. A released step never changes.

Each step runs in one transaction together with its record in the table ``meta``, so that a failure changes nothing.
"""

from __future__ import annotations

import secrets

from msgctl.store.database import Database, unusable
from msgctl.store.schema import CREATE_TABLES

STEPS: tuple[str, ...] = (
    CREATE_TABLES,  # 0.3.0
    "DROP TABLE response",  # 0.4.0: no code read it
)
"""The statements of each step, separated by semicolons. The version of a store is the number of its steps."""

VERSION = len(STEPS)


def statements(step: str) -> list[str]:
    """Return the statements of a step without comments."""
    lines = (line.partition("--")[0].rstrip() for line in step.splitlines())
    return [text for statement in "\n".join(lines).split(";") if (text := statement.strip())]


def create_tables(db: Database) -> None:
    """Create the tables of a new store, with a random ID. Called in a transaction."""
    db.create("CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)")
    db.insert("INSERT INTO meta (name, value)", [("id", secrets.token_hex(16)), ("version", "0")])
    apply_steps(db)


def apply_steps(db: Database, steps: tuple[str, ...] = STEPS, *, after: int = 0) -> None:
    """Apply the steps after a version. Called in a transaction."""
    for step in steps[after:]:
        for statement in statements(step):
            db.create(statement)
    db.change("UPDATE meta SET value = ? WHERE name = 'version'", (str(len(steps)),))


def upgrade(db: Database, steps: tuple[str, ...] = STEPS) -> None:
    """Apply the steps that a store does not have yet. Raises ConfigurationError for a newer store."""
    if _version(db, steps) < len(steps):
        with db.transaction("upgrade"):
            apply_steps(db, steps, after=_version(db, steps))  # another process may have been faster


def _version(db: Database, steps: tuple[str, ...]) -> int:
    """Return the version of a store. Raises ConfigurationError if it is damaged, or newer than the steps."""
    row = db.row("SELECT value FROM meta WHERE name = 'version'")
    if row is None or not str(row[0]).isdigit():
        raise db.damaged("it has no version")
    version = int(row[0])
    if version > len(steps):
        raise unusable(
            f"The store {db.place} was written by a newer msgctl (schema {version}, this one reads {len(steps)})",
            "Update this msgctl.",
            "newer_store",
        )
    return version
