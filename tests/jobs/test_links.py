"""The request for one recipient's link, and the responses that can be used."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any, cast

import pytest

from jobs.ledgers import responded
from msgctl import operations
from msgctl.errors import (
    ConfigurationError,
    MsgctlError,
    NotReachedError,
    OutcomeUnknownError,
    RefusedError,
    ServiceError,
    UnreadableError,
    UsageError,
)
from msgctl.http.client import Client
from msgctl.http.request import Request
from msgctl.http.response import Response
from msgctl.jobs.links import checked_short_url, create_link
from msgctl.jobs.model import Intent, LinkResult, WantedLink
from msgctl.jobs.states import State
from msgctl.jsontext import Number

NEW = WantedLink("job-2", "https://shop.example/?c=a", may_have_created=False)
OLD = NEW._replace(may_have_created=True)
INTENT = Intent(0, State.PENDING, [2], ["573001234567"], {}, 1)
SHORT = "https://s.example/1"

Reply = Mapping[str, Any] | Exception


class Service:
    """Responds to the requests for a link in turn."""

    def __init__(self, *replies: Reply) -> None:
        self._replies = list(replies)
        self.asked: list[tuple[str, dict[str, str]]] = []

    def send(self, request: Request, *, timeout: float) -> Response:
        assert timeout == 3600
        self.asked.append((request.operation.name, dict(request.form)))
        reply = self._replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return responded(reply, operation=request.operation)


def create(link: WantedLink, *replies: Reply) -> tuple[LinkResult, list[tuple[str, dict[str, str]]]]:
    service = Service(*replies)
    return create_link(cast(Client, service), INTENT, link, date(2026, 3, 1)), service.asked


SHORTEN = (operations.URL_SHORT.name, {"name": "job-2", "url-long": "https://shop.example/?c=a"})
LOOK_UP = (
    operations.URL_STATISTIC.name,
    {"name-url": "job-2", "since": "2026-02-28", "until": "2026-03-01"},
)


def test_a_link_is_looked_up_only_if_it_may_exist() -> None:
    created = {"urlShort": SHORT, "urlLong": NEW.long_url}
    found = {**created, "clicksNumber": 0, "metrics": []}
    nothings: list[Reply] = [RefusedError("no such name", http_status=each) for each in (200, 400, 404, 422, 520)]
    assert create(NEW, created) == (LinkResult(INTENT, SHORT), [SHORTEN])
    assert create(OLD, found) == (LinkResult(INTENT, SHORT), [LOOK_UP])
    for nothing in (*nothings, {"clicksNumber": 0, "metrics": []}):
        assert create(OLD, nothing, created) == (LinkResult(INTENT, SHORT), [LOOK_UP, SHORTEN])


@pytest.mark.parametrize(
    "error",
    [
        RefusedError("no", "Wait.", http_status=401),
        UnreadableError("it is not JSON", "Check it.", http_status=200),
    ],
    ids=["another refusal", "unreadable"],
)
def test_a_link_that_cannot_be_looked_up_may_exist(error: ServiceError) -> None:
    result, asked = create(OLD, error)
    assert isinstance(result.error, OutcomeUnknownError)
    assert (result.error.message, result.error.hint) == (error.message, error.hint)
    assert (result.short_url, result.was_sent, asked) == (None, True, [LOOK_UP])


@pytest.mark.parametrize(
    ("error", "was_sent"),
    [
        (NotReachedError("no connection"), False),
        (ConfigurationError("the certificates cannot be read"), False),
        (RefusedError("no", http_status=520), True),
        (OutcomeUnknownError("the connection broke"), True),
        (UsageError("the URL is too long"), True),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_a_failed_request_for_a_link_reports_whether_it_was_sent(error: MsgctlError, was_sent: bool) -> None:
    result, _ = create(NEW, error)
    assert result == LinkResult(INTENT, None, error, was_sent)


def test_a_bug_leaves_it_unknown_whether_a_link_exists() -> None:
    result, _ = create(NEW, ZeroDivisionError("a bug"))
    assert isinstance(result.error, OutcomeUnknownError)
    assert (result.short_url, result.was_sent) == (None, True)


def test_the_error_for_a_short_url_that_cannot_be_used_quotes_it() -> None:
    for usable in (SHORT, "HTTP://s.example/1", "s.example/1", "my-s.example/a/b?c", f"s.example/{'x' * 190}"):
        assert checked_short_url("n", NEW.long_url, {"urlShort": usable, "urlLong": ""}) == usable
    unusable = ("", "s.example", "https://s.example/", "https:///1", "s/1", "ftp://s.example/1", "s.example/a b")
    for text in (*unusable, "s.example/ñ", f"s.example/{'x' * 191}", Number("1"), None, ["s.example/1"]):
        with pytest.raises(RefusedError) as caught:
            checked_short_url("n", NEW.long_url, {"urlShort": text})
        quoted = str(text) if len(str(text)) <= 60 else f"{str(text)[:59]}…"
        assert caught.value.message == f'the response has no usable short URL: "{quoted}"'
    with pytest.raises(RefusedError) as caught:
        checked_short_url("job-2", NEW.long_url, {"urlShort": SHORT, "urlLong": "https://other.example/"})
    assert caught.value.message == 'the short URL job-2 leads to another URL, "https://other.example/"'


def is_same(one: str, other: str) -> bool:
    """Return whether a short URL is accepted for ``one`` if it leads to ``other``."""
    try:
        return checked_short_url("n", one, {"urlShort": SHORT, "urlLong": other}) == SHORT
    except RefusedError as error:
        if "leads to another URL" not in error.message:
            raise
        return False


def test_equivalent_spellings_of_a_url_are_the_same() -> None:
    url = "https://ñandú.example/caf%C3%A9?c=a%26b"
    for spelling in ("https://xn--and-6ma2c.example:443/café?c=a%26b", "HTTPS://ÑANDÚ.example/caf%c3%a9?%63=a%26b"):
        assert is_same(url, spelling), spelling
    for other in (
        "https://ñandú.example/café?c=a&b",
        "https://nandu.example/café?c=a%26b",
        "https://[",
        "x",
        "https://x/\ud800",
    ):
        assert not is_same(url, other), other
    assert is_same("https://[", "https://[")


def test_urls_that_differ_in_any_part_are_not_the_same() -> None:
    url = "https://ana@shop.example:8443/a%2fb~?c=1#d"
    for spelling in ("%7e", "%7E"):
        assert is_same(url, f"HTTPS://ana@SHOP.example:8443/a%2Fb{spelling}?c=1#d")
    for other in (
        "http://ana@shop.example:8443/a%2fb~?c=1#d",
        "https://eva@shop.example:8443/a%2fb~?c=1#d",
        "https://ana@s.example:8443/a%2fb~?c=1#d",
        "https://ana@shop.example/a%2fb~?c=1#d",
        "https://ana@shop.example:8443/a/b~?c=1#d",
        "https://ana@shop.example:8443/a%2fb~?c=2#d",
        "https://ana@shop.example:8443/a%2fb~?c=1#e",
    ):
        assert not is_same(url, other), other
