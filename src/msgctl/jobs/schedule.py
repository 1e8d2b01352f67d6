"""When a job may send: daily windows in the recipient's own time zone, and the time of ``--at``.

Every instant is an aware ``datetime`` in UTC, and the caller passes the current time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import cache
from itertools import groupby
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from msgctl.errors import ConfigurationError, UsageError, install_hint
from msgctl.jobs.model import JobSpec
from msgctl.text import normalized
from msgctl.values import quote

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SPANISH_DAYS = ("lun", "mar", "mie", "jue", "vie", "sab", "dom")
_NUMBERS = {name: number for week in (DAYS, _SPANISH_DAYS) for number, name in enumerate(week)}
_WITHOUT_ACCENTS = str.maketrans("áé", "ae")
HORIZON = timedelta(days=366)
"""How far ahead to search for an opening."""

_TIME = "([01]?[0-9]|2[0-4])(?::([0-5][0-9]))?"
_HOURS = re.compile(rf"{_TIME} *- *{_TIME}", re.ASCII)


@dataclass(frozen=True)
class Window:
    """The hours of each weekday, Monday first, at which messages may be sent, in minutes since midnight.

    The end is not included; None marks a closed day. ``is_holiday`` returns whether a date is closed whatever its
    weekday.
    """

    week: Sequence[tuple[int, int] | None]
    is_holiday: Callable[[date], bool] = lambda _: False

    @classmethod
    def parse(cls, hours: str, days: str | None = None) -> Window:
        """Return the window of ``--window`` and ``--days``.

        Raises UsageError, and ConfigurationError if the holidays of ``co`` are not installed.
        """
        week = tuple(_week(hours, days))
        return cls(week, _colombian_holidays()) if _is_co(hours) else cls(week)

    def is_open(self, zones: Iterable[str], moment: datetime) -> bool:
        """Return whether a message may be sent at a moment to a person who may be in any of these time zones."""
        for name in zones:
            local = moment.astimezone(zone_of(name))
            hours = self.week[local.weekday()]
            is_inside = hours is not None and hours[0] <= local.hour * 60 + local.minute < hours[1]
            if not is_inside or self.is_holiday(local.date()):
                return False
        return True

    def next_open(self, zones: Sequence[str], moment: datetime) -> datetime | None:
        """Return the first instant, not before ``moment``, when the window is open in all zones.

        None if there is no such instant within `HORIZON`: zones whose hours do not overlap within a year never will.
        """
        if self.is_open(zones, moment):
            return moment
        # A window opens when it begins, at midnight, or when clocks change. All offsets from UTC, and the times when
        # they change, are multiples of a quarter of an hour.
        begins = {0, *(hours[0] % 15 for hours in self.week if hours)}
        quarter = moment.replace(minute=0, second=0, microsecond=0)
        while quarter <= moment + HORIZON:
            for minutes in sorted(begins):
                found = quarter + timedelta(minutes=minutes)
                if found > moment and self.is_open(zones, found):
                    return found
            quarter += timedelta(minutes=15)
        return None


class ZoneFinder:
    """Finds the time zones of recipients, and refuses recipients for whom the window never opens.

    Zones are one string: their names, separated by spaces. ``found`` lists all zones so far; ``default`` is for numbers
    without a zone.
    """

    def __init__(self, window: Window, default: str | None, now: float) -> None:
        self._window = window
        self._default = default
        self._now = datetime.fromtimestamp(now, UTC)
        self._known: dict[tuple[str, ...], bool] = {}

    @property
    def found(self) -> list[str]:
        return [" ".join(names) for names, is_ever_open in self._known.items() if is_ever_open]

    def closed_until(self, time: float) -> float | None:
        """Return when the window opens after a time; None if it is open then for one of the zones found."""
        return SendingHours(self._window, self.found, lambda: time).closed_until(self.found)

    def zones(self, phone: str) -> str:
        """Return the zones of a phone. Raises UsageError."""
        names = zones_of(phone) or ((self._default,) if self._default else ())
        if not names:
            raise UsageError("its time zone is unknown; set timezone in the profile")
        if names not in self._known:
            self._known[names] = self._window.next_open(names, self._now) is not None
        if not self._known[names]:
            raise UsageError("the window is never open in all of its time zones at once")
        return " ".join(names)


class SendingHours:
    """Finds the zones, as strings of `ZoneFinder`, in which the window of a job is open.

    Windows open and close at whole seconds, so the open zones are computed once per second.
    """

    def __init__(self, window: Window, zones: Iterable[str], clock: Callable[[], float]) -> None:
        self._window = window
        self._zones = {text: tuple(text.split()) for text in zones}
        self._clock = clock
        self._known: tuple[int, list[str]] = (-1, [])

    @classmethod
    def of(cls, spec: JobSpec, clock: Callable[[], float]) -> SendingHours | None:
        """Return the hours at which a job may send; None if it has no window."""
        return cls(Window.parse(spec.window, spec.days), spec.zones, clock) if spec.window is not None else None

    def open_zones(self) -> list[str]:
        """Return the zones in which the window is open now."""
        second = int(self._clock())
        known, found = self._known
        if known != second:
            moment = datetime.fromtimestamp(second, UTC)
            found = [text for text, names in self._zones.items() if self._window.is_open(names, moment)]
            self._known = (second, found)  # in one assignment, because several threads call this
        return found

    def next_opening(self, zones: Iterable[str]) -> float | None:
        """Return when the window next opens in one of these zones, in seconds since 1970; now if it is open."""
        now = datetime.fromtimestamp(self._clock(), UTC)
        openings = [self._window.next_open(self._zones[text], now) for text in zones]
        return min((opening.timestamp() for opening in openings if opening is not None), default=None)

    def closed_until(self, zones: Iterable[str]) -> float | None:
        """Return when the window opens for the first of these zones; None if it is open for one of them."""
        zones = [*zones]
        return None if {*self.open_zones()} & {*zones} else self.next_opening(zones)


def zones_of(digits: str) -> tuple[str, ...]:
    """Return the possible time zones of an international number's owner; empty if it has none."""
    from phonenumbers import NumberParseException, parse, timezone

    try:
        zones = timezone.time_zones_for_number(parse(f"+{digits}"))
    except NumberParseException:
        return ()
    return tuple(name for name in zones if name != timezone.UNKNOWN_TIMEZONE)


