"""The tables of the sandbox's state file."""

from __future__ import annotations

from msgctl.storage.database import FileFormat

STATE = FileFormat(
    name="the sandbox's state",
    application=0x6D736763,  # "msgc"
    version=1,
    fix="Move it away, or start afresh with: msgctl sandbox reset",
    most_wait=30.0,
    is_private=False,
)

FIRST_CREDITS = 1000

TABLES = ("account", "blocked", "messages", "codes", "urls", "clicks")

SCHEMA = (
    "CREATE TABLE account (credits INTEGER NOT NULL CHECK (credits >= 0))",
    "CREATE TABLE blocked (phone TEXT PRIMARY KEY, id TEXT NOT NULL, name TEXT NOT NULL) WITHOUT ROWID",
    # A number is never used again, also after a reset: whoever follows the inbox asks for what comes after one.
    # text is what the phone receives, shown what answers tell of it (a code is masked there); received is 1 for
    # messages that will reach their phone; created is in seconds since 1970 (UTC).
    """
    CREATE TABLE messages (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        id TEXT NOT NULL UNIQUE,
        dispatch_id TEXT NOT NULL,
        phone TEXT NOT NULL,
        kind TEXT NOT NULL,
        text TEXT NOT NULL,
        shown TEXT NOT NULL,
        code TEXT,
        voice TEXT,
        audio_code TEXT,
        template TEXT,
        voicemail INTEGER NOT NULL,
        blocked INTEGER NOT NULL,
        received INTEGER NOT NULL,
        credits INTEGER NOT NULL,
        created REAL NOT NULL
    )
    """,
    """
    CREATE TABLE codes (
        phone TEXT NOT NULL,
        app_name TEXT NOT NULL,
        code TEXT NOT NULL,
        expires REAL NOT NULL,
        PRIMARY KEY (phone, app_name)
    ) WITHOUT ROWID
    """,
    """
    CREATE TABLE urls (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        alias TEXT NOT NULL UNIQUE,
        url_short TEXT NOT NULL,
        url_long TEXT NOT NULL,
        premium INTEGER NOT NULL
    )
    """,
    # date is YYYY-MM-DD and hour 00 to 23, both of this machine's calendar; the columns after operating_system are
    # null for a plain URL.
    """
    CREATE TABLE clicks (
        url INTEGER NOT NULL,
        date TEXT NOT NULL,
        hour TEXT NOT NULL,
        country TEXT NOT NULL,
        device TEXT NOT NULL,
        operating_system TEXT NOT NULL,
        region TEXT,
        city TEXT,
        brand TEXT,
        model TEXT,
        browser TEXT,
        lang TEXT
    )
    """,
    "CREATE INDEX clicks_by_date ON clicks (url, date)",
)
