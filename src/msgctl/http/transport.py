"""An httpx transport that limits the total time of a request, and records whether the request was sent.

`NetworkTransport` is an `httpx.BaseTransport`; `httpx.Client` with its cookies, redirects and default headers is not
used. httpcore's pool has one connection. It gets its connections from a network backend: this machine's network, or the
sandbox in this process. The limit is
``request.extensions["timeout"]["read"]``, in seconds for everything: name lookup, connection, TLS, proxy, request and
response. ``request.extensions["sent"]`` becomes True before the first byte of the request is sent. The response
is returned whole; if its body cannot be used, ``response.extensions["fault"]`` is the reason, and ``["lost"]`` is True
if the connection was lost or timed out, and ``["late"]`` if it timed out.
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
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

import httpcore
import httpx

from msgctl.config.profiles import ascii_host, is_loopback
from msgctl.errors import ConfigurationError, MsgctlError, NotReachedError, install_hint
from msgctl.http.request import MAX_RESPONSE
from msgctl.text import in_seconds

MAX_IDLE = 4.0
"""Seconds after which an idle connection is not reused; many servers close connections after five."""
LARGE = 64 * 1024
"""Bytes from which a body is large: only some threads of a job may hold one. Few responses have more."""
PIECE = 16 * 1024
"""Write size; the deadline is checked before each chunk."""

CHECK_ADDRESS = "Check the base URL and its port, the network, and HTTPS_PROXY if you use a proxy."
CHECK_PROXY = "Check HTTPS_PROXY and NO_PROXY."
CHECK_VARIABLES = "Check HTTPS_PROXY and ALL_PROXY."
OWN_AUTHORITY = (
    "If the service has its own certificate authority, set SSL_CERT_FILE to its file. "
    "If this system has no certificates, install ca-certificates."
)

_KEEP_ALIVE = re.compile(rb"\btimeout=([0-9]{1,6})\b", re.I)
_EXCEPTIONS: dict[type[BaseException], type[httpx.TransportError]] = {
    httpcore.TimeoutException: httpx.TimeoutException,
    httpcore.ConnectTimeout: httpx.ConnectTimeout,
    httpcore.ReadTimeout: httpx.ReadTimeout,
    httpcore.WriteTimeout: httpx.WriteTimeout,
    httpcore.PoolTimeout: httpx.PoolTimeout,
    httpcore.NetworkError: httpx.NetworkError,
    httpcore.ConnectError: httpx.ConnectError,
    httpcore.ReadError: httpx.ReadError,
    httpcore.WriteError: httpx.WriteError,
    httpcore.ProxyError: httpx.ProxyError,
    httpcore.ProtocolError: httpx.ProtocolError,
    httpcore.LocalProtocolError: httpx.LocalProtocolError,
    httpcore.RemoteProtocolError: httpx.RemoteProtocolError,
}
"""The exception of httpx for each exception of httpcore."""
_FAILURES = tuple(_EXCEPTIONS)


class NetworkTransport(httpx.BaseTransport, httpcore.NetworkBackend):
    """Carries requests to the service at a base URL over a connection that is kept open; for one thread at a time.

    It does not retry. It stands between httpcore and the ``backend``, so that each step is limited to the remaining
    time of the request. A backend other than the network uses neither proxy nor certificates. Raises ConfigurationError
    if those that the environment specifies cannot be used.
    """

    def __init__(self, base_url: str, backend: httpcore.NetworkBackend | None = None) -> None:
        parts = urlsplit(base_url)
        self._host = ascii_host(parts.hostname or "")
        self._proxy: httpx.Proxy | None = None
        self._tls: ssl.SSLContext | None = None
        if backend is not None:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # httpcore would load all authorities
        else:
            self._proxy = proxy_for(base_url)
            if parts.scheme == "https":
                self._tls = _tls_context(os.environ.get("SSL_CERT_FILE") or None)
        self._backend = backend or Network()
        self._pool: httpcore.ConnectionPool | None = None
        self._latest: httpcore.NetworkStream | None = None
        self._good_until = 0.0

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request once and return its whole response.

        Raises NotReachedError if the request was not sent, httpx.HTTPError if it was sent without a response, and
        ConfigurationError.
        """
        self.request, self.write_failed, self.peer = request, False, self._host
        self._seconds = float(request.extensions["timeout"]["read"])
        started = time.monotonic()
        self._end = started + self._seconds
        if started >= self._good_until:
            self.close()
        try:
            response = self._read(self._response(request))
        except _FAILURES as error:
            self.close()
            if request.extensions.get("sent"):
                raise _as_httpx(error) from error
            raise self._not_reached(error) from error
        except BaseException as error:
            self.close()
            # socksio has its own exceptions.
            is_of_proxy = self._proxy and isinstance(error, Exception) and not isinstance(error, MsgctlError)
            if is_of_proxy and not request.extensions.get("sent"):
                raise self._not_reached(error) from error
            raise
        if self.write_failed:
            self.close()
        return response

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        for each in (self._pool, self._latest):  # httpcore leaves one open if a SOCKS proxy refuses it
            if each is not None:
                each.close()
        self._pool = self._latest = None

    def left(self) -> float:
        """Return the remaining seconds of the request in progress. Raises httpcore.ReadTimeout at the limit."""
        left: float = self._end - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout
        return left

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, *more: Any, **options: Any) -> _Stream:  # noqa: ARG002
        """Connect within the remaining time."""
        shown = f"[{host}]" if ":" in host else host
        self.peer = host if port in (80, 443) else f"{shown}:{port}"
        self._latest = self._backend.connect_tcp(host, port, self.left())
        return _Stream(self._latest, self)

    def _response(self, request: httpx.Request) -> httpcore.Response:
        """Return the response before its body is read.

        A response that arrives before the request was sent belongs to an earlier request, and is discarded.
        """
        url = request.url
        outgoing = httpcore.Request(
            request.method,
            httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        while True:
            if self._pool is None:
                self._pool = self._new_pool()
            response = self._pool.handle_request(outgoing)
            if request.extensions.get("sent"):
                return response
            response.close()
            self.close()

    def _new_pool(self) -> httpcore.ConnectionPool:
        """Return a pool for one connection, with or without a proxy; plain http needs no TLS context."""
        options: dict[str, Any] = {
            "ssl_context": self._tls,
            "max_connections": 1,
            "keepalive_expiry": MAX_IDLE,
            "network_backend": self,
        }
        if self._proxy is None:
            return httpcore.ConnectionPool(**options)
        url, auth = self._proxy.url, self._proxy.raw_auth
        address = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        if url.scheme not in ("socks5", "socks5h"):
            tls = self._tls if url.scheme == "https" else None
            return httpcore.HTTPProxy(address, auth, self._proxy.headers.raw, proxy_ssl_context=tls, **options)
        try:
            return httpcore.SOCKSProxy(address, auth, **options)
        except RuntimeError:
            raise ConfigurationError("A SOCKS proxy needs the package socksio", install_hint("httpx[socks]")) from None

    def _read(self, response: httpcore.Response) -> httpx.Response:
        """Return a response with its whole body, which is not decompressed."""
        body, most = bytearray(), self.request.extensions.get("max_response", MAX_RESPONSE)
        admit = self.request.extensions.get("admit")
        extensions: dict[str, Any] = {name: response.extensions[name] for name in ("http_version", "reason_phrase")}
        idle = MAX_IDLE
        for name, value in response.headers:
            match name.lower():
                case b"content-encoding" if value.strip().lower() not in (b"identity", b""):
                    extensions["fault"] = "it is compressed, although msgctl did not request compression"
                case b"keep-alive" if limit := _KEEP_ALIVE.search(value):
                    idle = min(MAX_IDLE, int(limit[1]) - 1)  # the server must not close the connection during a request
        try:
            for chunk in response.iter_stream():
                if admit and len(body) + len(chunk) > LARGE:
                    if not admit(self.left()):
                        raise httpcore.ReadTimeout
                    admit = None
                body += chunk
                if len(body) > most:
                    extensions["fault"] = f"it is over {most:,} bytes"
                    break
        except _FAILURES as error:
            extensions |= {"lost": True, "fault": describe(_as_httpx(error), self._seconds)}
            extensions["late"] = isinstance(error, httpcore.TimeoutException)
        finally:
            response.close()
        self._good_until = time.monotonic() + idle
        return finished(response.status, response.headers, bytes(body), extensions)

    def _not_reached(self, error: BaseException) -> NotReachedError:
        """Return the error for an exception before the request was sent."""
        peer, cause = self.peer, root_cause(error)
        if isinstance(error, httpcore.TimeoutException):
            return NotReachedError(f"No connection to {peer} within {in_seconds(self._seconds)}", CHECK_ADDRESS)
        if isinstance(cause, ssl.SSLCertVerificationError):
            what = f"The certificate of {peer} cannot be trusted: {cause.verify_message}"
            return NotReachedError(what, OWN_AUTHORITY, retryable=False)
        if isinstance(cause, ssl.SSLError):
            reason = cause.reason or "the handshake failed"
            return NotReachedError(f"No TLS connection to {peer} ({reason})", "Check that the port is for https.")
        if isinstance(error, httpcore.ConnectError) or self._proxy is None:
            reason = f": {cause.strerror}" if isinstance(cause, OSError) and cause.strerror else ""
            return NotReachedError(f"No connection to {peer}{reason}", CHECK_ADDRESS)
        status = re.match("[0-9]{3}", str(error))  # httpcore's text is the proxy's status and reason
        response = f" and responded with {status[0]}" if status else ""
        return NotReachedError(
            f"The proxy did not open a connection to {self._host}{response}", CHECK_PROXY, retryable=False
        )


class Network(httpcore.SyncBackend):
    """This machine's network, with a time limit for looking up a name and connecting."""

    def connect_tcp(
        self, host: str, port: int, timeout: float | None = None, *more: Any, **options: Any
    ) -> httpcore.NetworkStream:
        """Try each address of a host in turn, dividing the time between them."""
        end = time.monotonic() + (timeout or 0)
        addresses = look_up(host, port, timeout or 0)
        for index, address in enumerate(addresses):
            share = (end - time.monotonic()) / (len(addresses) - index)
            if share <= 0:
                raise httpcore.ConnectTimeout
            try:
                return super().connect_tcp(address, port, share, *more, **options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure


class _Stream(httpcore.NetworkStream):
    """A connection that buffers writes until the first read, so that a request is sent in one packet."""

    def __init__(self, stream: httpcore.NetworkStream, transport: NetworkTransport) -> None:
        self._stream = stream
        self._transport = transport
        self._pending = bytearray()

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        self._pending += buffer

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        if self._pending:
            self._flush()
        return self._stream.read(max_bytes, timeout=self._transport.left())

    def _flush(self) -> None:
        """Write the buffer. A failure is ignored until the response has been read, since servers may respond early."""
        data, self._pending = bytes(self._pending), bytearray()
        if data.startswith(b"CONNECT ") and b":" in (host := self._transport.request.url.raw_host):
            data = data.replace(host + b":", b"[%s]:" % host)  # httpcore leaves out the brackets of an IPv6 address
        # SOCKS messages begin with a control character.
        is_request = data[:1].isalpha() and not data.startswith(b"CONNECT ")
        extensions = self._transport.request.extensions
        try:
            for start in range(0, len(data), PIECE):
                left = self._transport.left()
                if is_request:
                    extensions["sent"] = True
                self._stream.write(data[start : start + PIECE], timeout=left)
        except httpcore.WriteError:
            self._transport.write_failed = True
            if start == 0 and is_request:  # no byte was sent
                extensions["sent"] = False
                raise httpcore.ReadError from None

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        self._transport.peer = str(server_hostname)  # httpcore always passes it
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, self._transport.left()), self._transport)

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


