"""Visits to short URLs: redirects, and how they are counted."""

from __future__ import annotations

import json

from msgctl.sandbox.protocol import SandboxRequest

from .clocked_emulator import FORM, encoded
from .served import Served

AGENT = "Mozilla/5.0 (Linux; Android 13; SM-A546E Build/TP1A) AppleWebKit/537.36 Chrome/120.0 Mobile Safari/537.36"


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
    path = shorten(served)
    response = served.send(SandboxRequest("GET", path, headers={"user-agent": AGENT, "accept-language": "es-CO"}))
    assert (response.status, response.body) == (302, b"")
    assert response.headers["location"] == "https://shop.example/ni%C3%B1o?a=1&b=%C3%B1#top"
    unknown = dict.fromkeys(("country", "device", "operatingSystem"), "unknown")
    assert statistics(served) == {"clicks": 1, "date": "2026-11-21", "hour": "12", **unknown}
    served.send(SandboxRequest("HEAD", path))
    assert statistics(served)["clicks"] == 1


def test_an_unknown_alias_is_404_and_posting_to_one_405(served: Served) -> None:
    assert served.send(SandboxRequest("GET", "/u/nothing")).status == 404
    assert served.send(SandboxRequest("POST", shorten(served))).status == 405
