"""Short URLs: names, aliases, redirects, and the visits to them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from msgctl.sandbox.protocol import SandboxRequest

from .world import NOON, Served, World, record, refusal

LONG = "https://shop.example/niño?a=1&b=%C3%B1#top"
DAY = 24 * 60 * 60
PLAIN = {"date", "hour", "country", "device", "operatingSystem"}
PREMIUM = PLAIN | {"region", "city", "brand", "model", "browser", "lang"}


def shorten(world: World, name: str = "sale", **more: str) -> str:
    return str(record(world.post("/url/short", name=name, url_long=LONG, **more))["urlShort"])


def statistic(world: World, since: str = "2026-11-21", until: str = "2026-11-21", **more: str) -> Any:
    return record(world.post("/url/short-statistic", name_url="sale", since=since, until=until, **more))


def counted(document: Any, category: str) -> dict[str, int]:
    return {
        metric[category]["property"]: metric[category]["clicks"] for metric in document["metrics"] if category in metric
    }


def click(world: World, count: int = 1, *, at: float | None = None, **more: str) -> None:
    """Visit the short URL, now or at a given time."""
    now, world.now = world.now, world.now if at is None else at
    record(world.change("click", name="sale", count=count, **more))
    world.now = now


def test_a_short_url_has_a_random_alias_unless_one_is_given(world: World) -> None:
    first, second = shorten(world), shorten(world, "other")
    assert first.startswith("https://sandbox.invalid/u/")
    assert (len(first), first != second) == (len("https://sandbox.invalid/u/") + 7, True)
    assert shorten(world, "a", alias="Black_Friday-26") == "https://sandbox.invalid/u/Black_Friday-26"
    assert shorten(world, "b", alias="x", domain_name="go.example") == "https://go.example/x"


@pytest.mark.parametrize(("taken", "more"), [("name", {"name": "sale"}), ("alias", {"name": "other", "alias": "a"})])
def test_names_and_aliases_are_unique(world: World, taken: str, more: dict[str, str]) -> None:
    shorten(world, alias="a")
    error, msg = refusal(world.post("/url/short", url_long=LONG, **more))
    assert (error, msg.split(":")[0]) == ("INVALID_NAME", taken)


def test_a_visit_leads_to_the_long_url_and_counts(world: World, served: Served) -> None:
    path = "/u/" + shorten(world).rpartition("/")[2]
    headers = {"user-agent": "Mozilla/5.0 (Linux; Android 13; SM-A546E)", "accept-language": "es-CO"}
    response = served.send(SandboxRequest("GET", path, headers=headers))
    assert (response.status, response.body) == (302, b"")
    assert response.headers["location"] == "https://shop.example/ni%C3%B1o?a=1&b=%C3%B1#top"
    for _ in range(2):
        served.send(SandboxRequest("HEAD", path))  # this does not count as a visit
    statistics = statistic(world)
    assert statistics["clicksNumber"] == 1
    for category in ("country", "device", "operatingSystem"):
        assert counted(statistics, category) == {"unknown": 1}
    assert served.send(SandboxRequest("GET", "/u/nothing")).status == 404
    assert served.send(SandboxRequest("POST", path)).status == 405


def test_a_click_has_the_given_country_and_invented_values(world: World) -> None:
    shorten(world, is_premium="true")
    click(world, 3, country="mx")
    statistics = statistic(world)
    assert {name for metric in statistics["metrics"] for name in metric} == PREMIUM
    assert counted(statistics, "country") == {"MX": 3}
    assert counted(statistics, "city") == {"Ciudad de México": 3}
    assert counted(statistics, "hour") == {"12": 3}
    assert sum(counted(statistics, "brand").values()) == 3
    assert "unknown" not in str(statistics)
    click(world, country="FR")  # this click has no invented region and city
    assert counted(statistic(world), "city") == {"Ciudad de México": 3, "unknown": 1}


def test_percent_is_of_all_clicks_of_the_range_with_one_decimal(world: World) -> None:
    shorten(world, is_premium="true")
    click(world, 2, country="MX")
    click(world, 1, country="BR")
    click(world, 9, country="US", at=NOON - DAY)
    cities = [metric["city"] for metric in statistic(world, category="city")["metrics"]]
    shares = [(city["countryIsoCode"], city["clicks"], city["percent"]) for city in cities]
    assert shares == [("MX", 2, 66.7), ("BR", 1, 33.3)]


def test_since_is_not_after_until(world: World) -> None:
    shorten(world)
    days = {"since": "2026-11-22", "until": "2026-11-21"}
    error, msg = refusal(world.post("/url/short-statistic", name_url="sale", **days))
    assert (error, msg) == (
        "INVALID_PARAMETER",
        "since must not be later than until (2026-11-22 is later than 2026-11-21)",
    )


def test_since_and_until_are_included(world: World) -> None:
    shorten(world)
    midnight = NOON - DAY / 2
    for at in (midnight - DAY, midnight - 1, midnight, midnight + DAY - 1, midnight + DAY):
        click(world, at=at)
    dates = counted(statistic(world, since="2026-11-20"), "date")
    assert [*dates.items()] == [("2026-11-20", 2), ("2026-11-21", 2)]
    today = statistic(world)
    assert (today["clicksNumber"], counted(today, "hour")) == (2, {"00": 1, "23": 1})


def test_clicks_are_counted_by_the_days_of_this_machines_calendar(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "WEST13")  # 13 hours behind UTC, where noon of the 21st is still the 20th
    time.tzset()
    shorten(world)
    click(world)
    assert statistic(world, since="2026-11-20", until="2026-11-20")["clicksNumber"] == 1


@pytest.mark.parametrize(
    "fields", [{"name": "nope"}, {"name": "sale\udcff"}, {"count": 0}, {"count": 10**9}, {"country": "FRA"}]
)
def test_invalid_clicks_are_refused(world: World, fields: dict[str, object]) -> None:
    shorten(world)
    assert world.change("click", **{"name": "sale", **fields}).status == 400
    assert statistic(world)["clicksNumber"] == 0
