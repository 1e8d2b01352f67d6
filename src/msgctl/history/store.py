"""The history: sends from this machine and their results, in one SQLite file that several processes may use.

Each send is on disk before its request goes out, and is updated with the result. If the process is
killed in between, the outcome stays ``unknown``. WAL mode takes fewer disk syncs than a rollback journal, and readers
do not block writers.
"""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from msgctl import operations as ops
from msgctl.history.expiry import delete_expired
from msgctl.jsontext import Number, ShapeError, load_json
from msgctl.operations import Operation
from msgctl.outcomes.judge import REFUSED, RecipientOutcome
from msgctl.storage.database import FileFormat
from msgctl.storage.records import Connection, Records

CONTACTS = (
    # People who may have got a message of an account in the last eight days: the international numbers of a request,
    # as a JSON array with null for unknown ones. `source` is a dispatch, or a job. Rows are never changed: people who
    # did not get the message are added again, with the weight -1. `digest` is NULL if repeats do not matter.
    """
    CREATE TABLE contacts (
        number INTEGER PRIMARY KEY AUTOINCREMENT,
        time TEXT NOT NULL,
        account TEXT NOT NULL,
        source TEXT NOT NULL,
        digest BLOB,
        weight INTEGER NOT NULL,
        people TEXT NOT NULL
    )
    """,
    "CREATE INDEX contacts_by_time ON contacts (time)",
    "CREATE INDEX contacts_by_source ON contacts (source)",
)

FORMAT = FileFormat(
    name="the history",
    file="history.sqlite3",
    application=0x6D736768,  # "msgh"
    version=4,
    fix="Rename it; msgctl then creates a new one.",
    max_wait=2.0,
    upgrade=(
        "DROP INDEX contacts_by_time",
        "ALTER TABLE contacts RENAME TO of_one_day",
        *CONTACTS,
        """INSERT INTO contacts (time, account, source, digest, weight, people)
            SELECT time, account, dispatch, digest, 1, json_group_array(phone) FROM of_one_day GROUP BY dispatch""",
        "DROP TABLE of_one_day",
    ),
    schema=(
        # AUTOINCREMENT: a late result must not be stored with a newer send after the history was cleared.
        # time is in UTC, YYYY-MM-DDTHH:MM:SS.sssZ, which sorts as text.
        """
        CREATE TABLE dispatches (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            time TEXT NOT NULL,
            profile TEXT NOT NULL,
            base_url TEXT NOT NULL,
            command TEXT NOT NULL,
            message TEXT NOT NULL,
            response TEXT
        )
        """,
        """
        CREATE TABLE entries (
            dispatch INTEGER NOT NULL,
            position INTEGER NOT NULL,
            phone TEXT,
            outcome TEXT NOT NULL,
            id TEXT,
            status TEXT,
            credits TEXT,
            state TEXT,
            PRIMARY KEY (dispatch, position)
        ) WITHOUT ROWID
        """,
        "CREATE INDEX entries_by_id ON entries (id)",
        *CONTACTS,
    ),
)

SHARED_CONTACTS = FileFormat(
    name="the list of contacts",
    file="contacts",
    application=0,
    version=1,
    fix="",
    schema=(
        *CONTACTS,
        # The people who will get a job's messages, for other machines: a JSON array of "DIGEST PHONE".
        "CREATE TABLE plans (account TEXT NOT NULL, source TEXT NOT NULL, time TEXT NOT NULL, people TEXT NOT NULL)",
        "CREATE INDEX plans_by_time ON plans (time)",
    ),
)
"""The contacts in a database that several machines share; on one machine, they are a part of the history."""

NOT_SENT = "not sent"
"""The outcome of a request that was certainly not sent; the others are accepted, refused and unknown."""

HISTORY_FIELDS = (
    "time",
    "profile",
    "command",
    "job",
    "phone",
    "outcome",
    "id",
    "status",
    "state",
    "credits",
    "message",
)
MAX_RESPONSE = 4000
"""Maximum characters of a response that are stored."""
_CODE = re.compile(r"(?<![0-9])[0-9]{4,8}(?![0-9])")
_READ = (*(name for name in HISTORY_FIELDS if name != "job"), "response")
_ENTRIES = f"SELECT {', '.join(_READ)} FROM entries JOIN dispatches ON number = dispatch"  # noqa: S608

_ADD_CONTACT = "INSERT INTO contacts (time, account, source, digest, weight, people) VALUES (?, ?, ?, ?, ?, ?)"

_SUMMED = """SELECT time, profile, command, NULL AS job, phone, outcome, credits
    FROM entries JOIN dispatches ON number = dispatch"""

SECONDS = len("2026-12-01T09:00:00")
"""Characters of a time that are shown; the rest only orders sends within the same second."""

