"""Visits to short URLs: redirects, and which visits are counted."""

from __future__ import annotations

import json
import sys

import pytest

from msgctl.sandbox.clicks import visitor_of
from msgctl.sandbox.protocol import SandboxRequest

from .clocked_emulator import FORM, encoded
from .served import Served

ANDROID = "Mozilla/5.0 (Linux; Android 13; SM-A546E Build/TP1A) AppleWebKit/537.36 Chrome/120.0 Mobile Safari/537.36"
IPHONE = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 17_1 like Mac OS X) AppleWebKit/605.1 Version/17.1 Mobile/15E148 Safari/604"
)
EDGE = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/120.0 Safari/537.36 Edg/120.0"
FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:120.0) Gecko/20100101 Firefox/120.0"
IPAD = "Mozilla/5.0 (iPad; CPU OS 17_1 like Mac OS X) AppleWebKit/605.1 Version/17.1 Mobile/15E148 Safari/604.1"
HIDDEN = "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 Chrome/120.0 Mobile Safari/537.36"
TABLET = "Mozilla/5.0 (Linux; Android 12; Pixel Tablet) AppleWebKit/537.36 Chrome/120.0 Safari/537.36"


def shorten(served: Served, **more: str) -> str:
    body = encoded({"name": "sale", "url_long": "https://shop.example/niño?a=1&b=%C3%B1#top", **more}).encode()
    response = served.send(SandboxRequest("POST", "/api/v1/url/short", "", FORM, body))
    assert response.status == 200, response.body
    return "/u/" + str(json.loads(response.body)["urlShort"]).rpartition("/u/")[2]


def statistics(served: Served) -> dict[str, object]:
    body = encoded({"name_url": "sale", "since": "2026-11-21", "until": "2026-11-21"}).encode()
    document = json.loads(served.send(SandboxRequest("POST", "/api/v1/url/short-statistic", "", FORM, body)).body)
    found: dict[str, object] = {"clicks": document["clicksNumber"]}
    for element in document["metrics"]:
        for category, values in element.items():
            found[category] = values["property"]
    return found


def test_a_visit_leads_to_the_long_url_and_counts(served: Served) -> None:
    path = shorten(served, is_premium="true")
    response = served.send(
        SandboxRequest("GET", path, headers={"user-agent": ANDROID, "x-country": "co", "accept-language": "es-CO,en"})
    )
    assert (response.status, response.body) == (302, b"")
    assert response.headers["location"] == "https://shop.example/ni%C3%B1o?a=1&b=%C3%B1#top"
    assert statistics(served) == {
        "clicks": 1,
        "date": "2026-11-21",
        "hour": "12",
        "country": "CO",
        "device": "mobile",
        "operatingSystem": "Android",
        "brand": "Samsung",
        "model": "SM-A546E",
        "browser": "Chrome",
        "lang": "es",
        "region": "unknown",
        "city": "unknown",
    }


def test_an_unknown_alias_is_404_and_posting_to_one_405(served: Served) -> None:
    assert served.send(SandboxRequest("GET", "/u/nothing")).status == 404
    assert served.send(SandboxRequest("POST", shorten(served))).status == 405


@pytest.mark.parametrize(
    ("agent", "device", "system", "browser", "brand", "model"),
    [
        (ANDROID, "mobile", "Android", "Chrome", "Samsung", "SM-A546E"),
        (IPHONE, "mobile", "iOS", "Mobile Safari", "Apple", "iPhone"),
        (IPAD, "tablet", "iOS", "Mobile Safari", "Apple", "iPad"),
        (EDGE, "desktop", "Windows", "Edge", "unknown", "unknown"),
        (FIREFOX, "desktop", "Linux", "Firefox", "unknown", "unknown"),
        (HIDDEN, "mobile", "Android", "Chrome", "unknown", "unknown"),
        (TABLET, "tablet", "Android", "Chrome", "Google", "Pixel Tablet"),
        ("curl/8.5.0", "unknown", "unknown", "curl", "unknown", "unknown"),
        ("Python-urllib/3.11", "unknown", "unknown", "Python-urllib", "unknown", "unknown"),
        ("Java/17.0.1", "unknown", "unknown", "Java", "unknown", "unknown"),
        ("", "unknown", "unknown", "unknown", "unknown", "unknown"),
    ],
)
def test_the_device_comes_from_the_user_agent(
    agent: str, device: str, system: str, browser: str, brand: str, model: str
) -> None:
    made = visitor_of({"user-agent": agent})
    expected = {"device": device, "operating_system": system, "browser": browser, "brand": brand, "model": model}
    assert made == {name: value for name, value in expected.items() if value != "unknown"}


def test_without_the_parser_a_user_agent_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ua_parser", None)
    made = visitor_of({"user-agent": ANDROID, "x-country": "CO"})
    assert made == {"country": "CO"}


def test_bots_are_not_counted(served: Served) -> None:
    path = shorten(served)
    for agent in ("WhatsApp/2.23.20.0", "facebookexternalhit/1.1", ANDROID):
        assert served.send(SandboxRequest("GET", path, headers={"user-agent": agent})).status == 302
    assert statistics(served)["clicks"] == 1
    (url,) = json.loads(served.send(SandboxRequest("GET", "/sandbox/overview")).body)["urls"]
    assert (url["clicks"], url["bots"]) == (1, 2)
