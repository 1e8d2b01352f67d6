"""The sending window of one job: the time zones of its recipients, and who may be sent to now."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from msgctl.jobs import queries
from msgctl.jobs.schedule import Window, zones_of
from msgctl.jobs.schema import LEDGER

if TYPE_CHECKING:
    from msgctl.jobs.ledger import Ledger


class NoSendingHoursError(ValueError):
    """A recipient can never be sent to; the text says why."""


class ZoneFinder:
    """Finds the time zones of recipients, and refuses those who could never be sent to.

    Zones are one text: their names, with spaces between them. ``default`` is for numbers that have no zone.
    """

    def __init__(self, window: Window, default: str | None, now: float) -> None:
        self._window = window
        self._default = default
        self._now = datetime.fromtimestamp(now, UTC)
        self._found: dict[tuple[str, ...], str] = {}

    def zones(self, phone: str) -> str:
        """Return the zones of a phone. Raises NoSendingHoursError."""
        names = zones_of(phone) or ((self._default,) if self._default else ())
        if not names:
            raise NoSendingHoursError("its time zone is unknown; set timezone in the profile")
        found = self._found.get(names)
        if found is None:
            is_ever_open = self._window.next_open(names, self._now) is not None
            found = self._found[names] = " ".join(names) if is_ever_open else ""
        if not found:
            raise NoSendingHoursError("the window is never open in all of its time zones at once")
        return found


def hours_of(ledger: Ledger, clock: Callable[[], float]) -> SendingHours | None:
    """Return the hours at which a job may send; None if it has no window."""
    if ledger.spec.window is None:
        return None
    with LEDGER.explained(ledger.path):
        return SendingHours(Window.parse(ledger.spec.window, ledger.spec.days), queries.zones(ledger.db), clock)


class SendingHours:
    """Tells for which zones, as `ZoneFinder` writes them, the window is open.

    Windows open and close at whole seconds, so what is open is found out once for each second of the clock.
    """

    def __init__(self, window: Window, zones: Iterable[str], clock: Callable[[], float]) -> None:
        self._window = window
        self._zones = {text: tuple(text.split()) for text in zones}
        self._clock = clock
        self._known: tuple[int, frozenset[str]] = (-1, frozenset())

    def open_zones(self) -> frozenset[str]:
        """Return the zones whose recipients may be sent to now."""
        second = int(self._clock())
        known, found = self._known
        if known != second:
            moment = datetime.fromtimestamp(second, UTC)
            found = frozenset(text for text, names in self._zones.items() if self._window.is_open(names, moment))
            self._known = (second, found)  # in one step: several threads ask
        return found

    def next_opening(self, zones: Iterable[str]) -> float | None:
        """Return when the window opens next for one of these zones, in seconds since 1970; now, if it is open."""
        now = datetime.fromtimestamp(self._clock(), UTC)
        openings = [self._window.next_open(self._zones[text], now) for text in zones]
        return min((opening.timestamp() for opening in openings if opening is not None), default=None)
