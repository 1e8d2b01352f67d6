"""A real HTTP server on loopback that accepts many dispatches at once, and remembers their recipients.

It notes a request when the whole of it has arrived, decides then whether its work is done, and does not ask the client.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any
from urllib.parse import parse_qs

PATIENCE = 60.0
"""Seconds after which a test that waits for the server has failed."""


class Fault(Enum):
    """A fault: what happens to a request instead of a normal response."""

    NONE = "carried out and answered"
    CUT_BEFORE = "the connection is cut, and nothing was carried out"
    CUT_AFTER = "the connection is cut after it was carried out"
    HALF = "carried out, and half of the answer is sent"
    REFUSED = "520 with the error record, and nothing was carried out"

    @property
    def is_carried_out(self) -> bool:
        return self in (Fault.NONE, Fault.CUT_AFTER, Fault.HALF)


@dataclass(frozen=True)
class Dispatch:
    """A request to send, as it arrived: its place in the order of arrival (from 1), its phones, and its fate."""

    number: int
    phones: tuple[str, ...]
    fault: Fault


Decision = Callable[[int, tuple[str, ...]], Fault]
"""What happens to a request, from its number and its phones."""


def never(number: int, phones: tuple[str, ...]) -> Fault:
    return Fault.NONE


def at_random(seed: int, *faults: Fault, share: float) -> Decision:
    """One of the faults for a share of the requests; the seed, the phones and the times of asking tell which."""
    asked: Counter[str] = Counter()

    def decide(number: int, phones: tuple[str, ...]) -> Fault:
        asked[phones[0]] += 1
        dice = random.Random(f"{seed} {phones[0]} {asked[phones[0]]}")
        return dice.choice(faults) if dice.random() < share else Fault.NONE

    return decide


class CountingServer:
    """Takes /send-sms as ``decide`` says, and responds with balances and delivery states.

    ``price`` is the cost of a message, ``delay`` the seconds before a response, ``state`` returns the state of one.
    """

    def __init__(self, decide: Decision = never, *, price: int = 1, delay: float = 0.0) -> None:
        self.decide = decide
        self.price = price
        self.delay = delay
        self.state: Callable[[str], str] = lambda _: "delivered"
        self.on_arrival: Callable[[Dispatch], None] = lambda _: None
        self.dispatches: list[Dispatch] = []
        self.questions: list[str] = []
        self.charged = 0
        self.port = 0
        self.connections: set[asyncio.Transport] = set()
        self._phone_of: dict[str, str] = {}
        self._held: list[Callable[[], None]] | None = None
        self._changed = threading.Condition()
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    # --- what a test asks

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/api/v1"

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
        """Wait until so many dispatches have arrived."""
        self._wait(lambda: len(self.dispatches) >= number)

    def wait_for_questions(self, number: int) -> None:
        """Wait until so many delivery states were asked for."""
        self._wait(lambda: len(self.questions) >= number)

    def _wait(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, PATIENCE), "the requests that were waited for did not come"

    def hold(self) -> None:
        """Hold back all responses from now on."""
        self._loop.call_soon_threadsafe(self._hold)

    def release(self) -> None:
        """Send the responses that were held back, and all later ones at once."""
        self._loop.call_soon_threadsafe(self._release)

    # --- its life

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(PATIENCE)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(
            self._loop.create_server(lambda: _Connection(self), "127.0.0.1", 0, backlog=512)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for transport in [*self.connections]:
            transport.abort()
        while self.connections:
            self._loop.run_until_complete(asyncio.sleep(0))
        self._loop.close()

    def _hold(self) -> None:
        self._held = [] if self._held is None else self._held

    def _release(self) -> None:
        held, self._held = self._held or [], None
        for answer in held:
            answer()

    # --- what it does, in its thread

    def take(self, target: str, body: bytes, reply: Callable[[bytes | None], None]) -> None:
        """Do what a request asks for, and ``reply``: with None to cut the connection."""
        path, _, query = target.partition("?")
        if path.endswith("/send-sms"):
            dispatch = self._dispatch(parse_qs(body.decode("ascii")))
            answer = self._answer(dispatch)
        elif path.endswith("/messages-state"):
            (message,) = parse_qs(query)["id"]
            self._note(lambda: self.questions.append(message))
            answer = _http(200, {"id": message, "state": self.state(message)})
        else:
            reply(_http(200, {"status": 1_000_000}))
            return
        self._later(lambda: reply(answer))

    def _dispatch(self, form: dict[str, list[str]]) -> Dispatch:
        phones = tuple(form["phone"][0].split(","))
        number = len(self.dispatches) + 1
        dispatch = Dispatch(number, phones, self.decide(number, phones))
        if dispatch.fault.is_carried_out:
            self.charged += self.price * len(phones)
            self._phone_of.update((f"{number}-{phone}", phone) for phone in phones)
        self.on_arrival(dispatch)
        self._note(lambda: self.dispatches.append(dispatch))
        return dispatch

    def _note(self, change: Callable[[], None]) -> None:
        with self._changed:
            change()
            self._changed.notify_all()

    def _answer(self, dispatch: Dispatch) -> bytes | None:
        if dispatch.fault in (Fault.CUT_BEFORE, Fault.CUT_AFTER):
            return None
        if dispatch.fault is Fault.REFUSED:
            return _http(520, {"error": "REFUSED", "msg": "the route is closed"})
        entries = [
            {"id": f"{dispatch.number}-{phone}", "status": "queued", "credits": self.price, "phone": phone}
            for phone in dispatch.phones
        ]
        answer = _http(200, {"id": str(dispatch.number), "status": 1, "data": entries})
        return answer[: len(answer) // 2] if dispatch.fault is Fault.HALF else answer

    def _later(self, answer: Callable[[], None]) -> None:
        if self._held is not None:
            self._held.append(answer)
        elif self.delay:
            self._loop.call_later(self.delay, answer)
        else:
            answer()


class _Connection(asyncio.Protocol):
    """Reads requests, one after another, and writes what the server replies to them."""

    def __init__(self, server: CountingServer) -> None:
        self._server = server
        self._read = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._server.connections.add(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.connections.discard(self._transport)

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, end, rest = self._read.partition(b"\r\n\r\n")
        length = _content_length(head)
        if end and len(rest) >= length:
            self._read = rest[length:]
            self._server.take(head.split(b" ", 2)[1].decode("ascii"), rest[:length], self._reply)

    def _reply(self, answer: bytes | None) -> None:
        if answer is None:
            self._transport.abort()
        else:
            self._transport.write(answer)
            if len(answer) < _whole(answer):
                self._transport.close()


def _content_length(head: bytes) -> int:
    _, found, rest = head.lower().partition(b"content-length:")
    return int(rest.split(b"\r\n", 1)[0]) if found else 0


def _whole(answer: bytes) -> int:
    """Return the expected length of a response."""
    head, end, _ = answer.partition(b"\r\n\r\n")
    return len(head) + len(end) + _content_length(head) if end else len(answer) + 1


def _http(status: int, document: Any) -> bytes:
    body = json.dumps(document).encode()
    head = f"HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@contextlib.contextmanager
def counting(decide: Decision = never, *, price: int = 1, delay: float = 0.0) -> Iterator[CountingServer]:
    """A server for the time of a test."""
    server = CountingServer(decide, price=price, delay=delay)
    server.start()
    try:
        yield server
    finally:
        server.stop()