def _as_httpx(error: BaseException) -> httpx.TransportError:
    """Return the exception of httpx for an exception of httpcore."""
    return next(_EXCEPTIONS[each] for each in type(error).__mro__ if each in _EXCEPTIONS)(str(error))


def describe(error: httpx.HTTPError, seconds: float) -> str:
    """Return the reason why a request failed after it was sent. The exception's own text may quote the request."""
    if isinstance(error, httpx.TimeoutException):
        return f"no whole response came within {in_seconds(seconds)}"
    if isinstance(error, httpx.ProtocolError):
        return "the connection was closed before the end of the response, or the response is not HTTP"
    return "the connection was lost while waiting for the response"


def finished(
    status: int, headers: Iterable[tuple[bytes, bytes]], body: bytes, extensions: dict[str, Any]
) -> httpx.Response:
    """Return a whole response. Its extension ``headers`` contains the headers as they were sent.

    httpx would decompress the content of a response with the header Content-Encoding, and it adds a Content-Length.
    """
    sent = [*headers]
    plain = [(name, value) for name, value in sent if name.lower() != b"content-encoding"]
    return httpx.Response(status, headers=plain, content=body, extensions={**extensions, "headers": sent})


def header_lines(message: httpx.Request | httpx.Response) -> list[str]:
    """Return the headers of a request or response as they were sent, one per line."""
    headers = message.extensions.get("headers", message.headers.raw)
    return [f"{name.decode('latin-1')}: {value.decode('latin-1')}" for name, value in headers]