def parse_at(text: str, local_zone: str | None, now: datetime) -> datetime:
    """Return the instant of ``--at``.

    Without an offset, it is in ``local_zone``, or for None in this machine's time zone; if the clocks go back, it is
    the first occurrence. A time without a date is its next occurrence. Raises UsageError if the time does not exist or
    is in the past, and ConfigurationError if the zone does not exist.
    """
    written = " ".join(text.split())
    moment = _named(written, local_zone, now) if ":" in text else None
    if moment is None:
        hint = 'Write it like "2026-12-01 09:00" or 09:00. An offset may follow: "09:00-05:00".'
        raise UsageError(f"--at must be a date and time that exists, not {quote(text)}", hint)
    if moment <= now:
        raise UsageError(f"--at {quote(text)} is in the past", "Leave out --at to send now.")
    return moment


def _named(text: str, local_zone: str | None, now: datetime) -> datetime | None:
    """Return the instant of a date and time, or of the next occurrence of a time."""
    if not re.match("[0-9]{1,2}:", text):
        return _instant(text, local_zone)
    today = now.astimezone(None if local_zone is None else zone_of(local_zone)).date()
    # In another offset the date may be different, and the clocks may skip the time on one of the days.
    days = (today + timedelta(days=number) for number in range(-1, 4))
    return next((found for day in days if (found := _instant(f"{day} {text}", local_zone)) and found > now), None)


