"""Limits the memory of responses over all threads of a job.

Threads hold the bodies of responses at the same time, but only one of them processes a body: parsed JSON takes up to 32
times as much memory as its text.
"""

from __future__ import annotations

from threading import Condition, Lock

from msgctl.http.request import MAX_RESPONSE

MAX_BODIES = 16 * MAX_RESPONSE
"""Bytes of the bodies of all threads, except for the beginning of each."""
MAX_FREE = 64 * 1024
"""Bytes of a body that a thread may read at any time; few responses are larger."""

processing = Lock()
"""A thread holds it while it redacts or parses a response."""


class Memory:
    """Bytes that threads reserve, and release after use."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._released = Condition()

    def reserve(self, size: int, seconds: float) -> bool:
        """Wait until this many bytes are available, and reserve them. Return whether that was in time."""
        with self._released:
            if not self._released.wait_for(lambda: self._left >= size, timeout=seconds):
                return False
            self._left -= size
            return True

    def release(self, size: int) -> None:
        """Return bytes that were reserved."""
        with self._released:
            self._left += size
            self._released.notify_all()


bodies = Memory(MAX_BODIES)