def look_up(host: str, port: int, seconds: float) -> list[str]:
    """Return the addresses of a host. Raises NotReachedError.

    A lookup has no time limit, so it runs in a separate thread, which is abandoned at the limit.
    """
    with suppress(ValueError):
        return [str(ipaddress.ip_address(host))]
    import queue  # not needed for an IP address

    found: queue.SimpleQueue[list[str] | Exception] = queue.SimpleQueue()

    def look() -> None:
        try:
            entries = socket.getaddrinfo(host, port)
            found.put(list(dict.fromkeys(str(address[0]) for _, _, _, _, address in entries)))
        except (OSError, UnicodeError) as error:
            found.put(error)

    try:
        threading.Thread(target=look, daemon=True).start()
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
    """Return the proxy that the environment specifies for a service, or None.

    Plain http never uses a proxy, because the proxy would see the key. A loopback address does not use one either.
    The text of a ConfigurationError omits the proxy's URL, which may contain a password.
    """
    parts = urlsplit(base_url)
    host = parts.hostname or ""
    has_variables = any(name.lower().endswith("_proxy") for name in os.environ)
    if parts.scheme != "https" or is_loopback(host) or not has_variables:
        return None
    from urllib.request import getproxies, proxy_bypass  # 20 ms

    proxies = getproxies()
    url = proxies.get("https") or proxies.get("all")
    if not url or proxy_bypass(f"{host}:{parts.port or 443}"):
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


@lru_cache(maxsize=4)  # takes 13 ms to read the certificates of all authorities
def _tls_context(file: str | None) -> ssl.SSLContext:
    """Return a TLS context with the system's certificates, or with the certificates in a file."""
    try:
        return ssl.create_default_context(cafile=file)
    except (OSError, ValueError) as error:
        what = f"The certificates to trust cannot be read ({type(error).__name__})"
        raise ConfigurationError(what, "Check the variable SSL_CERT_FILE.") from error


def root_cause(error: BaseException) -> BaseException:
    """Return the first exception of a chain, which is the system's error. httpcore's pool removes the cause."""
    while (earlier := error.__cause__ or error.__context__) is not None:
        error = earlier
    return error
