"""Find a job that sends the same message to the same people, so that it is not sent twice by mistake."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import NamedTuple

from msgctl import operations as ops
from msgctl.errors import ConfigurationError
from msgctl.jobs.database import LEDGER
from msgctl.jobs.spec import JobSpec
from msgctl.jobs.store import Store

RECENT = 86400.0
"""Seconds after which a finished job may be repeated."""

_COMMON_MESSAGE = "SELECT 1 FROM main.message JOIN old.message USING (digest) LIMIT 1"
_UNFINISHED = "SELECT 1 FROM old.outcome WHERE state IN ('pending', 'sending', 'again', 'sending again') LIMIT 1"
_ENDED = """SELECT max(coalesce((SELECT max(ended) FROM old.request), 0),
    (SELECT CAST(value AS REAL) FROM old.job WHERE name = 'created'))"""
# A refused recipient did not get the message; every other one got it, may have got it, or will get it.
_SAME = """SELECT count(*) FROM main.recipient AS new JOIN main.message AS new_message ON new_message.id = new.message
    JOIN old.recipient AS before ON before.phone = new.phone AND before.message IS NOT NULL
    JOIN old.message AS message ON message.id = before.message LEFT JOIN old.result ON result.line = before.line
    WHERE message.digest = new_message.digest AND result.state IS NOT 'refused'"""


class Repeat(NamedTuple):
    """An earlier job, how many recipients of the new one it has, and whether it has sent to all of them."""

    job: str
    recipients: int
    is_finished: bool


def find(store: Store, db: sqlite3.Connection, spec: JobSpec, recipients: int, now: float) -> Repeat | None:
    """Return the newest job that most of the recipients of a new one are in, with the same message and account.

    ``db`` is the new job's ledger, with no transaction open. Jobs that finished more than 24 hours ago do not count.
    Raises ConfigurationError if a ledger that was used within 24 hours cannot be read.
    """
    if spec.performs is not ops.BLOCK_PHONE:
        for job in reversed(store.ids()):
            try:
                found = _compared(store.path(job), db, spec, now)
            except ConfigurationError as error:
                if store.changed(job) <= now - RECENT:  # or it was just removed
                    continue
                raise ConfigurationError(
                    f"Cannot tell whether job {job} sent this message: {error.message}",
                    "\n".join(filter(None, (error.hint, "To send without this check, add --again."))),
                ) from error
            if found is not None and found[0] * 2 > recipients:
                return Repeat(job, *found)
    return None


def _compared(path: Path, db: sqlite3.Connection, spec: JobSpec, now: float) -> tuple[int, bool] | None:
    """Return the number of recipients that a job shares with the new one, and whether it is finished, or None."""
    with LEDGER.opened(path, read_only=True) as other:
        (text,) = other.execute("SELECT value FROM job WHERE name = 'spec'").fetchone()
    if _account(JobSpec.load(text)) != _account(spec):
        return None
    with LEDGER.explained(path):
        db.execute("ATTACH ? AS old", (f"{path.absolute().as_uri()}?mode=ro",))
        try:
            if db.execute(_COMMON_MESSAGE).fetchone() is None:
                return None
            is_finished = db.execute(_UNFINISHED).fetchone() is None
            if is_finished and db.execute(_ENDED).fetchone()[0] <= now - RECENT:
                return None
            return db.execute(_SAME).fetchone()[0], is_finished
        finally:
            db.execute("DETACH old")


def _account(spec: JobSpec) -> tuple[object, ...]:
    """Return how a job sends; what its recipients get is in the messages."""
    return spec.operation, spec.base_url, spec.client, spec.fixed.get("template"), spec.fixed.get("audio-code")
