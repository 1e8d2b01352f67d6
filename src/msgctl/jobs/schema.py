"""The tables of a ledger: what the file says is written once, each request adds its intent and its results."""

from __future__ import annotations

from msgctl.storage.files import FileFormat

_SCHEMA = (
    # Facts about the whole job: its spec (as JSON, without credentials), when it was created and is due.
    "CREATE TABLE job (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    # What recipients get: the parameters from their row (as JSON), and the estimated credits of one recipient.
    """CREATE TABLE message (
        id INTEGER PRIMARY KEY, digest BLOB NOT NULL UNIQUE, parameters TEXT NOT NULL, cost INTEGER NOT NULL)""",
    # The rows of the file, which do not change. `cells` are their columns but the phone's, as a JSON array, `zones`
    # the recipient's time zones, if the job has a window. A row that is not sent to has no message, but an `error`.
    """CREATE TABLE recipient (
        line INTEGER PRIMARY KEY, phone TEXT NOT NULL, message INTEGER, zones TEXT, state TEXT NOT NULL, error TEXT,
        cells TEXT)""",
    "CREATE UNIQUE INDEX recipient_phone ON recipient (phone) WHERE message IS NOT NULL",
    # One row per request: its recipients (a JSON array of lines), and when it ended; it is in flight until then.
    # `body` is kept if the response leaves the outcome in doubt: a message id in it must not be lost.
    "CREATE TABLE request (number INTEGER PRIMARY KEY, lines TEXT NOT NULL, ended REAL, body TEXT)",
    "CREATE INDEX request_in_flight ON request (number) WHERE ended IS NULL",
    # What the newest request of a recipient brought. `credits` are its own, `spent` those of earlier ones; `lost` are
    # estimated credits that may have been charged without a response that says so. `delivery` is the newest delivery
    # state, asked for at the time `checked`.
    """CREATE TABLE result (
        line INTEGER PRIMARY KEY, state TEXT NOT NULL, id TEXT, status TEXT, credits, spent INTEGER NOT NULL DEFAULT 0,
        lost INTEGER NOT NULL DEFAULT 0, error TEXT, delivery TEXT, checked REAL)""",
    """CREATE VIEW in_flight AS
        SELECT lines.value AS line FROM request, json_each(request.lines) AS lines WHERE ended IS NULL""",
    # The rows of the file as they are now.
    """CREATE VIEW outcome AS
        SELECT recipient.line, phone, message, zones, id, status, credits, delivery, cells,
        coalesce(result.error, recipient.error) AS error,
        CASE WHEN recipient.line NOT IN in_flight THEN coalesce(result.state, recipient.state)
            WHEN result.state = 'again' THEN 'sending again' ELSE 'sending' END AS state
        FROM recipient LEFT JOIN result ON result.line = recipient.line""",
)

LEDGER = FileFormat(
    name="the ledger",
    application=0x6D73676A,  # "msgj"
    version=5,
    fix="Restore it from a backup, or move it away; nothing else records what the job sent.",
    schema=_SCHEMA,
)

# Made when all rows are in: the order in which recipients are sent to. The line comes last in every index.
INDEX = "CREATE INDEX recipient_order ON recipient (zones, message) WHERE message IS NOT NULL"
