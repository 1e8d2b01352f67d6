"""Numbers, times and shares in tables."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from msgctl.jsontext import Number
from msgctl.output.tables import (
    GAP,
    MIN_FOLDED,
    MIN_TEXT,
    Column,
    _fitting,
    day_and_time,
    kind_of_field,
    local_time,
    number,
    percentage,
    time_ago,
)

BOGOTA = timezone(timedelta(hours=-5), "Bogotá")
NOW = datetime(2026, 9, 21, 14, 13, 20, tzinfo=UTC)


@pytest.mark.parametrize(
    ("stamp", "shown", "age"),
    [
        ("2026-09-21T14:13:20Z", "09:13:20", "now"),
        ("2026-09-21T14:13:19Z", "09:13:19", "1 s ago"),
        ("2026-09-21T14:12:21Z", "09:12:21", "59 s ago"),
        ("2026-09-21T14:12:20Z", "09:12:20", "1 min ago"),
        ("2026-09-21T13:13:21Z", "08:13:21", "59 min ago"),
        ("2026-09-21T13:13:20Z", "08:13:20", "1 h ago"),
        ("2026-09-21T05:00:00Z", "00:00:00", "9 h ago"),
        ("2026-09-21T04:59:59Z", "20 Sep 23:59", "9 h ago"),
        ("2026-09-19T14:13:20+00:00", "19 Sep 09:13", "2 d ago"),
        ("2026-01-01T05:00:00Z", "1 Jan 00:00", "263 d ago"),
        ("2026-01-01T04:59:59Z", "2025-12-31", "263 d ago"),
        ("2026-09-21T14:13:21Z", "09:13:21", ""),
        ("2026-09-21T14:13:20", "2026-09-21T14:13:20", ""),
        ("yesterday", "yesterday", ""),
    ],
)
def test_a_time_is_shown_in_the_time_zone_of_the_reader(stamp: str, shown: str, age: str) -> None:
    now = NOW.astimezone(BOGOTA)
    assert (local_time(stamp, now), time_ago(stamp, now)) == (shown, age)


def test_a_time_of_a_job_has_its_day_and_its_zone() -> None:
    now = NOW.astimezone(BOGOTA)
    assert day_and_time(NOW.timestamp(), now) == "Mon 21 Sep 09:13 Bogotá"
    assert day_and_time(datetime(2027, 1, 1, 4, 59, tzinfo=UTC).timestamp(), now) == "Thu 31 Dec 23:59 Bogotá"
    assert day_and_time(datetime(2027, 1, 1, 5, tzinfo=UTC).timestamp(), now) == "Fri 1 Jan 2027 00:00 Bogotá"


def test_a_share_is_0_only_for_none_and_100_only_for_all() -> None:
    shares = [percentage(part, 1000) for part in (0, 1, 9, 10, 15, 16, 994, 996, 999, 1000)]
    assert shares == ["0%", "<1%", "<1%", "1%", "2%", "2%", "99%", "99%", "99%", "100%"]


def test_only_a_whole_number_has_separators() -> None:
    largest, larger = "9" * 15, "9" * 16
    texts = (
        ("1000", "1,000"), ("0", "0"), (largest, "999,999,999,999,999"), (larger, larger), ("-1000", "-1000"),
        ("1000.5", "1000.5"), ("٣٣٣٣", "٣٣٣٣"), ("", ""),
    )  # fmt: skip
    assert [number(text) for text, _ in texts] == [shown for _, shown in texts]


def test_a_field_is_a_number_if_all_its_values_are_short_whole_numbers() -> None:
    assert kind_of_field("x", 1, Number("12345678"), None, "") == "number"
    for value in (Number("123456789"), "7", True, 1.5):
        assert kind_of_field("x", 1, value) == "plain"
    assert kind_of_field("x", None, "") == "plain"


PHONE, ID, TEXT = Column("phone"), Column("id", drop_order=1), Column("sms", kind="text")
WHOLE = 12 + GAP + 16 + GAP + MIN_TEXT


@pytest.mark.parametrize(
    ("width", "phone", "id_", "text"),
    [
        (WHOLE + 70, 12, 16, 100),
        (WHOLE + 69, 12, 16, 99),
        (WHOLE, 12, 16, MIN_TEXT),
        (WHOLE - 1, 12, None, MIN_TEXT + GAP + 16 - 1),
        (12 + GAP + MIN_FOLDED, 12, None, MIN_FOLDED),
        (11 + GAP + MIN_FOLDED, 11, None, MIN_FOLDED),
        (2 + GAP, 1, None, 1),
        (1, 1, None, 1),
    ],
)
def test_a_table_loses_optional_columns_before_its_text_is_narrow(
    width: int, phone: int, id_: int | None, text: int
) -> None:
    widths = _fitting({PHONE: 12, ID: 16, TEXT: 100}, width)
    assert (widths[PHONE], widths.get(ID), widths[TEXT]) == (phone, id_, text)
