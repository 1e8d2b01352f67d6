"""A proxy between msgctl and a server on this machine, which may be slow or cut the connection."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress


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
