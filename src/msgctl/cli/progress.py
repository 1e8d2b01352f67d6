"""How far a job is: a line that changes on a terminal, a line a minute elsewhere."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

GLANCE = 0.2
"""Seconds between two looks at a job."""
EVERY_MINUTE = 60.0
_WINDOW = 15.0
"""Seconds over which the rate is measured."""


class Standing(NamedTuple):
    """How far a job is, in recipients, and what there is to count besides."""

    done: int
    of: int
    counts: Sequence[tuple[str, int]]


class Progress:
    """Makes the lines; times are those of a monotonic clock."""

    def __init__(self, began: float) -> None:
        self._looks: deque[tuple[float, int]] = deque()
        self._next_line = began + EVERY_MINUTE

    def line(self, standing: Standing, now: float, width: int | None) -> str | None:
        """The line to show now, in ``width`` columns of a terminal, None without one; None where it is not time."""
        self._look(standing.done, now)
        if width is None:
            if now < self._next_line:
                return None
            self._next_line = now + EVERY_MINUTE
        return _fitted(self._parts(standing), width)

    def _look(self, done: int, now: float) -> None:
        self._looks.append((now, done))
        while len(self._looks) > 2 and self._looks[1][0] <= now - _WINDOW:
            self._looks.popleft()

    def _parts(self, standing: Standing) -> list[str]:
        """What there is to say, the most important first."""
        parts = [f"{standing.done:,} of {standing.of:,}"]
        rate = self._rate()
        if rate:
            parts.append(f"{_rounded(rate)}/s")
            parts.append(f"{_duration((standing.of - standing.done) / rate)} left")
        return parts + [f"{name} {number:,}" for name, number in standing.counts]

    def _rate(self) -> float:
        (first, before), (last, after) = self._looks[0], self._looks[-1]
        return (after - before) / (last - first) if last > first else 0.0


def _fitted(parts: Sequence[str], width: int | None) -> str:
    """As many of the parts as fit on one line."""
    line = parts[0]
    for part in parts[1:]:
        longer = f"{line}  {part}"
        if width is not None and len(longer) >= width:
            break
        line = longer
    return line


def _rounded(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"


def _duration(seconds: float) -> str:
    """A time as people say it: 42 s, 3:05 min, 2:10 h."""
    whole = round(seconds)
    if whole < 100:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 100:
        return f"{minutes}:{rest:02} min"
    return f"{minutes // 60:,}:{minutes % 60:02} h"
