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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from msgctl import operations as ops
from msgctl import phones
from msgctl.errors import ConfigurationError, MsgctlError, RefusedError
from msgctl.history.expiry import delete_expired
from msgctl.jsontext import Number, ShapeError, load_json
from msgctl.operations import Operation
from msgctl.outcomes.judge import REFUSED, UNKNOWN, RecipientOutcome
from msgctl.storage import database
from msgctl.storage.database import FileFormat
from msgctl.storage.records import RECORD_ERRORS, Connection, Records
from msgctl.text import storable

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


class GroupSum(NamedTuple):
    """The accepted messages of a group, and all credits charged for it."""

    group: str | None
    messages: int
    credits: float


class Send(NamedTuple):
    """A request that sends or blocks; ``time`` is UTC, YYYY-MM-DDTHH:MM:SS.sssZ."""

    time: str
    profile: str
    base_url: str
    command: str
    message: str


class Contact(NamedTuple):
    """The account and the message of a send to people, by its `message_digest`, and their international numbers.

    The numbers are in the order of the request; None stands for an unknown one. Without a digest, later jobs do not
    count the message as a repeat. `History` deletes contacts from before the time ``since``.
    """

    account: str
    digest: bytes | None
    people: Sequence[str | None]
    since: str


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

    def begin(self, send: Send, phones: Iterable[str | None], contact: Contact | None = None) -> int:
        """Store a send with an unknown outcome before its request is sent, and return its number."""
        with self._transaction():
            query = "INSERT INTO dispatches (time, profile, base_url, command, message) VALUES (?, ?, ?, ?, ?)"
            number = self.db.execute(query, [storable(text) for text in send]).lastrowid or 0
            query = "INSERT INTO entries (dispatch, position, phone, outcome) VALUES (?, ?, ?, ?)"
            self.db.executemany(
                query, [(number, place, phone and storable(phone), UNKNOWN) for place, phone in enumerate(phones)]
            )
            if contact:
                delete_old_contacts(self.db, contact.since)
                add_contact(self.db, send.time, contact.account, number, 1, contact.people, contact.digest)
        return number

    def finish(self, number: int, entries: Sequence[RecipientOutcome], response: str) -> None:
        """Store the result of a send, unless it was cleared meanwhile."""
        with self._transaction():
            take_back_contacts(self.db, number, entries)
            self.db.execute("DELETE FROM entries WHERE dispatch = ?", [number])
            found = self.db.execute("UPDATE dispatches SET response = ? WHERE number = ?", [response or None, number])
            if found.rowcount:
                rows = [
                    (number, place, *(None if value is None else storable(value) for value in entry[:5]))
                    for place, entry in enumerate(entries)
                ]
                self.db.executemany("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?, NULL)", rows)

    def learn(self, states: Iterable[tuple[str, str | None, str]]) -> None:
        """Store the newest delivery states: id, phone (None for all recipients that share the id) and state."""
        with self._transaction():
            self.db.executemany(
                "UPDATE entries SET state = :state WHERE id = :id AND (:phone IS NULL OR phone = :phone)",
                [{"id": storable(id_), "phone": phone, "state": storable(state)} for id_, phone, state in states],
            )

    def entries(self, limit: int, **filters: str | None) -> list[Document]:
        """Return the newest ``limit`` entries that match the filters, newest last.

        Filters are ``since`` and ``until`` (beginnings of times as in `Send`; ``until`` is excluded), ``phone``,
        and ``profile``.
        """
        conditions = {"since": "time >= :since", "until": "time < :until"}
        given = {name: value for name, value in filters.items() if value is not None}
        where = " AND ".join(conditions.get(name, f"{name} = :{name}") for name in given) or "1"
        found = self._read(f"{where} ORDER BY dispatch DESC, position DESC LIMIT :limit", {**given, "limit": limit})
        return found[::-1]

    def last(self, profile: str, base_url: str) -> list[Document]:
        """Return the entries of the newest message of a profile to a base URL, if any."""
        return self._read(
            "dispatch = (SELECT max(number) FROM dispatches"
            " WHERE profile = :profile AND base_url = :base_url AND command <> 'block add') ORDER BY position",
            {"profile": profile, "base_url": base_url},
        )

    def sums(self, by: str, filters: Mapping[str, str | None]) -> list[GroupSum]:
        """Return messages and credits by one of `GROUPINGS`; ``filters`` are since, until and profile."""
        query = f"""SELECT {_GROUPS[by]}, sum(outcome = 'accepted') AS messages, total({_CREDITS}) AS credits
            FROM ({_SUMMED}) WHERE command <> 'block add' AND time >= coalesce(:since, '')
            AND time < coalesce(:until, '9') AND (:profile IS NULL OR profile = :profile)
            GROUP BY 1 HAVING messages OR credits"""  # noqa: S608
        with FORMAT.explained(self._path):
            self.db.create_function("country", 1, phones.country_of)
            return [GroupSum(*row) for row in self.db.execute(query, filters)]

    def count(self, profile: str, before: str | None = None) -> int:
        """Return how many entries `clear` would delete."""
        query = f"SELECT count(*) FROM ({_SUMMED}) WHERE profile = ? AND time < coalesce(?, '9')"  # noqa: S608
        with FORMAT.explained(self._path):
            return int(self.db.execute(query, (profile, before)).fetchone()[0])

    def clear(self, profile: str | None = None, before: str | None = None, *, contacts_before: str = "") -> int:
        """Delete all sends, or the sends of a profile or before a time; return the number of their entries.

        Their data is overwritten in the file, except the contacts since ``contacts_before``.
        """
        with FORMAT.explained(self._path):
            self.db.execute("PRAGMA secure_delete = ON")
        with self._transaction():
            self.db.execute(
                "DELETE FROM dispatches WHERE (:profile IS NULL OR profile = :profile)"
                " AND (:before IS NULL OR time < :before)",
                {"profile": profile, "before": before},
            )
            self.db.execute("DELETE FROM contacts WHERE time < ?", [contacts_before])
            deleted = self.db.execute("DELETE FROM entries WHERE dispatch NOT IN (SELECT number FROM dispatches)")
            return deleted.rowcount

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with FORMAT.explained(self._path), database.transaction(self.db):
            yield

    def _read(self, condition: str, values: Document) -> list[Document]:
        with FORMAT.explained(self._path):
            return [_document(row) for row in self.db.execute(f"{_ENTRIES} WHERE {condition}", values)]


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


