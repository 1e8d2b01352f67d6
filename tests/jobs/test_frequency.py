"""The limit of `--at-most`: its syntax, and which messages count."""

from __future__ import annotations

import pytest

from msgctl.errors import UsageError
from msgctl.jobs.frequency import Frequency
from msgctl.jobs.schedule import Window
from support.jobs import ANA, NOW

BOGOTA = "America/Bogota"
DAY = 86400


def test_a_limit_may_have_spaces_and_capitals() -> None:
    assert Frequency.parse(" 3 / Week ", BOGOTA) == Frequency(3, "week", BOGOTA)
    assert [str(Frequency.parse(text)) for text in ("1/day", "1000/WEEK")] == ["1/day", "1000/week"]
    for text in ("0/day", "1001/day", "3/month"):
        with pytest.raises(UsageError) as caught:
            Frequency.parse(text)
        assert caught.value.message == f'--at-most must be 1 to 1,000 messages per day or week, not "{text}"'
        assert caught.value.hint == "Write it like --at-most 1/day or --at-most 3/week."


def test_messages_sent_since_midnight_count() -> None:
    """It is Monday, 9:13 in Bogota."""
    midnight, before = "2026-09-21T05:00:00.000Z", "2026-09-21T04:59:59.999Z"
    limit = Frequency.parse("2/day")
    for contacts, is_reached in (
        ([(midnight, 1), (before, 1)], False),
        ([(midnight, 1), (midnight, 1)], True),
        ([(midnight, 1), (midnight, 1), (midnight, -1)], False),
        ([(midnight, 1), (midnight, 1), (midnight, 1), (midnight, -1)], True),
    ):
        assert limit.is_reached(ANA, contacts, NOW, None) is is_reached
    week = Frequency.parse("1/week")
    for days in (0, 6):
        assert week.is_reached(ANA, [(midnight, 1)], NOW + days * DAY, None)
    assert not week.is_reached(ANA, [(before, 1)], NOW + 6 * DAY, None)
    assert not week.is_reached(ANA, [(midnight, 1)], NOW + 7 * DAY, None)


def test_the_messages_of_the_day_on_which_the_window_opens_count() -> None:
    """The window closed at 9:00 in Bogota and opens on Tuesday. Without a time zone, it never opens."""
    window, now = Window.parse("08:00-09:00"), "2026-09-21T14:13:00.000Z"
    limit = Frequency.parse("1/day")
    assert limit.is_reached(ANA, [(now, 1)], NOW, None)
    assert not limit.is_reached(ANA, [(now, 1)], NOW, window)
    assert limit.is_reached(ANA, [("2026-09-22T05:00:00.000Z", 1)], NOW, window)
    assert limit.is_reached("99912345", [(now, 1)], NOW, window)
