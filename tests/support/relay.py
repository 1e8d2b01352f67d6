"""A proxy between msgctl and a server on this machine, which may be slow, cut the connection or change a response."""

from __future__ import annotations

import re
import select
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from support import PATIENCE

ENCRYPTION = tuple(struct.pack("!II", 8, code) for code in (80877103, 80877104))
"""The requests of a client of PostgreSQL for TLS and for GSSAPI."""


@contextmanager
def relaying(port: int, serve: Callable[[socket.socket, socket.socket], None]) -> Iterator[int]:
    """Yield the port of a proxy to a port. ``serve`` gets both ends of each connection, in a thread of its own."""
    listener = socket.create_server(("127.0.0.1", 0))

    def relay(client: socket.socket) -> None:
        with suppress(OSError), client, socket.create_connection(("127.0.0.1", port)) as server:
            serve(client, server)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=relay, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


@contextmanager
def proxied(server: int, *, version: str = "", loses_commit_of: str = "") -> Iterator[int]:
    """Yield the port of a proxy to PostgreSQL that refuses TLS, and hides the process of the session, as a pooler does.

    It may report another version, or lose the response to the first COMMIT after a statement.
    """
    losing = loses_commit_of.encode()

    def changed(chunk: bytes) -> bytes:
        name = b"server_version\0"
        if name not in chunk:
            return chunk
        chunk = re.sub(rb"(?<=K\0\0\0\x0c)....", b"\x7f" * 4, chunk, flags=re.DOTALL)
        before, _, after = chunk.partition(name)
        actual = after.partition(b"\0")[0]
        return before + name + (version.encode() or actual).ljust(len(actual)) + after[len(actual) :]

    def serve(client: socket.socket, server: socket.socket) -> None:
        nonlocal losing
        is_last = False
        while True:
            for source in select.select([client, server], [], [], PATIENCE)[0]:
                chunk = source.recv(65536)
                if not chunk:
                    return
                if chunk in ENCRYPTION:
                    client.sendall(b"N")
                elif source is client:
                    is_last |= bool(losing) and losing in chunk
                    server.sendall(chunk)
                elif is_last and b"COMMIT" in chunk:
                    losing = b""
                    return
                else:
                    client.sendall(changed(chunk))

    with relaying(server, serve) as port:
        yield port
