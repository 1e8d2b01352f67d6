"""Clicks on short URLs: who visited, how visits are counted, and invented visitors."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random
from typing import Any

UNKNOWN = "unknown"

MAX_LENGTH = 64
"""Characters of a header that are kept."""

COUNTRY_HEADERS = ("x-country", "cf-ipcountry")
"""Headers that name the visitor's country; content networks add the second."""


@dataclass(frozen=True, slots=True)
class Click:
    """One visit, ``at`` in seconds since 1970; ``country`` is a two-letter ISO 3166 code.

    Bots, such as those that preview links in chats, are counted apart: statistics leave them out.
    """

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
    is_bot: bool = False


Days = tuple[str, str]
"""The first and the last day of a statistic, both included, as ``YYYY-MM-DD``."""

# For each category, in the order of the interface: the columns to select, of which the first is the property, the
# columns to group by, and the order.
_COUNTED = {
    "date": ("date", "date", "date"),
    "hour": ("hour, date", "hour, date", "date, hour"),
    "country": ("country", "country", ""),
    "region": ("region", "region", ""),
    "city": ("city, country AS countryIsoCode, region", "city, country, region", ""),
    "device": ("device", "device", ""),
    "brand": ("brand", "brand", ""),
    "model": ("model", "model", ""),
    "operatingSystem": ("operating_system", "operating_system", ""),
    "browser": ("browser", "browser", ""),
    "lang": ("lang", "lang", ""),
}
CATEGORIES = tuple(_COUNTED)
"""All categories in the order of the interface."""

_WITH_PERCENT = {"city", "brand", "model"}


def add(db: sqlite3.Connection, url: sqlite3.Row, clicks: Iterable[Click]) -> None:
    """Store clicks on a URL (a row of ``urls``); a plain URL keeps only the columns of its categories."""
    db.executemany(
        "INSERT INTO clicks (url, date, hour, country, device, operating_system, region, city, brand, model, browser,"
        " lang, is_bot) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (_row(url["number"], bool(url["premium"]), click) for click in clicks),
    )


def total(db: sqlite3.Connection, url: int, days: Days) -> int:
    """Return the number of clicks on a URL."""
    query = "SELECT count(*) FROM clicks WHERE url = ? AND NOT is_bot AND date BETWEEN ? AND ?"
    (clicks,) = db.execute(query, (url, *days)).fetchone()
    return int(clicks)


def metrics(
    db: sqlite3.Connection, url: int, days: Days, categories: Sequence[str]
) -> list[dict[str, dict[str, object]]]:
    """Return one element for each property of each category: days and hours by time, the others by clicks."""
    of = total(db, url, days)
    return [
        {category: _metric(category, row, of)} for category in categories for row in _count(db, url, days, category)
    ]


def _row(url: int, premium: bool, click: Click) -> tuple[object, ...]:
    # In local time, so that "today" is this machine's day.
    moment = datetime.fromtimestamp(click.at).astimezone()
    always = (moment.strftime("%Y-%m-%d"), moment.strftime("%H"), click.country, click.device, click.operating_system)
    more = (click.region, click.city, click.brand, click.model, click.browser, click.lang)
    return (url, *always, *(more if premium else (None,) * len(more)), click.is_bot)


def _count(db: sqlite3.Connection, url: int, days: Days, category: str) -> list[sqlite3.Row]:
    columns, group, order = _COUNTED[category]
    query = (
        f"SELECT {columns}, count(*) AS clicks FROM clicks WHERE url = ? AND NOT is_bot AND date BETWEEN ? AND ?"  # noqa: S608
        f" GROUP BY {group} ORDER BY {order or f'clicks DESC, {group}'}"
    )
    return db.execute(query, (url, *days)).fetchall()


def _metric(category: str, row: sqlite3.Row, of: int) -> dict[str, object]:
    metric: dict[str, object] = {"property": row[0], "clicks": row["clicks"]}
    metric.update({name: row[name] for name in row.keys()[1:] if name != "clicks"})
    if category in _WITH_PERCENT:
        metric["percent"] = round(100 * row["clicks"] / of, 1)
    return metric


# --- visitors, from the headers of their requests

_COUNTRY = re.compile(r"[A-Za-z]{2}")
_LANGUAGE = re.compile(r"([A-Za-z]{2,3})(?:[-;,]|$)")
_DESKTOPS = {"Windows", "Mac OS X", "Linux", "Ubuntu", "Fedora", "Chrome OS", "FreeBSD"}


