"""A real HTTP server on loopback with prepared responses, even bad ones; it remembers its requests."""

from __future__ import annotations

import contextlib
import json
import select
import socket
import ssl
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import trustme

from support import PATIENCE

Behaviour = Callable[[socket.socket], None]


@dataclass(frozen=True)
class Received:
    """One request as it arrived."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return unquote(urlsplit(self.target).path)

    @property
    def query(self) -> list[tuple[str, str]]:
        return parse_qsl(urlsplit(self.target).query, keep_blank_values=True, strict_parsing=True)

    @property
    def form(self) -> list[tuple[str, str]]:
        return parse_qsl(self.body.decode("ascii"), keep_blank_values=True, strict_parsing=bool(self.body))

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters in the query and the body, without the credentials and the country."""
        in_body = json.loads(self.body) if self.body.startswith(b"{") else dict(self.form)
        parameters = {**dict(self.query), **in_body}
        return {name: value for name, value in parameters.items() if name not in ("client", "key", "country-code")}

    @property
    def phones(self) -> list[str]:
        return str(self.parameters["phone"]).split(",")


def respond(
    body: bytes | Mapping[str, Any] = b"", status: int = 200, headers: Mapping[str, str] | None = None
) -> Behaviour:
    """Return a complete, correct HTTP response."""

    def behave(connection: socket.socket) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        usual = {"Content-Type": "application/json", "Content-Length": str(len(content)), "Connection": "close"}
        lines = {**usual, **(headers or {})}
        head = f"HTTP/1.1 {status} Said\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        connection.sendall(head.encode() + b"\r\n" + content)

    return behave


def accepted(request: Received, *, observed: bool = False) -> dict[str, Any]:
    """Return a response that accepts a request: as documented or, with ``observed``, as services in use send it."""
    path = request.path.removeprefix("/api/v1")
    if path == "/balance":
        return {"status": 1, "balance": "1000"} if observed else {"status": 1000}
    if path == "/messages-state":
        state = {"state": "Entregado" if observed else "delivered", "id": request.parameters["id"]}
        return {"data": [state]} if observed else state
    if path == "/2fa/verification-code":
        return {"status": 1} if observed else {"status": "verified"}
    if path == "/url/short":
        name = request.parameters["name"]
        return {"urlShort": f"https://s.example/{name}", "urlLong": request.parameters["url-long"], "msg": "created"}
    phones = request.phones
    if path == "/block-phone" or "chatapp" in path:
        return {"id": f"m{phones[0]}", "status": "Enviado" if observed else "sent", "phone": phones[0], "name": ""}
    number = str(uuid.uuid4())
    if observed:
        entry = {"state": "Enviado", "credits": str(len(phones)), "phone": ",".join(phones)}
        return {"status": 1, "id": number, "data": entry}
    name = "state" if path.startswith("/call") else "status"
    data = [{"id": f"m{phone}", name: "queued", "credits": 1, "phone": phone} for phone in phones]
    return {"id": number, "status": "ok" if path.startswith("/call") else 1, "data": data}


def raw(data: bytes) -> Behaviour:
    """Send these bytes, and close the connection."""

    def behave(connection: socket.socket) -> None:
        connection.sendall(data)

    return behave


def drop(connection: socket.socket) -> None:
    """Close the connection without a response."""


def hang_up(connection: socket.socket) -> None:
    connection.shutdown(socket.SHUT_RDWR)


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")


def silent(connection: socket.socket) -> None:
    """Send no response until the client goes away."""
    while connection.recv(65536):
        pass


def drip(head: bytes = b"", piece: bytes = b" ") -> Behaviour:
    """``head`` at once, then a piece every few milliseconds until the other side goes away."""

    def behave(connection: socket.socket) -> None:
        connection.sendall(head)
        stop = threading.Event()
        for _ in range(int(PATIENCE / 0.02)):
            connection.sendall(piece)
            stop.wait(0.02)

    return behave


def then(*behaviours: Behaviour, done: threading.Event | None = None) -> Behaviour:
    """Return one behaviour after the other on the same connection, and an event after the last."""

    def behave(connection: socket.socket) -> None:
        for behaviour in behaviours:
            behaviour(connection)
        if done is not None:
            done.set()

    return behave