DAY = len("2026-12-01")
"""How much of a time is the day."""
CONTACT_DAYS = 8
"""The number of later days with contacts before a contact is deleted."""
CONTACT_SECONDS = 8 * 86400.0
"""Minimum seconds to keep contacts: a week, and a day for time zones."""

Document = dict[str, Any]

# An infinite or negative charge, or one of more than twelve digits, is a mistake of the service. Jobs ignore it, too.
_CREDITS = "CASE WHEN CAST(credits AS NUMERIC) BETWEEN 0 AND 999999999999 THEN CAST(credits AS NUMERIC) END"

_GROUPS = {
    "day": "strftime('%Y-%m-%d', time, 'localtime')",
    "month": "strftime('%Y-%m', time, 'localtime')",
    "command": "command",
    "job": "job",
    "country": "country(phone)",
    "profile": "profile",
}
GROUPINGS = tuple(_GROUPS)
"""The columns that messages and credits can be summed by."""


class History:
    """An open history. Creates a missing file and directory (0600 in 0700), unless it is ``read_only``.

    Every method raises ConfigurationError if the file is unsafe, damaged (`BrokenError`), or cannot be used.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._path = path
        with FORMAT.explained(path):
            self.db = FORMAT.open(path, read_only=read_only, create=not read_only)
            self.db.row_factory = sqlite3.Row
            if not read_only:
                # This fails while another process uses a new file; the next process that opens it tries again.
                self.db.execute("PRAGMA busy_timeout = 0")
                with suppress(sqlite3.OperationalError):
                    self.db.execute("PRAGMA journal_mode = WAL")
                self.db.execute(f"PRAGMA busy_timeout = {FORMAT.max_wait * 1000:.0f}")

    def close(self) -> None:
        with suppress(sqlite3.Error, KeyboardInterrupt):  # all commits are already on disk
            self.db.close()


def kind_of_contacts(records: Records) -> FileFormat:
    """Return the kind of record that contains the contacts."""
    return SHARED_CONTACTS if records.is_shared else FORMAT


def add_contact(
    db: Connection,
    at: str,
    account: str,
    source: str | int,
    weight: int,
    people: Sequence[str | None],
    digest: bytes | None = None,
) -> None:
    """Add the people of a request. Called in a transaction."""
    # The body of a user's own request can contain any text as a phone, which PostgreSQL may not be able to read again.
    known = [each if each and each.isascii() and each.isdigit() else None for each in people]
    db.execute(_ADD_CONTACT, (at, account, str(source), digest, weight, json.dumps(known)))


def take_back_contacts(db: Connection, source: str | int, entries: Sequence[RecipientOutcome]) -> None:
    """Take back the contacts of a single send with the people who did not get it. Called in a transaction.

    The second time it does nothing: a send that is interrupted while it stores its result stores it again.
    """
    reached = {place for place, entry in enumerate(entries) if entry.outcome not in (REFUSED, NOT_SENT)}
    query = """SELECT time, account, digest, people FROM contacts WHERE source = :source
        AND NOT EXISTS (SELECT 1 FROM contacts WHERE source = :source AND weight < 0)"""
    for at, account, digest, text in db.execute(query, {"source": str(source)}).fetchall():
        people = [phone for place, phone in enumerate(json.loads(text)) if place not in reached]
        if any(people):
            add_contact(db, at, account, source, -1, people, digest)


def delete_old_contacts(db: Connection, before: str) -> None:
    """Delete the contacts from before a time. Called in a transaction."""
    delete_expired(db, "contacts", "time", before, day=f"substr(time, 1, {DAY})", days=CONTACT_DAYS)


def message_of(operation: Operation, values: Mapping[str, Any], body: bytes | None) -> str:
    """Return the content of a send as one text: message, audio, template with values, or app name."""
    if operation in (ops.CHATAPP_SEND, ops.CHATAPP_ORDER):
        text = ", ".join(values.get("body", ())) if body is None else body.decode()
        return f"{values['template']}: {text}" if text else str(values["template"])
    if audio := values.get("audio-code"):
        return f"audio {audio}"
    if "app-name" in values:
        return f"verification code for {values['app-name']}"
    return str(values.get("sms") or values.get("message") or values.get("name") or "")


@contextmanager
def reading() -> Iterator[History | None]:
    """Open the history for a block; None if there is no file. Raises ConfigurationError."""
    path = FORMAT.path()
    if not os.path.lexists(path):
        yield None
        return
    # The history can be read even on a read-only disk.
    with closing(History(path, read_only=not os.access(path.parent, os.W_OK))) as history:
        yield history


def number(text: str | int | None) -> Any:
    """Return credits as the service sent them: a JSON number, or a text if they are not a number. None stays None."""
    with suppress(ShapeError):
        found = load_json(str(text).encode())
        return found if isinstance(found, Number) else text
    return text
