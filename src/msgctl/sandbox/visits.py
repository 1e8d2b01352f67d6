"""A visit of a short URL: who came, as far as the headers of the request tell.

The table of user agents is small and knows the common browsers of today; what it does not know is ``unknown``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgctl.sandbox.clicks import UNKNOWN, Click

COUNTRY_HEADERS = ("x-country", "cf-ipcountry")
"""Headers that name the visitor's country; the second is what a content network adds."""

LONGEST = 64
"""Characters of a header that are kept."""

_COUNTRY = re.compile(r"[A-Za-z]{2}")
_LANGUAGE = re.compile(r"([A-Za-z]{2,3})(?:[-;,]|$)")
_ANDROID_MODEL = re.compile(r"Android [^;)]*; (?:[a-z]{2}-[a-z]{2}; )?([^;)]+?)(?: Build/[^)]*)?\)")

# Each: what the user agent holds, and what that means. The first that fits counts, so the order matters: Edge also says
# that it is Chrome and Safari, an iPad that it is like a Mac.
_SYSTEMS = (
    ("Windows", "Windows"),
    ("Android", "Android"),
    ("iPad", "iPadOS"),
    ("iPhone", "iOS"),
    ("Mac OS X", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux", "Linux"),
)
_BROWSERS = (
    ("Edg", "Edge"),
    ("OPR/", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("FxiOS/", "Firefox"),
    ("Firefox/", "Firefox"),
    ("CriOS/", "Chrome"),
    ("Chrome/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
)
_BRANDS = (
    ("SM-", "Samsung"),
    ("Galaxy", "Samsung"),
    ("Pixel", "Google"),
    ("moto", "Motorola"),
    ("Redmi", "Xiaomi"),
    ("POCO", "Xiaomi"),
    ("Mi ", "Xiaomi"),
    ("HUAWEI", "Huawei"),
)
_APPLE = (("iPad", "iPad"), ("iPhone", "iPhone"), ("Macintosh", "Mac"))


def click(headers: Mapping[str, str], at: float) -> Click:
    """The click that a request with these headers (names in lower case) makes at a time, seconds since 1970."""
    agent = headers.get("user-agent", "")
    brand, model = _maker(agent)
    return Click(
        at=at,
        country=_country(headers),
        device=_device(agent),
        operating_system=_first(agent, _SYSTEMS),
        brand=brand,
        model=model,
        browser=_first(agent, _BROWSERS),
        lang=_language(headers.get("accept-language", "")),
        region=headers.get("x-region", UNKNOWN)[:LONGEST] or UNKNOWN,
        city=headers.get("x-city", UNKNOWN)[:LONGEST] or UNKNOWN,
    )


def _first(text: str, table: tuple[tuple[str, str], ...]) -> str:
    return next((meaning for mark, meaning in table if mark in text), UNKNOWN)


def _country(headers: Mapping[str, str]) -> str:
    for name in COUNTRY_HEADERS:
        value = headers.get(name, "").strip()
        if _COUNTRY.fullmatch(value):
            return value.upper()
    return UNKNOWN


def _language(accepted: str) -> str:
    """The first language that a browser asks for, without its region."""
    match = _LANGUAGE.match(accepted.strip())
    return match[1].lower() if match else UNKNOWN


def _device(agent: str) -> str:
    if "iPad" in agent or ("Android" in agent and "Mobile" not in agent):
        return "tablet"
    if "Mobile" in agent or "iPhone" in agent:
        return "mobile"
    return "desktop" if any(mark in agent for mark in ("Windows", "Macintosh", "X11", "CrOS")) else UNKNOWN


def _maker(agent: str) -> tuple[str, str]:
    """Brand and model. A browser that hides its phone calls it ``K``."""
    apple = _first(agent, _APPLE)
    if apple != UNKNOWN:
        return "Apple", apple
    match = _ANDROID_MODEL.search(agent[:1024])
    if match and match[1] != "K":
        return _first(match[1], _BRANDS), match[1][:LONGEST]
    return UNKNOWN, UNKNOWN