def _instant(text: str, local_zone: str | None) -> datetime | None:
    text = re.sub(r"(?<=[ T])(?=[0-9]:)", "0", text)  # 9:00
    try:
        named = datetime.fromisoformat(re.sub(" (?=[Z+-])", "", text))  # 09:00 -0500
        if named.tzinfo is not None:
            return named.astimezone(UTC)
        wall = named.astimezone() if local_zone is None else named.replace(tzinfo=zone_of(local_zone))
        moment = wall.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return (
        moment if moment.astimezone(wall.tzinfo).replace(tzinfo=None) == named else None
    )  # None if the clocks skip it


def time_in(local_zone: str | None, seconds: float) -> str:
    """Return a time in a zone, or for None in this machine's time zone: ``Tue 2026-12-01 09:00 America/Bogota``."""
    local = datetime.fromtimestamp(seconds, UTC).astimezone(None if local_zone is None else zone_of(local_zone))
    return f"{local:%a %Y-%m-%d %H:%M} {local_zone or local.tzname()}"


def described(hours: str, days: str | None) -> str:
    """Return the window of ``--window`` and ``--days`` in words: ``Mon-Sat 08:00-19:00``. Raises UsageError."""
    parts: list[tuple[str, str]] = []
    for opened, found in groupby(enumerate(_week(hours, days)), key=lambda day: day[1]):
        named = [DAYS[day].capitalize() for day, _ in found]
        if opened is not None:
            start, end = (f"{minutes // 60:02}:{minutes % 60:02}" for minutes in opened)
            parts.append(("-".join(dict.fromkeys((named[0], named[-1]))), f"{start}-{end}"))
    if len({times for _, times in parts}) == 1:
        names, times = ",".join(name for name, _ in parts), parts[0][1]
        return times if names == "Mon-Sun" else f"{names} {times}"
    return ", ".join(map(" ".join, parts)) + ", not on public holidays" * _is_co(hours)


def _is_co(hours: str) -> bool:
    """Return whether the window is that of Colombia's Ley 2300 of 2023."""
    return hours.lower() == "co"


def _week(hours: str, days: str | None) -> list[tuple[int, int] | None]:
    """Return the hours of each weekday, Monday first. Raises UsageError."""
    if _is_co(hours):
        if days is not None:
            raise UsageError("--window co sets the days itself", "Leave out --days.")
        return [*[_hours("07:00-19:00")] * 5, _hours("08:00-15:00"), None]
    opened = _hours(hours)
    chosen = _days(days) if days is not None else range(7)
    return [opened if day in chosen else None for day in range(7)]


def _hours(text: str) -> tuple[int, int]:
    if written := _HOURS.fullmatch(text.strip()):
        first, first_minute, last, last_minute = map(int, written.groups("0"))
        start, end = first * 60 + first_minute, last * 60 + last_minute
        if start < end <= 24 * 60:
            return start, end
    raise UsageError(
        f"--window must be a start and a later end, such as 08:00-19:00, or co, not {quote(text)}",
        "Write it like --window 08:00-19:00 --days mon-sat, or use --window co.",
    )


def _days(text: str) -> set[int]:
    """Return the weekdays, Monday 0, of a list such as ``mon-fri,sun`` or ``lun-sáb``."""
    chosen: set[int] = set()
    for part in normalized(text.lower()).translate(_WITHOUT_ACCENTS).split(","):
        first, dash, last = (each.strip() for each in part.partition("-"))
        if first not in _NUMBERS or (dash and last not in _NUMBERS):
            raise UsageError(
                f"--days must list days, such as mon-sat or mon,wed,fri, not {quote(text)}",
                f"The days are {', '.join(DAYS)}.",
            )
        start = _NUMBERS[first]
        length = (_NUMBERS[last] - start) % 7 + 1 if dash else 1
        chosen.update((start + step) % 7 for step in range(length))
    return chosen


def _colombian_holidays() -> Callable[[date], bool]:
    try:
        import holidays
    except ImportError:
        raise ConfigurationError(
            "--window co needs the package holidays, which is not installed", install_hint("msgctl[campaigns]")
        ) from None
    return cache(holidays.country_holidays("CO").__contains__)


@cache
def zone_of(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigurationError(f"Unknown time zone {quote(name)}", "Use a name like America/Bogota.") from None
