"""Contacts: who may have got a message of an account, and when, from single sends and jobs.

They are in the history of this machine, or in a database that several machines share. Contacts are in the order of
their requests, and never change: a message that was not sent adds its recipients again, with the weight -1. A job
records the recipients of a request before its ledger has the intent. If the process is killed in between,
`Contacts.open` takes the contact back before the job is resumed.

Other machines cannot read a job's ledger. So a shared database also contains the job's plan: who will get which
message.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import islice
from threading import Lock

from msgctl.errors import ConfigurationError, MsgctlError
from msgctl.history.expiry import delete_expired
from msgctl.history.store import (
    CONTACT_DAYS,
    CONTACT_SECONDS,
    DAY,
    FORMAT,
    SHARED_CONTACTS,
    add_contact,
    delete_old_contacts,
    kind_of_contacts,
    reading,
)
from msgctl.jobs.frequency import Frequency
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.model import Intent, RequestResult
from msgctl.jobs.schedule import Window
from msgctl.operations import REPEAT_SECONDS
from msgctl.outcomes.judge import REFUSED
from msgctl.storage.database import BrokenError, transaction
from msgctl.storage.records import RECORD_ERRORS, Connection, Records
from msgctl.text import timestamp

# By person: the number of messages, and the time and weight of each as JSON. SQLite inserts sorted rows faster.
_ADDED = """SELECT value, CAST(sum(weight) AS INTEGER), group_concat('["' || time || '",' || weight || ']')
    FROM contacts, json_each(people) WHERE number > :last AND number <= :newest AND account = :account
    AND time >= :since AND value IS NOT NULL GROUP BY value"""
_COUNTS = "CREATE TABLE contact (phone TEXT PRIMARY KEY, messages INTEGER, times TEXT) WITHOUT ROWID"
_COUNT = """INSERT INTO contact VALUES (?, ?, ?)
    ON CONFLICT (phone) DO UPDATE SET messages = messages + excluded.messages, times = times || ',' || excluded.times"""
_REACHED = "SELECT phone, times FROM contact WHERE messages >= :most"
_AMONG = """SELECT phone, times FROM json_each(:people) CROSS JOIN contact ON phone = value
    WHERE messages >= :most"""
_OF_JOB = """SELECT time, value FROM contacts, json_each(people) WHERE source = ? GROUP BY time, value
    HAVING sum(weight) > 0"""
_SINGLE = """SELECT digest, value FROM contacts, json_each(people)
    WHERE account = ? AND time > ? AND digest IS NOT NULL AND value IS NOT NULL
    GROUP BY source, digest, value HAVING sum(weight) > 0"""
# A plan counts if its time is in the last 24 hours or in the future, or if its job has begun. People to whom the job
# sent before the last 24 hours, or whose message was refused, do not count.
_PLANNED = """WITH done AS (
        SELECT source, value AS phone FROM contacts, json_each(people)
        WHERE account = :account AND time > :oldest AND value IS NOT NULL
        GROUP BY source, value HAVING sum(CASE WHEN time > :since THEN weight ELSE 0 END) <= 0
    )
    SELECT source, value FROM plans, json_each(people) WHERE account = :account AND time > :oldest
    AND (time > :since OR source IN (SELECT source FROM contacts WHERE account = :account AND time > :oldest))
    AND NOT EXISTS (SELECT 1 FROM done WHERE done.source = plans.source AND phone = split_part(value, ' ', 2))"""
_READ_TOGETHER = 5_000

MAX_WAITING = 100_000
"""About how many people can wait in memory while their contacts cannot be recorded."""


def reached(records: Records, account: str, limit: Frequency, now: float, window: Window | None) -> Iterator[str]:
    """Yield the people to whom an account has sent as many messages as allowed. Raises one of `RECORD_ERRORS`.

    ``now`` and ``window`` decide when they would get the next message.
    """
    with _reading(records) as db, closing(_Counts()) as counts:
        if db is not None:
            given = {"account": account, "since": _oldest(now), "last": 0, "newest": _newest(db)}
            counts.add(records, db, given)
            yield from counts.reached(limit, now, window)


def recent(records: Records, account: str, now: float) -> Iterator[tuple[bytes, str, str | None]]:
    """Yield people who may have got a message from single sends or other machines in the last 24 hours, or will get it.

    Each item has the digest of the message, the phone, and the job with its machine, None for a single send. Raises one
    of `RECORD_ERRORS`.
    """
    with _reading(records) as db:
        if db is None:
            return
        since = timestamp(now - REPEAT_SECONDS, "milliseconds")
        for digest, phone in records.stream(db, _SINGLE, (account, since)):
            yield digest, phone, None
        if records.is_shared:
            given = {"account": account, "since": since, "oldest": _oldest(now)}
            for source, value in records.stream(db, _PLANNED, given):
                digest, phone = value.split()
                yield bytes.fromhex(digest), phone, source


@contextmanager
def exclusive(records: Records) -> Iterator[None]:
    """Let no other machine plan a job during the block, which may call `plan`."""
    if not records.is_shared:
        yield
        return
    with records.locked(SHARED_CONTACTS, "plan", lambda _: False):
        yield


def plan(
    records: Records, account: str, job: str, messages: Iterable[tuple[bytes, str]], *, at: float, now: float
) -> None:
    """Store the digest and phone of each message of a new job for other machines. Raises one of `RECORD_ERRORS`.

    ``at`` is the time when the job begins to send.
    """
    if not records.is_shared:
        return
    remaining = (f"{digest.hex()} {phone}" for digest, phone in messages)
    with records.opened(SHARED_CONTACTS) as db, transaction(db, "BEGIN"):
        delete_expired(db, "plans", "time", _oldest(now), day=f"substr(time, 1, {DAY})", days=CONTACT_DAYS)
        while some := [*islice(remaining, _READ_TOGETHER)]:
            values = account, source_of(records, job), timestamp(at, "milliseconds"), json.dumps(some)
            db.execute("INSERT INTO plans (account, source, time, people) VALUES (?, ?, ?, ?)", values)


def delete_plan(records: Records, job: str) -> None:
    """Delete the plan of a job that will not be sent. Raises one of `RECORD_ERRORS`."""
    if records.is_shared:
        with records.opened(SHARED_CONTACTS) as db:
            db.execute("DELETE FROM plans WHERE source = ?", (source_of(records, job),))


def source_of(records: Records, job: str) -> str:
    """Return the source of a job's contacts and plans. If they are shared, it includes the machine."""
    return f"{job} on {records.owner}" if records.is_shared else job


