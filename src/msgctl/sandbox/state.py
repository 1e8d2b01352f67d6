"""The file with the state of the sandbox: an SQLite database."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from msgctl import files
from msgctl.errors import ConfigurationError

APPLICATION = 0x6D736763
"""The number in the header of the file: "msgc"."""
VERSION = 5
"""The version of the tables."""
LOCK_WAIT = 30.0
"""Seconds that a transaction waits for another one."""
RENAME = "Rename it, or choose another file."
FIX = f"{RENAME} `msgctl sandbox reset` replaces the state of `-p sandbox`."

FIRST_CREDITS = 1000

TABLES = ("account", "blocked", "messages", "codes", "urls", "clicks", "faults")
ACCOUNT = f"INSERT INTO account (credits) VALUES ({FIRST_CREDITS})"  # noqa: S608 - the number is ours
_SCHEMA = (
    # The sandbox's time is this machine's time plus clock_offset seconds, or clock_stopped (seconds since 1970).
    """
    CREATE TABLE account (
        credits INTEGER NOT NULL CHECK (credits >= 0),
        clock_offset REAL NOT NULL DEFAULT 0,
        clock_stopped REAL,
        responses TEXT NOT NULL DEFAULT 'documented'
    )
    """,
    "CREATE TABLE blocked (phone TEXT PRIMARY KEY, id TEXT NOT NULL, name TEXT NOT NULL) WITHOUT ROWID",
    # A number is never reused, even after a reset, because programs request the messages after a number.
    # text is what the phone receives; shown is the text in responses, with a code masked; template_values is a
    # JSON array; received is 1 for messages that will reach their phone; created is in seconds since 1970.
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
        template_values TEXT,
        voicemail INTEGER NOT NULL,
        blocked INTEGER NOT NULL,
        received INTEGER NOT NULL,
        credits INTEGER NOT NULL,
        created REAL NOT NULL
    )
    """,
    "CREATE INDEX messages_by_dispatch ON messages (dispatch_id)",
    """
    CREATE TABLE codes (
        phone TEXT NOT NULL,
        app_name TEXT NOT NULL,
        code TEXT NOT NULL,
        expires REAL NOT NULL,
        wrong_guesses INTEGER NOT NULL DEFAULT 0,
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
    # date is YYYY-MM-DD and hour 00 to 23, both local time; a plain URL has null after operating_system.
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
    # remaining is null for a fault without a limit.
    "CREATE TABLE faults (number INTEGER PRIMARY KEY, spec TEXT NOT NULL, remaining INTEGER)",
)


class BrokenError(ConfigurationError):
    """A file that this version of msgctl cannot read, and that must be replaced."""


@contextmanager
def explained(path: Path) -> Iterator[None]:
    """Convert errors of SQLite and the file system to ConfigurationError, with a hint."""
    try:
        with files.explained("use the sandbox's state", path):
            yield
    except sqlite3.Error as error:
        kind, hint = ConfigurationError, files.CHECK_PERMISSIONS
        # The primary code is the low byte of the extended one.
        match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF:
            case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_ERROR:  # the tables are missing
                kind, hint = BrokenError, FIX
            case sqlite3.SQLITE_FULL:
                hint = files.MAKE_ROOM
            case sqlite3.SQLITE_IOERR:  # includes a full disk or quota
                hint = "Check that the disk works and has space left."
            case sqlite3.SQLITE_BUSY:
                hint = "Another program is using it. Try again when it is done."
        raise kind(f"Cannot use the sandbox's state {files.shown(path)}: {error}", hint) from error


def connect(path: Path) -> sqlite3.Connection:
    """Connect to a state, for use by any thread; create the file and its directory (0600 in 0700) if it is missing.

    Raises ConfigurationError, OSError and sqlite3.Error.
    """
    files.make_folder(path.parent)
    with suppress(FileExistsError):
        path.touch(0o600, exist_ok=False)  # SQLite would create it readable by all
    if not path.is_file():
        raise ConfigurationError(
            f"The sandbox's state {files.shown(path)} is not a regular file", "Choose another file."
        )
    db = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw",
        uri=True,
        timeout=LOCK_WAIT,
        isolation_level=None,
        check_same_thread=False,
    )
    with ExitStack() as stack:
        stack.callback(db.close)
        if db.execute("PRAGMA application_id").fetchone() == (0,):
            with transaction(db):
                if db.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):  # it is still empty
                    for statement in (*_SCHEMA, ACCOUNT):
                        db.execute(statement)
                    db.execute(f"PRAGMA user_version = {VERSION}")
                    db.execute(f"PRAGMA application_id = {APPLICATION}")
        (application,) = db.execute("PRAGMA application_id").fetchone()
        if application != APPLICATION:
            raise ConfigurationError(f"{files.shown(path)} is a database, but not the sandbox's state", RENAME)
        (version,) = db.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            what = f"The sandbox's state {files.shown(path)} was written by a newer msgctl (schema {version})"
            raise ConfigurationError(what, "Update this msgctl.")
        if version < VERSION:
            what = f"The sandbox's state {files.shown(path)} was written by an older msgctl (schema {version})"
            raise BrokenError(what, FIX)
        with suppress(sqlite3.OperationalError):  # another process sets it at this moment
            db.execute("PRAGMA journal_mode = WAL")
        # A power cut may lose the last commits; the death of the process loses none.
        db.execute("PRAGMA synchronous = NORMAL")
        stack.pop_all()
    return db


@contextmanager
def transaction(db: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """Commit all changes of the block, or none."""
    db.execute(begin)
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise
