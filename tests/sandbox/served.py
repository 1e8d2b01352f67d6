"""The emulator behind its HTTP server, and a client that sends any bytes."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPResponse

from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.protocol import SandboxRequest, SandboxResponse
from msgctl.sandbox.server import Server
from msgctl.sandbox.service import respond

PATIENCE = 20.0
"""Seconds after which a socket gives up, so that a broken test ends."""


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

    def send(self, call: SandboxRequest) -> SandboxResponse:
        """Send a request on a connection of its own and read the response."""
        with self.connect() as connection:
            connection.sendall(as_http(call))
            return read_response(connection, call.method)


def raw(address: tuple[str, int], data: bytes) -> bytes:
    """Send bytes and return everything that a server sends back until it closes."""
    with socket.create_connection(address, PATIENCE) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        received = b""
        while chunk := connection.recv(65536):
            received += chunk
        return received


def as_http(call: SandboxRequest) -> bytes:
    """Return a request as bytes."""
    target = call.path + (f"?{call.query}" if call.query else "")
    headers = {"host": "127.0.0.1", "content-length": str(len(call.body)), **call.headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{call.method} {target} HTTP/1.1\r\n{head}\r\n".encode(errors="surrogateescape") + call.body


def read_response(connection: socket.socket, method: str = "GET") -> SandboxResponse:
    """Read the next response on a connection with the standard library's client."""
    response = HTTPResponse(connection, method=method)
    response.begin()
    return SandboxResponse(
        response.status, response.read(), {name.lower(): value for name, value in response.getheaders()}
    )


@contextmanager
def serving(emulator: Emulator, server: Server | None = None) -> Iterator[Served]:
    """A server on loopback for the time of a test."""
    log: list[str] = []
    server = server or Server("127.0.0.1", 0, log.append)
    thread = threading.Thread(target=server.serve_forever, args=(partial(respond, emulator),), daemon=True)
    thread.start()
    try:
        yield Served(server, log)
    finally:
        server.stop()
        thread.join(PATIENCE)
        server.close()