def _oldest(now: float) -> str:
    """Return the time of the oldest contact that a limit can count."""
    return timestamp(max(0, now - CONTACT_SECONDS), "milliseconds")


def _newest(db: Connection) -> int:
    (number,) = db.execute("SELECT coalesce(max(number), 0) FROM contacts").fetchone()
    return int(number)


@contextmanager
def _reading(records: Records) -> Iterator[Connection | None]:
    """Open the contacts for reading; yield None without a file. Raises one of `RECORD_ERRORS`."""
    if records.is_shared:
        with records.opened(SHARED_CONTACTS) as db:
            yield db
        return
    with reading() as history:
        if history is None:
            yield None
            return
        with FORMAT.explained(FORMAT.path()):
            yield history.db


class _Counts:
    """The number and the times of each person's messages, in a temporary file that SQLite deletes."""

    def __init__(self) -> None:
        self._db = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._db.execute(_COUNTS)

    def add(self, records: Records, db: Connection, given: dict[str, object]) -> None:
        """Add the contacts of ``account`` since a time, after the ``last`` one and up to the ``newest``."""
        with transaction(self._db):
            self._db.executemany(_COUNT, records.stream(db, _ADDED, given))

    def reached(
        self, limit: Frequency, now: float, window: Window | None = None, people: Sequence[str] | None = None
    ) -> Iterator[str]:
        """Yield the people who have reached a limit, among all or among some."""
        query = _REACHED if people is None else _AMONG
        given = {"people": json.dumps(people), "most": limit.max_messages}
        for phone, times in self._db.execute(query, given):
            if limit.is_reached(phone, json.loads(f"[{times}]"), now, window):
                yield phone

    def close(self) -> None:
        self._db.close()


