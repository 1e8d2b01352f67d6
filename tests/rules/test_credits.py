"""Credits of responses are exact, and their shares add up."""

from __future__ import annotations

import pytest

from msgctl.credits import as_credits, millionths, share


@pytest.mark.parametrize(
    ("credits", "expected"),
    [
        ("0", 0),
        ("9", 9_000_000),
        ("10", 10_000_000),
        ("1.5", 1_500_000),
        ("0.5", 500_000),
        ("0.1", 100_000),
        ("1E-6", 1),
        ("999999.999999", 999_999_999_999),
        ("1000000", None),
        ("-1", None),
        ("-0.5", None),
        ("NaN", None),
        ("Infinity", None),
        ("x", None),
        (":", None),
        ("/", None),
        ("", None),
        (None, None),
    ],
)
def test_credits_are_from_0_to_a_million(credits: str | None, expected: int | None) -> None:
    assert millionths(credits) == expected


@pytest.mark.parametrize(
    ("credits", "shares"),
    [
        (None, [None, None]),
        (0, [0, 0]),
        (3_000_000, [2_000_000, 1_000_000]),
        (5_000_000, [2_000_000, 2_000_000, 1_000_000]),
        (1_000_000, [1_000_000, 0, 0]),
        (1_500_000, [750_000, 750_000]),
        (1_500_001, [750_001, 750_000]),
    ],
)
def test_whole_credits_are_divided_into_whole_credits(credits: int | None, shares: list[int | None]) -> None:
    assert [share(credits, len(shares), place) for place in range(len(shares))] == shares


def test_stored_credits_are_whole_numbers_if_they_can_be() -> None:
    assert [repr(as_credits(amount)) for amount in (None, 0, 2_000_000, 1_500_000, 1)] == [
        "None", "0", "2", "1.5", "1e-06",
    ]  # fmt: skip
