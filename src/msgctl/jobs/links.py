"""Personal links: create a recipient's short URL."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, timedelta
from string import ascii_letters, digits
from typing import Any

import httpx

from msgctl import operations
from msgctl.errors import (
    ConfigurationError,
    MsgctlError,
    NotReachedError,
    OutcomeUnknownError,
    RefusedError,
    ServiceError,
    unexpected,
    without_frames,
)
from msgctl.http.client import Client
from msgctl.http.request import build
from msgctl.jobs.model import Intent, LinkResult, WantedLink
from msgctl.jsontext import Number
from msgctl.values import quote

MAX_ATTEMPT = 3600.0
"""Seconds; the client's own limit, --timeout, is never longer."""

_USABLE = re.compile(r"(?=[!-~]{1,200}$)(https?://[^/]+/.+|[\w-]+(\.[\w-]+)+/.+)", re.ASCII | re.IGNORECASE)
"""A URL, or the short form that phones recognise: ``host.example/path``."""
_UNRESERVED = frozenset(f"{ascii_letters}{digits}-._~")
"""Characters that mean the same with and without percent-encoding (RFC 3986, section 2.3)."""
NOT_FOUND_STATUSES = frozenset({200, 400, 404, 422, 520})
"""Statuses of a refused look-up that can mean that there is no link with this name."""


def create_link(client: Client, intent: Intent, link: WantedLink, today: date) -> LinkResult:
    """Create the link of an intent, unless a link with its name exists. Raises nothing.

    The error is an OutcomeUnknownError if the link may exist.
    """
    try:
        short_url = _look_up(client, link, today) if link.may_have_created else None
        if short_url is None:
            request = build(operations.URL_SHORT, {"name": link.name, "url-long": link.long_url})
            short_url = checked_short_url(link.name, link.long_url, client.send(request, timeout=MAX_ATTEMPT).document)
        return LinkResult(intent, short_url)
    except Exception as raised:  # noqa: BLE001 (the other recipients are still sent to)
        error = without_frames(raised if isinstance(raised, MsgctlError) else unexpected(raised))
        return LinkResult(intent, None, error, not isinstance(error, (NotReachedError, ConfigurationError)))


def _look_up(client: Client, link: WantedLink, today: date) -> str | None:
    """Return the short URL with the name of a link, or None if it does not exist."""
    yesterday = today - timedelta(days=1)  # the service may be in another time zone
    values = {"name-url": link.name, "since": yesterday.isoformat(), "until": today.isoformat()}
    try:
        document = client.send(build(operations.URL_STATISTIC, values), timeout=MAX_ATTEMPT).document
    except ServiceError as error:
        if isinstance(error, RefusedError) and error.http_status in NOT_FOUND_STATUSES:
            return None
        raise OutcomeUnknownError(error.message, error.hint) from None
    return checked_short_url(link.name, link.long_url, document) if document.get("urlShort") else None


def checked_short_url(name: str, long_url: str, document: Mapping[str, Any]) -> str:
    """Return the short URL in a response. Raises RefusedError if it cannot be used, or leads to another URL."""
    short_url, leads_to = document.get("urlShort"), document.get("urlLong")
    if isinstance(leads_to, str) and leads_to and _normal(leads_to) != _normal(long_url):
        raise RefusedError(f"the short URL {name} leads to another URL, {quote(leads_to)}")
    if not isinstance(short_url, str) or isinstance(short_url, Number) or not _USABLE.fullmatch(short_url):
        raise RefusedError(f"the response has no usable short URL: {quote(str(short_url))}")
    return short_url


def _normal(url: str) -> tuple[object, ...]:
    """Return the parts of a URL that decide where it leads, in one spelling (RFC 3986, section 6.2)."""
    try:
        parts = httpx.URL(re.sub("%([0-9A-Fa-f]{2})", _decoded, url))
    except (httpx.InvalidURL, UnicodeError):  # half of a surrogate pair
        return (url,)
    return parts.scheme, parts.userinfo, parts.raw_host, parts.port, parts.raw_path, parts.fragment


def _decoded(escape: re.Match[str]) -> str:
    """Return the character of a percent-escape if both mean the same, and else the escape in capitals."""
    character = chr(int(escape[1], 16))
    return character if character in _UNRESERVED else escape[0].upper()
