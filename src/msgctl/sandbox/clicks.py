"""Clicks on short URLs: who visited, how visits are counted, and invented visitors."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Mapping
from datetime import datetime
from random import Random
from typing import Any

from msgctl.operations import RESPONSE_STATISTIC

UNKNOWN = "unknown"

MAX_LENGTH = 64
"""Maximum characters of a header that are kept."""

COUNTRY_HEADERS = ("x-country", "cf-ipcountry")
"""Headers with the visitor's country; content networks add the second."""

_PLACE = ("country", "region", "city", "lang")
_DEVICE = ("device", "brand", "model", "operating_system", "browser")
VISITOR = (*_PLACE, *_DEVICE)
"""The fields of a visitor: columns of ``clicks``."""

_PLAIN = ("country", "device", "operating_system")
"""The fields that are kept for a plain URL."""

CATEGORIES = {each.name: each for field in RESPONSE_STATISTIC.fields if field.name == "metrics" for each in field.of}
"""All categories of a statistic in the order of the API, each with its fields."""

_COLUMNS = {"operatingSystem": "operating_system", "countryIsoCode": "country"}
"""The columns whose field or category has another name."""

Days = tuple[str, str]
"""The first and the last day of a statistic, both included, as ``YYYY-MM-DD``."""

Visitor = dict[str, Any]
"""The fields of `VISITOR` that are known, and ``is_bot``.

Bots, such as those that preview links in chats, are stored but not counted in statistics.
"""


def add(db: sqlite3.Connection, url: sqlite3.Row, visits: Iterable[tuple[float, Visitor]]) -> None:
    """Store visits of a URL (a row of ``urls``), each with its time in seconds since 1970."""

    def row(at: float, visitor: Visitor) -> tuple[object, ...]:
        # In local time, so that "today" is this machine's day.
        moment = datetime.fromtimestamp(at).astimezone()
        known = [visitor.get(name, UNKNOWN) if url["premium"] or name in _PLAIN else None for name in VISITOR]
        return (url["number"], f"{moment:%Y-%m-%d}", f"{moment:%H}", visitor.get("is_bot", False), *known)

    columns = ", ".join(("url", "date", "hour", "is_bot", *VISITOR))
    query = f"INSERT INTO clicks ({columns}) VALUES ({', '.join('?' * (4 + len(VISITOR)))})"  # noqa: S608 - ours
    db.executemany(query, (row(*visit) for visit in visits))


def statistic(
    db: sqlite3.Connection, url: int, days: Days, categories: Iterable[str]
) -> tuple[int, list[dict[str, dict[str, object]]]]:
    """Return the clicks on a URL, and one element for each property of each category.

    Days and hours are in the order of time, the others in that of their clicks.
    """
    query = "SELECT count(*) FROM clicks WHERE url = ? AND NOT is_bot AND date BETWEEN ? AND ?"
    (total,) = db.execute(query, (url, *days)).fetchone()
    found = []
    for category in categories:
        fields = [field.name for field in CATEGORIES[category].of]
        more = [name for name in fields if name not in ("property", "clicks", "percent")]
        columns = [_COLUMNS.get(name, name) for name in (category, *more)]
        order = sorted(columns) if category in ("date", "hour") else ["number DESC", *columns]
        query = (
            f"SELECT count(*) AS number, {', '.join(columns)} FROM clicks"  # noqa: S608 - the names are ours
            " WHERE url = ? AND NOT is_bot AND date BETWEEN ? AND ?"
            f" GROUP BY {', '.join(columns)} ORDER BY {', '.join(order)}"
        )
        for clicks, *values in db.execute(query, (url, *days)):
            facts = dict(zip(("property", *more), values, strict=True))
            facts |= {"clicks": clicks, "percent": round(100 * clicks / total, 1)}
            found.append({category: {name: facts[name] for name in fields}})
    return total, found


# --- visitors, from the headers of their requests

_COUNTRY = re.compile(r"[A-Za-z]{2}")
_LANGUAGE = re.compile(r"([A-Za-z]{2,3})(?:[-;,]|$)")
_LIBRARY = re.compile(r"(?:Python-urllib|Java)/|.*(?:Google-HTTP-Java-Client|WinHttp)")
"""Agents of HTTP clients that the parser takes for bots; in a test they are the visitor."""
_DESKTOPS = {"Windows", "Mac OS X", "Linux", "Ubuntu", "Fedora", "Chrome OS", "FreeBSD"}


def visitor_of(headers: Mapping[str, str]) -> Visitor:
    """Return the visitor who makes a request with these headers (names in lower case)."""
    countries = [headers.get(name, "") for name in COUNTRY_HEADERS]
    language = _LANGUAGE.match(headers.get("accept-language", "").strip())
    known = {
        "country": next((each.upper() for each in countries if _COUNTRY.fullmatch(each)), None),
        "lang": language[1].lower() if language else None,
        "region": headers.get("x-region"),
        "city": headers.get("x-city"),
        **_agent(headers.get("user-agent", "")[:1024]),
    }
    kept = {name: value[:MAX_LENGTH] if isinstance(value, str) else value for name, value in known.items()}
    return {name: value for name, value in kept.items() if value}


def _agent(agent: str) -> Visitor:
    """Return the fields that a user agent gives; none without the extra `sandbox` (ua-parser)."""
    try:
        from ua_parser import parse
    except ImportError:
        return {}
    found = parse(agent)
    system = found.os.family if found.os else ""
    device = None if _LIBRARY.match(agent) else found.device
    # A browser that hides the phone reports a generic brand.
    is_known = device is not None and not (device.brand or "").startswith("Generic")
    return {
        "operating_system": system,
        "browser": found.user_agent.family if found.user_agent else None,
        "brand": device.brand if device and is_known else None,
        "model": device.model if device and is_known else None,
        "device": _form_factor(agent, system),
        "is_bot": device is not None and device.family == "Spider",
    }


def _form_factor(agent: str, system: str) -> str | None:
    if system in ("Android", "iOS"):
        return "tablet" if "iPad" in agent or (system == "Android" and "Mobile" not in agent) else "mobile"
    return "desktop" if system in _DESKTOPS else None


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


def invent(random: Random, given: Mapping[str, str]) -> Visitor:
    """Return a visitor with the given fields and random ones that fit them, or ``unknown`` if nothing fits."""
    visitor: Visitor = {}
    for names, rows in ((_PLACE, _PLACES), (_DEVICE, _DEVICES)):
        known = [dict(zip(names, row, strict=True)) for row in rows]
        # The last fields, language and browser, fit any place and any device.
        fitting = [row for row in known if all(row[name] == given.get(name, row[name]) for name in names[:-1])]
        visitor |= random.choice(fitting) if fitting else {}
    return {**visitor, **given}
