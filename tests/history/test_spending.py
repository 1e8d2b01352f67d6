"""The credits that programs spent through `msgctl mcp`."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path

import pytest

from msgctl.errors import ConfigurationError, OutcomeUnknownError, RefusedError, UsageError
from msgctl.history.spending import LimitError, reserved
from msgctl.storage import files

TODAY = date(2026, 11, 22)


def spend(
    key: str, estimate: int, cost: int | None = None, untold: int = 0, *, most: int = 10, day: date = TODAY
) -> None:
    with reserved("a", key, operation="send-sms", estimate=estimate, most=most, day=day) as settle:
        if cost is not None:
            settle(cost, untold)


def test_the_limit_holds_for_a_day() -> None:
    spend("1", 4)
    spend("2", 6, 5)
    spend("3", 1)
    with pytest.raises(LimitError, match=r"it may cost 1 \(10 used today") as caught:
        spend("4", 1)
    assert (caught.value.exit_code, caught.value.nothing_sent) == (6, True)
    assert (caught.value.consequence, "Ask the user" in (caught.value.hint or "")) == ("nothing was sent", True)
    spend("4", 10, day=TODAY + timedelta(days=1))


def test_a_send_gets_the_credits_used_today() -> None:
    for key, charged, used in (("1", 3, 3), ("2", 1, 4)):
        with reserved("a", key, operation="send-sms", estimate=1, most=10, day=TODAY) as settle:
            assert settle(charged, 0) == used


def test_a_higher_price_is_expected_again() -> None:
    spend("1", 2, 3)
    spend("2", 2)
    with pytest.raises(LimitError, match=r"it may cost 5 \(6 used today"):
        spend("3", 3)


def test_a_higher_price_is_expected_of_recipients_without_one_in_the_response() -> None:
    spend("1", 1, 3)
    spend("2", 2, 3, 1)
    with pytest.raises(LimitError, match=r"it may cost 3 \(9 used today"):
        spend("3", 1)


def test_only_what_was_certainly_not_sent_is_given_back() -> None:
    for error in (UsageError("x"), RefusedError("x")):
        with pytest.raises(type(error)), reserved("a", "k", operation="o", estimate=10, most=10, day=TODAY):
            raise error
    with pytest.raises(OutcomeUnknownError), reserved("a", "k", operation="o", estimate=10, most=10, day=TODAY):
        raise OutcomeUnknownError("x")
    with pytest.raises(LimitError):
        spend("other", 1)


def test_a_key_is_used_once_until_it_is_deleted() -> None:
    spend("k", 1)
    with pytest.raises(UsageError, match='"k" was used before') as caught:
        spend("k", 1, day=TODAY + timedelta(days=90))
    assert "Choose another key" in (caught.value.hint or "")
    spend("k", 1, day=TODAY + timedelta(days=91))


def test_nothing_may_be_sent_if_the_file_cannot_be_used(home: Path) -> None:
    spend("1", 1)
    path = files.state("mcp.sqlite3")
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(b"not a database, but long enough to look at")
    with pytest.raises(ConfigurationError, match="the record of credits spent by msgctl mcp"):
        spend("2", 1)
