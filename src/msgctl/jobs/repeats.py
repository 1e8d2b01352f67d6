"""Find people who recently got the message of a new job, or will get it, so that it is not sent twice by mistake."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgctl.config import profiles
from msgctl.errors import ConfigurationError
from msgctl.jobs.model import JobSpec
from msgctl.jobs.schema import LEDGER
from msgctl.jobs.store import Store
from msgctl.operations import REPEAT_SECONDS

SCHEMA = (
    # The repeats among the recipients of the new job, and the job that has sent or will send them the message. It is
    # NULL for a single send.
    "CREATE TABLE aside.repeat (line INTEGER PRIMARY KEY, job TEXT)",
    "CREATE TABLE aside.contact (digest BLOB NOT NULL, phone TEXT NOT NULL, job TEXT)",
)

_COMMON_MESSAGE = "SELECT 1 FROM {}.message CROSS JOIN {}.message USING (digest) LIMIT 1"
_UNFINISHED = "SELECT 1 FROM old.outcome WHERE state IN ('pending', 'sending', 'again', 'sending again') LIMIT 1"
# All recipients except refused ones got the message, may have got it, or will get it.
_OF_JOB = """INSERT OR IGNORE INTO aside.repeat SELECT new.line, :job
    FROM {first}.recipient AS {first_name} CROSS JOIN {second}.recipient AS {second_name}
    CROSS JOIN main.message AS new_message ON new_message.id = new.message
    CROSS JOIN old.message AS message ON message.id = before.message AND message.digest = new_message.digest
    LEFT JOIN old.result AS result ON result.line = before.line
    LEFT JOIN old.request AS request ON request.number = result.request
    WHERE new.message IS NOT NULL AND before.message IS NOT NULL AND new.{number} = before.{old_number}
    AND (coalesce(result.state, 'pending') IN ('pending', 'again')
        OR (result.state IN ('accepted', 'unknown') AND (request.ended IS NULL OR request.ended > :since)))"""
_OF_CONTACTS = """INSERT OR IGNORE INTO aside.repeat SELECT new.line, contact.job FROM aside.contact AS contact
    CROSS JOIN main.message AS message ON message.digest = contact.digest
    CROSS JOIN main.recipient AS new ON new.{number} = contact.phone AND new.message = message.id"""

_ELSEWHERE = """SELECT DISTINCT job FROM aside.repeat
    WHERE job IS NOT NULL AND job NOT IN (SELECT value FROM json_each(?)) ORDER BY job DESC"""


class Repeats(NamedTuple):
    """The number of recipients of a new job who recently got its message, or will get it.

    ``jobs`` are the jobs that have sent or will send it, newest first, and whether they are finished. ``elsewhere`` are
    the jobs on other machines that have sent or will send it. ``has_singles`` is true if some recipients got it from a
    single send.
    """

    people: int
    jobs: Mapping[str, bool]
    elsewhere: Sequence[str]
    has_singles: bool


def find(
    store: Store, db: sqlite3.Connection, spec: JobSpec, contacts: Iterable[tuple[bytes, str, str | None]], now: float
) -> Repeats:
    """Find recipients who got the message of a new job from the same account in the last 24 hours, or will get it.

    ``db`` is the ledger of the new job with the tables of `SCHEMA`, without an open transaction; it lists the repeats
    afterwards. ``contacts`` are the digests and phones of recent messages of the account that are not in these ledgers,
    and their jobs on other machines, None for a single send. Raises ConfigurationError if a ledger that was used within
    24 hours cannot be read.
    """
    account, since = profiles.account(spec.base_url, spec.client), now - REPEAT_SECONDS
    jobs: dict[str, bool] = {}
    db.execute("DELETE FROM aside.repeat")
    for job in reversed(store.ids()):
        try:
            is_finished = _add(store.path(job), job, db, account, since)
        except ConfigurationError as error:
            if store.changed(job) <= since:  # the job is old, or was just removed
                continue
            raise _unknown(f"job {job} sent this message", error) from error
        if is_finished is not None:
            jobs[job] = is_finished
    db.execute("DELETE FROM aside.contact")
    try:
        db.executemany("INSERT INTO aside.contact VALUES (?, ?, ?)", contacts)
    except ConfigurationError as error:
        raise _unknown("this message was sent singly", error) from error
    db.execute(_OF_CONTACTS.format(number=_number(db, "main")))
    elsewhere = [job for (job,) in db.execute(_ELSEWHERE, (json.dumps([*jobs]),))]
    (people, of_jobs) = db.execute("SELECT count(*), count(job) FROM aside.repeat").fetchone()
    return Repeats(people, jobs, elsewhere, of_jobs < people)


def _unknown(what: str, error: ConfigurationError) -> ConfigurationError:
    hint = "\n".join(filter(None, (error.hint, "To send without this check, add --again.")))
    return ConfigurationError(f"Cannot check whether {what}: {error.what}", hint)


def _add(path: Path, job: str, db: sqlite3.Connection, account: str, since: float) -> bool | None:
    """Add the repeats of a job. Return whether the job is finished; None if it adds no repeats."""
    with LEDGER.opened(path, read_only=True) as other:
        spec = JobSpec.load(other.execute("SELECT value FROM job WHERE name = 'spec'").fetchone()[0])
    if profiles.account(spec.base_url, spec.client) != account:
        return None
    with LEDGER.explained(path):
        db.execute("ATTACH ? AS old", (f"{path.absolute().as_uri()}?mode=ro",))
        try:
            # The smaller job comes first, because each of its recipients is looked up in the other job.
            schemas = sorted(("main", "old"), key=lambda schema: _size(db, schema))
            if db.execute(_COMMON_MESSAGE.format(*schemas)).fetchone() is None:
                return None
            names = {"main": "new", "old": "before"}
            query = _OF_JOB.format(
                first=schemas[0],
                first_name=names[schemas[0]],
                second=schemas[1],
                second_name=names[schemas[1]],
                number=_number(db, "main"),
                old_number=_number(db, "old"),
            )
            if not db.execute(query, {"job": job, "since": since}).rowcount:
                return None
            return db.execute(_UNFINISHED).fetchone() is None
        finally:
            db.execute("DETACH old")


def _size(db: sqlite3.Connection, schema: str) -> int:
    """Return the approximate number of a job's recipients."""
    (line,) = db.execute(f"SELECT coalesce(max(line), 0) FROM {schema}.recipient").fetchone()  # noqa: S608
    return int(line)


def _number(db: sqlite3.Connection, schema: str) -> str:
    """Return the column that is used to compare the recipients of a job."""
    query = f"SELECT 1 FROM {schema}.recipient WHERE message IS NOT NULL AND international IS NOT NULL LIMIT 1"  # noqa: S608
    return "phone" if db.execute(query).fetchone() is None else "international"
