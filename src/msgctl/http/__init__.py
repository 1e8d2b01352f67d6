"""The HTTP core: send an operation as one request, and return its response or raise an error."""

from __future__ import annotations

from threading import Lock


class SentCounter:
    """Counts the requests of a run that may have changed something at the service.

    A request begins to count before its first byte leaves this machine. It no longer counts once it is certain that the
    service did not receive it, refused it or turned it away. All clients of a run share one counter. ``count`` is zero
    if it is certain that nothing was sent or changed.
    """

    def __init__(self) -> None:
        self.count = 0
        self._lock = Lock()

    def add(self, number: int) -> None:
        """Add a request to the count, or remove it with -1."""
        with self._lock:
            self.count += number
