"""What the values of single parameters look like, each check raising `wire.Refusal` with the parameter's name.

The interface gives the date format alone (``YYYY-MM-DD``); the other rules are the emulator's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date
from urllib.parse import urlsplit

from msgctl.sandbox.wire import invalid, quoted

_PHONE = re.compile(r"\+?([0-9]{5,15})")
_COUNTRY_CODE = re.compile(r"[A-Za-z]{2}")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_ALIAS = re.compile(r"[A-Za-z0-9_-]{1,64}")
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_DOMAIN = re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})*")
_NOT_IN_URLS = re.compile(r"[\s\x00-\x20\x7f-\x9f]")


def phone(name: str, value: str) -> str:
    """The digits of a phone number, without a leading ``+``."""
    match = _PHONE.fullmatch(value)
    if not match:
        raise invalid(name, f"must be 5 to 15 digits with an optional + before them, not {quoted(value)}")
    return match[1]


def country_code(name: str, value: str) -> str:
    """A country code in upper case."""
    return _matching(_COUNTRY_CODE, name, value, "must be an ISO 3166 code of two letters").upper()


def day(name: str, value: str) -> str:
    """A date that exists, ``YYYY-MM-DD``."""
    _matching(_DATE, name, value, "must be a date, YYYY-MM-DD")
    try:
        date.fromisoformat(value)
    except ValueError:
        raise invalid(name, f"must be a date that exists, not {quoted(value)}") from None
    return value


def alias(name: str, value: str) -> str:
    return _matching(_ALIAS, name, value, "must be 1 to 64 letters, digits, dashes and underscores")


def domain(name: str, value: str) -> str:
    return _matching(_DOMAIN, name, value, "must be a domain name")


def url(name: str, value: str) -> str:
    """An absolute http or https URL."""
    if _NOT_IN_URLS.search(value) or not _is_absolute(value):
        raise invalid(name, f"must be an absolute http or https URL, not {quoted(value)}")
    return value


def _is_absolute(value: str) -> bool:
    try:
        parts = urlsplit(value)
        # Reading the port checks it.
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _matching(pattern: re.Pattern[str], name: str, value: str, rule: str) -> str:
    if not pattern.fullmatch(value):
        raise invalid(name, f"{rule}, not {quoted(value)}")
    return value


BY_NAME: Mapping[str, Callable[[str, str], str]] = {
    "phone": phone,
    "country-code": country_code,
    "since": day,
    "until": day,
    "alias": alias,
    "domain-name": domain,
    "url-long": url,
}
"""The check of each parameter that has one, by the parameter's name on the wire."""
