"""Short URLs for the rows of a file: name and long URL from the columns of a row, and clicks."""

from __future__ import annotations

import re
from datetime import date, timedelta
from string import ascii_letters, digits
from typing import NamedTuple
from urllib.parse import quote

import httpx

from msgctl import operations, values
from msgctl.errors import RefusedError, UnreadableError, UsageError
from msgctl.http.client import Client
from msgctl.http.request import Request, build
from msgctl.jsontext import Number
from msgctl.lists.rows import Recipient
from msgctl.lists.table import Recipients
from msgctl.lists.template import Placeholder, Template
from msgctl.outcomes.content import as_count
from msgctl.outcomes.judge import is_whole_success
from msgctl.text import shorten

NOT_FOUND = (400, 404, 520)
"""HTTP statuses of a look-up that mean that the link does not exist, unless the text is about a breakdown."""
LINE = "line"
"""The placeholder of the line in the file."""

_ORIGIN = re.compile(r"https?://[^/?#\\{}]+(?=[/?#]|$)", re.IGNORECASE)
_UNRESERVED = frozenset(f"{ascii_letters}{digits}-._~")
"""Characters that mean the same with and without percent-encoding (RFC 3986, section 2.3)."""


class Link(NamedTuple):
    """A short URL's name, and the URL that it leads to (empty if only its clicks are counted)."""

    name: str
    long_url: str = ""


class LinkTemplate:
    """Creates the name and the long URL from their templates. Raises UsageError for templates that no row can fill.

    ``{line}`` is the line in the file. The path and query of a long URL may contain columns, whose cells are
    percent-encoded. In other parts, a column could change the target of the link.
    """

    def __init__(self, recipients: Recipients, name: str, long_url: str | None = None) -> None:
        columns = [LINE, *recipients.columns]
        self._name = Template.parse(name, columns, "--name", recipients.source.header_row)
        self._origin, self._rest = "", Template()
        if long_url is None:
            return
        origin = _ORIGIN.match(long_url)
        if origin is None or "{" in long_url.partition("#")[2]:
            if "{" in long_url and long_url.lower().startswith(("http://", "https://")):
                raise UsageError(f"--to may have columns only in its path and query: {values.quote(long_url)}")
            values.long_url(long_url)
            raise UsageError(f"--to must be an absolute http or https URL, not {values.quote(long_url)}")
        self._origin = origin[0]
        self._rest = Template.parse(long_url[origin.end() :], columns, "--to", recipients.source.header_row)
        example = ["0" if isinstance(piece, Placeholder) else piece for piece in self._rest]
        values.long_url(self._origin + "".join(example))

    def fill(self, row: Recipient) -> Link:
        """Return the link of a row. Raises UsageError if a cell is empty or cannot be used."""
        row = row._replace(values=(str(row.line), *row.values))
        name = values.short_text(self._name.fill(row), "the name")
        if not self._origin:
            return Link(name)
        parts = [piece if isinstance(piece, str) else _encoded(piece, row) for piece in self._rest]
        return Link(name, values.long_url(self._origin + "".join(parts)))


def _encoded(placeholder: Placeholder, row: Recipient) -> str:
    """Return a cell, percent-encoded. Raises UsageError if it is empty, or if it has a meaning in a path."""
    text = values.short_text(placeholder.fill(row), f"column {shorten(placeholder.name, 40)}")
    if text in (".", ".."):
        raise UsageError(f"column {shorten(placeholder.name, 40)} is {values.quote(text)}, which a URL cannot contain")
    return quote(text, safe="")


def short_url(client: Client, link: Link, today: date) -> str:
    """Return the short URL of a link, and create it if the name is new.

    Raises the service's errors, and RefusedError for a link that leads to another URL.
    """
    existing = _existing(client, link, today)
    if existing is not None:
        return existing
    response = client.send(creation(link))
    created = _checked(link, response.document)
    if created is None:
        raise UnreadableError("The response contains no short URL", details=response.details)
    return created


def clicks(client: Client, link: Link, since: date, until: date) -> int:
    """Return the number of clicks on a link. Raises the service's errors."""
    response = client.send(statistics(link, since, until))
    number = as_count(response.document.get("clicksNumber"))
    if number is None:
        raise UnreadableError("The response contains no number of clicks", details=response.details)
    return number


def creation(link: Link) -> Request:
    """Return the request that creates a link."""
    return build(operations.URL_SHORT, {"name": link.name, "url-long": link.long_url})


def statistics(link: Link, since: date, until: date) -> Request:
    """Return the request for the clicks on a link."""
    parameters = {"name-url": link.name, "since": since.isoformat(), "until": until.isoformat()}
    return build(operations.URL_STATISTIC, parameters)


def search(link: Link, today: date) -> Request:
    """Return the request that looks up a link. It begins yesterday, as the service may be in another time zone."""
    return statistics(link, today - timedelta(days=1), today)


def _existing(client: Client, link: Link, today: date) -> str | None:
    """Return the short URL with the name of a link; None if the service has none."""
    try:
        document = client.send(search(link, today)).document
    except (RefusedError, UnreadableError) as error:
        # A refusal, or a JSON document without statistics, means that the link does not exist. A page of HTML in a 2xx
        # means nothing, and neither does a refusal of the key or the method.
        details = error.details
        if details is None or not (details.http_status in NOT_FOUND or is_whole_success(details.http_status)):
            raise
        if isinstance(error, UnreadableError) and details.document is None:
            raise
        return None
    return _checked(link, document)


def _checked(link: Link, document: object) -> str | None:
    """Return the short URL in a response; None if it contains none. Raises RefusedError if it leads elsewhere."""
    if not isinstance(document, dict):
        return None
    short, leads_to = document.get("urlShort"), document.get("urlLong")
    if not isinstance(short, str) or isinstance(short, Number):
        return None
    if not short or any(map(str.isspace, short)) or short == link.long_url:
        return None
    if isinstance(leads_to, str) and leads_to and _normal(leads_to) != _normal(link.long_url):
        raise RefusedError(f"the short URL {values.quote(link.name)} leads to another URL, {values.quote(leads_to)}")
    return short


def _normal(url: str) -> tuple[object, ...]:
    """Return the parts of a URL that determine its target, in normal form (RFC 3986, section 6.2)."""
    if len(url) > values.MAX_URL:  # a longer host may take minutes
        return (url,)
    try:
        parts = httpx.URL(re.sub("%([0-9A-Fa-f]{2})", _decoded, url))
    except (httpx.InvalidURL, UnicodeError):  # half of a surrogate pair
        return (url,)
    return parts.scheme, parts.userinfo, parts.raw_host, parts.port, parts.raw_path, parts.fragment


def _decoded(escape: re.Match[str]) -> str:
    """Return the character of a percent-escape if both mean the same, or else the escape in upper case."""
    character = chr(int(escape[1], 16))
    return character if character in _UNRESERVED else escape[0].upper()
