"""Idempotency keys: at most one request per key of an account, even with several processes or after a kill.

A key is reserved on disk before its request is sent, and the result is stored as soon as it is known. The sending
process holds a lock of the key, which the system releases when the process ends. A key that is reserved but not locked
therefore belongs to a process that was killed, and the outcome of its request is unknown.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

from msgctl.errors import UsageError
from msgctl.history.expiry import delete_expired
from msgctl.http.request import Request
from msgctl.storage import database, files
from msgctl.storage.database import FileFormat
from msgctl.text import storable
from msgctl.values import quote

DAY = 86400
KEEP_DAYS = 90
"""Days that a key is kept, at least."""
MAX_KEY = 200

KEYS = FileFormat(
    name="the list of --once keys",
    application=0x6D73676F,  # "msgo"
    version=1,
    fix="Rename it; keys that were used before can then send again.",
    # exit_code is NULL from the reservation until the result. Times are seconds since 1970.
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
    ),
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
    """The right to send under one key, or the result of an earlier send; made by `reserved`."""

    def __init__(self, db: sqlite3.Connection, account: str, key: str) -> None:
        self._db = db
        self._named = (account, key)
        self._before: StoredResult | None = None
        self.earlier: StoredResult | None = None
        """The result of an earlier send; None if this process is the one to send."""

    def settle(self, result: StoredResult) -> None:
        """Store the result of the request. Raises ConfigurationError; the outcome stays unknown then."""
        self._execute("UPDATE keys SET exit_code=?, http_status=?, body=?, what=?, hint=?", *astuple(result))

    def release(self) -> None:
        """Let the key be used again, because its request was refused or never sent.

        After an earlier unknown outcome the key keeps that outcome, because the first request may still have been
        carried out.
        """
        if self._before is not None:
            self.settle(self._before)
        else:
            self._execute("DELETE FROM keys")

    def take(self, wanted: str, now: float, *, resend_unknown: bool) -> None:
        """Reserve the key, or find the earlier result. The lock of the key is held. Raises UsageError."""
        before, day = now - KEEP_DAYS * DAY, f"CAST(created / {DAY} AS INTEGER)"
        delete_expired(self._db, "keys", "created", before, day=day, days=KEEP_DAYS)
        found = self._execute("SELECT fingerprint, exit_code, http_status, body, what, hint FROM keys").fetchone()
        if found is None:
            # After a clock that was behind is set, the key must not look old.
            self._db.execute(
                """INSERT INTO keys (account, key, fingerprint, created)
                SELECT ?, ?, ?, max(?, coalesce(max(created), 0)) FROM keys""",
                (*self._named, wanted, now),
            )
            return
        if found[0] != wanted:
            raise UsageError(
                f"--once {quote(self._named[1])} was used for another message or other recipients",
                "Choose another key for this message.",
            )
        result = DIED if found[1] is None else StoredResult(*found[1:])
        if result.exit_code == 5 and resend_unknown:
            self._before = result
            self._execute("UPDATE keys SET exit_code = NULL")
        else:
            self.earlier = result

    def _execute(self, statement: str, *values: object) -> sqlite3.Cursor:
        with KEYS.explained(file()):
            return self._db.execute(f"{statement} WHERE account = ? AND key = ?", (*values, *self._named))


@contextmanager
def reserved(account: str, key: str, wanted: str, *, now: float, resend_unknown: bool = False) -> Iterator[Reservation]:
    """Hold a key while its request is made; wait for another process that holds it.

    ``wanted`` is the `fingerprint` of the send, and ``now`` the time in seconds since 1970. If ``earlier`` of
    the reservation is None, send, then call `settle` or `release`; without either, the outcome is unknown. Raises
    UsageError for a key that was used for something else, and ConfigurationError if the file cannot be used; nothing
    may be sent then.
    """
    name = hashlib.sha256(f"{account}\n{key}".encode()).hexdigest()[:32]
    path = file()
    with KEYS.explained(path):
        files.make_folder(path.parent)
    with _locked(path.with_name(f".once-{name}.lock")):
        with KEYS.explained(path):
            db = KEYS.open(path, create=True)
        with closing(db):
            reservation = Reservation(db, account, key)
            with KEYS.explained(path), database.transaction(db):
                reservation.take(wanted, now, resend_unknown=resend_unknown)
            yield reservation


def file() -> Path:
    """Return the file of the keys."""
    return files.state("once.sqlite3")


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a lock file for the block and then delete it; a process that waited for it creates a new one."""
    is_ours = False
    while not is_ours:
        with files.held(path) as descriptor:
            with suppress(FileNotFoundError):
                is_ours = os.path.samestat(path.stat(), os.fstat(descriptor))
            if is_ours:
                try:
                    yield
                finally:
                    with suppress(OSError):
                        path.unlink()
