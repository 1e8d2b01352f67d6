"""httpx with a limit on the whole time of a request, and with knowledge of whether the request was sent.

`NetworkTransport` is an `httpx.BaseTransport`, as the in-process sandbox is; `httpx.Client` with its cookies, redirects
and default headers is not used. It takes ``request.extensions["timeout"]["read"]`` for the seconds of everything: name
lookup, connection, TLS, proxy, request and response. It sets ``request.extensions["sent"]`` to True before the first
byte of the request leaves this machine. The response is returned whole; if its body could not be read to its end,
``response.extensions["fault"]`` says why, and ``["lost"]`` is True if the connection was lost or the time was over.
"""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpcore
import httpx

from msgctl.config.base_url import ascii_host, is_loopback
from msgctl.errors import ConfigurationError, MsgctlError, NotReachedError
from msgctl.text import in_seconds

MOST_BYTES = 16 * 1024 * 1024
"""The largest body of a response that is read, in bytes."""
MOST_IDLE = 4.0
"""Seconds after which a connection is not used again; many servers close theirs after five."""
PIECE = 16 * 1024
"""Bytes that are written at once: a socket takes as many or none, so each piece gets what is left of the time."""

CHECK_ADDRESS = "Check the base URL and its port, the network, and HTTPS_PROXY if a proxy is in between."
CHECK_PROXY = "Check HTTPS_PROXY and NO_PROXY."
CHECK_VARIABLES = "Check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY."
OWN_AUTHORITY = "If the service has its own certificate authority, name its file in SSL_CERT_FILE."
NO_AUTHORITIES = (
    "This system has no certificates of authorities in the usual places: install them (ca-certificates), "
    "or name a file of them in SSL_CERT_FILE."
)

_KEEP_ALIVE = re.compile(r"\btimeout=([0-9]{1,6})\b", re.I | re.A)


class Route:
    """The way to the service at a base URL, shared by the transports of several threads.

    Raises ConfigurationError if the proxy that the environment names cannot be used.
    """

    def __init__(self, base_url: str) -> None:
        parts = urlsplit(base_url)
        self.is_secure = parts.scheme == "https"
        self.host = ascii_host(parts.hostname or "")
        self.port = parts.port or (443 if self.is_secure else 80)
        self.proxy = proxy_for(base_url)
        self._tls: ssl.SSLContext | None = None
        self._lock = threading.Lock()

    def transport(self) -> NetworkTransport:
        """Return a transport, for one thread at a time."""
        return NetworkTransport(self)

    def connector(self) -> httpx.HTTPTransport:
        """Return httpx's own transport for this way. Raises ConfigurationError."""
        proxy = self.proxy
        if proxy is not None and proxy.url.scheme == "https":
            proxy.ssl_context = self._context()
        limits = httpx.Limits(max_connections=1, keepalive_expiry=MOST_IDLE)
        verify: Any = self._context() if self.is_secure else None  # None spares a context: a millisecond
        try:
            return httpx.HTTPTransport(verify=verify, limits=limits, proxy=proxy)
        except ImportError:
            raise ConfigurationError(
                "A SOCKS proxy needs the package socksio", "Install it with: pip install 'msgctl[socks]'"
            ) from None

    def _context(self) -> ssl.SSLContext:
        """Return the TLS settings, made once: to read the certificates of all authorities takes 13 ms."""
        with self._lock:
            if self._tls is None:
                self._tls = _tls_context()
            return self._tls


class NetworkTransport(httpx.BaseTransport):
    """Carries requests to one service over a connection that is kept; nothing is retried here."""

    def __init__(self, route: Route) -> None:
        self._route = route
        self._backend = _Backend(route)
        self._connector: httpx.HTTPTransport | None = None
        self._good_until = 0.0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request once and return its whole response.

        Raises NotReachedError if it was never sent, httpx.HTTPError if it was and no response came, and
        ConfigurationError.
        """
        self._backend.begin(request)
        if time.monotonic() >= self._good_until:
            self.close()
        try:
            response = self._asked(request)
            whole = _read(response, self._backend.seconds)
        except BaseException as error:
            self.close()  # a failed tunnel would stay active in the pool, and the next request wait for it
            is_explained = isinstance(error, MsgctlError)
            if isinstance(error, Exception) and not is_explained and not request.extensions.get("sent"):
                raise self._not_reached(error) from error
            raise
        self._good_until = time.monotonic() + _idle_seconds(whole)
        if "fault" in whole.extensions or self._backend.write_failed:
            self.close()
        return whole

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        if self._connector is not None:
            self._connector.close()
            self._connector = None
        self._backend.close()

    def _asked(self, request: httpx.Request) -> httpx.Response:
        """Return the response, its body still to be read.

        One that is there before the request was sent is left over from an earlier request, and is thrown away.
        """
        while True:
            if self._connector is None:
                self._connector = self._route.connector()
                # httpx has no parameter for httpcore's extension point.
                self._connector._pool._network_backend = self._backend
            response = self._connector.handle_request(request)
            if request.extensions.get("sent"):
                return response
            response.close()
            self.close()

    def _not_reached(self, error: Exception) -> Exception:
        """Return what an exception before the request was sent means."""
        host = self._route.host
        if isinstance(error, httpx.TimeoutException):
            return NotReachedError(f"No connection to {host} within {in_seconds(self._backend.seconds)}", CHECK_ADDRESS)
        if self._backend.write_failed:
            return NotReachedError(f"The connection to {host} was lost", CHECK_ADDRESS)
        if self._route.proxy is None:
            return error
        said = re.match("[0-9]{3} ", str(error)) if isinstance(error, httpx.ProxyError) else None
        response = f" and responded with {said[0].strip()}" if said else ""
        return NotReachedError(f"The proxy did not open a connection to {host}{response}", CHECK_PROXY, retryable=False)


def describe(error: httpx.HTTPError, seconds: float) -> str:
    """Return what happened to a request that was sent; the exception's own text may quote what was sent."""
    if isinstance(error, httpx.TimeoutException):
        return f"no whole response came within {in_seconds(seconds)}"
    if isinstance(error, httpx.ProtocolError):
        return "the connection was closed before the end of the response, or that is not HTTP"
    return "the connection was lost while waiting for the response"


