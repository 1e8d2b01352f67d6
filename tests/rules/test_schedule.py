"""Windows and the times of --at, compared with a second implementation."""

from __future__ import annotations

import random
import time
from datetime import UTC, datetime, timedelta
from importlib.resources import files
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from msgctl.errors import UsageError
from msgctl.jobs import schedule
from msgctl.jobs.schedule import Frequency, SendingHours, Window, machine_zone, parse_at

BOGOTA, NEW_YORK, MADRID = "America/Bogota", "America/New_York", "Europe/Madrid"
LORD_HOWE, HONOLULU, KOLKATA = "Australia/Lord_Howe", "Pacific/Honolulu", "Asia/Kolkata"  # half hours of DST and offset
PLACES = [BOGOTA, NEW_YORK, MADRID, LORD_HOWE, HONOLULU]

COLOMBIAN_HOLIDAYS_OF_2027 = frozenset(
    "01-01 01-11 03-22 03-25 03-26 05-01 05-10 05-31 06-07 "
    "07-05 07-20 08-07 08-16 10-18 11-01 11-15 12-08 12-25".split()
)
OFFICE = {"Mon": (480, 1140), "Tue": (480, 1140), "Wed": (480, 1140), "Thu": (480, 1140), "Fri": (480, 1140)}
LEY_2300 = {**dict.fromkeys(OFFICE, (420, 1140)), "Sat": (480, 900)}


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def is_decent(hours: dict[str, tuple[int, int]], closed: frozenset[str], zone: ZoneInfo, moment: datetime) -> bool:
    """Return whether the wall clock of a zone is within the hours."""
    weekday, day, hour, minute = f"{moment.astimezone(zone):%a %m-%d %H %M}".split()
    first, last = hours.get(weekday, (0, 0))
    return day not in closed and first <= int(hour) * 60 + int(minute) < last


@pytest.fixture(params=["co", "08:00-19:00"])
def rules(request: pytest.FixtureRequest) -> tuple[Window, dict[str, tuple[int, int]], frozenset[str]]:
    """A window, and its hours and closed days as the test knows them."""
    if request.param == "co":
        pytest.importorskip("holidays")
        return Window.parse("co"), LEY_2300, COLOMBIAN_HOLIDAYS_OF_2027
    return Window.parse(request.param, "mon-fri"), OFFICE, frozenset()


@pytest.mark.slow
def test_ten_thousand_clocks_never_send_outside_the_window(
    rules: tuple[Window, dict[str, tuple[int, int]], frozenset[str]],
) -> None:
    window, hours, closed = rules
    dice = random.Random(2300)
    year = [utc("2027-01-01") + timedelta(seconds=dice.randrange(365 * 86400)) for _ in range(10_000)]
    for number, now in enumerate(year):
        zone = ZoneInfo(PLACES[number % len(PLACES)])
        opening = window.next_open(now, zone)
        assert opening is not None
        assert opening >= now
        assert opening.year > 2027 or is_decent(hours, closed, zone, opening), (zone, now, opening)
        assert (opening == now) == window.is_open(now.astimezone(zone))
        if opening > now:  # it is the first moment that is open
            assert not window.is_open((opening - timedelta(seconds=1)).astimezone(zone)), (zone, now, opening)
            between = now + dice.random() * (opening - now)
            assert not window.is_open(between.astimezone(zone)), (zone, now, between)


@pytest.mark.parametrize(
    ("zone", "hours", "now", "opening"),
    [
        # New York skips 2:00-3:00 on 2027-03-14 and repeats 1:00-2:00 on 2027-11-07.
        (NEW_YORK, "02:30-05:00", "2027-03-14T06:00", "2027-03-14T07:00"),
        (NEW_YORK, "02:15-02:45", "2027-03-14T06:00", "2027-03-15T06:15"),
        (NEW_YORK, "02:37-05:01", "2027-03-14T06:00:00.5", "2027-03-14T07:00"),
        (NEW_YORK, "02:37-05:01", "2027-03-15T06:00", "2027-03-15T06:37"),
        (NEW_YORK, "08:00-19:00", "2027-03-14T06:00", "2027-03-14T12:00"),
        (NEW_YORK, "01:30-01:45", "2027-11-07T05:50", "2027-11-07T06:30"),
        (NEW_YORK, "08:00-19:00", "2027-11-07T05:50", "2027-11-07T13:00"),
        # Lord Howe moves by half an hour, from 2:00 back to 1:30 on 2027-04-04.
        (LORD_HOWE, "01:45-01:50", "2027-04-03T14:55", "2027-04-03T15:15"),
        (KOLKATA, "08:00-24:00", "2027-05-01T18:30", "2027-05-02T02:30"),
        (BOGOTA, "00:00-24:00", "2027-05-01T05:00", "2027-05-01T05:00"),
    ],
)
def test_the_next_opening_follows_changes_of_the_local_clocks(zone: str, hours: str, now: str, opening: str) -> None:
    assert Window.parse(hours).next_open(utc(now), ZoneInfo(zone)) == utc(opening)


