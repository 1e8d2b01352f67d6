"""Plausible visitors of short URLs, for clicks that nobody made."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from msgctl.sandbox.clicks import UNKNOWN

# country, region, city, language
_PLACES = (
    ("CO", "Bogotá D.C.", "Bogotá", "es"),
    ("CO", "Antioquia", "Medellín", "es"),
    ("CO", "Valle del Cauca", "Cali", "es"),
    ("MX", "Ciudad de México", "Ciudad de México", "es"),
    ("MX", "Jalisco", "Guadalajara", "es"),
    ("PE", "Lima", "Lima", "es"),
    ("AR", "Buenos Aires", "Buenos Aires", "es"),
    ("CL", "Santiago", "Santiago", "es"),
    ("ES", "Madrid", "Madrid", "es"),
    ("BR", "São Paulo", "São Paulo", "pt"),
    ("US", "Florida", "Miami", "en"),
    ("DE", "Berlin", "Berlin", "de"),
)
_PLACE_NAMES = ("country", "region", "city", "lang")

# device, brand, model, operating system, browser
_DEVICES = (
    ("mobile", "Samsung", "Galaxy A54", "Android", "Chrome"),
    ("mobile", "Samsung", "Galaxy S23", "Android", "Samsung Internet"),
    ("mobile", "Xiaomi", "Redmi Note 12", "Android", "Chrome"),
    ("mobile", "Motorola", "Moto G84", "Android", "Chrome"),
    ("mobile", "Apple", "iPhone", "iOS", "Safari"),
    ("tablet", "Apple", "iPad", "iPadOS", "Safari"),
    ("desktop", "Apple", "Mac", "macOS", "Safari"),
    ("desktop", "PC", "PC", "Windows", "Edge"),
    ("desktop", "PC", "PC", "Windows", "Chrome"),
    ("desktop", "PC", "PC", "Linux", "Firefox"),
)
_DEVICE_NAMES = ("device", "brand", "model", "operating_system", "browser")

# Any language is read anywhere, and any browser runs on any device.
_FREE = ("lang", "browser")


def invent(random: Random, given: Mapping[str, str]) -> dict[str, str]:
    """A visitor with what is given, and the rest as it goes together with that; ``unknown`` where nothing does."""
    return {
        **_pick(random, _PLACE_NAMES, _PLACES, given),
        **_pick(random, _DEVICE_NAMES, _DEVICES, given),
        **given,
    }


def _pick(
    random: Random, names: tuple[str, ...], rows: tuple[tuple[str, ...], ...], given: Mapping[str, str]
) -> dict[str, str]:
    known = [dict(zip(names, row, strict=True)) for row in rows]
    wanted = [(name, given[name]) for name in names if name in given and name not in _FREE]
    fitting = [row for row in known if all(row[name] == value for name, value in wanted)]
    return random.choice(fitting) if fitting else dict.fromkeys(names, UNKNOWN)
