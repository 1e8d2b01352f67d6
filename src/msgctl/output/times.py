"""Times for people: local, and as short as is still clear."""

from __future__ import annotations

from datetime import datetime

_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))


def local(stamp: str, now: float) -> str:
    """Return a time of msgctl (ISO 8601, UTC) as ``22:46:23`` today, ``14 Nov 22:46`` this year, else as the date.

    A text without a time zone is returned unchanged: it is the service's own.
    """
    at = _read(stamp)
    if at is None:
        return stamp
    there, today = at.astimezone(), datetime.fromtimestamp(now).astimezone()
    if there.date() == today.date():
        return f"{there:%H:%M:%S}"
    return f"{there.day} {there:%b %H:%M}" if there.year == today.year else f"{there:%Y-%m-%d}"


def ago(stamp: str, now: float) -> str:
    """Return how long ago a time of msgctl was: ``6 min ago``. Empty for a future time."""
    at = _read(stamp)
    seconds = -1 if at is None else int(now - at.timestamp())
    for size, unit in _UNITS:
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return "now" if seconds == 0 else ""


def _read(stamp: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return at if at.tzinfo else None