REST = "tue wed thu fri sat sun"


@pytest.mark.parametrize(
    ("days", "closed"),
    [
        *[("mon-sat", "sun"), ("sat-thu", "fri"), ("Mon, wed-SUN", "tue"), ("fri-fri,sat-thu", ""), ("mon", REST)],
        *[("Lun-Sáb", "sun"), ("mie,jue,vie-mar", ""), ("mie\u0301 - lun", "tue"), ("dom-vie", "sat")],
    ],
)
def test_days_are_ranges_and_lists(days: str, closed: str) -> None:
    week = Window.parse("08:00-19:00", days).week
    assert [name for name, hours in zip(schedule.DAYS, week, strict=True) if hours is None] == closed.split()


def test_hours_need_no_minutes() -> None:
    for short, whole in (("8-19", "08:00-19:00"), ("8:30-19", "08:30-19:00"), ("0 - 24", "00:00-24:00")):
        assert Window.parse(short).week == Window.parse(whole).week


def test_a_window_is_open_from_its_first_minute_to_before_its_last() -> None:
    window = Window.parse("08:00-19:00")
    times = [utc(f"2026-12-01T{time}") for time in ("12:59", "13:00", "23:59")] + [utc("2026-12-02T00:00")]
    assert [window.is_open(moment.astimezone(ZoneInfo(BOGOTA))) for moment in times] == [False, True, True, False]


def test_the_window_of_colombia_is_closed_on_public_holidays() -> None:
    pytest.importorskip("holidays")
    window = Window.parse("co")
    days = [utc(f"2026-12-{day}T17:00") for day in (24, 25, 26, 27)]  # a Thursday, Christmas and a weekend, at noon
    assert [window.is_open(moment.astimezone(ZoneInfo(BOGOTA))) for moment in days] == [True, False, True, False]
    zone = ZoneInfo(BOGOTA)
    assert [window.open_seconds(moment, moment.replace(hour=18), zone) for moment in days] == [3600, 0, 3600, 0]


NOW = utc("2026-11-21T12:00")


def test_a_window_is_in_the_time_zone_of_the_job_and_a_job_without_a_window_may_always_send() -> None:
    hours = SendingHours(Window.parse("08:00-09:00"), MADRID, NOW.timestamp)
    assert not hours.is_open()
    assert hours.closed_until(NOW.timestamp()) == utc("2026-11-22T07:00").timestamp()
    assert hours.closed_until(utc("2026-11-22T07:00").timestamp()) is None
    always = SendingHours(None, None, NOW.timestamp)
    assert always.is_open()
    assert always.closed_until(NOW.timestamp()) is None


@pytest.mark.parametrize(
    ("now", "period", "zone", "begin"),
    [
        ("2026-11-21T12:00", "day", BOGOTA, "2026-11-21T05:00"),
        ("2026-11-21T12:00", "week", BOGOTA, "2026-11-16T05:00"),
        ("2026-11-21T12:00", "day", KOLKATA, "2026-11-20T18:30"),
        # Sunday, 2027-11-07, has 25 hours in New York.
        ("2027-11-08T04:59", "day", NEW_YORK, "2027-11-07T04:00"),
        ("2027-11-08T04:59", "week", NEW_YORK, "2027-11-01T04:00"),
        ("2027-11-08T05:00", "week", NEW_YORK, "2027-11-08T05:00"),
    ],
)
def test_a_day_and_a_week_begin_at_midnight(now: str, period: str, zone: str, begin: str) -> None:
    assert Frequency(1, period).since(utc(now).timestamp(), zone) == utc(begin).timestamp()


def test_the_open_hours_of_several_days_are_counted_without_nights_and_by_changed_clocks() -> None:
    week, always = Window.parse("08:00-19:00", "mon-fri"), Window.parse("00:00-24:00")
    friday, monday = utc("2026-11-20T23:00"), utc("2026-11-23T14:30")  # 18:00 and 9:30 in Bogota
    assert week.open_seconds(friday, monday, ZoneInfo(BOGOTA)) == 3600 + 5400
    for begin, hours in (("2027-11-07T04:00", 25), ("2027-03-14T05:00", 23)):
        day = utc(begin)
        assert always.open_seconds(day, day + timedelta(hours=hours), ZoneInfo(NEW_YORK)) == hours * 3600
        morning = Window.parse("00:00-08:00").open_seconds(day, day + timedelta(hours=hours), ZoneInfo(NEW_YORK))
        assert morning == (hours - 16) * 3600


