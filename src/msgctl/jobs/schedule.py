"""When a job may send: daily windows in the recipient's own time zone, and the time that ``--at`` names.

Every instant is an aware ``datetime`` in UTC, and the caller says what time it is: nothing here reads a clock.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from functools import cache
from typing import NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgctl.errors import ConfigurationError, UsageError
from msgctl.values import quote

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
COLOMBIA = "co"
"""The window of Colombia's Ley 2300 of 2023."""
HORIZON = timedelta(days=366)
"""How far ahead an opening is looked for: zones that do not agree within a year never do."""

_DAY = timedelta(days=1)
_CLOCK = r"([01]?[0-9]|2[0-4]):([0-5][0-9])"
_HOURS = re.compile(rf"{_CLOCK}-{_CLOCK}", re.ASCII)
_AT = re.compile(
    r"(\d{4}-\d{2}-\d{2})[ T](\d{1,2}):(\d{2})(?::(\d{2}))? ?(Z|[+-]\d{2}:?\d{2})?", re.ASCII | re.IGNORECASE
)

WRITE_WINDOW = "Write it like --window 08:00-19:00 --days mon-sat, or use --window co."
WRITE_AT = 'Write it like --at "2026-12-01 09:00", or with an offset: "2026-12-01 09:00-05:00".'
INSTALL = "Install it with: pip install 'msgctl[campaigns]'"


def no_holidays(_: date) -> bool:
    """Return False for every day."""
    return False


class Hours(NamedTuple):
    """The open hours of one weekday, as times since midnight; the end is not included."""

    start: timedelta
    end: timedelta


@dataclass(frozen=True)
class Window:
    """The hours of each weekday, Monday first, at which messages may be sent; None if the whole day is closed.

    ``is_holiday`` tells the dates that are closed whatever their weekday is.
    """

    week: tuple[Hours | None, ...]
    is_holiday: Callable[[date], bool] = no_holidays

    @classmethod
    def parse(cls, hours: str, days: str | None = None) -> Window:
        """Return the window of ``--window`` and ``--days``.

        Raises UsageError, and ConfigurationError if the holidays of ``co`` are not installed.
        """
        if hours.lower() == COLOMBIA:
            if days is not None:
                raise UsageError("--window co sets the days itself", "Leave out --days.")
            weekday, saturday = _hours("07:00-19:00"), _hours("08:00-15:00")
            return cls((*[weekday] * 5, saturday, None), _colombian_holidays())
        opened = _hours(hours)
        chosen = _days(days) if days is not None else range(7)
        return cls(tuple(opened if day in chosen else None for day in range(7)))

    def is_open(self, zones: Iterable[str], moment: datetime) -> bool:
        """Return whether a message may be sent at a moment to someone who may be in any of these time zones."""
        return all(self._is_open_in(_zone(name), moment) for name in zones)

    def next_open(self, zones: Sequence[str], moment: datetime) -> datetime | None:
        """Return the first instant, not before ``moment``, when the window is open in all zones.

        None if there is no such instant within `HORIZON`.
        """
        limit = moment + HORIZON
        found: datetime | None = moment
        while found is not None and found <= limit and not self.is_open(zones, found):
            start = found
            openings = [self._next_open_in(_zone(name), start) for name in zones]
            # Before the latest of these, at least one zone is closed.
            found = None if None in openings else max(opening for opening in openings if opening is not None)
        return found if found is not None and found <= limit else None

    def _is_open_in(self, zone: tzinfo, moment: datetime) -> bool:
        local = moment.astimezone(zone)
        hours = self._hours_on(local.date())
        return hours is not None and hours.start <= _since_midnight(local) < hours.end

    def _hours_on(self, day: date) -> Hours | None:
        hours = self.week[day.weekday()]
        return None if hours is None or self.is_holiday(day) else hours

    def _next_open_in(self, zone: tzinfo, moment: datetime) -> datetime | None:
        """Return when the window next is open in one zone: ``moment`` itself if it is open then."""
        while True:
            opening = self._opening_at_the_same_offset(moment.astimezone(zone))
            if opening is None:
                return None
            if opening.utcoffset() == _offset(zone, opening):
                return opening.astimezone(UTC)
            # The clocks change in between; check again from the change on.
            moment = _change(zone, moment, opening.astimezone(UTC))
            if self._is_open_in(zone, moment):
                return moment

    def _opening_at_the_same_offset(self, local: datetime) -> datetime | None:
        """Return the next opening if the offset of ``local`` never changed."""
        offset = local.utcoffset() or timedelta()
        for ahead in range(HORIZON.days):
            hours = self._hours_on(day := local.date() + ahead * _DAY)
            if hours is not None and (ahead or _since_midnight(local) < hours.end):
                start = max(hours.start, _since_midnight(local)) if not ahead else hours.start
                return (datetime.combine(day, time(), UTC) + start - offset).astimezone(_fixed(offset))
        return None


