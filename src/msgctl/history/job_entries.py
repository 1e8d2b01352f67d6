"""The entries of jobs in the history: each is read from its job's ledger."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from msgctl.errors import ConfigurationError, MsgctlError
from msgctl.history.store import HISTORY_FIELDS, message_of, number
from msgctl.jobs.ledger import JobFacts
from msgctl.jobs.model import JobSpec
from msgctl.jobs.schema import LEDGER
from msgctl.jobs.states import State
from msgctl.jobs.store import Store
from msgctl.outcomes.judge import ACCEPTED, REFUSED, UNKNOWN
from msgctl.text import timestamp

RESPONSE = "response"
"""The response, if the outcome is unknown; shown only with --fields."""

_COLUMNS = ("time", "phone", "outcome", "id", "status", "state", "credits", "parameters", RESPONSE)
_WANTED = "time >= coalesce(:since, '') AND time < coalesce(:until, '9') {}"
_OF_JOB = f"""
    SELECT strftime('%Y-%m-%dT%H:%M:%fZ', ended, 'unixepoch') AS time, phone, result.state, result.id, status,
    delivery, credits, parameters, body
    FROM recipient JOIN result USING (line) JOIN request ON number = request JOIN message ON message.id = message
    WHERE {_WANTED} AND (:running OR line NOT IN in_flight)
    ORDER BY number DESC, line DESC LIMIT :limit
"""  # noqa: S608
# What a killed process left in flight. Its last write was this intent, so the time of the file is used.
_LOST = f"""
    SELECT :written AS time, phone, outcome.state, outcome.id, status, delivery, credits, parameters, NULL
    FROM outcome JOIN message ON message.id = message
    WHERE {_WANTED} AND NOT :running AND line IN in_flight ORDER BY line LIMIT :limit
"""  # noqa: S608
_OUTCOMES = {State.ACCEPTED: ACCEPTED, State.REFUSED: REFUSED, State.PENDING: REFUSED, State.EXCLUDED: REFUSED}
"""The outcome of a recipient's newest request, by state: pending or excluded ones had been refused."""
_TO_PHONE = "AND phone = :phone AND message NOTNULL"  # as in the index


def of_jobs(
    store: Store,
    most: int,
    filters: Mapping[str, str | None],
    others: Iterable[dict[str, Any]],
    failures: list[MsgctlError],
) -> list[dict[str, Any]]:
    """Return the newest entries of all jobs, and perhaps older ones; they are listed together with ``others``.

    Ledgers whose entries are too old to be listed are not opened. An error is added to ``failures`` for each that
    cannot be read.
    """
    since, until = filters["since"] or "", filters["until"] or "9"
    known: dict[str, JobFacts] = {}
    with store.index() as index:
        for job in index.jobs:
            try:
                known[job] = index.facts(job)
            except ConfigurationError as error:
                failures.append(error.within(f"Job {job} is not included"))
    found: dict[str, list[dict[str, Any]]] = {job: [] for job in known}
    newest = sorted(each["time"] for each in others)[-most:]
    for job in sorted(known, key=lambda job: _last(known[job]), reverse=True):
        first, last = known[job].first, _last(known[job])
        if not last or last < since or (len(newest) == most and last <= newest[0]):
            break
        if first is None or timestamp(first) < until:
            try:
                found[job] = of_job(store, job, known[job].spec, most, filters)
            except ConfigurationError as error:
                failures.append(error.within(f"Job {job} is not included"))
            newest = sorted([*newest, *(each["time"] for each in found[job])])[-most:]
    return [entry for entries in found.values() for entry in entries]


def _last(known: JobFacts) -> str:
    """Return the time of a job's newest entry, rounded as SQLite does; a request in flight may be newer than any."""
    if known.is_in_flight:
        return "9"
    return "" if known.last is None else timestamp(int(known.last * 1000 + 0.5) / 1000, "milliseconds")


def of_job(store: Store, job: str, spec: JobSpec, most: int, filters: Mapping[str, str | None]) -> list[dict[str, Any]]:
    """Return the newest entries of a job. Raises ConfigurationError."""
    if filters["profile"] not in (None, spec.profile):
        return []
    ledger = store.path(job)
    log = ledger.with_name(f"{ledger.name}-wal")
    with LEDGER.opened(ledger, read_only=True) as db:
        written = [each.stat().st_mtime for each in (log, ledger) if each.exists() and each.stat().st_size]
        given = {
            "limit": most,
            "running": store.is_running(job),
            "written": timestamp(written[0], "milliseconds"),
            **filters,
        }
        to_phone = "" if filters["phone"] is None else _TO_PHONE
        rows = db.execute(_OF_JOB.format(to_phone), given).fetchall()[::-1]
        rows += db.execute(_LOST.format(to_phone), given)
        return [_entry(job, spec, row) for row in rows]


def _entry(job: str, spec: JobSpec, row: tuple[Any, ...]) -> dict[str, Any]:
    if bytes in map(type, row):
        raise TypeError("a value is not text")
    found: dict[str, Any] = dict(zip(_COLUMNS, row, strict=True))
    values = {**spec.fixed, **json.loads(found["parameters"])}
    return {
        **dict.fromkeys(HISTORY_FIELDS),
        **found,
        "profile": spec.profile,
        "command": spec.command,
        "job": job,
        "outcome": _OUTCOMES.get(found["outcome"], UNKNOWN),
        "credits": number(found["credits"]),
        "message": message_of(spec.performs, values, None),
    }
