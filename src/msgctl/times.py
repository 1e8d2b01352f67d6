"""Times as they are written."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp(seconds: float) -> str:
    """Seconds since 1970 as ISO 8601 and RFC 3339 write a time: UTC, whole seconds, ``YYYY-MM-DDTHH:MM:SSZ``.

    Raises ValueError and OverflowError for a time that no calendar has.
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
