"""Idempotency keys: at most one request per key of an account, even with several processes or after a kill.

A key is claimed before its request is prepared, it is ``sending`` before its request is sent, and the result is stored
as soon as it is known. Each of these is durable before the next step. The process holds a lock of the key, which is
released when the process ends. So a key without a lock or a result belongs to a process that was killed: if it was only
claimed, it is free again; otherwise the outcome of its request is unknown.

The keys are on this machine, or in a database that several machines share.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from typing import Any

from msgctl.errors import ConfigurationError, UsageError
from msgctl.history.expiry import delete_expired
from msgctl.http.request import Request
from msgctl.storage import database
from msgctl.storage.database import FileFormat
from msgctl.storage.records import Connection, Cursor, Records
from msgctl.text import storable
from msgctl.values import quote

DAY = 86400
KEEP_DAYS = 90
"""Days that a key is kept, at least."""
MAX_KEY = 200

_ADDED = (
    "ALTER TABLE keys ADD COLUMN state TEXT NOT NULL DEFAULT 'sending'",
    "ALTER TABLE keys ADD COLUMN owner TEXT NOT NULL DEFAULT ''",
    "ALTER TABLE keys ADD COLUMN summary BLOB",
)
KEYS = FileFormat(
    name="the list of --once keys",
    file="once.sqlite3",
    table="keys",
    application=0x6D73676F,  # "msgo"
    version=2,
    fix="Rename it; keys that were used before can then send again.",
    # exit_code is NULL until the result; until then, state is 'claimed' or 'sending'. Times are seconds since 1970. For
    # a job, body is its ID. In a shared database, owner is the machine of the request or the job, and summary is the
    # summary of the job after its last run (JSON), NULL while it is running.
    schema=(
        """
        CREATE TABLE keys (
            account TEXT NOT NULL,
            key TEXT NOT NULL,
            fingerprint TEXT NOT NULL,
            created REAL NOT NULL,
            exit_code INTEGER,
            http_status INTEGER,
            body BLOB,
            what TEXT NOT NULL DEFAULT '',
            hint TEXT NOT NULL DEFAULT '',
            PRIMARY KEY (account, key)
        ) WITHOUT ROWID
        """,
        "CREATE INDEX keys_by_age ON keys (created)",
        *_ADDED,
    ),
    upgrade=_ADDED,
)


@dataclass(frozen=True)
class StoredResult:
    """The result of a send that may have been carried out.

    ``http_status`` and ``body`` are the response, if one came; ``what`` and ``hint`` the error, if there was one.
    """

    exit_code: int
    http_status: int | None = None
    body: bytes | None = None
    what: str = ""
    hint: str = ""


BEING_CREATED = "being created"
"""The ``what`` of a key before its job exists. If the same machine has no ledger of the job, nothing was sent."""
DIED = StoredResult(
    5,
    what="An earlier msgctl ended before it had the response; the message may have been sent",
    hint="Look it up in the account. If it was not sent, send it with --resend-unknown.",
)


def fingerprint(request: Request) -> str:
    """Return a digest of a send's operation, its recipients in any order, and all other values."""
    values: dict[str, Any] = dict(request.values)
    if isinstance(phones := values.get("phone"), (list, tuple)):
        values["phone"] = sorted(set(phones))
    text = json.dumps([request.operation.name, values], sort_keys=True)
    return hashlib.sha256(text.encode() + (request.own_body or b"")).hexdigest()


def check_key(key: str) -> str:
    """Return the stored form of a key. Raises UsageError for an empty or very long key."""
    if not key.strip() or len(key) > MAX_KEY:
        raise UsageError(
            f"--once needs a key of 1 to {MAX_KEY} characters, not {quote(key)}",
            'Choose one for each message, for example --once "disk-$(date +%F)"',
        )
    return storable(key)


