"""The service of a simulated world: the sandbox's emulator, behind a network that loses and damages what it carries.

It records what was sent, what arrived and which responses were damaged. The tool's reports are compared with that.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import httpx

from msgctl.errors import NotReachedError
from msgctl.operations import OPERATIONS, SEND_SMS, Operation
from msgctl.sandbox import responses
from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.protocol import Refusal, SandboxRequest
from msgctl.sandbox.service import respond
from simulation.machine import World

BASE_URL = "https://service.example/api/v1"
CLIENT, KEY = 12345, "simulated"

FAULTS = ("no connection", "refused", "bare", "lost", "gateway", "reset", "late", "half", "no entry")
HONEST = FAULTS[:3]
"""Faults after which it is certain whether the request was carried out."""


class Departure(NamedTuple):
    """A request that was sent."""

    process: str
    phones: Sequence[str]
    now: float
    wall: float
    fault: str

    @property
    def is_doubtful(self) -> bool:
        """Whether its response does not arrive whole."""
        return bool(self.fault) and self.fault not in HONEST


class Arrival(NamedTuple):
    """A message that the service sent to a phone; ``wall`` is when its request left the machine."""

    process: str
    phone: str
    id: str
    credits: int
    wall: float
    text: str


def as_received(request: httpx.Request) -> SandboxRequest:
    """Return a request as the service receives it."""
    path, _, query = request.url.raw_path.decode().partition("?")
    return SandboxRequest(request.method, path, query, dict(request.headers), request.read())


class Service(httpx.BaseTransport):
    """In place of the transport to the network."""

    def __init__(self, folder: Path) -> None:
        path = folder / "service.sqlite3"
        self.emulator = Emulator(path, clock=lambda: self.world.wall, client=CLIENT, key=KEY, base_url=BASE_URL)

    def begin(self, world: World, seed: int) -> None:
        """Delete everything, for a new world."""
        self.world = world
        self.emulator.reset()
        self.emulator.random = Random(seed)
        self.faults = world.random.choice((0.0, 0.0, 0.05, 0.3))
        """How often a request meets one."""
        self.departures: list[Departure] = []
        self.arrivals: list[Arrival] = []
        self.bare: set[str] = set()
        """Dispatches whose responses had no entries, so that recipients have the id of the dispatch."""
        self._mix = Random(f"responses of {seed}")
        self.responses = self._mix.choice(responses.NAMES)
        """The name of the form of its responses; with undocumented ones, recipients may share an id or have none."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        world = self.world
        fault = world.random.choice(FAULTS) if world.random.random() < self.faults else ""
        fields = parse_qs(request.read().decode())
        phones = fields["phone"][0].split(",") if "phone" in fields else []
        world.point(f"request {request.url.path.rsplit('/', 1)[1]} to {','.join(phones)} {fault}")
        if fault == "no connection":
            raise NotReachedError("No connection")
        process = world.alive().process.name
        request.extensions["sent"] = True
        world.short_waits, left = 0, world.wall
        if phones:
            self.departures.append(Departure(process, phones, world.now, left, fault))
        self._travel()
        if fault == "lost":
            raise httpx.ReadError("connection reset")
        if fault == "gateway" and world.random.random() < 0.5:
            return httpx.Response(502, text="Bad Gateway")
        if fault == "refused":
            return httpx.Response(520, json={"error": "BUSY", "msg": "not now"})
        operation = next(each for each in OPERATIONS if request.url.path.endswith(each.path))
        with world.outside():
            response = respond(self.emulator, as_received(request))
        document = json.loads(response.body)
        entries = document.get("data", []) if response.status == 200 else []
        sent = [entry for entry in entries if entry["status"] != "blocked"]
        self.arrivals += [
            Arrival(process, entry["phone"], entry["id"], entry["credits"], left, fields["sms"][0]) for entry in sent
        ]
        world.point("carried out")
        self._travel()
        if fault == "reset":
            raise httpx.ReadError("connection reset")
        if fault == "gateway":
            return httpx.Response(502, text="Bad Gateway")
        if fault == "late":
            world.sleep(request.extensions["timeout"]["read"])
            raise httpx.ReadTimeout("timed out")
        if fault == "half":
            content = self._encoded(operation, response.status, document).content
            return httpx.Response(200, content=content[: len(content) // 2])
        if fault == "no entry" and entries:
            del entries[world.random.randrange(len(entries))]
        if fault == "bare" and entries and entries == sent:
            del document["data"]
            self.bare.add(document["id"])
        return self._encoded(operation, response.status, document)

    def _encoded(self, operation: Operation, status: int, document: Any) -> httpx.Response:
        """Return a response, in the chosen form if that can express it."""
        if self.responses == responses.DOCUMENTED or (
            operation is SEND_SMS and status == 200 and not document.get("data")
        ):
            return httpx.Response(status, content=json.dumps(document).encode())
        if status == 200:
            converted = responses.observed(operation, document, self.world.wall, self._mix)
        else:
            converted = responses.observed_refusal(operation, Refusal(document["error"], document["msg"]))
        return httpx.Response(converted.status, content=converted.body)

    def _travel(self) -> None:
        if seconds := self.world.random.choice((0, 0, 0, 0.01, 0.3, 2.0)):
            self.world.sleep(seconds)

    # --- what it remembers itself

    def block(self, phone: str) -> None:
        with self.emulator.writing() as db:
            db.execute("INSERT OR IGNORE INTO blocked VALUES (?, 'b', '')", (phone,))

    def credits(self) -> int:
        with self.emulator.reading() as db:
            return int(db.execute("SELECT credits FROM account").fetchone()[0])

    def messages(self) -> set[tuple[str, str, int]]:
        """Return phone, id and credits of everything that was sent."""
        with self.emulator.reading() as db:
            return {tuple(row) for row in db.execute("SELECT phone, id, credits FROM messages WHERE NOT blocked")}
