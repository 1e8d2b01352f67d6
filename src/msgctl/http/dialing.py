"""From a base URL to a connection: look up the name, connect, open the proxy's tunnel, shake hands (TLS).

Whatever fails here fails before anything of a request has left.
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgctl.config.base_url import ascii_host
from msgctl.errors import ConfigurationError, NotReachedError
from msgctl.http.proxies import Proxy, proxy_for
from msgctl.http.timed import Deadline, Incoming, TooMuchError, send

CHECK_ADDRESS = "Check the base URL, its port included, the network, and HTTPS_PROXY where a proxy is in between."
CHECK_PROXY = "Check HTTPS_PROXY and NO_PROXY."
OWN_AUTHORITY = "If the service has a certificate authority of its own, name its file in SSL_CERT_FILE."
NO_AUTHORITIES = (
    "This system has no certificates of authorities where they are looked for: install them (ca-certificates), "
    "or name a file of them in SSL_CERT_FILE."
)
MOST_TUNNEL_BYTES = 64 * 1024
"""The longest answer of a proxy to CONNECT, in bytes."""

Address = tuple[int, Any]
"""Address family, and address as `socket.connect` takes it."""


class Dialer:
    """Opens connections to the service at a base URL; any number of threads may use one.

    Honours SSL_CERT_FILE, SSL_CERT_DIR and the proxy variables. Raises ConfigurationError where the latter cannot be
    used.
    """

    def __init__(self, base_url: str) -> None:
        parts = urlsplit(base_url)
        self.is_secure = parts.scheme == "https"
        self.host = ascii_host(parts.hostname or "")
        usual = 443 if self.is_secure else 80
        self.port = parts.port or usual
        self.proxy = proxy_for(parts.scheme, self.host, self.port)
        self._tls: ssl.SSLContext | None = None
        self._tls_lock = threading.Lock()
        self.authority = self._host_and_port if self.port != usual else self._bracketed
        """Host, and port where it is not the usual one: the value of the Host header."""

    @property
    def _bracketed(self) -> str:
        return f"[{self.host}]" if ":" in self.host else self.host

    @property
    def _host_and_port(self) -> str:
        return f"{self._bracketed}:{self.port}"

    @property
    def prefix(self) -> str:
        """What stands before the path in the first line: scheme and host where an http proxy passes the request on."""
        return f"http://{self.authority}" if self.proxy and not self.is_secure else ""

    @property
    def proxy_headers(self) -> Mapping[str, str]:
        """What goes along for a proxy that passes the request on."""
        return self.proxy.headers if self.proxy and not self.is_secure else {}

    @property
    def endpoint(self) -> tuple[str, int]:
        """Host and port to which a connection is made: the service's, or those of the proxy before it."""
        return (self.proxy.host, self.proxy.port) if self.proxy else (self.host, self.port)

    def open(self, deadline: Deadline) -> socket.socket:
        """A connection on which the next byte is the request's. Raises NotReachedError and ConfigurationError."""
        if self.is_secure:
            self._context()  # what is wrong with it is found before anything is opened
        connection = self.connect(deadline)
        return self.secure(connection, deadline) if self.is_secure else connection

    def addresses(self, deadline: Deadline) -> list[str]:
        """The addresses of the `endpoint`. Raises NotReachedError."""
        host, port = self.endpoint
        with self._failures(host, deadline):
            return list(dict.fromkeys(str(address[0]) for _, address in _look_up(host, port, deadline)))

    def connect(self, deadline: Deadline) -> socket.socket:
        """A connection that leads to the service, not yet secured. Raises NotReachedError."""
        host, port = self.endpoint
        with self._failures(host, deadline):
            connection = _connect(host, port, deadline)
        if self.proxy and self.is_secure:
            with self._failures(self.host, deadline, connection):
                self._open_tunnel(connection, self.proxy, deadline)
        return connection

    def secure(self, connection: socket.socket, deadline: Deadline) -> ssl.SSLSocket:
        """The connection after the handshake with the service. Raises NotReachedError and ConfigurationError."""
        with self._failures(self.host, deadline, connection):
            connection.settimeout(deadline.left())
            return self._context().wrap_socket(connection, server_hostname=self.host)

    @contextmanager
    def _failures(self, host: str, deadline: Deadline, connection: socket.socket | None = None) -> Iterator[None]:
        """Close the connection where the block fails, and say that ``host`` was not reached."""
        try:
            yield
        except BaseException as error:
            if connection is not None:
                connection.close()
            if isinstance(error, TimeoutError):
                raise not_in_time(self.host, deadline) from None
            if isinstance(error, (OSError, UnicodeError)):
                raise _not_reached(host, error) from error
            raise

    def _open_tunnel(self, connection: socket.socket, proxy: Proxy, deadline: Deadline) -> None:
        """Have the proxy pass on whatever comes (RFC 9110, 9.3.6)."""
        lines = [f"CONNECT {self._host_and_port} HTTP/1.1", f"Host: {self._host_and_port}"]
        lines += [f"{name}: {value}" for name, value in proxy.headers.items()]
        send(connection, memoryview("\r\n".join([*lines, "", ""]).encode("ascii")), deadline)
        incoming: Any = Incoming(connection)
        incoming.expect(deadline, MOST_TUNNEL_BYTES)
        response = HTTPResponse(incoming, method="CONNECT")
        try:
            response.begin()
        except (HTTPException, TooMuchError, ValueError, ConnectionError):
            response.status = 0
        if not 200 <= response.status < 300:
            said = f" and answered {response.status}" if response.status else ""
            raise NotReachedError(
                f"the proxy did not open a connection to {self.host}{said}", CHECK_PROXY, retryable=False
            )

    def _context(self) -> ssl.SSLContext:
        """The TLS settings, made once: to read the certificates of all authorities takes 13 ms."""
        with self._tls_lock:
            if self._tls is None:
                self._tls = _tls_context()
            return self._tls


