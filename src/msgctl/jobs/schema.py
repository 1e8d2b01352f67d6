"""The tables of a ledger: one row per recipient and one per request."""

from __future__ import annotations

from msgctl.storage.files import FileFormat

_SCHEMA = (
    # Facts about the whole job: its spec (as JSON, without credentials) and when it was created.
    "CREATE TABLE job (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    # What recipients get: the parameters from their row (as JSON), and the estimated credits of one recipient.
    """CREATE TABLE message (
        id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, parameters TEXT NOT NULL, cost INTEGER NOT NULL)""",
    # `zones` are the recipient's time zones, if the job has a window. `credits` are those of the last request, `spent`
    # those of earlier ones. `lost` are estimated credits that may have been charged without a response that says so.
    # `delivery` is the newest delivery state, asked for at the time `checked`. Rows that cannot be sent to have no
    # message, but an `error`.
    """CREATE TABLE recipient (
        line INTEGER PRIMARY KEY, phone TEXT NOT NULL, message INTEGER, zones TEXT, state TEXT NOT NULL,
        request INTEGER, id TEXT, status TEXT, credits, spent INTEGER NOT NULL DEFAULT 0,
        lost INTEGER NOT NULL DEFAULT 0, delivery TEXT, checked REAL, error TEXT)""",
    "CREATE UNIQUE INDEX recipient_phone ON recipient (phone) WHERE message IS NOT NULL",
    # The file's own columns but the phone's, as a JSON array.
    "CREATE TABLE cells (line INTEGER PRIMARY KEY, row TEXT NOT NULL)",
    # `body` is kept if the response leaves the outcome in doubt: a message id in it must not be lost.
    """CREATE TABLE request (
        number INTEGER PRIMARY KEY, updated REAL NOT NULL, error TEXT, body TEXT)""",
)

LEDGER = FileFormat(
    name="the ledger",
    application=0x6D73676A,  # "msgj"
    version=4,
    fix="Restore it from a backup, or move it away; nothing else records what the job sent.",
    schema=_SCHEMA,
)

# Made when all rows are in: the order in which recipients are sent to.
INDEX = "CREATE INDEX recipient_order ON recipient (zones, message, line) WHERE state IN ('pending', 'again')"
