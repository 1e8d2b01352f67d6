"""Short URLs: names, aliases, and the clicks on them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from msgctl.errors import UsageError

from .clocked_emulator import NOON, World, record, refusal

LONG = "https://shop.example/sale?utm=sms#top"
DAY = 24 * 60 * 60
PLAIN = {"date", "hour", "country", "device", "operatingSystem"}
PREMIUM = PLAIN | {"region", "city", "brand", "model", "browser", "lang"}


def shorten(world: World, name: str = "sale", **more: str) -> Any:
    return record(world.post("/url/short", name=name, url_long=LONG, **more))


def statistic(world: World, since: str = "2026-11-21", until: str = "2026-11-21", **more: str) -> Any:
    return record(world.post("/url/short-statistic", name_url="sale", since=since, until=until, **more))


def counted(document: Any, category: str) -> dict[str, int]:
    return {
        metric[category]["property"]: metric[category]["clicks"] for metric in document["metrics"] if category in metric
    }


def test_a_short_url_has_a_random_alias_under_the_origin(world: World) -> None:
    first, second = shorten(world), shorten(world, "other")

    assert first["urlLong"] == LONG
    assert first["urlShort"].startswith("https://sandbox.invalid/u/")
    assert len(first["urlShort"].removeprefix("https://sandbox.invalid/u/")) == 7
    assert first["urlShort"] != second["urlShort"]
    assert first["msg"]


def test_an_alias_and_a_domain_are_used(world: World) -> None:
    assert shorten(world, alias="Black_Friday-26")["urlShort"] == "https://sandbox.invalid/u/Black_Friday-26"
    assert shorten(world, "b", alias="x", domain_name="go.example")["urlShort"] == "https://go.example/x"


def test_names_and_aliases_are_unique(world: World) -> None:
    shorten(world, alias="a")

    for taken, more in (("name", {"name": "sale"}), ("alias", {"name": "other", "alias": "a"})):
        error, msg = refusal(world.post("/url/short", url_long=LONG, **more))
        assert error == "INVALID_NAME"
        assert msg.startswith(f"{taken}:")


def test_a_click_has_the_given_country_and_invented_values(world: World) -> None:
    shorten(world, is_premium="true")
    world.click("sale", 3, country="mx")
    found = statistic(world)
    assert {name for metric in found["metrics"] for name in metric} == PREMIUM
    assert counted(found, "country") == {"MX": 3}
    assert counted(found, "city") == {"Ciudad de México": 3}
    assert counted(found, "hour") == {"12": 3}
    assert sum(counted(found, "brand").values()) == 3
    assert "unknown" not in str(found)


def test_the_place_in_a_country_without_invented_places_is_unknown(world: World) -> None:
    shorten(world, is_premium="true")
    world.click("sale", country="FR")
    assert (counted(statistic(world), "country"), counted(statistic(world), "city")) == ({"FR": 1}, {"unknown": 1})


def test_percent_is_of_all_clicks_of_the_range_with_one_decimal(world: World) -> None:
    shorten(world, is_premium="true")
    world.click("sale", 2, country="MX")
    world.click("sale", 1, country="BR")
    world.click("sale", 9, country="US", at=NOON - DAY)

    cities = [metric["city"] for metric in statistic(world, category="city")["metrics"]]

    assert [(city["countryIsoCode"], city["clicks"], city["percent"]) for city in cities] == [
        ("MX", 2, 66.7),
        ("BR", 1, 33.3),
    ]


def test_since_and_until_are_included(world: World) -> None:
    shorten(world)
    midnight = NOON - DAY / 2
    for at in (midnight - DAY, midnight - 1, midnight, midnight + DAY - 1, midnight + DAY):
        world.click("sale", at=at)

    dates = counted(statistic(world, since="2026-11-20", until="2026-11-21"), "date")
    today = statistic(world)

    assert dates == {"2026-11-20": 2, "2026-11-21": 2}
    assert list(dates) == ["2026-11-20", "2026-11-21"]
    assert today["clicksNumber"] == 2
    assert counted(today, "hour") == {"00": 1, "23": 1}


@pytest.mark.parametrize("category", sorted(PREMIUM - PLAIN))
def test_a_premium_category_of_a_plain_url_is_refused(world: World, category: str) -> None:
    shorten(world)

    error, msg = refusal(
        world.post("/url/short-statistic", name_url="sale", since="2026-11-21", until="2026-11-21", category=category)
    )

    assert error == "NOT_PREMIUM"
    assert msg.startswith("category:")


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("nope", {}),
        ("sale\udcff", {}),
        ("sale", {"count": 0}),
        ("sale", {"count": 10**9}),
        ("sale", {"country": "FRA"}),
    ],
)
def test_clicks_that_cannot_be_made_are_a_usage_error(world: World, name: str, options: dict[str, Any]) -> None:
    shorten(world)

    with pytest.raises(UsageError):
        world.click(name, **options)

    assert statistic(world)["clicksNumber"] == 0


def test_clicks_are_counted_by_the_days_of_this_machines_calendar(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "WEST13")  # 13 hours behind UTC, where noon of the 21st is still the 20th
    time.tzset()
    shorten(world)
    world.click("sale")
    found = record(world.post("/url/short-statistic", name_url="sale", since="2026-11-20", until="2026-11-20"))
    assert found["clicksNumber"] == 1
