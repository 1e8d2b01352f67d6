"""Contacts: who may have got a message of an account, and when, from single sends and jobs on this machine.

The history stores contacts in the order of their requests, and never changes them: a message that was not sent adds its
recipients again, with the weight -1. A job records the recipients of a request before its ledger has the intent. If
the process is killed in between, `Contacts.open` takes the contact back before the job is resumed.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock

from msgctl.errors import ConfigurationError
from msgctl.history.store import CONTACT_SECONDS, FORMAT, delete_old_contacts, file, reading
from msgctl.jobs.frequency import Frequency
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.model import Intent, LinkResult, RequestResult
from msgctl.jobs.schedule import Window
from msgctl.recipients import REFUSED
from msgctl.storage.database import BrokenError, transaction
from msgctl.text import timestamp

# By person: the number of messages, and the time and weight of each as JSON.
_PEOPLE = """SELECT value AS phone, sum(weight) AS messages,
    group_concat('["' || time || '",' || weight || ']') AS times FROM contacts, json_each(people)
    WHERE number > :last AND account = :account AND time >= :since AND value NOTNULL GROUP BY phone"""
_REACHED = f"SELECT phone, times FROM ({_PEOPLE}) WHERE messages >= :most"  # noqa: S608
_READ = f"""INSERT INTO aside.contact {_PEOPLE}
    ON CONFLICT (phone) DO UPDATE SET messages = messages + excluded.messages, times = times || ',' || excluded.times"""
_AMONG = """SELECT phone, times FROM json_each(:people) CROSS JOIN aside.contact ON phone = value
    WHERE messages >= :most"""
_OF_JOB = """SELECT time, value FROM contacts, json_each(people) WHERE source = ? GROUP BY time, value
    HAVING sum(weight) > 0"""
_READ_TOGETHER = 5_000

MAX_WAITING = 100_000
"""About how many people can wait in memory while their contacts cannot be recorded."""


def reached(account: str, limit: Frequency, now: float, window: Window | None) -> Iterator[str]:
    """Yield the people to whom an account has sent as many messages as allowed. Raises ConfigurationError.

    ``now`` and ``window`` decide when they would get the next message.
    """
    with reading() as history:
        if history is not None:
            given = {"last": 0, "account": account, "since": _oldest(now), "most": limit.max_messages}
            yield from _over(history.rows(_REACHED, given), limit, now, window)


def _over(rows: Iterable[Sequence[str]], limit: Frequency, now: float, window: Window | None = None) -> Iterator[str]:
    for phone, times in rows:
        if limit.is_reached(phone, json.loads(f"[{times}]"), now, window):
            yield phone


def _oldest(now: float) -> str:
    """Return the time of the oldest contact that a limit can count."""
    return timestamp(max(0, now - CONTACT_SECONDS), "milliseconds")


class Contacts:
    """The contacts of an account, kept open for a job, which records its own.

    If contacts cannot be recorded, a job with a limit stops. Another job continues, and tries to record them later.
    ``error`` is the reason, until they are recorded.
    """

    def __init__(self, account: str, job: str, limit: Frequency | None, clock: Callable[[], float]) -> None:
        self._account = account
        self._job = job
        self._limit = limit
        self._clock = clock
        self._lock = Lock()
        self._db: sqlite3.Connection | None = None
        self._last = 0
        self._times: dict[int, str] = {}
        self._waiting: list[tuple[int, str, Collection[str]]] = []
        self._has_ended = False
        self.error: ConfigurationError | None = None

    def open(self, ledger: Ledger) -> None:
        """Open the contacts before a run of a job, and correct its own. Raises ConfigurationError.

        After a kill, the job may have contacts for requests that it has not sent, or that were refused.
        """
        with self._explained():
            db = self._connect()
            db.execute("ATTACH '' AS aside")  # a temporary file, which SQLite deletes
            db.execute(
                "CREATE TABLE aside.contact (phone TEXT PRIMARY KEY, messages INTEGER, times TEXT) WITHOUT ROWID"
            )
            own = db.execute(_OF_JOB, (self._job,))
            while rows := own.fetchmany(_READ_TOGETHER):
                not_sent = ledger.not_sent_to([phone for _, phone in rows])
                self._waiting += [(-1, at, [phone]) for at, phone in rows if phone in not_sent]
            with transaction(db):
                delete_old_contacts(db, _oldest(self._clock()))
                self._add(db, self._waiting)
            self._waiting.clear()
            if self._limit:
                with transaction(db, "BEGIN"):
                    self._read(db)

    def claim(self, intents: Sequence[Intent]) -> Collection[str]:
        """Record the recipients of requests that are about to be sent, unless some of them have reached the limit.

        Return the recipients who have; then nothing is recorded. Raises ConfigurationError.
        """
        found: Collection[str] = ()
        if not intents or (self._has_ended and not self._limit):
            return found
        now = timestamp(self._clock(), "milliseconds")
        sending = {intent.number: intent.people for intent in intents if not intent.link}
        contacts = [(1, now, people) for people in sending.values()]
        with self._explained(contacts):
            db = self._opened()
            db.execute(f"PRAGMA busy_timeout = {0 if self.error else FORMAT.most_wait * 1000:.0f}")
            with transaction(db):
                if self._limit:
                    self._read(db)
                    found = self._among(db, [phone for intent in intents for phone in intent.people])
                self._add(db, self._waiting)
                if not found:
                    self._add(db, contacts)
                self._skip(db)
            self._waiting.clear()
            self.error = None
        if not found:
            self._times |= dict.fromkeys(sending, now)
        return found

    def reached(self, people: Sequence[str]) -> Collection[str]:
        """Return the people who have reached the limit, as of the last `claim`. Raises ConfigurationError."""
        with self._explained():
            return self._among(self._opened(), people)
        return ()

    def settle(self, results: Iterable[RequestResult | LinkResult]) -> None:
        """Remember who did not get a message, for the next `claim` or `close`."""
        for result in results:
            if isinstance(result, LinkResult):
                continue
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
                with suppress(ConfigurationError), FORMAT.explained(file()):
                    db = self._opened()
                    db.execute(f"PRAGMA busy_timeout = {FORMAT.most_wait * 1000:.0f}")
                    with transaction(db):
                        self._add(db, self._waiting)
                    self.error = self.error if self._has_ended else None
            if self._db is not None:
                self._db.close()
        finally:
            self._waiting.clear()
            self._db, self._has_ended = None, True
            self._lock.release()

    @contextmanager
    def _explained(self, contacts: Collection[tuple[int, str, Collection[str]]] = ()) -> Iterator[None]:
        """Convert errors; without a limit, ``contacts`` wait after an error. Raises ConfigurationError.

        A damaged file, or too many people who wait, end the recording until `close`.
        """
        with self._lock:
            try:
                with FORMAT.explained(file()):
                    yield
            except ConfigurationError as error:
                if self._limit:
                    raise
                self.error = error
                self._waiting += contacts
                are_many = sum(len(people) for *_, people in self._waiting) > MAX_WAITING
                self._has_ended = are_many or isinstance(error, BrokenError)

    def _connect(self) -> sqlite3.Connection:
        self._db = db = FORMAT.open(file(), create=True)
        db.execute("PRAGMA journal_mode = WAL")
        return db

    def _opened(self) -> sqlite3.Connection:
        if self._db is None and self._limit:
            raise ConfigurationError("The contacts are closed")
        return self._db or self._connect()

    def _among(self, db: sqlite3.Connection, people: Sequence[str]) -> Collection[str]:
        """Return the people who have reached the limit."""
        if self._limit is None:
            return ()
        given = {"people": json.dumps(people), "most": self._limit.max_messages}
        return {*_over(db.execute(_AMONG, given), self._limit, self._clock())}

    def _read(self, db: sqlite3.Connection) -> None:
        """Read the contacts that were added since the last time."""
        given = {"last": self._last, "account": self._account, "since": _oldest(self._clock())}
        db.execute(_READ, given)
        self._skip(db)

    def _skip(self, db: sqlite3.Connection) -> None:
        """Mark all contacts so far as read. A run does not need its own, because each person is in it only once."""
        (self._last,) = db.execute("SELECT coalesce(max(number), 0) FROM contacts").fetchone()

    def _add(self, db: sqlite3.Connection, contacts: Iterable[tuple[int, str, Collection[str]]]) -> None:
        rows = [(at, self._account, self._job, weight, json.dumps([*people])) for weight, at, people in contacts]
        db.executemany("INSERT INTO contacts (time, account, source, weight, people) VALUES (?, ?, ?, ?, ?)", rows)