def zones_of(digits: str) -> tuple[str, ...]:
    """Return the time zones in which the owner of an international number may be; empty if it has none."""
    import phonenumbers
    from phonenumbers import timezone as phone_zones

    for length in (1, 2, 3):
        if zone := _only_zone(digits[:length]):
            return (zone,)
    try:
        zones = phone_zones.time_zones_for_number(phonenumbers.parse(f"+{digits}"))
    except phonenumbers.NumberParseException:
        return ()
    return tuple(name for name in zones if name != phone_zones.UNKNOWN_TIMEZONE)


@cache
def _only_zone(code: str) -> str:
    """Return the zone of a country calling code that has one zone only; else an empty text."""
    import phonenumbers
    from phonenumbers.tzdata import TIMEZONE_DATA

    if not code.isdecimal() or int(code) not in phonenumbers.COUNTRY_CODE_TO_REGION_CODE:
        return ""
    zones = {zone for prefix, names in TIMEZONE_DATA.items() if prefix.startswith(code) for zone in names}
    return zones.pop() if len(zones) == 1 else ""


def parse_at(text: str, local_zone: str | None, now: datetime) -> datetime:
    """Return the instant that ``--at`` names.

    Without an offset it is a local time of ``local_zone`` or, for None, of this machine. Raises UsageError if it does
    not exist or is in the past, and ConfigurationError if the zone does not exist.
    """
    written = _AT.fullmatch(text.strip())
    if written is None:
        raise UsageError(f"--at must be a date and time, not {quote(text)}", WRITE_AT)
    day, hour, minute, second, offset = written.groups()
    try:
        zoned = f"{day}T{int(hour):02}:{minute}:{second or '00'}{(offset or '').upper()}"
        named = datetime.fromisoformat(zoned)
        moment = named.astimezone(UTC) if offset else _local(named, local_zone)
    except (ValueError, OverflowError):
        raise UsageError(f"--at {quote(text)} is not a time that exists", WRITE_AT) from None
    if moment <= now:
        raise UsageError(f"--at {quote(text)} is in the past", "Leave out --at to send now.")
    return moment


def check_zone(name: str) -> None:
    """Raise ConfigurationError if a time zone does not exist."""
    _zone(name)


def _hours(text: str) -> Hours:
    written = _HOURS.fullmatch(text.strip())
    if written is None:
        raise UsageError(f"--window must be two times such as 08:00-19:00, or co, not {quote(text)}", WRITE_WINDOW)
    first, last = written.group(1, 2), written.group(3, 4)
    start, end = (timedelta(hours=int(hour), minutes=int(minute)) for hour, minute in (first, last))
    if not start < end <= _DAY:
        raise UsageError(f"--window {quote(text)} must begin before it ends, on the same day", WRITE_WINDOW)
    return Hours(start, end)


def _days(text: str) -> set[int]:
    """Return the weekdays, Monday 0, that ``mon-fri,sun`` names."""
    chosen: set[int] = set()
    for part in text.lower().split(","):
        first, dash, last = (each.strip() for each in part.partition("-"))
        if first not in DAYS or (dash and last not in DAYS):
            raise UsageError(
                f"--days must name days such as mon-sat or mon,wed,fri, not {quote(text)}",
                f"The days are {', '.join(DAYS)}.",
            )
        start = DAYS.index(first)
        length = (DAYS.index(last) - start) % 7 + 1 if dash else 1
        chosen.update((start + step) % 7 for step in range(length))
    return chosen


def _colombian_holidays() -> Callable[[date], bool]:
    try:
        import holidays
    except ImportError:
        raise ConfigurationError("--window co needs the public holidays of Colombia", INSTALL) from None
    return holidays.country_holidays("CO").__contains__


@cache
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigurationError(f"Unknown time zone {quote(name)}", "Use a name like America/Bogota.") from None


@cache
def _fixed(offset: timedelta) -> tzinfo:
    return timezone(offset)


def _offset(zone: tzinfo, moment: datetime) -> timedelta | None:
    return moment.astimezone(zone).utcoffset()


def _change(zone: tzinfo, before: datetime, after: datetime) -> datetime:
    """Return the first whole second after ``before`` whose offset is not that of ``before``."""
    offset = _offset(zone, before)
    low, high = int(before.timestamp()), int(after.timestamp()) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(zone, datetime.fromtimestamp(middle, UTC)) == offset:
            low = middle
        else:
            high = middle
    return datetime.fromtimestamp(high, UTC)


def _since_midnight(local: datetime) -> timedelta:
    return timedelta(hours=local.hour, minutes=local.minute, seconds=local.second, microseconds=local.microsecond)


def _local(named: datetime, zone: str | None) -> datetime:
    """Return the instant of a time on a wall clock, the first one if it comes twice.

    Raises ValueError if the clocks skip it.
    """
    wall = named.astimezone() if zone is None else named.replace(tzinfo=_zone(zone))
    moment = wall.astimezone(UTC)
    back = moment.astimezone() if zone is None else moment.astimezone(wall.tzinfo)
    if back.replace(tzinfo=None) != named:
        raise ValueError("the clocks skip this time")
    return moment
