"""Threads of a job, of which the system may allow fewer than were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Thread


def begin(threads: Sequence[Thread]) -> list[Thread]:
    """Start threads in their order, as many as the system allows; those that were started."""
    for number, thread in enumerate(threads):
        try:
            thread.start()
        except RuntimeError:  # "can't start new thread"
            return list(threads[:number])
    return list(threads)
