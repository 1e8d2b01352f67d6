"""The times at which a job may send, in its time zone: windows, ``--at``, and the days of ``--at-most``.

A zone is a name, or None for the time zone of this machine. The caller passes the current time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from msgctl.errors import ConfigurationError, UsageError, install_hint
from msgctl.text import normalized
from msgctl.values import quote, zone_of

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_SPANISH_DAYS = ("lun", "mar", "mie", "jue", "vie", "sab", "dom")
_NUMBERS = {name: number for week in (DAYS, _SPANISH_DAYS) for number, name in enumerate(week)}
_WITHOUT_ACCENTS = str.maketrans("áé", "ae")
MAX_YEAR = 9000
"""The latest year for --at, so that Python has a date for the next opening of a window."""
MAX_MESSAGES = 1000
"""The highest number of --at-most."""
COLOMBIA = "America/Bogota"
"""The time zone of --window co."""
HORIZON = timedelta(days=366)
"""The maximum time until a window opens."""

_TIME = "([01]?[0-9]|2[0-4])(?::([0-5][0-9]))?"
_FREQUENCY = re.compile(r" *([0-9]{1,4}) */ *(day|week) *", re.ASCII | re.IGNORECASE)
_AT = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}[ T])?[0-9]{1,2}:[0-9]{2}(:[0-9]{2})?( ?(Z|[+-][0-9:]+))?")
"""The forms of --at that its hint shows."""
_HOURS = re.compile(rf"{_TIME} *- *{_TIME}", re.ASCII)


@dataclass(frozen=True)
class Window:
    """The hours at which messages may be sent.

    ``week`` has the first minute and the end of each weekday, in minutes since midnight, Monday first. None is a closed
    day. ``is_holiday`` returns whether a date is closed, whatever its weekday.
    """

    week: Sequence[tuple[int, int] | None]
    is_holiday: Callable[[date], bool] = lambda _: False

    @classmethod
    def parse(cls, hours: str, days: str | None = None) -> Window:
        """Return the window of ``--window`` and ``--days``.

        Raises UsageError, and ConfigurationError if the holidays of ``co`` are not installed.
        """
        week = tuple(_week(hours, days))
        return cls(week, _colombian_holidays()) if is_colombian(hours) else cls(week)

    def is_open(self, moment: datetime) -> bool:
        """Return whether a message may be sent at a moment, which is in the time zone of the job."""
        hours = self.week[moment.weekday()]
        is_inside = hours is not None and hours[0] <= moment.hour * 60 + moment.minute < hours[1]
        return is_inside and not self.is_holiday(moment.date())

    def next_open(self, moment: datetime, zone: tzinfo | None) -> datetime | None:
        """Return the first time at or after ``moment`` when the window is open in a zone; None if after `HORIZON`."""
        if self.is_open(moment.astimezone(zone)):
            return moment
        # A window opens when it begins, at midnight, or when clocks change. All offsets from UTC, and the times when
        # they change, are multiples of a quarter of an hour.
        begins = {0, *(hours[0] % 15 for hours in self.week if hours)}
        quarter = moment.replace(minute=0, second=0, microsecond=0)
        while quarter <= moment + HORIZON:
            for minutes in sorted(begins):
                instant = quarter + timedelta(minutes=minutes)
                if instant > moment and self.is_open(instant.astimezone(zone)):
                    return instant
            quarter += timedelta(minutes=15)
        return None

    def open_seconds(self, since: datetime, until: datetime, zone: tzinfo | None) -> float:
        """Return for how many seconds the window is open between two instants."""
        seconds, day = 0.0, since.astimezone(zone).date()
        while day <= until.astimezone(zone).date():
            hours = self.week[day.weekday()]
            if hours is not None and not self.is_holiday(day):
                midnight = datetime.combine(day, time(), zone)  # without a zone, it is local
                opened, closed = (midnight + timedelta(minutes=minutes) for minutes in hours)
                start, end = max(opened.timestamp(), since.timestamp()), min(closed.timestamp(), until.timestamp())
                seconds += max(0.0, end - start)
            day += timedelta(days=1)
        return seconds


class SendingHours:
    """The hours at which a job may send, in its time zone. Without a window, it may always send."""

    def __init__(self, window: Window | None, zone: str | None, clock: Callable[[], float]) -> None:
        self._window = window
        self._zone = zone_of(zone)
        self._clock = clock
        self._known: tuple[int, bool] = (-1, True)

    def is_open(self) -> bool:
        """Return whether the job may send now. Any thread may call this."""
        if self._window is None:
            return True
        second = int(self._clock())  # windows open and close at whole seconds
        known, is_open = self._known
        if known != second:
            is_open = self._window.is_open(datetime.fromtimestamp(second, UTC).astimezone(self._zone))
            self._known = (second, is_open)  # in one assignment, because several threads call this
        return is_open

    def closed_until(self, seconds: float) -> float | None:
        """Return when the window opens if it is closed at a time, in seconds since 1970; None if it is open."""
        moment = datetime.fromtimestamp(seconds, UTC)
        opens = None if self._window is None else self._window.next_open(moment, self._zone)
        return None if opens is None or opens == moment else opens.timestamp()

    def open_seconds(self, since: float, until: float) -> float:
        """Return for how many seconds the job may send between two times."""
        if self._window is None:
            return until - since
        first = datetime.fromtimestamp(max(since, until - HORIZON.total_seconds()), UTC)
        return self._window.open_seconds(first, datetime.fromtimestamp(until, UTC), self._zone)


class Frequency(NamedTuple):
    """The limit of ``--at-most``: a number of messages per person, in a day or in a week."""

    most: int
    period: str

    @classmethod
    def parse(cls, text: str) -> Frequency:
        """Return the limit in ``1/day`` or ``3/week``. Raises UsageError."""
        match = _FREQUENCY.fullmatch(text)
        if match and 1 <= int(match[1]) <= MAX_MESSAGES:
            return cls(int(match[1]), match[2].lower())
        raise UsageError(
            f"--at-most must be 1 to {MAX_MESSAGES:,} messages per day or week, not {quote(text)}",
            "Write it like --at-most 1/day or --at-most 3/week.",
        )

    def __str__(self) -> str:
        return f"{self.most}/{self.period}"

    def since(self, seconds: float, zone: str | None) -> float:
        """Return the last midnight, or midnight of the last Monday, in a time zone, in seconds since 1970."""
        day = datetime.fromtimestamp(seconds, UTC).astimezone(zone_of(zone)).date()
        if self.period == "week":
            day -= timedelta(days=day.weekday())
        return datetime.combine(day, time(), zone_of(zone)).timestamp()  # without a zone, it is local


def machine_zone(tz: str | None, now: datetime) -> str | None:
    """Return the name of this machine's time zone, so that another machine can use it; None if it has no known name.

    ``tz`` is the variable TZ. Without it, /etc/localtime is a link to the zone, or /etc/timezone has the name.
    """
    from importlib.resources import files  # few commands need it

    place = "/etc/localtime" if tz is None else tz.removeprefix(":") or "UTC"
    if place.startswith("/"):
        place = os.path.realpath(place).rpartition("/zoneinfo/")[2]
    names = [place]
    if tz is None:
        with suppress(OSError, UnicodeDecodeError):
            names.append(Path("/etc/timezone").read_text(encoding="utf-8").strip())
    known = files("tzdata").joinpath("zones").read_text(encoding="utf-8").split()
    moments = [now, now + timedelta(days=182)]  # summer and winter: a file may have the name of an earlier zone
    for name in names:
        if name in known and all(
            moment.astimezone().utcoffset() == moment.astimezone(zone_of(name)).utcoffset() for moment in moments
        ):
            return name
    return None


def parse_at(text: str, local_zone: str | None, now: datetime) -> datetime:
    """Return the instant of ``--at``.

    Without an offset, the time is in ``local_zone``; None is this machine's time zone. If the clocks go back, it is the
    first occurrence. A time without a date is its next occurrence. Raises UsageError if the time does not exist, and
    ConfigurationError if the zone does not exist.
    """
    hint = 'Write it like "2026-12-01 09:00" or 09:00. An offset may follow: "09:00-05:00".'
    written = " ".join(text.split())
    moment = None
    if re.match("[0-9].*:", written):  # not +10m or tomorrow
        moment = _named(written, local_zone, now)
    if moment is None or moment.year > MAX_YEAR:
        if _AT.fullmatch(written):
            raise UsageError(f"--at must be a date and time that exists, not {quote(text)}", hint)
        raise UsageError(f"--at must be a date and time, or a time, not {quote(text)}", hint)
    return moment


def _named(text: str, local_zone: str | None, now: datetime) -> datetime | None:
    """Return the instant of a date and time, or of the next occurrence of a time."""
    if not re.match("[0-9]{1,2}:", text):
        return _instant(text, local_zone)
    # Today may be another date there. On a day when the clocks change, the time may not exist.
    for days in range(-1, 4):
        instant = _instant(f"{now.date() + timedelta(days=days)} {text}", local_zone)
        if instant is not None and instant > now:
            return instant
    return None


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
    if moment.astimezone(wall.tzinfo).replace(tzinfo=None) != named:  # the clocks skip this time
        return None
    return moment


def described(hours: str, days: str | None) -> str:
    """Return the window of ``--window`` and ``--days`` in words: ``Mon-Sat 08:00-19:00``. Raises UsageError."""
    parts: list[tuple[str, str]] = []
    for opened, days_alike in groupby(enumerate(_week(hours, days)), key=lambda day: day[1]):
        named = [DAYS[day].capitalize() for day, _ in days_alike]
        if opened is not None:
            start, end = (f"{minutes // 60:02}:{minutes % 60:02}" for minutes in opened)
            parts.append(("-".join(dict.fromkeys((named[0], named[-1]))), f"{start}-{end}"))
    if len({times for _, times in parts}) == 1:
        names, times = ",".join(name for name, _ in parts), parts[0][1]
        return times if names == "Mon-Sun" else f"{names} {times}"
    in_words = ", ".join(map(" ".join, parts))
    return f"{in_words}, not on public holidays" if is_colombian(hours) else in_words


def is_colombian(hours: str) -> bool:
    """Return whether the window follows Colombia's Ley 2300 of 2023."""
    return hours.lower() == "co"


def _week(hours: str, days: str | None) -> list[tuple[int, int] | None]:
    """Return the hours of each weekday, Monday first. Raises UsageError."""
    if is_colombian(hours):
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
        f"--window must be co, or a start and a later end such as 08:00-19:00, not {quote(text)}",
        "Write it like --window 08:00-19:00 --days mon-sat, or use --window co.",
    )


def _days(text: str) -> set[int]:
    """Return the weekdays, Monday 0, of a list such as ``mon-fri,sun`` or ``lun-sáb``."""
    chosen: set[int] = set()
    for part in normalized(text.lower()).translate(_WITHOUT_ACCENTS).split(","):
        first, dash, last = (name.strip() for name in part.partition("-"))
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
            "--window co needs the package holidays, which is not installed", install_hint("holidays>=0.75")
        ) from None
    return cache(holidays.country_holidays("CO").__contains__)