class Reservation:
    """The right to send under one key, or the result of an earlier send; created by `reserved`."""

    def __init__(self, records: Records, db: Connection, account: str, key: str) -> None:
        self._records = records
        self._db = db
        self._named = (account, key)
        self._before: StoredResult | None = None
        self._is_lost = False
        self.earlier: StoredResult | None = None
        """The result of an earlier send; None if this process is the one to send."""
        self.owner = ""
        """The machine of the earlier send, if several machines share the keys."""
        self.summary: bytes | None = None
        """The summary (JSON) of a job that was created under the key, if it is shared and not running."""
        self.is_held = True
        """Whether this process holds the key's lock; if not, another process is running the job."""

    def begin(self) -> None:
        """Store that the request is about to be sent. Raises one of `RECORD_ERRORS`; it must not be sent then.

        This fails if another process has claimed the key: a lock does not exclude another process if a pooler lets
        both use one session.
        """
        condition = "state = 'claimed'" if self._before is None else "exit_code IS NULL"
        self._is_lost = self._execute("UPDATE keys SET state = 'sending'", condition=condition).rowcount != 1
        if self._is_lost:
            raise ConfigurationError(
                f"Another process took over the key {quote(self._named[1])}",
                "Connect to PostgreSQL directly, or through a pooler that keeps sessions.",
                consequence="nothing was sent",
            )

    def settle(self, result: StoredResult) -> None:
        """Store the result of the request. Raises one of `RECORD_ERRORS`; the outcome stays unknown then."""
        self._execute("UPDATE keys SET exit_code=?, http_status=?, body=?, what=?, hint=?", *astuple(result))

    def release(self) -> None:
        """Let the key be used again, because its request was refused or never sent.

        After an earlier unknown outcome the key keeps that outcome, because the first request may still have been
        carried out.
        """
        if self._is_lost:
            return
        if self._before is not None:
            self.settle(self._before)
        else:
            self._execute("DELETE FROM keys")

    def take(self, wanted: str, now: float, *, resend_unknown: bool) -> None:
        """Claim the key, or find the earlier result. The lock of the key is held. Raises UsageError."""
        before, day = now - KEEP_DAYS * DAY, f"CAST(created / {DAY} AS INTEGER)"
        delete_expired(self._db, "keys", "created", before, day=day, days=KEEP_DAYS)
        result = self.find(wanted)
        if result is None:
            self._execute("DELETE FROM keys")  # the process that claimed it was killed
            # After a clock that was behind is set, the key must not look old.
            (newest,) = self._db.execute("SELECT coalesce(max(created), 0) FROM keys").fetchone()
            self._db.execute(
                """INSERT INTO keys (account, key, fingerprint, created, state, owner)
                VALUES (?, ?, ?, ?, 'claimed', ?)""",
                (*self._named, wanted, max(now, newest), self._records.owner),
            )
        elif result.exit_code == 5 and resend_unknown:
            self._before = result
            self._execute("UPDATE keys SET exit_code = NULL, state = 'sending', owner = ?", self._records.owner)
        else:
            self.earlier = result

    def find(self, wanted: str) -> StoredResult | None:
        """Return the result of an earlier send, if any. Raises UsageError if the key was used for another one."""
        found = self._execute(
            "SELECT fingerprint, state, owner, summary, exit_code, http_status, body, what, hint FROM keys"
        ).fetchone()
        if found is None or (found[1], found[4]) == ("claimed", None):
            return None
        if found[0] != wanted:
            raise UsageError(
                f"--once {quote(self._named[1])} was used for another message or other recipients",
                "Choose another key for this message.",
            )
        self.owner, self.summary = found[2:4]
        return DIED if found[4] is None else StoredResult(*found[4:])

    def _execute(self, statement: str, *values: object, condition: str = "true") -> Cursor:
        with self._records.explained(KEYS):
            return self._db.execute(
                f"{statement} WHERE account = ? AND key = ? AND {condition}", (*values, *self._named)
            )


@contextmanager
def reserved(
    records: Records, account: str, key: str, wanted: str, *, now: float, resend_unknown: bool = False
) -> Iterator[Reservation]:
    """Hold a key while its request is made; wait for another process that holds it.

    ``wanted`` is the `fingerprint` of the send, and ``now`` the time in seconds since 1970. If ``earlier`` of the
    reservation is None, call `begin` and send, then call `settle` or `release`; without either, the outcome is unknown.
    Raises UsageError for a key that was used for something else, and one of `RECORD_ERRORS` if the keys cannot be used;
    nothing may be sent then.
    """

    def is_settled(db: Connection) -> bool:
        """Return whether the key has a result, so that its lock is not needed."""
        if resend_unknown:
            return False
        with records.explained(KEYS):
            result = Reservation(records, db, account, key).find(wanted)
        return result is not None and result != DIED and result.what != BEING_CREATED

    with records.locked(KEYS, _lock(account, key), is_settled) as (db, is_held):
        reservation = Reservation(records, db, account, key)
        reservation.is_held = is_held
        if is_held:
            with records.explained(KEYS), database.transaction(db):
                reservation.take(wanted, now, resend_unknown=resend_unknown)
        else:
            reservation.earlier = reservation.find(wanted)
        yield reservation


@contextmanager
def running(records: Records, account: str, job: str) -> Iterator[Callable[[StoredResult, str], None]]:
    """Let other machines know that a job is running, if it was created under a key that they share.

    The yielded function stores how the job ended, and its summary (JSON). Raises one of `RECORD_ERRORS`, and so does
    the function.
    """
    found = None
    if records.is_shared:
        with records.opened(KEYS) as db:
            query = "SELECT key FROM keys WHERE account = ? AND body = ?"
            found = db.execute(query, (account, job.encode())).fetchone()
    if found is None:
        yield lambda *_: None
        return
    with records.locked(KEYS, _lock(account, found[0]), lambda _: False, max_idle=0) as (db, _):

        def update(summary: bytes | None, result: StoredResult) -> None:
            statement = """UPDATE keys SET summary = ?, owner = ?, exit_code = ?, what = ?, hint = ?
                WHERE account = ? AND key = ?"""
            values = summary, records.owner, result.exit_code, result.what, result.hint, account, found[0]
            with records.explained(KEYS):
                db.execute(statement, values)

        update(None, StoredResult(0))
        yield lambda result, summary: update(summary.encode(), result)


def _lock(account: str, key: str) -> str:
    """Return the name of a key's lock."""
    return "once-" + hashlib.sha256(f"{account}\n{key}".encode()).hexdigest()[:32]
