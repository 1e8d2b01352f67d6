"""A proxy in front of PostgreSQL: it keeps no sessions, refuses TLS, reports another version, or loses a response."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

SSL_REQUEST, GSS_REQUEST = 80877103, 80877104
PID = 4711
"""The process of the server that the proxy reports to every client."""


class _Connection:
    """One side of the proxy: messages of the protocol, each with its type."""

    def __init__(self, peer: socket.socket) -> None:
        self._peer = peer
        self._file = peer.makefile("rb")

    def first(self) -> bytes:
        """Read the first message of a client, which has no type. Refuse encryption."""
        while True:
            header = self._exactly(4)
            rest = self._exactly(struct.unpack("!I", header)[0] - 4)
            if struct.unpack("!I", rest[:4])[0] not in (SSL_REQUEST, GSS_REQUEST):
                return header + rest
            self._peer.sendall(b"N")

    def read(self) -> bytes:
        header = self._exactly(5)
        return header + self._exactly(struct.unpack("!I", header[1:])[0] - 4)

    def _exactly(self, size: int) -> bytes:
        data = self._file.read(size)
        if len(data) < size:
            raise EOFError
        return data

    def write(self, data: bytes) -> None:
        self._peer.sendall(data)

    def close(self) -> None:
        with suppress(OSError):
            self._peer.shutdown(socket.SHUT_RDWR)
        self._file.close()
        self._peer.close()


class Proxy:
    """Serves clients on loopback. With ``shares_sessions``, all of them use the session of the first one in turn.

    It loses the response to the first COMMIT after the statement ``loses_commit_of``, and ends this session.
    """

    def __init__(self, server: int, *, shares_sessions: bool, version: str, loses_commit_of: str) -> None:
        self._server = server
        self._shares_sessions = shares_sessions
        self._version = version
        self._last_statement = loses_commit_of.encode()
        self._turn = threading.Lock()
        self._shared: _Connection | None = None
        self._greeting = b""
        self._connections: list[_Connection] = []
        self._closing = threading.Lock()
        self._is_closed = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client = self._kept(self._listener.accept()[0])
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _kept(self, peer: socket.socket) -> _Connection:
        connection = _Connection(peer)
        with self._closing:
            self._connections.append(connection)
            is_late = self._is_closed
        if is_late:  # a thread connected while the proxy was closed
            connection.close()
        return connection

    def close(self) -> None:
        with self._closing:
            self._is_closed = True
        self._listener.close()
        for each in self._connections:
            each.close()

    def _serve(self, client: _Connection) -> None:
        with suppress(OSError, EOFError, ValueError):
            start = client.first()
            if self._shared is None:
                server = self._log_in(client, start)
            else:
                server = self._shared
                client.write(self._greeting)
            is_last = False
            while (message := client.read())[:1] != b"X":
                statements = message
                while message[:1] not in (b"Q", b"S"):  # a query, or the end of its parts
                    message = client.read()
                    statements += message
                is_last = is_last or (bool(self._last_statement) and self._last_statement in statements)
                with self._turn:
                    server.write(statements)
                    response = self._response(server)
                if is_last and b"COMMIT" in response:
                    self._last_statement = b""
                    server.close()
                    client.close()
                    return
                client.write(response)

    def _log_in(self, client: _Connection, start: bytes) -> _Connection:
        """Let a client authenticate itself to the server. Later clients of a shared session need no password."""
        server = self._kept(socket.create_connection(("127.0.0.1", self._server)))
        server.write(start)
        greeting = struct.pack("!cII", b"R", 8, 0)
        while (message := server.read())[:1] != b"Z":
            if message[:1] == b"K":
                message = message[:5] + struct.pack("!I", PID) + message[9:]
            if self._version and message[5:].startswith(b"server_version\0"):
                text = b"server_version\0" + self._version.encode() + b"\0"
                message = b"S" + struct.pack("!I", 4 + len(text)) + text
            if message[:1] in (b"S", b"K"):
                greeting += message
            client.write(message)
            if message[:1] == b"R" and struct.unpack("!I", message[5:9])[0] in (10, 11):  # it asks for a password
                server.write(client.read())
        client.write(message)
        if self._shares_sessions:
            self._shared, self._greeting = server, greeting + message
        return server

    def _response(self, server: _Connection) -> bytes:
        """Return the response to a query: all messages until the server is ready for another one."""
        response = b""
        while True:
            message = server.read()
            response += message
            if message[:1] == b"Z":
                return response


@contextmanager
def proxied(
    server: int, *, shares_sessions: bool = False, version: str = "", loses_commit_of: str = ""
) -> Iterator[int]:
    """Yield the port of a proxy for the server at a port. It refuses TLS."""
    proxy = Proxy(server, shares_sessions=shares_sessions, version=version, loses_commit_of=loses_commit_of)
    try:
        yield proxy.port
    finally:
        proxy.close()
