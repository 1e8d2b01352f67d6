"""Sums of messages and credits, in the database of single sends or in that of a job."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from typing import NamedTuple

from msgctl import phones

_GROUPS = {
    "day": "strftime('%Y-%m-%d', time, 'localtime')",
    "month": "strftime('%Y-%m', time, 'localtime')",
    "command": "command",
    "job": "job",
    "country": "country(phone)",
    "profile": "profile",
}
GROUPINGS = tuple(_GROUPS)
"""What messages and credits can be summed by."""


class Sum(NamedTuple):
    """The accepted messages of a group, and all credits that were charged for it."""

    group: str | None
    messages: int
    credits: float


def sums(db: sqlite3.Connection, sent: str, by: str, values: Mapping[str, str | None]) -> list[Sum]:
    """Return the sums of the groups that have any.

    ``sent`` is a query for time, profile, command, job, phone, outcome and credits. ``values`` are its parameters, and
    ``since``, ``until`` and ``profile``, which may be None.
    """
    db.create_function("country", 1, phones.country_of, deterministic=True)
    query = f"""SELECT {_GROUPS[by]}, sum(outcome = 'accepted') AS messages, total(CAST(credits AS NUMERIC)) AS credits
        FROM ({sent}) WHERE command NOT IN ('block add', 'block bulk') AND time >= coalesce(:since, '')
        AND time < coalesce(:until, '9') AND (:profile IS NULL OR profile = :profile)
        GROUP BY 1 HAVING messages OR credits"""  # noqa: S608
    return [Sum(*row) for row in db.execute(query, values)]
