"""The service of a simulated world: the sandbox's emulator behind a network that loses and spoils what it carries.

What it knows is the truth that the tool's word is compared with: what left, what arrived, and what came back spoilt.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple
from urllib.parse import parse_qs

import httpx

from msgctl.errors import NotReachedError
from msgctl.sandbox.emulator import Emulator, SandboxTransport
from msgctl.sandbox.state import SandboxState
from simulation.world import World

BASE_URL = "https://service.example/api/v1"
CLIENT, KEY = 12345, "simulated"

BEFORE = ("no connection", "no connection", "lost", "slow", "503", "refused", "429")
"""Faults before the request is carried out."""
AFTER = ("reset", "too late", "html", "half", "520 page", "no entry", "bare")
"""Faults after it."""
HONEST = {"no connection", "refused", "429", "bare"}
"""Faults that leave no doubt."""


class Departure(NamedTuple):
    """A request that left the machine."""

    process: str
    phones: Sequence[str]
    now: float
    wall: float


class Arrival(NamedTuple):
    """A message that the service sent to a phone."""

    process: str
    phone: str
    id: str
    credits: int


class Service:
    def __init__(self, folder: Path) -> None:
        self.state = SandboxState(folder / "service.sqlite3")
        self.emulator = Emulator(self.state, clock=lambda: self.world.wall, client=CLIENT, key=KEY, base_url=BASE_URL)

    def begin(self, world: World, seed: int) -> None:
        """Forget everything, for a new world."""
        self.world = world
        self.state.reset()
        self.emulator.random = Random(seed)
        self.first_credits = self.credits()
        self.faults = world.random.choice((0.0, 0.0, 0.05, 0.3))
        """How often a request meets one."""
        self.departures: list[Departure] = []
        self.arrivals: list[Arrival] = []
        self.doubts: list[tuple[str, str]] = []
        """Process and phone of requests whose response did not come whole."""

    def transport(self) -> httpx.BaseTransport:
        return Network(self)

    def credits(self) -> int:
        with self.state.reading() as db:
            return int(db.execute("SELECT credits FROM account").fetchone()[0])

    def set_credits(self, credits: int) -> None:
        self.first_credits += credits - self.credits()
        self.state.set_credits(credits)

    def block(self, phone: str) -> None:
        with self.state.writing() as db:
            db.execute("INSERT OR IGNORE INTO blocked VALUES (?, 'b', '')", (phone,))

    def messages(self) -> list[tuple[str, str, int]]:
        """Return id, phone and credits of everything that was sent, as the emulator remembers it."""
        with self.state.reading() as db:
            return [tuple(row) for row in db.execute("SELECT id, phone, credits FROM messages WHERE NOT blocked")]


class Network(httpx.BaseTransport):
    """In place of the transport to the network."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._emulated = SandboxTransport(service.emulator)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        service, world = self._service, self._service.world
        fault = world.random.choice(BEFORE + AFTER) if world.random.random() < service.faults else ""
        if request.method == "GET" and fault in ("no entry", "bare"):
            fault = "html"
        phones = parse_qs(request.content.decode()).get("phone", [""])[0].split(",")
        world.note(f"request to {','.join(phones)} {fault}")
        if fault == "no connection":
            world.point("no connection")
            raise NotReachedError("No connection")
        process = world.alive().process.name
        request.extensions["sent"] = True
        world.progress()
        if request.method == "POST":
            service.departures.append(Departure(process, phones, world.now, world.wall))
        if fault and fault not in HONEST:
            service.doubts += [(process, phone) for phone in phones]
        self._travel()
        if fault in ("lost", "slow"):
            self._fail(request, fault)
        if fault in ("503", "429"):
            return httpx.Response(int(fault), text="<html>Busy</html>")
        if fault == "refused":
            return httpx.Response(520, json={"error": "BUSY", "msg": "not now"})
        with world.outside():
            response = self._emulated.handle_request(request)
        self._note_arrivals(process, request, response)
        world.point("carried out")
        self._travel()
        if fault in ("reset", "too late"):
            self._fail(request, fault)
        return self._spoilt(fault, response)

    def _travel(self) -> None:
        if seconds := self._service.world.random.choice((0, 0, 0, 0.01, 0.3, 2.0)):
            self._service.world.sleep(seconds)

    def _fail(self, request: httpx.Request, fault: str) -> None:
        if fault in ("slow", "too late"):
            self._service.world.sleep(request.extensions["timeout"]["read"])
            raise httpx.ReadTimeout("timed out")
        raise httpx.ReadError("connection reset")

    def _note_arrivals(self, process: str, request: httpx.Request, response: httpx.Response) -> None:
        if request.method != "POST" or response.status_code != 200:
            return
        for entry in response.json()["data"]:
            if entry["status"] != "blocked":
                self._service.arrivals.append(Arrival(process, entry["phone"], entry["id"], entry["credits"]))

    def _spoilt(self, fault: str, response: httpx.Response) -> httpx.Response:
        if not fault or response.status_code != 200:
            return response
        if fault == "html":
            return httpx.Response(200, text="<html>Welcome</html>")
        if fault == "520 page":
            return httpx.Response(520, text="<html>Unknown error</html>")
        if fault == "half":
            return httpx.Response(200, content=response.content[: len(response.content) // 2])
        document = response.json()
        if fault == "no entry":
            del document["data"][self._service.world.random.randrange(len(document["data"]))]
        elif all(entry["status"] != "blocked" for entry in document["data"]):
            del document["data"]
        return httpx.Response(200, content=json.dumps(document).encode())
