"""The credits that programs spent through `msgctl mcp`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from pathlib import Path
from queue import SimpleQueue
from threading import Event, Thread
from typing import Any

import pytest

from msgctl.errors import ConfigurationError, OutcomeUnknownError, RefusedError, UsageError
from msgctl.mcp.daily_limit import LimitError, reserved
from msgctl.recipients import ACCEPTED, RecipientOutcome
from msgctl.storage import files
from msgctl.storage.records import LOCAL, Records

TODAY = date(2026, 11, 22)
ANA, LUIS, IN_SPAIN = "573001234567", "573007654321", "34600000001"


def sending(records: Records, key: str, *phones: str, each: int = 1, most: int = 10, day: date = TODAY) -> Any:
    return reserved(
        records, "a", key, operation="send-sms", phones=phones or [ANA], estimate=each, most=most, today=lambda: day
    )


def spend(records: Records, key: str, credits: str | None, *phones: str, **more: Any) -> int:
    """Send to some phones, each of which costs these credits; the credits used on the day."""
    with sending(records, key, *phones, **more) as settle:
        used: int = settle([RecipientOutcome(phone, ACCEPTED, None, None, credits) for phone in phones or [ANA]])
    return used


def test_the_limit_applies_to_a_day(records: Records) -> None:
    assert spend(records, "1", "4", each=4) == 4
    assert spend(records, "2", "5", each=6) == 9
    assert spend(records, "3", "1") == 10
    with pytest.raises(LimitError, match=r"it may cost 1 \(10 used today") as caught:
        spend(records, "4", "1")
    assert (caught.value.exit_code, caught.value.nothing_sent) == (6, True)
    assert (caught.value.consequence, "Ask the user" in (caught.value.hint or "")) == ("nothing was sent", True)
    assert spend(records, "4", "10", each=10, day=TODAY + timedelta(days=1)) == 10


def test_a_higher_price_is_expected_again(records: Records) -> None:
    spend(records, "1", "3", each=2)
    spend(records, "2", "3", each=2)
    with pytest.raises(LimitError, match=r"it may cost 5 \(6 used today"):
        spend(records, "3", None, each=3)


def test_a_higher_price_is_expected_for_recipients_without_a_reported_price(records: Records) -> None:
    spend(records, "1", "3")
    with sending(records, "2", ANA, LUIS) as settle:
        assert (
            settle([RecipientOutcome(ANA, ACCEPTED, credits="3"), RecipientOutcome(LUIS, ACCEPTED, credits="0")]) == 9
        )
    with pytest.raises(LimitError, match=r"it may cost 3 \(9 used today"):
        spend(records, "3", None)


def test_each_country_has_its_own_price(records: Records) -> None:
    """Until it is known, a send has one number: the price of several could exceed the limit many times."""
    with pytest.raises(LimitError, match="The price of send-sms is not known for all of these numbers") as caught:
        spend(records, "1", "1", ANA, LUIS)
    assert caught.value.hint == "Send to one number in each country first."
    spend(records, "2", "0", ANA)
    with pytest.raises(LimitError, match="is not known"):
        spend(records, "3", "1", ANA, LUIS)
    spend(records, "4", "1", ANA)
    assert spend(records, "5", "1", ANA, LUIS) == 4
    with pytest.raises(LimitError, match="is not known"):
        spend(records, "6", "1", ANA, IN_SPAIN)
    assert spend(records, "7", "5", IN_SPAIN) == 9
    assert spend(records, "8", "1", ANA) == 10


def test_one_send_at_a_time_without_a_known_price(open_records: Callable[[], Records]) -> None:
    """The price of the first one may show that the second one costs too much."""
    records, others = open_records(), open_records()
    began, results = Event(), SimpleQueue[Any]()

    def second() -> None:
        began.set()
        try:
            results.put(spend(others, "2", "6"))
        except LimitError as error:
            results.put(error.message)

    with sending(records, "1") as settle:
        thread = Thread(target=second)
        thread.start()
        assert began.wait(10)
        thread.join(0.3)  # it would be done if it did not wait
        settle([RecipientOutcome(ANA, ACCEPTED, credits="6")])
    thread.join(10)
    assert "it may cost 6 (6 used today)" in results.get()


def test_only_credits_of_unsent_messages_are_released(records: Records) -> None:
    for error in (UsageError("x"), RefusedError("x")):
        with pytest.raises(type(error)), sending(records, "k", each=10):
            raise error
    with pytest.raises(OutcomeUnknownError), sending(records, "k", each=10):
        raise OutcomeUnknownError("x")
    with pytest.raises(LimitError):
        spend(records, "other", "1")


def test_a_key_is_used_once_until_it_is_deleted(records: Records) -> None:
    spend(records, "k", "1")
    with pytest.raises(UsageError, match='"k" was used before') as caught:
        spend(records, "k", "1", day=TODAY + timedelta(days=9000))
    assert "Choose another key" in (caught.value.hint or "")
    for number in range(1, 92):
        spend(records, f"another {number}", "1", day=TODAY + timedelta(days=number))
    spend(records, "k", "1", day=TODAY + timedelta(days=92))


def test_nothing_may_be_sent_if_the_file_cannot_be_used(home: Path) -> None:
    spend(LOCAL, "1", "1")
    path = files.state("mcp.sqlite3")
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_bytes(b"not a database, but long enough to look at")
    with pytest.raises(ConfigurationError, match="the record of credits spent by msgctl mcp"):
        spend(LOCAL, "2", "1")