# --- --at


@pytest.mark.parametrize(
    ("text", "zone", "moment"),
    [
        ("2026-12-01 09:00", BOGOTA, "2026-12-01T14:00"),
        ("2026-12-01T09:00:30", MADRID, "2026-12-01T08:00:30"),
        ("2026-12-01 09:00", KOLKATA, "2026-12-01T03:30"),
        ("2026-12-01 09:00+0530", MADRID, "2026-12-01T03:30"),
        ("2026-12-01T09:00Z", None, "2026-12-01T09:00"),
        ("2026-12-01 9:00:00 -0500", None, "2026-12-01T14:00"),
        ("2027-11-07 01:30", NEW_YORK, "2027-11-07T05:30"),  # comes twice: the first
        # It is 7:00 in Bogota, 13:00 in Madrid and 17:30 in Kolkata.
        ("09:00", BOGOTA, "2026-11-21T14:00"),
        ("9:00", MADRID, "2026-11-22T08:00"),
        ("07:00", BOGOTA, "2026-11-22T12:00"),
        ("00:30+14:00", BOGOTA, "2026-11-22T10:30"),
        ("23:00-14:00", BOGOTA, "2026-11-21T13:00"),
    ],
)
def test_at_is_a_local_time_or_has_an_offset(text: str, zone: str | None, moment: str) -> None:
    assert parse_at(text, zone, NOW) == utc(moment)


def test_a_time_without_a_date_is_on_the_next_day_that_has_this_time() -> None:
    """In Kolkata, the next day has begun. New York skips 2:30 on 2027-03-14, and Lord Howe 2:15 on 2027-10-03."""
    assert parse_at("09:00", KOLKATA, utc("2026-11-21T20:00")) == utc("2026-11-22T03:30")
    assert parse_at("23:30", HONOLULU, utc("2026-11-21T09:00")) == utc("2026-11-21T09:30")
    for before in ("2027-03-13T07:31", "2027-03-14T06:00"):
        assert parse_at("02:30", NEW_YORK, utc(before)) == utc("2027-03-15T06:30")
    for before in ("2027-10-01T15:46", "2027-10-02T15:00"):
        assert parse_at("02:15", LORD_HOWE, utc(before)) == utc("2027-10-03T15:15")


def test_at_without_a_zone_is_the_time_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        with monkeypatch.context() as patch:
            patch.setenv("TZ", KOLKATA)
            time.tzset()
            assert parse_at("2026-12-01 09:00", None, NOW) == utc("2026-12-01T03:30")
            patch.setenv("TZ", NEW_YORK)
            time.tzset()
            with pytest.raises(UsageError, match="exists"):
                parse_at("2027-03-14 02:30", None, NOW)
    finally:
        time.tzset()


@pytest.mark.parametrize(
    ("tz", "name"),
    [
        (KOLKATA, KOLKATA),
        (f":{NEW_YORK}", NEW_YORK),
        ("", "UTC"),
        ("IST-5:30", None),
        ("localtime", None),
        ("Mars/Phobos", None),
        ("{directory}/localtime", KOLKATA),
    ],
)
def test_the_time_zone_of_a_machine_has_a_name_that_other_machines_know(
    tz: str, name: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    link, target = tmp_path / "localtime", tmp_path / "zoneinfo" / KOLKATA
    target.parent.mkdir(parents=True)
    target.write_bytes(files("tzdata").joinpath("zoneinfo", KOLKATA).read_bytes())
    link.symlink_to(target)
    tz = tz.replace("{directory}", str(tmp_path))
    try:
        with monkeypatch.context() as patch:
            patch.setenv("TZ", tz)
            time.tzset()
            assert machine_zone(tz, NOW) == name
            patch.setenv("TZ", "UTC-1")
            time.tzset()
            assert machine_zone(tz, NOW) is None  # the time of this machine is another
    finally:
        time.tzset()


@pytest.mark.parametrize(
    ("hours", "days", "expected"),
    [
        ("08:00-19:00", None, "08:00-19:00"),
        ("08:00-19:00", "mon-sat", "Mon-Sat 08:00-19:00"),
        ("08:00-19:00", "mon,wed", "Mon,Wed 08:00-19:00"),
        ("co", None, "Mon-Fri 07:00-19:00, Sat 08:00-15:00, not on public holidays"),
    ],
)
def test_a_window_is_described_by_its_days_and_hours(hours: str, days: str | None, expected: str) -> None:
    assert schedule.described(hours, days) == expected
