"""The sandbox with a stopped clock and repeatable random values, in this process or behind its HTTP server."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from msgctl.sandbox.emulator import Emulator, SandboxSettings
from msgctl.sandbox.protocol import BASE_PATH, SandboxRequest, SandboxResponse
from msgctl.sandbox.routing import respond
from msgctl.sandbox.server import Server
from support import PATIENCE

NOON = 1_795_262_400.0
"""2026-11-21T12:00:00Z."""

FORM = {"content-type": "application/x-www-form-urlencoded"}
JSON = {"content-type": "application/json"}
ACCOUNT = {"client": "1", "key": "sandbox"}
PHONE = "573001234567"


class World:
    """A sandbox whose time is ``now``. Requests have the right credentials, unless a parameter overrides them."""

    def __init__(self, path: Path, clock: Callable[[], float] | None = None, **settings: Any) -> None:
        self.path, self.now = path, NOON
        settings = {"key": ACCOUNT["key"], "seed": 7, **settings}
        self.emulator = Emulator(path, SandboxSettings(**settings), clock=clock or (lambda: self.now))
        self.respond: Callable[[SandboxRequest], SandboxResponse] = partial(respond, self.emulator)

    def get(self, path: str, **parameters: str | None) -> SandboxResponse:
        return self.respond(SandboxRequest("GET", BASE_PATH + path, encoded(parameters)))

    def post(self, path: str, **parameters: str | None) -> SandboxResponse:
        """Post a form; ``_`` in a parameter's name stands for ``-``."""
        return self.respond(posted(path, **parameters))

    def post_json(self, path: str, document: object, **query: str | None) -> SandboxResponse:
        body = json.dumps(document).encode()
        return self.respond(SandboxRequest("POST", BASE_PATH + path, encoded(query), JSON, body))

    def sms(self, phone: str = PHONE, text: str = "Hola") -> Any:
        return record(self.post("/send-sms", phone=phone, sms=text))

    def state_of(self, message_id: str) -> str:
        return str(record(self.get("/messages-state", id=message_id))["state"])

    @property
    def credits(self) -> int:
        return int(record(self.get("/balance"))["status"])

    # --- the sandbox's own endpoints

    def ask(self, path: str, **fields: object) -> SandboxResponse:
        return self.respond(SandboxRequest("GET", f"/sandbox/{path}", urlencode(fields, errors="replace")))

    def change(self, path: str, **fields: object) -> SandboxResponse:
        return self.respond(SandboxRequest("POST", f"/sandbox/{path}", "", JSON, json.dumps(fields).encode()))

    def inbox(self, **fields: str) -> list[dict[str, Any]]:
        messages: list[dict[str, Any]] = record(self.ask("inbox", **fields))["messages"]
        return messages

    def credit(self, credits: int) -> None:
        record(self.change("credit", credits=credits))

    def fault(self, *specs: str) -> None:
        record(self.change("fault", faults=specs))


def posted(path: str, **parameters: str | None) -> SandboxRequest:
    return SandboxRequest("POST", BASE_PATH + path, "", FORM, encoded(parameters).encode())


def encoded(parameters: dict[str, str | None]) -> str:
    named = {name.replace("_", "-"): value for name, value in {**ACCOUNT, **parameters}.items()}
    return urlencode({name: value for name, value in named.items() if value is not None})


def record(response: SandboxResponse) -> Any:
    """Return the document of a response that must be 200."""
    assert response.status == 200, response.body
    return json.loads(response.body)


def refusal(response: SandboxResponse, status: int = 520) -> tuple[str, str]:
    """Return ``error`` and ``msg`` of a response that must be a refusal."""
    assert response.status == status, response.body
    document = json.loads(response.body)
    assert list(document) == ["error", "msg"]
    return document["error"], document["msg"]


# --- over HTTP


@dataclass
class Served:
    """A running server; ``log`` has its lines."""

    server: Server
    log: list[str] = field(default_factory=list)

    @property
    def port(self) -> int:
        return int(self.server.socket.getsockname()[1])

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), PATIENCE)

    def raw(self, data: bytes) -> bytes:
        """Return everything that the server sends for these bytes until it closes."""
        return raw(("127.0.0.1", self.port), data)

    def send(self, request: SandboxRequest) -> SandboxResponse:
        """Send a request on a separate connection and read the response."""
        with self.connect() as connection:
            connection.sendall(as_http(request))
            return read_response(connection, request.method)


def raw(address: tuple[str, int], data: bytes) -> bytes:
    with socket.create_connection(address, PATIENCE) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
        return received


def as_http(request: SandboxRequest) -> bytes:
    target = request.path + (f"?{request.query}" if request.query else "")
    headers = {"host": "127.0.0.1", "content-length": str(len(request.body)), **request.headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{request.method} {target} HTTP/1.1\r\n{head}\r\n".encode(errors="surrogateescape") + request.body


def read_response(connection: socket.socket, method: str = "GET") -> SandboxResponse:
    response = HTTPResponse(connection, method=method)
    response.begin()
    headers = {name.lower(): value for name, value in response.getheaders()}
    return SandboxResponse(response.status, response.read(), headers)


@contextmanager
def serving(world: World, server: Server | None = None) -> Iterator[Served]:
    log: list[str] = []
    server = server or Server("127.0.0.1", 0, log.append)
    thread = threading.Thread(target=server.serve_forever, args=(partial(respond, world.emulator),), daemon=True)
    thread.start()
    try:
        yield Served(server, log)
    finally:
        server.stop()
        thread.join(PATIENCE)
        server.close()
