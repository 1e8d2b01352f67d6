"""Store and count clicks on short URLs, and invent visitors."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from datetime import datetime
from random import Random

from msgctl.operations import RESPONSE_STATISTIC
from msgctl.sandbox.protocol import JsonObject

NOT_GIVEN = "unknown"

_PLACE = ("country", "region", "city", "lang")
_DEVICE = ("device", "brand", "model", "operating_system", "browser")
VISITOR = (*_PLACE, *_DEVICE)
"""The fields of a visitor: columns of ``clicks``."""

_PLAIN = ("country", "device", "operating_system")
"""The fields that are kept for a plain URL."""

(_METRICS,) = (field for field in RESPONSE_STATISTIC.fields if field.name == "metrics")
CATEGORIES = {category.name: category for category in _METRICS.of}
"""All categories of a statistic in the order of the API, each with its fields."""

_COLUMNS = {"operatingSystem": "operating_system", "countryIsoCode": "country"}
"""The columns whose field or category has another name."""

Days = tuple[str, str]
"""The first and the last day of a statistic, both included, as ``YYYY-MM-DD``."""

Visitor = dict[str, str]
"""The fields of `VISITOR` that invented visitors have."""


def add(db: sqlite3.Connection, url: sqlite3.Row, at: float, visitors: Iterable[Visitor]) -> None:
    """Store visits of a URL (a row of ``urls``) at a time in seconds since 1970."""
    moment = datetime.fromtimestamp(at).astimezone()  # in local time, so that "today" is this machine's day
    day, hour = f"{moment:%Y-%m-%d}", f"{moment:%H}"
    fields = VISITOR if url["premium"] else _PLAIN
    columns = ("url", "date", "hour", *fields)
    query = f"INSERT INTO clicks ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"  # noqa: S608 - ours
    rows = ((url["number"], day, hour, *(visitor.get(name, NOT_GIVEN) for name in fields)) for visitor in visitors)
    db.executemany(query, rows)


def statistic(db: sqlite3.Connection, url: int, days: Days, categories: Iterable[str]) -> tuple[int, list[JsonObject]]:
    """Return the clicks on a URL, and one element for each property of each category.

    Days and hours are in chronological order, and the others are sorted by their clicks.
    """
    query = "SELECT count(*) FROM clicks WHERE url = ? AND date BETWEEN ? AND ?"
    (total,) = db.execute(query, (url, *days)).fetchone()
    rows = []
    for category in categories:
        fields = [field.name for field in CATEGORIES[category].of]
        more = [name for name in fields if name not in ("property", "clicks", "percent")]
        columns = [_COLUMNS.get(name, name) for name in (category, *more)]
        order = sorted(columns) if category in ("date", "hour") else ["number DESC", *columns]
        query = (
            f"SELECT count(*) AS number, {', '.join(columns)} FROM clicks"  # noqa: S608 - the names are ours
            " WHERE url = ? AND date BETWEEN ? AND ?"
            f" GROUP BY {', '.join(columns)} ORDER BY {', '.join(order)}"
        )
        for clicks, *values in db.execute(query, (url, *days)):
            facts = dict(zip(("property", *more), values, strict=True))
            facts |= {"clicks": clicks, "percent": round(100 * clicks / total, 1)}
            rows.append({category: {name: facts[name] for name in fields}})
    return total, rows


# --- invented visitors

_PLACES = (
    ("CO", "Bogotá D.C.", "Bogotá", "es"),
    ("CO", "Antioquia", "Medellín", "es"),
    ("MX", "Ciudad de México", "Ciudad de México", "es"),
    ("ES", "Madrid", "Madrid", "es"),
    ("BR", "São Paulo", "São Paulo", "pt"),
    ("US", "Florida", "Miami", "en"),
)
_DEVICES = (
    ("mobile", "Samsung", "Galaxy A54", "Android", "Chrome"),
    ("mobile", "Xiaomi", "Redmi Note 12", "Android", "Chrome"),
    ("mobile", "Apple", "iPhone", "iOS", "Safari"),
    ("tablet", "Apple", "iPad", "iPadOS", "Safari"),
    ("desktop", "PC", "PC", "Windows", "Edge"),
    ("desktop", "PC", "PC", "Linux", "Firefox"),
)


def invent(random: Random, country: str | None) -> Visitor:
    """Return a random visitor. In a country without invented places, region, city and language are ``unknown``."""
    visitor = dict(zip(_DEVICE, random.choice(_DEVICES), strict=True))
    places = [place for place in _PLACES if country in (None, place[0])]
    if places:
        visitor |= zip(_PLACE, random.choice(places), strict=True)
    elif country is not None:
        visitor["country"] = country
    return visitor
