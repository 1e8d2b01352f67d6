"""The tables of a ledger.

A recipient is stored once and never changed. What became of it stands with the request it went out with, which names
its recipients as a range of lines of one content: a dispatch to a hundred numbers costs one small row, not a hundred.
"""

from __future__ import annotations

from msgctl.storage.database import FileFormat

LEDGER = FileFormat(
    name="the ledger",
    application=0x6D73676A,  # "msgj"
    version=1,
    fix="Restore it from a copy, or move it away: nothing else records what the job sent.",
    most_wait=10.0,
)

SCHEMA = (
    # The order as the user gave it, as JSON, without credentials.
    "CREATE TABLE job (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    # What a message says: the parameters that differ between requests, as JSON, and credits a recipient, estimated.
    """CREATE TABLE content (
        id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, parameters TEXT NOT NULL, cost INTEGER NOT NULL)""",
    """CREATE TABLE recipient (
        content INTEGER NOT NULL, line INTEGER NOT NULL, phone TEXT NOT NULL UNIQUE,
        PRIMARY KEY (content, line)) WITHOUT ROWID""",
    """CREATE TABLE excluded (
        line INTEGER PRIMARY KEY, phone TEXT NOT NULL, outcome TEXT NOT NULL, reason TEXT NOT NULL)""",
    # Its recipients are those of the content from the first to the last line. `answer` holds what the
    # service said of each of them (see records.pack); `missing` counts those of whom it said nothing.
    # `lost` are the estimated credits of tries that may have been carried out without an answer.
    """CREATE TABLE request (
        number INTEGER PRIMARY KEY, content INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL,
        size INTEGER NOT NULL, estimate INTEGER NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL,
        lost INTEGER NOT NULL DEFAULT 0, credits INTEGER NOT NULL DEFAULT 0, missing INTEGER NOT NULL DEFAULT 0,
        answer TEXT, error TEXT, updated REAL NOT NULL)""",
    # The delivery state of what was accepted, and the round of questions in which it was last asked for.
    "CREATE TABLE delivery (line INTEGER PRIMARY KEY, state TEXT, error TEXT, round INTEGER NOT NULL)",
)

INDEXES = (
    "CREATE INDEX request_range ON request (content, first)",
    "CREATE INDEX request_waiting ON request (number) WHERE state IN ('waiting', 'again')",
)
