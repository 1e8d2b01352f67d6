"""The history and the usage: queries over the results of single sends and jobs."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from typing import NamedTuple

from msgctl import phones
from msgctl.store import once
from msgctl.store.database import any_of, chunks
from msgctl.store.schema import ENDED
from msgctl.store.store import Store

GROUPINGS = ("day", "month", "command", "job", "country", "profile")
"""The columns that messages and credits can be summed by."""
BLOCK = "block add"
_QUARTER = 900_000
"""Milliseconds of a quarter of an hour: every time zone differs from UTC by a multiple of it."""
_DAYS = {"day": "%Y-%m-%d", "month": "%Y-%m"}
_PREFIX = 7
"""Digits of a number that determine its country."""


class Entry(NamedTuple):
    """A message to a person, or a block. Times are milliseconds since 1970, credits millionths.

    ``job`` is None for a single send. ``parameters`` (JSON) belong to the message, and ``settings`` (JSON) belong to
    the job. A request in flight is ``unknown``.
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

    @property
    def message(self) -> str:
        """The content as one text: message, audio, template with values, or app name."""
        values = {**json.loads(self.settings).get("fixed", {}), **json.loads(self.parameters or "{}")}
        if template := values.get("template"):
            text = values.get("own_body") or ", ".join(map(str, values.get("body", ())))
            return f"{template}: {text}" if text else str(template)
        if audio := values.get("audio-code"):
            return f"audio {audio}"
        if app_name := values.get("app-name"):
            return f"verification code for {app_name}"
        return str(values.get("sms") or values.get("message") or "")


class Sum(NamedTuple):
    """The accepted messages of a group, and all credits charged for it (millionths)."""

    group: str | None
    messages: int
    credits: int


_ENTRIES = """SELECT result.time, profile, command, job.id, result.phone,
    CASE result.outcome WHEN 'sending' THEN 'unknown' ELSE result.outcome END, result.id, status, result.state,
    result.credits, parameters, settings
    FROM result JOIN job ON job.number = result.job
    JOIN content ON content.job = result.job AND content.number = result.content
    WHERE removed IS NULL AND result.request > 0"""


def entries(
    store: Store,
    limit: int,
    *,
    since: int | None = None,
    until: int | None = None,
    phone: str | None = None,
    job: int | None = None,
    profile: str | None = None,
) -> list[Entry]:
    """Return the newest ``limit`` entries that match, newest last; ``until`` is excluded."""
    conditions = ""
    values: list[int | str] = []
    for condition, value in (
        ("result.time >= ?", since),
        ("result.time < ?", until),
        ("result.phone = ?", phone),
        ("result.job = ?", job),
        ("profile = ?", profile),
    ):
        if value is not None:
            conditions += f" AND {condition}"
            values.append(value)
    order = ", ".join(f"result.{column} DESC" for column in ("time", "job", "line", "attempt"))
    query = f"{_ENTRIES} {conditions} ORDER BY {order} LIMIT ?"
    return [Entry(*row) for row in reversed(store.db.rows(query, (*values, limit)))]


def last(store: Store, account: str) -> list[Entry]:
    """Return the entries of the newest single message of an account, if any."""
    number = store.db.value(
        """SELECT number FROM job WHERE account = ? AND id IS NULL AND removed IS NULL AND command <> ?
        ORDER BY number DESC LIMIT 1""",
        (account, BLOCK),
    )
    if number is None:
        return []
    return [Entry(*row) for row in store.db.rows(f"{_ENTRIES} AND result.job = ? ORDER BY result.line", (number,))]


def usage(
    store: Store, by: str, *, since: int | None = None, until: int | None = None, profile: str | None = None
) -> list[Sum]:
    """Sum messages and credits by one of `GROUPINGS`, sorted; days and months are in the time zone of this machine."""
    sums: defaultdict[str | None, list[int]] = defaultdict(lambda: [0, 0])
    period = (since or 0, 2**62 if until is None else until)
    for group, messages, paid in _sums(store, by, period, profile):
        sums[group][0] += int(messages)
        sums[group][1] += int(paid)
    found = [Sum(group, *total) for group, total in sums.items() if any(total)]
    return sorted(found, key=lambda each: (each.group is None, each.group or ""))


def _sums(store: Store, by: str, period: tuple[int, int], profile: str | None) -> Iterator[tuple[str | None, int, int]]:
    """Yield groups with their messages and credits: from the counts of a job if it belongs to one group, or its rows.

    A store may have thousands of times as many rows as jobs.
    """
    since, until = period
    rows = store.db.rows(
        """SELECT number, id, command, profile, begun, updated, accepted, credits, attempt FROM job
        WHERE removed IS NULL AND command <> ? AND (? = '' OR profile = ?)""",
        (BLOCK, profile or "", profile or ""),
    )
    others = []
    for number, id_, command, own_profile, begun, updated, accepted, paid, attempt in rows:
        if begun is not None and (updated < since or begun >= until):
            continue
        is_one_group = by in ("command", "job", "profile") or (by in _DAYS and _day(begun, by) == _day(updated, by))
        if id_ is None or begun is None or attempt > 1 or not (is_one_group and since <= begun <= updated < until):
            others.append(number)
            continue
        groups = {"command": command, "job": id_, "profile": own_profile}
        yield groups.get(by) or _day(begun, by), accepted, paid
    for some in chunks(others):
        yield from _sums_of_rows(store, by, period, some)


def _sums_of_rows(
    store: Store, by: str, period: tuple[int, int], jobs: list[int]
) -> Iterator[tuple[str | None, int, int]]:
    column = {
        "day": f"result.time / {_QUARTER}",
        "month": f"result.time / {_QUARTER}",
        "job": "job.id",
        "country": f"substr(result.phone, 1, {_PREFIX})",
    }.get(by, by)
    rows = store.db.rows(
        f"""SELECT {column}, min(result.phone), sum(CASE WHEN outcome = 'accepted' THEN 1 ELSE 0 END),
        sum(coalesce(result.credits, 0)) FROM result JOIN job ON job.number = result.job
        WHERE result.job {any_of(jobs)} AND result.request > 0 AND result.time >= ? AND result.time < ? GROUP BY 1""",
        (*jobs, *period),
    )
    for value, phone, messages, paid in rows:
        group = value
        if by == "country":
            group = phones.country_of(phone)
        elif by in _DAYS:
            group = _day(value * _QUARTER, by)
        yield group, messages, paid


def _day(time: int | None, by: str) -> str:
    """Return the day or month of a time; an empty string without a time."""
    return "" if time is None else f"{datetime.fromtimestamp(time / 1000).astimezone():{_DAYS[by]}}"


def clearable(store: Store, account: str, before: int | None = None) -> tuple[int, list[int]]:
    """Return how many entries of an account `clear` would delete, and the numbers of their sends and jobs.

    Jobs that are not done or cancelled stay.
    """
    once.settle_dead(store, account)
    rows = store.db.rows(
        f"""SELECT number, accepted + refused + unknown FROM job WHERE account = ? AND removed IS NULL
        AND owner IS NULL AND state {any_of(ENDED)} AND created < ?""",
        (account, *ENDED, 2**62 if before is None else before),
    )
    return sum(count for _, count in rows), [number for number, _ in rows]
