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
        assert error == "ALREADY_TAKEN"
        assert msg.startswith(f"{taken}:")


def test_a_click_has_the_given_fields(world: World) -> None:
    shorten(world, is_premium="true")
    visitor = {
        "country": "FR",
        "region": "Bretagne",
        "city": "Brest",
        "device": "tablet",
        "brand": "Acme",
        "model": "One",
        "operating_system": "AcmeOS",
        "browser": "Lynx",
        "lang": "br",
    }
    world.click("sale", 3, **visitor)  # type: ignore[arg-type]

    assert statistic(world)["metrics"] == [
        {"date": {"property": "2026-11-21", "clicks": 3}},
        {"hour": {"property": "12", "clicks": 3, "date": "2026-11-21"}},
        {"country": {"property": "FR", "clicks": 3}},
        {"region": {"property": "Bretagne", "clicks": 3}},
        {
            "city": {
                "property": "Brest",
                "clicks": 3,
                "countryIsoCode": "FR",
                "region": "Bretagne",
                "percent": 100.0,
            }
        },
        {"device": {"property": "tablet", "clicks": 3}},
        {"brand": {"property": "Acme", "clicks": 3, "percent": 100.0}},
        {"model": {"property": "One", "clicks": 3, "percent": 100.0}},
        {"operatingSystem": {"property": "AcmeOS", "clicks": 3}},
        {"browser": {"property": "Lynx", "clicks": 3}},
        {"lang": {"property": "br", "clicks": 3}},
    ]


def test_percent_is_of_all_clicks_of_the_range_with_one_decimal(world: World) -> None:
    shorten(world, is_premium="true")
    world.click("sale", 2, brand="Big")
    world.click("sale", 1, brand="Small")
    world.click("sale", 9, brand="Old", at=NOON - DAY)

    brands = [metric["brand"] for metric in statistic(world, category="brand")["metrics"]]

    assert brands == [
        {"property": "Big", "clicks": 2, "percent": 66.7},
        {"property": "Small", "clicks": 1, "percent": 33.3},
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
        ("sale", {"days": 0}),
        ("sale", {"country": "FRA"}),
        ("sale", {"city": "\udcff"}),
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
