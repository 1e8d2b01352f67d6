"""Recipients of jobs as entries of the history, read from the ledgers."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from msgctl.errors import ConfigurationError
from msgctl.history.recorder import message_of
from msgctl.http.response import Number
from msgctl.jobs.schema import LEDGER
from msgctl.jobs.spec import JobSpec
from msgctl.jobs.store import Store
from msgctl.recipients import ACCEPTED, REFUSED, UNKNOWN
from msgctl.storage import paths
from msgctl.text import timestamp

_QUERY = """
    SELECT request.updated, phone, state, recipient.id, status, delivery, credits, parameters, request.body
    FROM recipient JOIN request ON number = recipient.request JOIN message ON message.id = message
    WHERE (:phone IS NULL OR phone = :phone) AND (:state IS NULL OR delivery = :state COLLATE NOCASE)
    ORDER BY number DESC, line DESC LIMIT :limit
"""


def entries(
    limit: int, job: str | None, filters: Mapping[str, str | None], warn: Callable[[str], None]
) -> list[dict[str, Any]]:
    """Return the newest entries of one job or of all, the newest last; ``filters`` are those of the history.

    ``warn`` is called for each ledger that cannot be read.
    """
    store = Store(paths.jobs_folder())
    since, until = filters["since"] or "", filters["until"] or "9"
    found: list[dict[str, Any]] = []
    for each in store.ids() if job is None else [store.find(job)]:
        try:
            of_job = _of_job(each, store.path(each), limit, filters)
            found += [entry for entry in of_job if since <= entry["time"] < until]
        except ConfigurationError as error:
            if job is not None:
                raise
            warn(f"Job {each} is not included: {error.message}")
    return sorted(found, key=lambda entry: str(entry["time"]))[-limit:]


def _of_job(job: str, path: Path, limit: int, filters: Mapping[str, str | None]) -> Iterator[dict[str, Any]]:
    with LEDGER.explained(path), closing(LEDGER.connect(path, read_only=True)) as db:
        LEDGER.check(db, path)
        spec = JobSpec.load(db.execute("SELECT value FROM job WHERE name = 'spec'").fetchone()[0])
        if filters["profile"] not in (None, spec.profile) or filters["command"] not in (None, spec.command):
            return
        yield from (_entry(job, spec, row) for row in _newest(db, limit, filters))


def _newest(db: sqlite3.Connection, limit: int, filters: Mapping[str, str | None]) -> list[tuple[Any, ...]]:
    # Days are compared later, so a limit would cut entries of an earlier day off.
    most = limit if filters["until"] is None else -1
    rows = db.execute(_QUERY, {"phone": filters["phone"], "state": filters["state"], "limit": most}).fetchall()
    return rows[::-1]


def _entry(job: str, spec: JobSpec, row: tuple[Any, ...]) -> dict[str, Any]:
    updated, phone, state, message_id, status, delivery, charged, parameters, body = row
    return {
        "time": timestamp(updated),
        "profile": spec.profile,
        "command": spec.command,
        "job": job,
        "phone": phone,
        "outcome": state if state in (ACCEPTED, REFUSED) else UNKNOWN,
        "id": message_id,
        "status": status,
        "state": delivery,
        "credits": None if charged is None else Number(charged),
        "message": message_of(spec.performs, {**spec.fixed, **json.loads(parameters)}, None),
        "response": body,
    }
