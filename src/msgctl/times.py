"""Times as text."""

from __future__ import annotations

from datetime import UTC, datetime


def timestamp(seconds: float) -> str:
    """Return seconds since 1970 as ``YYYY-MM-DDTHH:MM:SSZ``, in UTC (ISO 8601, RFC 3339).

    Raises ValueError and OverflowError for a time that no calendar has.
    """
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