def visit(headers: Mapping[str, str], at: float) -> Click:
    """Return the click of a request with these headers (names in lower case) at a time."""
    country = next((value for name in COUNTRY_HEADERS if _COUNTRY.fullmatch(value := headers.get(name, ""))), UNKNOWN)
    language = _LANGUAGE.match(headers.get("accept-language", "").strip())
    return Click(
        at=at,
        country=country if country == UNKNOWN else country.upper(),
        lang=language[1].lower() if language else UNKNOWN,
        region=headers.get("x-region", UNKNOWN)[:MAX_LENGTH] or UNKNOWN,
        city=headers.get("x-city", UNKNOWN)[:MAX_LENGTH] or UNKNOWN,
        **_agent(headers.get("user-agent", "")[:1024]),
    )


def _agent(agent: str) -> dict[str, Any]:
    """Return the fields of a click that a user agent gives; none without the extra `sandbox` (ua-parser)."""
    try:
        from ua_parser import parse
    except ImportError:
        return {}
    found = parse(agent)
    system = found.os.family if found.os else UNKNOWN
    browser = found.user_agent.family if found.user_agent else UNKNOWN
    device = found.device
    brand, model = (device.brand, device.model) if device else (None, None)
    if (brand or "").startswith("Generic"):  # a browser that hides its phone
        brand, model = None, None
    return {
        "operating_system": system[:MAX_LENGTH],
        "browser": browser[:MAX_LENGTH],
        "brand": (brand or UNKNOWN)[:MAX_LENGTH],
        "model": (model or UNKNOWN)[:MAX_LENGTH],
        "device": _form_factor(agent, system),
        "is_bot": device is not None and device.family == "Spider",
    }


def _form_factor(agent: str, system: str) -> str:
    if system in ("Android", "iOS"):
        return "tablet" if "iPad" in agent or (system == "Android" and "Mobile" not in agent) else "mobile"
    return "desktop" if system in _DESKTOPS else UNKNOWN


# --- invented visitors

_PLACE = ("country", "region", "city", "lang")
_PLACES = (
    ("CO", "Bogotá D.C.", "Bogotá", "es"),
    ("CO", "Antioquia", "Medellín", "es"),
    ("CO", "Valle del Cauca", "Cali", "es"),
    ("MX", "Ciudad de México", "Ciudad de México", "es"),
    ("PE", "Lima", "Lima", "es"),
    ("AR", "Buenos Aires", "Buenos Aires", "es"),
    ("ES", "Madrid", "Madrid", "es"),
    ("BR", "São Paulo", "São Paulo", "pt"),
    ("US", "Florida", "Miami", "en"),
)
_DEVICE = ("device", "brand", "model", "operating_system", "browser")
_DEVICES = (
    ("mobile", "Samsung", "Galaxy A54", "Android", "Chrome"),
    ("mobile", "Samsung", "Galaxy S23", "Android", "Samsung Internet"),
    ("mobile", "Xiaomi", "Redmi Note 12", "Android", "Chrome"),
    ("mobile", "Motorola", "Moto G84", "Android", "Chrome"),
    ("mobile", "Apple", "iPhone", "iOS", "Safari"),
    ("tablet", "Apple", "iPad", "iPadOS", "Safari"),
    ("desktop", "Apple", "Mac", "macOS", "Safari"),
    ("desktop", "PC", "PC", "Windows", "Edge"),
    ("desktop", "PC", "PC", "Linux", "Firefox"),
)
VISITOR = (*_PLACE, *_DEVICE)
"""The fields that a visitor can be given; the names are those of `Click`."""

# Any language is read anywhere, and any browser runs on any device.
_INDEPENDENT = ("lang", "browser")


def invent(random: Random, given: Mapping[str, str]) -> dict[str, Any]:
    """Return a visitor with the given fields and random ones that fit them, or ``unknown`` if nothing fits."""
    return {**_pick(random, _PLACE, _PLACES, given), **_pick(random, _DEVICE, _DEVICES, given), **given}


def _pick(
    random: Random, names: tuple[str, ...], rows: tuple[tuple[str, ...], ...], given: Mapping[str, str]
) -> dict[str, str]:
    known = [dict(zip(names, row, strict=True)) for row in rows]
    wanted = [(name, given[name]) for name in names if name in given and name not in _INDEPENDENT]
    fitting = [row for row in known if all(row[name] == value for name, value in wanted)]
    return random.choice(fitting) if fitting else dict.fromkeys(names, UNKNOWN)
