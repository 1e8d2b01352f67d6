"""The history and the usage: queries over the results of single sends and jobs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import datetime, tzinfo
from typing import Any, NamedTuple, TypedDict, Unpack

from msgctl.operations import BLOCK_PHONE
from msgctl.store import sends
from msgctl.store.database import any_of
from msgctl.store.schema import ENDED
from msgctl.store.store import Store, pages

GROUPINGS = ("day", "month", "command", "job", "country", "profile")
"""The columns that messages and credits can be summed by."""
_DAYS = {"day": "%Y-%m-%d", "month": "%Y-%m"}


class Entry(NamedTuple):
    """A message to a person, or a block. Times are milliseconds since 1970, credits millionths.

    ``job`` and its ``name`` are None for a single send. ``parameters`` (JSON) belong to the message, and ``settings``
    (JSON) belong to the job. A request in flight is ``unknown``.
    """

    time: int
    profile: str
    command: str
    job: str | None
    phone: str | None
    outcome: str
    id: str | None
    status: str | None
    state: str | None
    credits: int | None
    parameters: str
    settings: str
    name: str | None

    @property
    def message(self) -> str:
        """The content as one text."""
        return content_as_text(json.loads(self.settings).get("fixed", {}), self.parameters)


def content_as_text(fixed: Mapping[str, Any], parameters: str) -> str:
    """Return the parameters of a request as one text: message, audio, template with values, or app name.

    ``fixed`` are the parameters of all requests of a job, and ``parameters`` (JSON) belong to one message.
    """
    values = {**fixed, **json.loads(parameters or "{}")}
    if template := values.get("template"):
        text = values.get("own_body") or ", ".join(map(str, values.get("body", ())))
        return f"{template}: {text}" if text else str(template)
    if audio := values.get("audio-code"):
        return f"audio {audio}"
    if app_name := values.get("app-name"):
        return f"verification code for {app_name}"
    return str(values.get("sms") or values.get("message") or "")


class Filters(TypedDict, total=False):
    """Which entries to list. Times are milliseconds since 1970, and ``until`` is excluded; ``job`` is a number."""

    since: int | None
    until: int | None
    phone: str | None
    job: int | None
    profile: str | None


class Sum(NamedTuple):
    """The accepted messages of a group, and all credits charged for it (millionths)."""

    group: str | None
    messages: int
    credits: int


_FIELDS = """result.time, profile, command, job.id, result.phone,
    CASE result.outcome WHEN 'sending' THEN 'unknown' ELSE result.outcome END, result.id, status, result.state,
    result.credits, parameters, settings, job.name"""
_ENTRIES = """FROM result JOIN job ON job.number = result.job
    JOIN content ON content.job = result.job AND content.number = result.content
    WHERE removed IS NULL AND result.request > 0"""
_CONDITIONS = {
    "since": "result.time >= ?",
    "until": "result.time < ?",
    "phone": "result.phone = ?",
    "job": "result.job = ?",
    "profile": "profile = ?",
}
_KEY = ("result.time", "result.job", "result.line", "result.attempt")


def entries(store: Store, limit: int, **filters: Unpack[Filters]) -> list[Entry]:
    """Return the newest ``limit`` entries that match, newest last."""
    conditions, values = _conditions(filters)
    order = ", ".join(f"{column} DESC" for column in _KEY)
    query = f"SELECT {_FIELDS} {_ENTRIES} {conditions} ORDER BY {order} LIMIT ?"
    return [Entry(*row) for row in reversed(store.db.rows(query, (*values, limit)))]


def all_entries(store: Store, **filters: Unpack[Filters]) -> Iterator[Entry]:
    """Yield all entries that match, newest last, 1,000 at a time, without an open cursor."""
    own, job = "", filters.pop("job", None)
    if job is not None:
        # The index of times is read only where the job has results. Plus signs keep both databases from choosing an
        # index that would read all rows of the job, or of the store, for each page.
        first, last = store.db.rows("SELECT min(+time), max(+time) + 1 FROM result WHERE job = ?", (job,))[0]
        filters["since"] = max(filters.get("since") or 0, first or 0)
        filters["until"] = min(filters.get("until") or 2**62, last or 0)
        own = f"AND +result.job = {job:d}"
    conditions, values = _conditions(filters)
    key = ", ".join(_KEY)
    query = f"SELECT {key}, {_FIELDS} {_ENTRIES} {own} {conditions} AND ({key}) > (?, ?, ?, ?) ORDER BY {key} LIMIT ?"
    for page in pages(store, query, values, (0, 0, 0, 0)):
        yield from (Entry(*row[len(_KEY) :]) for row in page)


def _conditions(filters: Filters) -> tuple[str, list[object]]:
    """Return the conditions of a query for entries, and their values."""
    given = {name: value for name, value in filters.items() if value is not None}
    return "".join(f" AND {_CONDITIONS[name]}" for name in given), [*given.values()]


def last_send(store: Store, account: str) -> list[Entry]:
    """Return the entries of the newest single message that an account sent from this machine, if any."""
    number = store.db.value(
        """SELECT number FROM job WHERE account = ? AND machine = ? AND id IS NULL AND removed IS NULL AND command <> ?
        ORDER BY number DESC LIMIT 1""",
        (account, store.machine, BLOCK_PHONE.name),
    )
    if number is None:
        return []
    query = f"SELECT {_FIELDS} {_ENTRIES} AND result.job = ? ORDER BY result.line"
    return [Entry(*row) for row in store.db.rows(query, (number,))]


def usage(
    store: Store,
    by: str,
    zone: tzinfo | None = None,
    *,
    since: int | None = None,
    until: int | None = None,
    profile: str | None = None,
) -> list[Sum]:
    """Sum messages and credits by one of `GROUPINGS`, sorted.

    Days and months are in ``zone``; None is this machine's time zone.
    """
    column = {"day": "usage.time", "month": "usage.time", "job": "job.id"}.get(by, by)
    rows = store.db.rows(
        f"""SELECT {column}, sum(messages), sum(usage.credits) FROM usage JOIN job ON job.number = usage.job
        WHERE removed IS NULL AND command <> ? AND (? = '' OR profile = ?) AND usage.time >= ? AND usage.time < ?
        GROUP BY 1""",
        (BLOCK_PHONE.name, profile or "", profile or "", since or 0, 2**62 if until is None else until),
    )
    sums: defaultdict[str | None, list[int]] = defaultdict(lambda: [0, 0])
    for value, messages, paid in rows:
        group = value or None
        if by in _DAYS:
            group = f"{datetime.fromtimestamp(value / 1000, zone):{_DAYS[by]}}"
        sums[group][0] += int(messages)
        sums[group][1] += int(paid)
    groups = [Sum(group, *total) for group, total in sums.items()]
    return sorted(groups, key=lambda total: (total.group is None, total.group or ""))


class Clearable(NamedTuple):
    """How many entries and jobs can be deleted, and the numbers of their single sends and jobs."""

    entries: int
    jobs: int
    numbers: list[int]


def clearable(store: Store, account: str, before: int | None = None) -> Clearable:
    """Return the sends and jobs of an account that can be deleted. Jobs that are not done or cancelled stay."""
    sends.settle_dead(store, account)
    rows = store.db.rows(
        f"""SELECT number, id, accepted + refused + unknown FROM job WHERE account = ? AND removed IS NULL
        AND owner IS NULL AND state {any_of(ENDED)} AND created < ?""",
        (account, *ENDED, 2**62 if before is None else before),
    )
    job_count = sum(id_ is not None for _, id_, _ in rows)
    return Clearable(sum(count for *_, count in rows), job_count, [number for number, *_ in rows])
