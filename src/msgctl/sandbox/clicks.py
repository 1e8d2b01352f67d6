"""Clicks on short URLs: kept, and counted by category."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Click:
    """One visit, ``at`` in seconds since 1970; ``country`` is an ISO 3166 code of two letters."""

    at: float
    country: str = UNKNOWN
    device: str = UNKNOWN
    operating_system: str = UNKNOWN
    region: str = UNKNOWN
    city: str = UNKNOWN
    brand: str = UNKNOWN
    model: str = UNKNOWN
    browser: str = UNKNOWN
    lang: str = UNKNOWN


@dataclass(frozen=True, slots=True)
class Range:
    """The days of a statistic, both included, ``YYYY-MM-DD``."""

    since: str
    until: str


# The columns of a category: the property first, then further members by their names in the interface.
_COLUMNS = {
    "date": "date",
    "hour": "hour, date",
    "country": "country",
    "region": "region",
    "city": "city, country AS countryIsoCode, region",
    "device": "device",
    "brand": "brand",
    "model": "model",
    "operatingSystem": "operating_system",
    "browser": "browser",
    "lang": "lang",
}
CATEGORIES = tuple(_COLUMNS)
"""All categories in the order of the interface."""

_GROUPS = {"hour": "hour, date", "city": "city, country, region", "operatingSystem": "operating_system"}
_IN_TIME = {"date": "date", "hour": "date, hour"}
_WITH_PERCENT = {"city", "brand", "model"}


def add(db: sqlite3.Connection, url: sqlite3.Row, clicks: Iterable[Click]) -> None:
    """Keep clicks on a URL (a row of ``urls``); of a plain one's, only what it keeps."""
    db.executemany(
        "INSERT INTO clicks (url, date, hour, country, device, operating_system, region, city, brand, model, browser,"
        " lang) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (_row(url["number"], bool(url["premium"]), click) for click in clicks),
    )


def total(db: sqlite3.Connection, url: int, days: Range) -> int:
    """How many clicks a URL had."""
    query = "SELECT count(*) FROM clicks WHERE url = ? AND date BETWEEN ? AND ?"
    (clicks,) = db.execute(query, (url, days.since, days.until)).fetchone()
    return int(clicks)


def metrics(
    db: sqlite3.Connection, url: int, days: Range, categories: Sequence[str]
) -> list[dict[str, dict[str, object]]]:
    """One element for each property of each category: days and hours as time goes, the others by their clicks."""
    of = total(db, url, days)
    return [
        {category: _members(category, row, of)} for category in categories for row in _counted(db, url, days, category)
    ]


def _row(url: int, premium: bool, click: Click) -> tuple[object, ...]:
    # Local time: "today" is then the same day for whoever asks on this machine.
    moment = datetime.fromtimestamp(click.at).astimezone()
    always = (
        url,
        moment.strftime("%Y-%m-%d"),
        moment.strftime("%H"),
        click.country,
        click.device,
        click.operating_system,
    )
    more = (click.region, click.city, click.brand, click.model, click.browser, click.lang)
    return always + (more if premium else (None,) * len(more))


def _counted(db: sqlite3.Connection, url: int, days: Range, category: str) -> list[sqlite3.Row]:
    group = _GROUPS.get(category, category)
    order = _IN_TIME.get(category, f"clicks DESC, {group}")
    query = (
        f"SELECT {_COLUMNS[category]}, count(*) AS clicks FROM clicks"  # noqa: S608 - every part is a constant above
        f" WHERE url = ? AND date BETWEEN ? AND ? GROUP BY {group} ORDER BY {order}"
    )
    return db.execute(query, (url, days.since, days.until)).fetchall()


def _members(category: str, row: sqlite3.Row, of: int) -> dict[str, object]:
    members: dict[str, object] = {"property": row[0], "clicks": row["clicks"]}
    members.update({name: row[name] for name in row.keys()[1:] if name != "clicks"})
    if category in _WITH_PERCENT:
        members["percent"] = round(100 * row["clicks"] / of, 1)
    return members
