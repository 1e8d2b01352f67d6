"""Dates as people write them, and the days that reach the wire."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from cli.typed import refused, used
from support.service import Service
from support.tool import Tool

STATS = ("url", "stats", "offers")
ALLOWED = ("YYYY-MM-DD", "today", "yesterday", "7d")


@pytest.fixture(autouse=True)
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The time zone of the test; UTC unless it sets another."""
    with monkeypatch.context() as patch:
        _set_zone(patch, "UTC0")
        yield patch
    time.tzset()


def _set_zone(patch: pytest.MonkeyPatch, name: str) -> None:
    patch.setenv("TZ", name)
    time.tzset()


def at(tool: Tool, moment: str) -> Tool:
    """The tool at a moment of universal time."""
    tool.clock.now = datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp()
    return tool


def sent(tool: Tool, service: Service, *options: str) -> tuple[str, str]:
    form = used(tool, service, *STATS, *options)
    return form["since"], form["until"]


@pytest.mark.parametrize(
    ("typed", "day"),
    [
        ("2026-03-01", "2026-03-01"),
        ("2024-02-29", "2024-02-29"),
        ("2000-02-29", "2000-02-29"),
        ("0001-01-01", "0001-01-01"),
        ("today", "2026-03-01"),
        ("Today", "2026-03-01"),
        ("yesterday", "2026-02-28"),
        ("YESTERDAY", "2026-02-28"),
        ("0d", "2026-03-01"),
        ("1d", "2026-02-28"),
        ("7d", "2026-02-22"),
        ("365d", "2025-03-01"),
        ("10000d", "1998-10-14"),
    ],
)
def test_a_day_reaches_the_wire_as_the_interface_writes_it(typed: str, day: str, tool: Tool, service: Service) -> None:
    assert sent(at(tool, "2026-03-01T12:00"), service, "--since", typed)[0] == day
    assert sent(tool, service, "--since", "0001-01-01", "--until", typed)[1] == day


def test_until_left_out_is_today(tool: Tool, service: Service) -> None:
    assert sent(at(tool, "2026-03-01T12:00"), service, "--since", "7d") == ("2026-02-22", "2026-03-01")


def test_yesterday_knows_leap_years(tool: Tool, service: Service) -> None:
    assert sent(at(tool, "2028-03-01T00:00"), service, "--since", "yesterday") == ("2028-02-29", "2028-03-01")


def test_one_day_is_a_range(tool: Tool, service: Service) -> None:
    assert sent(at(tool, "2026-03-01T00:00"), service, "--since", "today") == ("2026-03-01", "2026-03-01")


@pytest.mark.parametrize(("name", "today"), [("UTC0", "2026-12-31"), ("JST-9", "2027-01-01"), ("COT5", "2026-12-31")])
def test_today_is_the_day_where_the_person_is(
    name: str, today: str, zone: pytest.MonkeyPatch, tool: Tool, service: Service
) -> None:
    _set_zone(zone, name)
    assert sent(at(tool, "2026-12-31T20:00"), service, "--since", "2026-01-01")[1] == today


@pytest.mark.parametrize("option", ["--since", "--until"])
@pytest.mark.parametrize("typed", ["2026-02-30", "2026-13-01", "2026-00-10", "2026-01-00", "2025-02-29", "0000-01-01"])
def test_a_date_that_does_not_exist_is_refused(option: str, typed: str, tool: Tool, service: Service) -> None:
    options = ("--since", "2020-01-01", option, typed)
    refused(tool, service, *STATS, *options, names=(f"'{typed}'", "not a date that exists", "YYYY-MM-DD"))


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        (text, f"'{text}'")
        for text in (
            *("", " ", "tomorrow", "now", "last week", "20260101", "2026-1-1", "26-01-01", "01/02/2026", "2026/01/02"),
            *("2026-01-01T00:00", "2026-01-01 ", "+2026-01-01", "7", "d", "-7d", "7 d", "7days", "1.5d", "٧d", "７d"),
            *("２０２６-０１-０１", "2026‑01‑01", "yeſterday", "9999999d"),
        )
    ]
    + [("2026-01-01\n", r"'2026-01-01\n'"), ("today\x00", r"'today\x00'"), ("\udcfftoday", r"'\udcfftoday'")],
    ids=ascii,
)
@pytest.mark.parametrize("option", ["--since", "--until"])
def test_what_is_no_date_is_refused(option: str, typed: str, shown: str, tool: Tool, service: Service) -> None:
    refused(tool, service, *STATS, "--since", "2020-01-01", f"{option}={typed}", names=(shown, *ALLOWED))


def test_more_days_than_there_have_been_are_refused(tool: Tool, service: Service) -> None:
    refused(tool, service, *STATS, "--since", "999999d", names=("'999999d'", "YYYY-MM-DD"))


def test_since_after_until_is_refused(tool: Tool, service: Service) -> None:
    options = ("--since", "2026-02-01", "--until", "2026-01-31")
    refused(tool, service, *STATS, *options, names=("--since", "2026-02-01", "after", "--until", "2026-01-31"))


def test_since_in_the_future_is_after_the_until_that_was_left_out(tool: Tool, service: Service) -> None:
    at(tool, "2026-03-01T12:00")
    refused(tool, service, *STATS, "--since", "2026-03-02", names=("2026-03-02", "after", "today", "2026-03-01"))


def test_since_is_needed(tool: Tool, service: Service) -> None:
    refused(tool, service, *STATS, names=("--since",))