def _read(response: httpx.Response, seconds: float) -> httpx.Response:
    """Return a response with all of its body, as it came: nothing is decompressed."""
    body = bytearray()
    extensions: dict[str, Any] = {"reason_phrase": response.extensions.get("reason_phrase", b"")}
    extensions["http_version"] = response.extensions.get("http_version", b"HTTP/1.1")
    if response.headers.get("content-encoding", "").strip().lower() not in ("identity", ""):
        extensions["fault"] = "it is compressed, which was not asked for"
    try:
        for chunk in response.stream:  # type: ignore[union-attr]
            body += chunk
            if len(body) > MOST_BYTES:
                extensions["fault"] = f"it is over {MOST_BYTES // 2**20} MiB"
                break
    except httpx.HTTPError as error:
        extensions |= {"lost": True, "fault": describe(error, seconds)}
    finally:
        response.close()
    return finished(response.status_code, response.headers.raw, bytes(body), extensions)


def finished(
    status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes, extensions: dict[str, Any]
) -> httpx.Response:
    """Return a response whose body is there already, and stays encoded as it is."""
    response = httpx.Response(status, content=body, extensions=extensions)
    response.headers = httpx.Headers([*headers])  # given before, a Content-Encoding would be undone
    return response


def _idle_seconds(response: httpx.Response) -> float:
    """Return how long the connection may be idle: less than the server says, so that both do not act at once."""
    said = _KEEP_ALIVE.search(response.headers.get("keep-alive", ""))
    return min(MOST_IDLE, int(said[1]) - 1) if said else MOST_IDLE


