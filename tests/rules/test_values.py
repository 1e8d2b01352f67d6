"""Any typed text becomes a value for a request, or a usage error that can be shown."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgctl import operations, values
from msgctl.cli.options.send import once_key
from msgctl.errors import ConfigurationError, UsageError

TODAY = date(2026, 9, 21)
VOICE = operations.SEND_CALL.field("voice")
RETRIES = operations.SEND_CALL.field("retries")

digits = st.text(st.sampled_from("0123456789"), min_size=5, max_size=15)
hostile = st.text(st.characters()) | st.text(st.sampled_from("0123456789+-,. dT:/@[]%\x00\x1b\n\x9b\u202e٣ßK\udcff"))

EVERY: list[Callable[[str], Any]] = [
    lambda text: values.choice(text, VOICE.choices, "voice"),
    lambda text: values.of_field(text, RETRIES),
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


# --- refusals ---


DIGITS = "9" * 19
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: values.prose("\ud800"), 'The message is not valid UTF-8 text at position 1: "\\ud800"'),
    (lambda: values.prose("é\udfff"), 'The message is not valid UTF-8 text at position 3: "é\\udfff"'),
    (lambda: values.prose("a\udbff"), 'The message is not valid UTF-8 text at position 2: "a\\udbff"'),
    (lambda: values.prose("a\x7f"), 'The message contains the control character U+007F at position 2: "a\\x7f"'),
    (lambda: values.prose("a\x9f"), 'The message contains the control character U+009F at position 2: "a\\x9f"'),
    (lambda: values.prose("\x1fa"), 'The message contains the control character U+001F at position 1: "\\x1fa"'),
    (lambda: values.prose("x" * 65_537), "The message is 65,537 bytes long; the maximum is 65,536"),
    (lambda: values.prose(" \n"), "The message is empty"),
    (lambda: values.short_text(" ", "--name"), "--name is empty"),
    (lambda: values.short_text("\t.", "--n"), '--n contains the control character U+0009 at position 1: "\\t."'),
    (lambda: values.whole_number("x", "--min"), '--min must be a whole number, 0 or more, not "x"'),
    (lambda: values.whole_number("4", "--min", 5), '--min must be a whole number, 5 or more, not "4"'),
    (lambda: values.whole_number("4", "--to", 1, 3), '--to must be from 1 to 3, not "4"'),
    (lambda: values.whole_number("x", "--to", 1, 3), '--to must be a whole number from 1 to 3, not "x"'),
    (lambda: values.whole_number("-" * 19, "--min"), f'--min must be a whole number, 0 or more, not "{"-" * 19}"'),
    (
        lambda: values.whole_number(DIGITS + "0", "--min"),
        f'--min must be a whole number, 0 or more (at most 19 digits), not "{DIGITS}0"',
    ),
    (lambda: values.client("x"), '--client must be a client ID, such as 12345, not "x"'),
    (lambda: values.client(str(2**63)), f'--client must be a client ID, such as 12345, not "{2**63}"'),
    (lambda: values.seconds("0", "--t"), '--t must be more than 0 and at most 3,600 seconds, not "0"'),
    (lambda: values.seconds("3600.01", "--t"), '--t must be more than 0 and at most 3,600 seconds, not "3600.01"'),
    (lambda: values.seconds("1_0", "--t", 60), '--t must be more than 0 and at most 60 seconds, not "1_0"'),
    (lambda: values.decimal("0.09", "--r", 0.1, 9), '--r must be from 0.1 to 9, not "0.09"'),
    (lambda: values.decimal("9.01", "--r", 0.1, 9), '--r must be from 0.1 to 9, not "9.01"'),
    (lambda: values.decimal("1e", "--r", 0.1, 9), '--r must be from 0.1 to 9, not "1e"'),
    (lambda: values.day("2026-02-30", TODAY), 'The date "2026-02-30" does not exist'),
    (
        lambda: values.day("tomorrow", TODAY),
        '"tomorrow" is not a date: use YYYY-MM-DD, today, yesterday, or 7d for seven days ago',
    ),
    (
        lambda: values.last_day(TODAY + timedelta(1), None, TODAY),
        "--since 2026-09-22 is after today (2026-09-21)",
    ),
    (
        lambda: values.last_day(TODAY, date(2026, 9, 20), TODAY),
        "--since 2026-09-21 is after --until 2026-09-20",
    ),
    (lambda: values.country_code("XX"), '"XX" is not a country code: use a two-letter code of ISO 3166-1'),
    (lambda: values.country_code("ß"), '"ß" is not a country code: use a two-letter code of ISO 3166-1'),
    (lambda: values.country_code("#"), '"#" is not a country code: use a two-letter code of ISO 3166-1'),
    (lambda: values.long_url("https://a.example/\u202e"), 'The URL "https://a.example/\\u202e" contains a space or a '
     "control character"),
    (lambda: values.long_url("https://a.example/ b"), 'The URL "https://a.example/ b" contains a space or a control '
     "character"),
    *(
        (partial(values.long_url, url), f'"{url}" is not an absolute http or https URL')
        for url in ("a.example", "ftp://a.example", "https://", "https:///x", "https://a.example:0", "https://a|b/",
                    "https://[a/")
    ),
    (lambda: values.choice("nobody", VOICE.choices, "voice"), f'Unknown voice "nobody": choose from '
     f"{', '.join(VOICE.choices)}"),
]  # fmt: skip


@pytest.mark.parametrize(("convert", "problem"), REFUSED, ids=range(len(REFUSED)))
def test_the_error_for_a_value_has_the_value_and_what_is_allowed(convert: Callable[[], Any], problem: str) -> None:
    with pytest.raises(UsageError) as caught:
        convert()
    assert caught.value.message == problem


def test_a_value_at_its_limit_is_accepted() -> None:
    assert values.whole_number(DIGITS, "--min") == 10**19 - 1
    assert [values.client("0"), values.client(str(2**63 - 1))] == [0, 2**63 - 1]
    assert [values.seconds(text, "--t") for text in ("1e-3", "3600")] == [0.001, 3600]
    assert [values.decimal(text, "--r", 0.5, 9) for text in ("0.5", "9")] == [0.5, 9]
    assert [values.day(text, TODAY).isoformat() for text in ("Today", "YESTERDAY", "0d", "7d")] == [
        "2026-09-21", "2026-09-20", "2026-09-21", "2026-09-14",
    ]  # fmt: skip
    assert [values.of_field("3", RETRIES), values.of_field(" a ", VOICE)] == ["3", " a "]
    assert values.country_code("co") == "CO"
    assert values.prose("a\tb\r\n\u200dc") == "a\tb\r\n\u200dc"
    assert values.quote("x" * 60) == f'"{"x" * 60}"'
    assert values.quote("x" * 61) == f'"{"x" * 59}…"'


def test_a_choice_is_found_in_any_case_and_a_similar_one_is_suggested() -> None:
    assert values.choice("MARIANA", VOICE.choices, "voice") == "Marian"
    assert values.choice(VOICE.choices[1].upper(), VOICE.choices, "voice") == VOICE.choices[1]
    with pytest.raises(UsageError) as caught:
        values.choice("mariam", VOICE.choices, "voice")
    assert caught.value.hint == "Did you mean Marian?"


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
