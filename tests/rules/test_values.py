"""Any typed text becomes a value for a request, or a usage error that can be shown."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgctl import operations, values
from msgctl.cli.options.send import once_key
from msgctl.config.urls import account, without_password
from msgctl.errors import ConfigurationError, UsageError
from msgctl.text import in_seconds, some_of

TODAY = date(2026, 9, 21)
VOICE = operations.SEND_CALL.field("voice")
RETRIES = operations.SEND_CALL.field("retries")

digits = st.text(st.sampled_from("0123456789"), min_size=5, max_size=15)
hostile = st.text(st.characters()) | st.text(st.sampled_from("0123456789+-,. dT:/@[]%\x00\x1b\n\x9b\u202e٣ßK\udcff"))

EVERY: list[Callable[[str], Any]] = [
    lambda text: values.choice(text, VOICE.choices, "voice"),
    lambda text: values.of(text, RETRIES),
    lambda text: values.whole_number(text, "--min"),
    lambda text: values.seconds(text, "--timeout"),
    lambda text: values.day(text, TODAY),
    values.country_code,
    values.long_url,
    lambda text: values.short_text(text, "--name"),
    values.prose,
]


@given(text=hostile)
def test_any_text_becomes_a_value_or_an_error_that_can_be_shown(text: str) -> None:
    for convert in EVERY:
        try:
            convert(text)
        except UsageError as error:
            printed = f"{error.message} {error.hint}"
            printed.encode()  # no lone surrogates
            assert not re.search(r"[\x00-\x1f\x7f-\x9f\u202e]", printed)
            assert len(printed) < 500


# --- dates ---


@given(today=st.dates(), days=st.integers(0, 999_999))
def test_a_date_is_a_day_or_a_number_of_days_ago(today: date, days: int) -> None:
    assert values.day(today.isoformat(), TODAY) == today
    if days < today.toordinal():
        assert values.day(f"{days}d", today) == today - timedelta(days=days)
    else:
        with pytest.raises(UsageError, match="does not exist"):
            values.day(f"{days}d", today)


@given(first=st.dates(), last=st.dates())
def test_the_first_day_is_not_after_the_last(first: date, last: date) -> None:
    if first <= last:
        assert values.last_day(first, last, TODAY) == last
    else:
        with pytest.raises(UsageError, match="after"):
            values.last_day(first, last, TODAY)


# --- numbers ---


@given(number=st.integers(0, 10**19 - 1), least=st.integers(0, 10), most=st.none() | st.integers(10, 1000))
def test_a_whole_number_is_accepted_within_its_limits(number: int, least: int, most: int | None) -> None:
    if least <= number and (most is None or number <= most):
        assert values.whole_number(str(number), "--min", least, most) == number
    else:
        with pytest.raises(UsageError, match=r"^--min must be (a whole number, |from )[\d,]+ "):
            values.whole_number(str(number), "--min", least, most)


def test_every_spelling_of_a_base_url_is_the_same_account() -> None:
    for spelling in ("HTTPS://Api.Example:443/v1", "https://api.example/./old/../v1/"):
        assert account(spelling, 1) == account("https://api.example/v1", 1)
    for other in (
        "https://api.example/V1",
        "http://api.example/v1",
        "https://api.example:444/v1",
        "https://api.example:80/v1",
    ):
        assert account(other, 1) != account("https://api.example/v1", 1)
    assert account("http://[0:0:0:0:0:0:0:1]:80/v1", 1) == "http://[::1]/v1 1"
    assert account("https://api.example:444/v1", 1) == "https://api.example:444/v1 1"


# --- refusals ---


@pytest.mark.parametrize(
    ("typed", "problem"),
    [
        ("\ud800", "is not valid UTF-8 text at position 1"),
        ("a\udfff", "is not valid UTF-8 text at position 2"),
        ("a\x7f", "control character U+007F at position 2"),
        ("a\x9f", "control character U+009F at position 2"),
        ("x" * 65_537, "is 65,537 bytes long; the maximum is 65,536"),
    ],
    ids=range(5),
)
def test_the_error_for_a_message_that_cannot_be_sent_has_the_reason(typed: str, problem: str) -> None:
    with pytest.raises(UsageError, match=re.escape(problem)):
        values.prose(typed)
    with pytest.raises(UsageError):
        values.short_text(typed.replace("xx", "\t"), "--name")


def test_a_comment_in_the_table_of_countries_is_not_a_code() -> None:
    with pytest.raises(UsageError):
        values.country_code("#")


def test_a_store_is_named_without_its_password() -> None:
    url = "postgresql://bob:secret@db.example/msgctl?password=secret&sslmode=require"
    assert without_password(url) == "postgresql://bob@db.example/msgctl?sslmode=require"


def test_a_list_has_at_most_a_number_of_names() -> None:
    assert some_of(["a", "b"], 2) == "a, b"
    assert some_of(["a", "b", "c"], 2) == "a, b and 1 more"


def test_the_longest_url_key_and_message_are_accepted() -> None:
    url = "https://a.example/".ljust(8192, "x")
    assert values.long_url(url) == url
    assert values.long_url("http://a.example") == "http://a.example"
    with pytest.raises(UsageError, match="longer than 8192 characters"):
        values.long_url(url + "x")
    assert once_key("k" * 200)
    with pytest.raises(UsageError, match="1 to 200 characters"):
        once_key("k" * 201)
    assert values.prose("é" * 32768)


def test_a_zone_that_does_not_exist_is_a_configuration_error() -> None:
    for name in ("America/Bogotá", "../etc/passwd", "", "Mars"):
        with pytest.raises(ConfigurationError):
            values.zone_of(name)


def test_a_time_has_its_unit() -> None:
    assert [in_seconds(1), in_seconds(0.25), in_seconds(1.99989)] == ["1 second", "0.25 seconds", "2 seconds"]