class _Backend(httpcore.SyncBackend):
    """Opens the connections of one transport; everything ends by the time limit of the request in progress."""

    def __init__(self, route: Route) -> None:
        self.route = route
        self.request = httpx.Request("GET", "")
        self.seconds = 0.0
        self.write_failed = False
        self._end = 0.0
        self._latest: httpcore.NetworkStream | None = None

    def begin(self, request: httpx.Request) -> None:
        """Begin the time of a request."""
        self.request = request
        self.seconds = request.extensions["timeout"]["read"]
        self.write_failed = False
        self._end = time.monotonic() + self.seconds

    def close(self) -> None:
        """Close the latest connection, which httpcore leaves open if a SOCKS proxy refuses it."""
        if self._latest is not None:
            self._latest.close()
            self._latest = None

    def left(self) -> float:
        """Return the remaining seconds. Raises httpcore.ReadTimeout at the limit."""
        left = self._end - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout
        return left

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore.NetworkStream:
        """Connect to the first address of a host that accepts; each has its share of the time that is left."""
        addresses = look_up(host, port, self.left())
        for index, address in enumerate(addresses):
            share = self.left() / (len(addresses) - index)
            try:
                stream = super().connect_tcp(address, port, share, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure: Exception = error
            else:
                self._latest = stream
                return _Stream(stream, self)
        if isinstance(failure, httpcore.ConnectTimeout):
            raise failure
        raise _not_connected(host, port, failure) from failure


class _Stream(httpcore.NetworkStream):
    """A connection that keeps what is written until something is read, so that a request leaves in one packet."""

    def __init__(self, stream: httpcore.NetworkStream, backend: _Backend) -> None:
        self._stream = stream
        self._backend = backend
        self._pending = bytearray()

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        self._pending += buffer

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        if self._pending:
            self._flush()
        return self._stream.read(max_bytes, timeout=self._backend.left())

    def _flush(self) -> None:
        """Write what is pending. A failure is ignored until the response was read: servers may respond early."""
        data, self._pending = bytes(self._pending), bytearray()
        is_request = False
        if data.startswith(b"CONNECT "):
            data = self._with_brackets(data)
        else:
            is_request = data[:1].isalpha()  # SOCKS begins with a control character
        try:
            for start in range(0, len(data), PIECE):
                left = self._backend.left()
                if is_request:
                    self._backend.request.extensions["sent"] = True
                self._stream.write(data[start : start + PIECE], timeout=left)
        except httpcore.WriteError:
            self._backend.write_failed = True
            if start == 0 and is_request:  # the system took nothing of it
                self._backend.request.extensions["sent"] = False
                raise httpcore.ReadError from None

    def _with_brackets(self, data: bytes) -> bytes:
        """Return a CONNECT request for an IPv6 address in its brackets, which httpcore leaves out."""
        host, port = self._backend.route.host, self._backend.route.port
        return data.replace(f"{host}:{port}".encode(), f"[{host}]:{port}".encode()) if ":" in host else data

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        try:
            secured = self._stream.start_tls(ssl_context, server_hostname, self._backend.left())
        except httpcore.ConnectError as error:
            raise _not_secured(server_hostname or "", error) from error
        return _Stream(secured, self._backend)

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def look_up(host: str, port: int, seconds: float) -> list[str]:
    """Return the addresses of a host. Raises NotReachedError.

    A lookup has no time limit, so it runs in a thread of its own, which is abandoned at the limit.
    """
    with suppress(ValueError):
        return [str(ipaddress.ip_address(host))]
    import queue  # an IP address needs no lookup

    found: queue.SimpleQueue[list[str] | Exception] = queue.SimpleQueue()

    def look() -> None:
        try:
            entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            found.put(list(dict.fromkeys(str(address[0]) for _, _, _, _, address in entries)))
        except (OSError, UnicodeError) as error:
            found.put(error)

    try:
        threading.Thread(target=look, name="look-up", daemon=True).start()
        result = found.get(timeout=seconds)
    except RuntimeError:  # out of threads
        raise NotReachedError(f"No connection to {host}: no more threads", CHECK_ADDRESS) from None
    except queue.Empty:
        raise httpcore.ConnectTimeout from None
    if isinstance(result, Exception):
        retryable = isinstance(result, socket.gaierror) and result.errno == socket.EAI_AGAIN
        raise NotReachedError(f"The name {host} cannot be looked up", CHECK_ADDRESS, retryable=retryable) from result
    return result


def proxy_for(base_url: str) -> httpx.Proxy | None:
    """Return the proxy that the environment names for a service, None if it is reached directly.

    A loopback address is never asked for through a proxy: plain http is allowed there because it stays on the machine.
    Raises ConfigurationError, whose text does not hold the proxy's URL, since that may hold a password.
    """
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    if is_loopback(host) or not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies, proxy_bypass  # 20 ms

    proxies = getproxies()
    url = proxies.get(parts.scheme) or proxies.get("all")
    if not url or proxy_bypass(f"{host}:{parts.port or (443 if parts.scheme == 'https' else 80)}"):
        return None
    try:
        proxy = httpx.Proxy(url if "://" in url else f"http://{url}")
    except (ValueError, httpx.InvalidURL):
        proxy = None
    if proxy is None or not proxy.url.host:
        raise ConfigurationError(
            "The URL of the proxy cannot be used: it must begin with http://, https:// or socks5://", CHECK_VARIABLES
        )
    return proxy


def _tls_context() -> ssl.SSLContext:
    file, folder = os.environ.get("SSL_CERT_FILE") or None, os.environ.get("SSL_CERT_DIR") or None
    try:
        if folder is not None and not Path(folder).is_dir():
            raise NotADirectoryError  # OpenSSL takes it for an empty one
        return ssl.create_default_context(cafile=file, capath=folder)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"The certificates to trust cannot be read ({type(error).__name__})",
            "Check the variables SSL_CERT_FILE and SSL_CERT_DIR.",
        ) from error


def _not_connected(host: str, port: int, error: Exception) -> NotReachedError:
    """Return the error for a host none of whose addresses accepts a connection."""
    cause = error.__cause__ or error.__context__
    if isinstance(cause, ConnectionRefusedError):
        return NotReachedError(f"{host} refused the connection to port {port}", CHECK_ADDRESS)
    reason = f": {cause.strerror}" if isinstance(cause, OSError) and cause.strerror else ""
    return NotReachedError(f"No connection to {host}{reason}", CHECK_ADDRESS)


def _not_secured(host: str, error: Exception) -> NotReachedError:
    """Return the error for a TLS handshake that failed."""
    cause = error.__cause__ or error.__context__
    if isinstance(cause, ssl.SSLCertVerificationError):
        return NotReachedError(
            f"The certificate of {host} cannot be trusted: {cause.verify_message.rstrip('.')}",
            OWN_AUTHORITY if _knows_authorities() else NO_AUTHORITIES,
            retryable=False,
        )
    reason = cause.reason if isinstance(cause, ssl.SSLError) and cause.reason else "the handshake failed"
    return NotReachedError(f"No TLS connection to {host} ({reason})", "Check the base URL: is this port for https?")


def _knows_authorities() -> bool:
    """Return whether there are certificates of authorities, on this system or where the environment says."""
    paths = ssl.get_default_verify_paths()
    return paths.cafile is not None or (paths.capath is not None and any(Path(paths.capath).iterdir()))
