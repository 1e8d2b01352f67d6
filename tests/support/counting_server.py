"""A real HTTP server on loopback that accepts many requests at once, and stores their recipients.

It notes a request when the whole of it has arrived, and does not ask the client.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

from support import PATIENCE
from support.service import Behaviour, Received, Service, accepted, respond


class CountingServer(Service):
    """A service that accepts every message, and responds with balances and delivery states.

    ``delay`` is the time before a response in seconds, and ``state`` returns the state of a message.
    """

    def __init__(self, delay: float = 0.0) -> None:
        super().__init__(keeps=True)
        self.delay = delay
        self.state: Callable[[str], str] = lambda _: "delivered"
        self.dispatches: list[tuple[str, ...]] = []
        self.questions: list[str] = []
        self._changed = threading.Condition()
        self._released = threading.Event()
        self._released.set()

    # --- for tests

    def arrived(self) -> Counter[str]:
        return Counter(phone for phones in self.dispatches for phone in phones)

    def wait_for(self, number: int) -> None:
        self._wait(lambda: len(self.dispatches) >= number)

    def wait_for_questions(self, number: int) -> None:
        self._wait(lambda: len(self.questions) >= number)

    def _wait(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, PATIENCE), "the expected requests did not arrive"

    def hold(self) -> None:
        """Hold back all responses from now on."""
        self._released.clear()

    def release(self) -> None:
        """Send the responses that were held back, and all later ones at once."""
        self._released.set()

    # --- in a thread for each connection

    def behaviour(self, request: Received) -> Behaviour:
        record = accepted(request)
        with self._changed:
            if request.path.endswith("/send-sms"):
                self.dispatches.append(tuple(request.phones))
            elif request.path.endswith("/messages-state"):
                record["state"] = self.state(record["id"])
                self.questions.append(record["id"])
            else:
                return respond({"status": 1_000_000}, headers=KEPT)
            self._changed.notify_all()

        def later(connection: socket.socket) -> None:
            time.sleep(self.delay)
            self._released.wait(PATIENCE)
            respond(record, headers=KEPT)(connection)

        return later


KEPT = {"Connection": "keep-alive"}


@contextlib.contextmanager
def counting(delay: float = 0.0) -> Iterator[CountingServer]:
    server = CountingServer(delay)
    server.start()
    try:
        yield server
    finally:
        server.release()
        server.stop()