@dataclass
class Result:
    """The outcome of each recipient of a send, and the text of the response if any outcome is unknown."""

    entries: Sequence[RecipientOutcome] = ()
    response: str = ""


@contextmanager
def recorded(
    records: Records,
    send: Send,
    phones: Sequence[str | None],
    warn: Callable[[MsgctlError], None],
    *,
    is_kept: bool,
    contact: Contact | None = None,
) -> Iterator[Result]:
    """Record one send before the block, and its result after it. A send that cannot be recorded is sent anyway.

    The block sets the yielded result; if it raises, the outcome follows from the error. ``warn`` is called with
    the error if the history cannot be written. Without ``is_kept``, nothing is recorded. Raises one of `RECORD_ERRORS`
    if the contact is shared by several machines and cannot be recorded; nothing may be sent then.
    """
    result, begun, shared = Result(), None, ""
    with ExitStack() as stack:
        if is_kept and contact and records.is_shared:
            shared = _add_shared(records, send, contact)
        try:
            if is_kept:
                history = stack.enter_context(closing(History(FORMAT.path())))
                begun = history, history.begin(send, phones, None if shared else contact)
        except ConfigurationError as error:
            warn(error)

        def finish(result: Result) -> None:
            _finish(begun, send, result, warn)
            if shared:
                _finish_shared(records, shared, result, warn)

        try:
            yield result
            finish(result)
        except BaseException as error:
            outcome = NOT_SENT if isinstance(error, MsgctlError) and error.nothing_sent else UNKNOWN
            outcome = REFUSED if isinstance(error, RefusedError) else outcome
            if not result.entries:
                result = Result([RecipientOutcome(each, outcome) for each in phones], getattr(error, "body", ""))
            with suppress(KeyboardInterrupt):  # a second Ctrl-C must not hide whether the request was sent
                finish(result)
            raise


def _finish(begun: tuple[History, int] | None, send: Send, result: Result, warn: Callable[[MsgctlError], None]) -> None:
    """Store the result of a send, with verification codes masked, if its beginning was stored."""
    response = result.response[:MAX_RESPONSE]
    if send.command.startswith("2fa"):
        response = _CODE.sub("******", response)
    if begun is not None:
        history, number = begun
        try:
            history.finish(number, result.entries, response)
        except ConfigurationError as error:
            warn(error)


def _add_shared(records: Records, send: Send, contact: Contact) -> str:
    """Add a contact to the shared ones, and return its source."""
    source = os.urandom(16).hex()
    with records.opened(SHARED_CONTACTS) as db, database.transaction(db):
        delete_old_contacts(db, contact.since)
        add_contact(db, send.time, contact.account, source, 1, contact.people, contact.digest)
    return source


def _finish_shared(records: Records, source: str, result: Result, warn: Callable[[MsgctlError], None]) -> None:
    if any(entry.outcome in (REFUSED, NOT_SENT) for entry in result.entries):
        try:
            with records.opened(SHARED_CONTACTS) as db, database.transaction(db):
                take_back_contacts(db, source, result.entries)
        except RECORD_ERRORS as error:
            warn(error)


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


def _document(row: sqlite3.Row) -> Document:
    """Return an entry with the fields that are shown."""
    return {**dict.fromkeys(HISTORY_FIELDS), **dict(row), "credits": number(row["credits"])}


def number(text: str | int | None) -> Any:
    """Return credits as the service sent them: a JSON number, or a text if they are not a number. None stays None."""
    with suppress(ShapeError):
        found = load_json(str(text).encode())
        return found if isinstance(found, Number) else text
    return text