def not_in_time(host: str, deadline: Deadline) -> NotReachedError:
    """The error where the time was over before a request had left."""
    return NotReachedError(f"no connection to {host} within {deadline.seconds:g} seconds", CHECK_ADDRESS)


def _tls_context() -> ssl.SSLContext:
    file, folder = os.environ.get("SSL_CERT_FILE") or None, os.environ.get("SSL_CERT_DIR") or None
    try:
        if folder is not None and not Path(folder).is_dir():
            raise NotADirectoryError  # OpenSSL takes it for an empty one
        context = ssl.create_default_context(cafile=file, capath=folder)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"the certificates to trust cannot be read ({type(error).__name__})",
            "Check the variables SSL_CERT_FILE and SSL_CERT_DIR.",
        ) from error
    context.set_alpn_protocols(["http/1.1"])
    return context


def _connect(host: str, port: int, deadline: Deadline) -> socket.socket:
    """A connection to the first address of a host that takes one; each has its share of the time that is left."""
    failure: OSError = OSError("no address")
    addresses = _look_up(host, port, deadline)
    for index, (family, address) in enumerate(addresses):
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(deadline.left() / (len(addresses) - index))
            connection.connect(address)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            connection.close()
            failure = error
        except BaseException:
            connection.close()
            raise
        else:
            return connection
    raise failure


def _look_up(host: str, port: int, deadline: Deadline) -> list[Address]:
    """The addresses of a host. The look-up knows no time limit, so it has a thread, which is left behind at the limit.

    Raises TimeoutError, OSError (gaierror) and UnicodeError.
    """
    try:
        version = ipaddress.ip_address(host).version
    except ValueError:
        pass
    else:
        return [(socket.AF_INET6 if version == 6 else socket.AF_INET, (host, port))]
    import queue  # an address alone needs none

    found: queue.SimpleQueue[list[Address] | Exception] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found.put([(family, address) for family, _, _, _, address in entries])
        except (OSError, UnicodeError) as error:
            found.put(error)

    try:
        threading.Thread(target=look_up, name="look-up", daemon=True).start()
    except RuntimeError:  # the system allows no more threads
        raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN)) from None
    try:
        result = found.get(timeout=deadline.left())
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(result, Exception):
        raise result
    return result


def _not_reached(host: str, error: Exception) -> NotReachedError:
    if isinstance(error, (socket.gaierror, UnicodeError)):
        retryable = isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN
        return NotReachedError(f"the name {host} cannot be looked up", CHECK_ADDRESS, retryable=retryable)
    if isinstance(error, ssl.SSLCertVerificationError):
        return NotReachedError(
            f"the certificate of {host} cannot be trusted: {error.verify_message.rstrip('.')}",
            OWN_AUTHORITY if _knows_authorities() else NO_AUTHORITIES,
            retryable=False,
        )
    if isinstance(error, ssl.SSLError):
        return NotReachedError(
            f"no TLS connection to {host} ({error.reason or 'the handshake failed'})",
            "Check the base URL: is it https that answers at this port?",
        )
    if isinstance(error, ConnectionRefusedError):
        return NotReachedError(f"{host} refused the connection", CHECK_ADDRESS)
    reason = f": {error.strerror}" if isinstance(error, OSError) and error.strerror else ""
    return NotReachedError(f"no connection to {host}{reason}", CHECK_ADDRESS)


def _knows_authorities() -> bool:
    """Whether there are certificates of authorities at all, on this system or where the environment says."""
    paths = ssl.get_default_verify_paths()
    return paths.cafile is not None or (paths.capath is not None and any(Path(paths.capath).iterdir()))
