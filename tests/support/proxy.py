"""An HTTP proxy on loopback that opens tunnels, or refuses to."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
from collections.abc import Iterator

from support.service import PATIENCE


class Proxy:
    """Connects every tunnel to ``port`` of this machine, whatever the requested host; ``asked`` are the requests."""

    def __init__(self, port: int, status: int = 200, tls: ssl.SSLContext | None = None) -> None:
        self._port = port
        self._status = status
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.connections = 0
        self.asked: list[bytes] = []

    @property
    def url(self) -> str:
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self._listener.getsockname()[1]}"

    @property
    def targets(self) -> list[str]:
        """The first line of each request."""
        return [head.split(b"\r\n")[0].decode() for head in self.asked]

    def start(self) -> None:
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        client.settimeout(PATIENCE)
        with contextlib.suppress(OSError):
            secured = self._tls.wrap_socket(client, server_side=True) if self._tls else client
            with secured:
                if self.opens(secured):
                    self._tunnel(secured)

    def opens(self, client: socket.socket) -> bool:
        """Read a client's request, respond to it, and return whether the tunnel is open."""
        head = b""
        while b"\r\n\r\n" not in head:
            chunk = client.recv(65536)
            if not chunk:
                return False
            head += chunk
        self.asked.append(head)
        client.sendall(b"HTTP/1.1 %d Said\r\n\r\n" % self._status)
        return self._status == 200

    def _tunnel(self, client: socket.socket) -> None:
        """Forward data in both directions until one ends, in one thread: OpenSSL must not read and write at once."""
        with socket.create_connection(("127.0.0.1", self._port), timeout=PATIENCE) as service:
            others = {client: service, service: client}
            while ready := _readable(client, service):
                for source in ready:
                    chunk = source.recv(65536)
                    if not chunk:
                        return
                    others[source].sendall(chunk)


def _readable(*sockets: socket.socket) -> list[socket.socket]:
    """Return the sockets that have data, after waiting for it; a TLS socket may have decrypted data."""
    decrypted: list[socket.socket] = [each for each in sockets if isinstance(each, ssl.SSLSocket) and each.pending()]
    return decrypted or select.select(sockets, [], [], PATIENCE)[0]


@contextlib.contextmanager
def proxying(port: int, status: int = 200, proxy: Proxy | None = None) -> Iterator[Proxy]:
    """A proxy for the time of a test."""
    proxy = proxy or Proxy(port, status)
    proxy.start()
    try:
        yield proxy
    finally:
        proxy.stop()