def tunnel(port: int) -> Behaviour:
    """Open a tunnel to a port of this machine, as a proxy does. The requested host is ignored."""

    def behave(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        forward(connection, port)

    return behave


def forward(client: socket.socket, port: int) -> None:
    """Forward data in both directions until one ends, in one thread: OpenSSL must not read and write at once."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as service:
        others = {client: service, service: client}
        while ready := _readable(client, service):
            for source in ready:
                chunk = source.recv(65536)
                if not chunk:
                    return
                others[source].sendall(chunk)


def _readable(*sockets: socket.socket) -> list[socket.socket]:
    """Wait for data, and return the sockets that have some. A TLS socket may already have decrypted data."""
    decrypted: list[socket.socket] = [each for each in sockets if isinstance(each, ssl.SSLSocket) and each.pending()]
    return decrypted or select.select(sockets, [], [], PATIENCE)[0]


class Service:
    """Responds to requests with the behaviours of `will` in turn; then always with the behaviour of `always`.

    With ``keeps``, the next request is read from a connection that a response left open, even if the response
    announced its end. With ``blind``, the first bytes of a connection count as a request, whatever they are.
    """

    def __init__(self, tls: ssl.SSLContext | None = None, *, keeps: bool = False, blind: bool = False) -> None:
        self._tls = tls
        self._keeps = keeps
        self._next = _first_bytes if blind else _read
        self._prepared: deque[Behaviour] = deque()
        self._otherwise: Behaviour | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._acceptor = threading.Thread(target=self._accept, daemon=True)
        self._threads: list[threading.Thread] = []
        self._connections: list[socket.socket] = []
        self._hang_ups = 0
        self.received: list[Received] = []
        self.connections = 0

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def base_url(self) -> str:
        return f"{self.url}/api/v1"

    @property
    def unused(self) -> int:
        """Responses that were prepared but not requested."""
        return len(self._prepared)

    def will(self, *behaviours: Behaviour) -> None:
        self._prepared.extend(behaviours)

    def always(self, behaviour: Behaviour) -> None:
        self._otherwise = behaviour

    def hang_up(self, times: int) -> None:
        """Close the next connections at the first bytes of the TLS handshake."""
        self._hang_ups = times

    def start(self) -> None:
        self._acceptor.start()

    def stop(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._acceptor.join(timeout=PATIENCE)
        self._listener.close()
        for connection in self._connections:
            with contextlib.suppress(OSError):  # it is closed
                connection.shutdown(socket.SHUT_RD)
        for thread in self._threads:
            thread.join(timeout=PATIENCE)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            if self._hang_ups:
                self._hang_ups -= 1
                connection.settimeout(PATIENCE)
                with contextlib.suppress(OSError):
                    connection.recv(65536)  # unread data would reset the connection
                connection.close()
                continue
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            self._connections.append(connection)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(PATIENCE)
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            stack.callback(connection.close)
            if self._tls is not None:
                connection = stack.enter_context(self._tls.wrap_socket(connection, server_side=True))
            while (request := self._next(connection)) is not None:
                self.received.append(request)
                behave = self.behaviour(request)
                if behave is not None:
                    behave(connection)
                if not self._keeps:
                    return

    def behaviour(self, request: Received) -> Behaviour | None:
        """Return the behaviour after a request. Subclasses override this."""
        return self._prepared.popleft() if self._prepared else self._otherwise


def _first_bytes(connection: socket.socket) -> Received | None:
    return Received("", "", {}, connection.recv(65536))


def _read(connection: socket.socket) -> Received | None:
    data = b""
    while b"\r\n\r\n" not in data:
        chunk = connection.recv(65536)
        if not chunk:
            return None
        data += chunk
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ", 2)
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        body += connection.recv(65536)
    return Received(method, target, headers, body)


def certified(authority: trustme.CA, name: str, **validity: Any) -> ssl.SSLContext:
    """Return the TLS settings of a server with a certificate for a name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name, **validity).configure_cert(context)
    return context


@contextlib.contextmanager
def running(tls: ssl.SSLContext | None = None, *, keeps: bool = False, blind: bool = False) -> Iterator[Service]:
    """A server for the time of a test. Prepared responses that are not requested fail the test."""
    service = Service(tls, keeps=keeps, blind=blind)
    service.start()
    try:
        yield service
        assert service.unused == 0, f"{service.unused} responses were not requested"
    finally:
        service.stop()


@contextlib.contextmanager
def proxying(port: int, tls: ssl.SSLContext | None = None) -> Iterator[Service]:
    """Run a proxy whose tunnels all lead to a port of this machine."""
    with running(tls) as proxy:
        proxy.always(tunnel(port))
        yield proxy
