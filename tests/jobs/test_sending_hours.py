"""The sending window of one job."""

from __future__ import annotations

from datetime import UTC, datetime

import phonenumbers
import pytest
from phonenumbers import PhoneNumberType
from phonenumbers import timezone as phone_zones

from msgctl.jobs.reader import RowError
from msgctl.jobs.schedule import Window, ZoneFinder, zones_of

BOGOTA, TOKYO = "America/Bogota", "Asia/Tokyo"
OFFICE = Window.parse("08:00-19:00")


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def test_recipients_have_the_zones_of_their_numbers() -> None:
    finder = ZoneFinder(OFFICE, None, at("2026-11-21"))
    assert finder.zones("573001234567") == BOGOTA
    assert set(finder.zones("34612345678").split()) == {"Atlantic/Canary", "Europe/Madrid"}


@pytest.mark.parametrize(
    ("phone", "hours", "why"),
    [("18005550123", "08:00-12:00", "never open"), ("80012345678", "08:00-19:00", "time zone is unknown")],
)
def test_a_number_that_can_never_be_sent_to_is_refused(phone: str, hours: str, why: str) -> None:
    with pytest.raises(RowError, match=why):
        ZoneFinder(Window.parse(hours), None, at("2026-11-21")).zones(phone)


def test_a_number_without_a_zone_has_that_of_the_profile() -> None:
    assert ZoneFinder(OFFICE, BOGOTA, at("2026-11-21")).zones("80012345678") == BOGOTA


def test_a_country_of_one_zone_is_known_without_parsing_the_number() -> None:
    for region in sorted(phonenumbers.SUPPORTED_REGIONS):
        for kind in (PhoneNumberType.MOBILE, PhoneNumberType.FIXED_LINE):
            number = phonenumbers.example_number_for_type(region, kind)
            if number is not None:
                digits = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)[1:]
                expected = [name for name in phone_zones.time_zones_for_number(number) if name != "Etc/Unknown"]
                assert list(zones_of(digits)) == expected, (region, digits)
