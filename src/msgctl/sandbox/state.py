"""The sandbox's state: one SQLite file that several threads and processes may use at the same time.

It is in WAL mode, so that readers and a writer do not wait for each other, and a committed change survives the death
of the process.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from threading import Lock

from msgctl.storage import database
from msgctl.storage.database import BrokenError, transaction

FIRST_CREDITS = 1000

_TABLES = ("account", "blocked", "messages", "codes", "urls", "clicks", "faults")
_ACCOUNT = f"INSERT INTO account (credits) VALUES ({FIRST_CREDITS})"  # noqa: S608 - the number is ours
_SCHEMA = (
    # The sandbox's clock is this machine's plus clock_offset seconds, or stops at clock_stopped (seconds since 1970).
    """
    CREATE TABLE account (
        credits INTEGER NOT NULL CHECK (credits >= 0),
        clock_offset REAL NOT NULL DEFAULT 0,
        clock_stopped REAL
    )
    """,
    "CREATE TABLE blocked (phone TEXT PRIMARY KEY, id TEXT NOT NULL, name TEXT NOT NULL) WITHOUT ROWID",
    # A number is never reused, even after a reset: programs that follow the inbox ask for what comes after one.
    # text is what the phone receives; shown is what responses repeat of it, with a code masked; template_values is a
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
        lang TEXT,
        is_bot INTEGER NOT NULL
    )
    """,
    "CREATE INDEX clicks_by_date ON clicks (url, date)",
    # remaining is null for a fault without a limit.
    "CREATE TABLE faults (number INTEGER PRIMARY KEY, spec TEXT NOT NULL, remaining INTEGER)",
)

STATE = database.FileFormat(
    name="the sandbox's state",
    application=0x6D736763,  # "msgc"
    version=2,
    fix="Move it away; `msgctl sandbox reset` replaces the state of this machine's sandbox",
    schema=(*_SCHEMA, _ACCOUNT),
    most_wait=30.0,
    is_private=False,
)


class SandboxState:
    """An open state file, for any number of threads. A missing one is created, with its folder (0600 in 0700).

    Raises ConfigurationError, here and from both kinds of transaction, if the file is not a sandbox state, comes from
    another version of msgctl, or cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.changes = 0
        """Changes that this process made, and requests that it responded to."""
        self._one_at_a_time = Lock()
        with STATE.explained(path):
            self._db = STATE.open(path, create=True)
            with suppress(sqlite3.OperationalError):  # another process sets it at this moment
                self._db.execute("PRAGMA journal_mode = WAL")
            # A power cut may lose the last commits; the death of the process loses none.
            self._db.execute("PRAGMA synchronous = NORMAL")
            self._db.row_factory = sqlite3.Row

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Begin a transaction that sees one moment of the state and must not change it."""
        with STATE.explained(self.path), self._one_at_a_time, transaction(self._db, "BEGIN"):
            yield self._db

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Begin a transaction that may write; it is rolled back if the block raises."""
        with STATE.explained(self.path), self._one_at_a_time, transaction(self._db):
            yield self._db
            self.changes += 1

    def version(self) -> str:
        """Return a text that differs after each change, by whatever process."""
        with self._one_at_a_time:
            return f"{self.changes}.{self._db.execute('PRAGMA data_version').fetchone()[0]}"

    def has_faults(self) -> bool:
        """Tell whether any fault is set, by whatever process."""
        try:
            with self._one_at_a_time:
                return self._db.execute("SELECT 1 FROM faults").fetchone() is not None
        except sqlite3.Error:
            return False  # the operation explains it

    def set_credits(self, credits: int) -> None:
        """Set the balance."""
        with self.writing() as db:
            db.execute("UPDATE account SET credits = ?", (credits,))

    def close(self) -> None:
        self._db.close()

    def reset(self) -> None:
        """Delete everything and restore the first credits."""
        with self.writing() as db:
            for table in _TABLES:
                db.execute(f"DELETE FROM {table}")  # noqa: S608 - the names are ours
            db.execute(_ACCOUNT)


def reset(path: Path) -> None:
    """Empty a state file that another process may be using, or delete its files if they are damaged.

    Raises ConfigurationError if the file belongs to another program or cannot be written.
    """
    if not path.exists():
        return
    try:
        with closing(SandboxState(path)) as state:
            state.reset()
    except BrokenError:
        with STATE.explained(path):
            database.delete(path)
