"""Statistics that are long, empty, or made to break whoever draws them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgctl.output.cells import width_of
from msgctl.text import is_unsafe
from output.support import clicks, printed, statistics


def shown(*metrics: dict[str, object], width: int | None = 60, total: int = 96) -> str:
    return printed(lambda printer: printer.answer(statistics(*metrics, total=total)), width)


def test_nothing_clicked_is_said() -> None:
    assert shown(total=0).endswith("\n\nno clicks\n")


def test_clicks_without_metrics_are_not_called_no_clicks() -> None:
    assert shown(total=7).endswith("\n\nno metrics in the answer\n")


def test_a_long_category_shows_the_twenty_most_clicked_and_counts_the_rest() -> None:
    lines = shown(*(clicks("browser", f"browser{number:02}", number) for number in range(33))).splitlines()
    assert [line.split()[0] for line in lines[-21:-1]] == [f"browser{number:02}" for number in range(32, 12, -1)]
    assert lines[-1] == "… and 13 more; --json has them all"


def test_a_category_that_the_interface_does_not_know_is_drawn_too() -> None:
    assert "planet\nearth  " in shown(clicks("planet", "earth", 3))


def test_the_smallest_count_is_seen_beside_the_largest_and_zero_is_not() -> None:
    lines = shown(clicks("lang", "es", 10**9), clicks("lang", "en", 1), clicks("lang", "fr", 0)).splitlines()
    assert lines[-2].split() == ["en", "▏", "1"]
    assert lines[-1].split() == ["fr", "0"]


@pytest.mark.parametrize("count", ["many", -4, "-4", 1.5, None, True, 10**400, "٣"])
def test_a_category_with_clicks_that_are_no_count_is_listed_as_it_came(count: object) -> None:
    output = shown(clicks("country", "US", 1), clicks("country", "CO", count), clicks("country", "MX", 9))
    rows = output.split("country\n")[1].splitlines()
    assert [row.split()[0] for row in rows if not row.startswith(" ")] == ["US", "CO", "MX"]
    assert "█" not in output


@pytest.mark.parametrize("day", ["2024-02-30", "soon", "2024-05-01T10:00", "26664-01-01", "", 20240501, None])
def test_dates_that_are_none_become_bars_without_an_order_in_time(day: object) -> None:
    output = shown(clicks("date", "2024-05-01", 1), clicks("date", day, 5))
    assert "peak" not in output
    assert output.splitlines()[-1].startswith("2024-05-01")


@pytest.mark.parametrize(("hour", "day"), [("24", "2024-05-01"), ("9", "never"), ("x", None)])
def test_hours_that_are_none_become_bars(hour: str, day: str | None) -> None:
    assert "peak" not in shown(clicks("hour", "8", 1, date="2024-05-01"), clicks("hour", hour, 2, date=day))


def test_a_run_over_all_the_years_there_are_fits_one_line() -> None:
    output = shown(
        clicks("hour", "00", 1, date="0001-01-01"),
        clicks("hour", "23:00", 2, date="9999-12-31"),
        clicks("date", "0001-01-01", 1),
        clicks("date", "9999-12-31", 2),
    )
    assert "one mark is 60868 days" in output
    assert max(map(width_of, output.splitlines())) <= 60


def test_a_run_without_a_click_says_so() -> None:
    assert "\nno clicks\n" in shown(clicks("date", "2024-05-01", 0), clicks("date", "2024-05-02", 0))


def test_several_statistics_are_drawn_one_after_the_other() -> None:
    both = [statistics(clicks("lang", "es", 3)), statistics(clicks("lang", "fr", 3))]
    output = printed(lambda printer: printer.answers(both), 60)
    assert output.index("es  █") < output.index("\n\nurlShort") < output.index("fr  █")


@pytest.mark.parametrize("percent", ["most", "-1", "1e400", 10**400, "٣", None, ""])
def test_a_percentage_that_is_none_is_left_out(percent: object) -> None:
    assert shown(clicks("brand", "Acme", 3, percent=percent)).endswith("█  3\n")


_texts = st.text(max_size=30) | st.sampled_from(["2024-05-01", "0001-01-01", "9999-12-31", "7", "23"])
_values = _texts | st.none() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans()
_objects = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("property", "clicks", "date", "percent", "region", "countryIsoCode"), _values)
)
_categories = st.sampled_from(["date", "hour", "city", "lang"]) | st.text(max_size=8)


@given(
    metrics=st.lists(st.dictionaries(_categories, _objects, max_size=3), max_size=8),
    width=st.sampled_from([1, 20, 40, 60, None]),
)
def test_whatever_the_metrics_are_the_chart_is_clean_and_no_wider_than_the_terminal(
    metrics: list[dict[str, object]], width: int | None
) -> None:
    lines = shown(*metrics, width=width).split("\n")
    assert not any(is_unsafe(char) for line in lines for char in line)
    if width is not None and width >= 40:
        assert max(map(width_of, lines)) <= width
