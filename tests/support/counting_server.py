"""A real HTTP server on loopback that accepts many dispatches at once, and remembers their recipients.

It notes a request when the whole of it has arrived, decides then whether its work is done, and does not ask the client.
"""

from __future__ import annotations

import contextlib
import json
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum

from support.service import Behaviour, Received, Service, reset, respond

PATIENCE = 60.0
"""Seconds after which a test that waits for the server has failed."""


class Fault(Enum):
    """A fault: what happens to a request instead of a normal response."""

    NONE = "carried out, and the whole response is sent"
    CUT_BEFORE = "the connection is cut, and nothing was carried out"
    CUT_AFTER = "the connection is cut after it was carried out"
    HALF = "carried out, and half of the response is sent"
    REFUSED = "520 with the error record, and nothing was carried out"

    @property
    def is_carried_out(self) -> bool:
        return self in (Fault.NONE, Fault.CUT_AFTER, Fault.HALF)


@dataclass(frozen=True)
class Dispatch:
    """A request to send, as it arrived: its place in the order of arrival (from 1), its phones, and its fault."""

    number: int
    phones: tuple[str, ...]
    fault: Fault


Decision = Callable[[int, tuple[str, ...]], Fault]
"""What happens to a request, from its number and its phones."""


def never(number: int, phones: tuple[str, ...]) -> Fault:
    return Fault.NONE


def at_random(seed: int, *faults: Fault, share: float) -> Decision:
    """One of the faults for a share of the requests: the seed, the first phone and its earlier requests decide."""
    asked: Counter[str] = Counter()

    def decide(number: int, phones: tuple[str, ...]) -> Fault:
        asked[phones[0]] += 1
        dice = random.Random(f"{seed} {phones[0]} {asked[phones[0]]}")
        return dice.choice(faults) if dice.random() < share else Fault.NONE

    return decide


class CountingServer(Service):
    """Responds to /send-sms as ``decide`` returns, and with balances and delivery states.

    ``price`` is the cost of a message, ``delay`` the seconds before a response, ``state`` returns the state of one.
    """

    def __init__(self, decide: Decision = never, *, price: int = 1, delay: float = 0.0) -> None:
        super().__init__(keeps=True)
        self.decide = decide
        self.price = price
        self.delay = delay
        self.state: Callable[[str], str] = lambda _: "delivered"
        self.on_arrival: Callable[[Dispatch], None] = lambda _: None
        self.dispatches: list[Dispatch] = []
        self.questions: list[str] = []
        self.charged = 0
        self._phone_of: dict[str, str] = {}
        self._changed = threading.Condition()
        self._released = threading.Event()
        self._released.set()

    # --- what a test asks

    def arrived(self) -> Counter[str]:
        """How often each phone was in a request."""
        return Counter(phone for dispatch in self.dispatches for phone in dispatch.phones)

    def carried_out(self) -> Counter[str]:
        """How many messages each phone got."""
        return Counter(
            phone for dispatch in self.dispatches if dispatch.fault.is_carried_out for phone in dispatch.phones
        )

    def phone_of(self, message: str | None) -> str | None:
        """Return the phone of the message with an id."""
        return self._phone_of.get(message or "")

    def wait_for(self, number: int) -> None:
        """Wait until this many dispatches have arrived."""
        self._wait(lambda: len(self.dispatches) >= number)

    def wait_for_questions(self, number: int) -> None:
        """Wait until this many delivery states were requested."""
        self._wait(lambda: len(self.questions) >= number)

    def _wait(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, PATIENCE), "the requests that were waited for did not come"

    def hold(self) -> None:
        """Hold back all responses from now on."""
        self._released.clear()

    def release(self) -> None:
        """Send the responses that were held back, and all later ones at once."""
        self._released.set()

    # --- what it does, in a thread for each connection

    def behaviour(self, request: Received) -> Behaviour:
        """Do what a request asks for, and return how to respond."""
        if request.path.endswith("/send-sms"):
            behave = self._dispatch(tuple(dict(request.form)["phone"].split(",")))
        elif request.path.endswith("/messages-state"):
            message = dict(request.query)["id"]
            with self._changed:
                self.questions.append(message)
                self._changed.notify_all()
            behave = respond({"id": message, "state": self.state(message)}, headers=KEPT)
        else:
            return respond({"status": 1_000_000}, headers=KEPT)

        def later(connection: socket.socket) -> None:
            time.sleep(self.delay)
            self._released.wait(PATIENCE)
            behave(connection)

        return later

    def _dispatch(self, phones: tuple[str, ...]) -> Behaviour:
        with self._changed:
            number = len(self.dispatches) + 1
            dispatch = Dispatch(number, phones, self.decide(number, phones))
            if dispatch.fault.is_carried_out:
                self.charged += self.price * len(phones)
                self._phone_of.update((f"{number}-{phone}", phone) for phone in phones)
            self.on_arrival(dispatch)
            self.dispatches.append(dispatch)
            self._changed.notify_all()
        if dispatch.fault is Fault.REFUSED:
            return respond({"error": "REFUSED", "msg": "the route is closed"}, 520, KEPT)
        entries = [
            {"id": f"{number}-{phone}", "status": "queued", "credits": self.price, "phone": phone} for phone in phones
        ]
        whole = json.dumps({"id": str(number), "status": 1, "data": entries}).encode()

        def cut(connection: socket.socket) -> None:
            if dispatch.fault is Fault.HALF:
                respond(whole[: len(whole) // 2], headers={**KEPT, "Content-Length": str(len(whole))})(connection)
            else:
                reset(connection)
            raise ConnectionAbortedError

        return respond(whole, headers=KEPT) if dispatch.fault is Fault.NONE else cut


KEPT = {"Connection": "keep-alive"}


@contextlib.contextmanager
def counting(decide: Decision = never, *, price: int = 1, delay: float = 0.0) -> Iterator[CountingServer]:
    """A server for the time of a test."""
    server = CountingServer(decide, price=price, delay=delay)
    server.start()
    try:
        yield server
    finally:
        server.release()
        server.stop()