class Contacts:
    """The contacts of an account, kept open for a job, which records its own.

    If contacts cannot be recorded, a job stops if it has a limit or if its contacts are shared. Other jobs continue,
    and record the contacts later if possible. Until then, ``error`` is the reason.
    """

    def __init__(
        self, records: Records, account: str, job: str, limit: Frequency | None, clock: Callable[[], float]
    ) -> None:
        self._records = records
        self._kind = kind_of_contacts(records)
        self._account = account
        self._job = source_of(records, job)
        self._limit = limit
        self._stops = records.is_shared or limit is not None
        self._clock = clock
        self._lock = Lock()
        self._db: Connection | None = None
        self._counts: _Counts | None = None
        self._last = 0
        self._times: dict[int, str] = {}
        self._waiting: list[tuple[int, str, Collection[str]]] = []
        self._has_ended = False
        self.error: MsgctlError | None = None

    def open(self, ledger: Ledger) -> None:
        """Open the contacts before a run of a job, and correct its own. Raises one of `RECORD_ERRORS`.

        After a kill, the job may have contacts for requests that it has not sent, or that were refused.
        """
        with self._explained():
            db = self._connect()
            own = self._records.stream(db, _OF_JOB, (self._job,))
            while rows := [*islice(own, _READ_TOGETHER)]:
                not_sent = ledger.not_sent_to([phone for _, phone in rows])
                self._waiting += [(-1, at, [phone]) for at, phone in rows if phone in not_sent]
            with transaction(db):
                delete_old_contacts(db, _oldest(self._clock()))
                self._add(db, self._waiting)
            self._waiting.clear()
            if self._limit:
                self._counts = _Counts()
                with transaction(db, "BEGIN"):
                    self._read(db)

    def claim(self, intents: Sequence[Intent]) -> Collection[str]:
        """Record the recipients of requests that are about to be sent, unless some of them have reached the limit.

        Return the recipients who have; then nothing is recorded. Raises one of `RECORD_ERRORS`.
        """
        found: Collection[str] = ()
        if not intents or (self._has_ended and not self._stops):
            return found
        now = timestamp(self._clock(), "milliseconds")
        sending = {intent.number: intent.people for intent in intents}
        contacts = [(1, now, people) for people in sending.values()]
        with self._explained(contacts):
            db = self._opened()
            self._records.set_wait(db, 0 if self.error else self._kind.max_wait)
            with transaction(db):
                if self._limit:
                    self._read(db)
                    found = self._among([phone for intent in intents for phone in intent.people])
                self._add(db, self._waiting)
                if not found:
                    self._add(db, contacts)
                if self._limit:
                    # A run does not need its own contacts, because each person is in it only once.
                    self._last = _newest(db)
            self._waiting.clear()
            self.error = None
        if not found:
            self._times |= dict.fromkeys(sending, now)
        return found

    def reached(self, people: Sequence[str]) -> Collection[str]:
        """Return the people who have reached the limit, as of the last `claim`. Raises one of `RECORD_ERRORS`."""
        with self._explained():
            return self._among(people)
        return ()

    def settle(self, results: Iterable[RequestResult]) -> None:
        """Remember who did not get a message, for the next `claim` or `close`."""
        for result in results:
            if at := self._times.pop(result.intent.number, None):
                found = zip(result.intent.people, result.outcomes, strict=True)
                people = [phone for phone, each in found if each.outcome == REFUSED or not result.was_sent]
                self._waiting += [(-1, at, people)] if people else []

    def close(self) -> None:
        """Write the last results; if this fails, `open` corrects them when the job is resumed."""
        if not self._lock.acquire(blocking=False):  # an abandoned thread may be using the file
            return
        try:
            if self._waiting:
                with suppress(*RECORD_ERRORS), self._records.explained(self._kind):
                    db = self._opened()
                    self._records.set_wait(db, self._kind.max_wait)
                    with transaction(db):
                        self._add(db, self._waiting)
                    self.error = self.error if self._has_ended else None
            for each in (self._db, self._counts):
                if each is not None:
                    each.close()
        finally:
            self._waiting.clear()
            self._db, self._has_ended = None, True
            self._lock.release()

    @contextmanager
    def _explained(self, contacts: Collection[tuple[int, str, Collection[str]]] = ()) -> Iterator[None]:
        """Convert errors; unless an error stops the job, ``contacts`` wait. Raises one of `RECORD_ERRORS`.

        A damaged file, or too many people who wait, end the recording until `close`.
        """
        with self._lock:
            try:
                with self._records.explained(self._kind):
                    yield
            except RECORD_ERRORS as error:
                if self._stops:
                    raise
                self.error = error
                self._waiting += contacts
                are_many = sum(len(people) for *_, people in self._waiting) > MAX_WAITING
                self._has_ended = are_many or isinstance(error, BrokenError)

    def _connect(self) -> Connection:
        self._db = db = self._records.connect(self._kind)
        if not self._records.is_shared:
            db.execute("PRAGMA journal_mode = WAL")
        return db

    def _opened(self) -> Connection:
        if self._db is None and self._stops:
            raise ConfigurationError("The contacts are closed")
        return self._db or self._connect()

    def _among(self, people: Sequence[str]) -> Collection[str]:
        """Return the people who have reached the limit."""
        if self._limit is None or self._counts is None:
            return ()
        return {*self._counts.reached(self._limit, self._clock(), people=people)}

    def _read(self, db: Connection) -> None:
        """Count the contacts that were added since the last time."""
        newest = _newest(db)
        if self._counts:
            given = {"account": self._account, "since": _oldest(self._clock()), "last": self._last, "newest": newest}
            self._counts.add(self._records, db, given)
        self._last = newest

    def _add(self, db: Connection, contacts: Iterable[tuple[int, str, Collection[str]]]) -> None:
        together: defaultdict[tuple[int, str], list[str]] = defaultdict(list)
        for weight, at, people in contacts:
            together[weight, at] += people
        for (weight, at), people in together.items():
            add_contact(db, at, self._account, self._job, weight, people)
