"""A server on loopback that accepts every message, unless a story or a test scripts a response."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Self

from support import PATIENCE
from support.service import Behaviour, Received, Service, accepted, hang_up, respond, silent

KEPT = {"Connection": "keep-alive"}
READS = ("/balance", "/messages-state", "/url/short-statistic")


class Server(Service):
    """A service that responds as the API documents or, with ``observed``, as real services do.

    ``delay`` is the time before a response in seconds.
    """

    def __init__(self, *, observed: bool = False, delay: float = 0.0) -> None:
        super().__init__(keeps=True)
        self.observed = observed
        self.delay = delay
        self.released = threading.Event()
        self._scripted: list[Callable[[Received], Behaviour]] = []
        self._rules: list[tuple[str, Callable[[Received], Behaviour]]] = []
        self._arrived = threading.Condition()
        self.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def requests(self, path: str | None) -> list[Received]:
        """Return the requests that arrived at a path; None means all except those that only read."""
        if path is None:
            return [request for request in self.received if not request.path.endswith(READS)]
        return [request for request in self.received if request.path.endswith(path)]

    @property
    def messages(self) -> list[str]:
        """A line for each number in each request, ``PHONE TEXT``; other requests as a path and their parameters."""
        return [line for request in self.requests(None) for line in _lines(request)]

    def arrived(self) -> Counter[str]:
        """Return how many SMS arrived for each number."""
        return Counter(phone for request in self.requests("/send-sms") for phone in request.phones)

    def wait_for(self, number: int, path: str | None, patience: float) -> bool:
        with self._arrived:
            return self._arrived.wait_for(lambda: len(self.requests(path)) >= number, patience)

    def come_back(self) -> None:
        self._listener.listen()
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._acceptor.start()

    def go_down(self) -> None:
        """Refuse connections, end those that are kept, but keep the port, which another process could take."""
        address = self._listener.getsockname()
        self.stop()
        self._listener = socket.socket()
        self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listener.bind(address)

    def stop(self) -> None:
        self.released.set()
        super().stop()

    def script(self, action: str, status: int, header: str, to: str | None, body: str) -> None:
        """Prepare a response: to the next request, or to all that contain a text (``to TEXT``, ``to everything``)."""
        make: Callable[[Received], Behaviour]
        if action == "waits":
            make = self._waiting
        else:
            headers = dict([header.split(": ")]) if header else {}
            response = respond(body.encode(), status, {**KEPT, **headers})
            behaviour = {"responds": response, "is silent": silent, "hangs up": hang_up}[action]
            make = lambda _: behaviour  # noqa: E731
        if to is None:
            self._scripted.append(make)
        else:
            text = to.removeprefix("to ")
            self._rules.insert(0, ("" if text == "everything" else text, make))

    def behaviour(self, request: Received) -> Behaviour:
        with self._arrived:
            self._arrived.notify_all()
        if self._scripted and not request.path.endswith("/balance"):
            return self._scripted.pop(0)(request)
        content = f"{request.target} {request.body.decode()}"
        for text, make in self._rules:
            if text in content:
                return make(request)
        return partial(self._accept_request, request)

    def _accept_request(self, request: Received, connection: socket.socket) -> None:
        time.sleep(self.delay)
        respond(accepted(request, observed=self.observed), headers=KEPT)(connection)

    def _waiting(self, request: Received) -> Behaviour:
        """Return the behaviour that accepts a request once the service continues."""

        def wait(connection: socket.socket) -> None:
            self.released.wait(PATIENCE)
            self._accept_request(request, connection)

        return wait


def _lines(request: Received) -> list[str]:
    fields = request.parameters
    if request.path == "/api/v1/send-sms":
        text = fields["sms"]
    elif request.path == "/api/v1/call/send":
        text = fields.get("message") or fields["audio-code"]
    elif "/chatapp/" in request.path:
        text = " ".join([fields["template"], *fields.get("body", [])])
    else:
        return [" ".join([request.path.removeprefix("/api/v1"), *(f"{name}={fields[name]}" for name in fields)])]
    return [f"{phone} {text}" for phone in request.phones]
