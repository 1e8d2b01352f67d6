"""A request on httpcore, with a limit for its whole time, and a flag for whether it was sent.

`Transport` keeps one connection open. It connects httpcore to a network backend: this machine's network, or the sandbox
in this process. So each step of a request (name lookup, connection, TLS, proxy, request and response) is limited to the
time that remains.
"""

from __future__ import annotations

import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import httpcore

from msgctl.config.profiles import ascii_host
from msgctl.errors import ConfigurationError, MsgctlError, NotReachedError, install_hint
from msgctl.http.network import CHECK_ADDRESS, Network, proxy_for, tls_context
from msgctl.http.request import MAX_RESPONSE
from msgctl.text import in_seconds

if TYPE_CHECKING:
    import httpx

MAX_IDLE = 4.0
"""Seconds after which an idle connection is not reused; many servers close connections after five."""
LARGE = 256 * 1024
"""Bytes from which a body is large. Few responses have more."""
PIECE = 16 * 1024
"""Write size; the deadline is checked before each chunk."""
MAX_LARGE = 4
"""Large bodies in memory at a time, whatever the number of threads."""
_large_bodies = threading.BoundedSemaphore(MAX_LARGE)

CHECK_PROXY = "Check HTTPS_PROXY and NO_PROXY."
OWN_AUTHORITY = (
    "If the service has its own certificate authority, set SSL_CERT_FILE to its file. "
    "If this system has no certificates, install ca-certificates."
)

_FAILURES = (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProxyError, httpcore.ProtocolError)
"""httpcore's exceptions for a connection or a response that fails."""


class NoResponseError(Exception):
    """A request was sent, and no response came back. Its text is the reason."""


class RawResponse(NamedTuple):
    """A response as it came. If its body cannot be used, ``fault`` is the reason.

    ``is_cut`` means that the body has no end, ``is_lost`` that the connection was lost or too slow, and ``is_late``
    that it was too slow.
    """

    status: int
    headers: Sequence[tuple[bytes, bytes]]
    body: bytes
    fault: str = ""
    is_cut: bool = False
    is_lost: bool = False
    is_late: bool = False

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300

    def header(self, name: str) -> str:
        """Return the first value of a header; an empty string if it is missing."""
        wanted = name.lower().encode()
        return next((value.decode("latin-1") for key, value in self.headers if key.lower() == wanted), "")


class Transport(httpcore.NetworkBackend):
    """Makes requests to the server at a base URL, over a connection that is kept open; for one thread at a time.

    It does not retry. ``is_sent`` means that a byte of a request may have been sent. A backend other than the
    network uses neither a proxy nor TLS. Raises ConfigurationError if the proxy or the certificates that the
    environment specifies cannot be used.
    """

    def __init__(self, base_url: str, backend: httpcore.NetworkBackend | None = None) -> None:
        parts = urlsplit(base_url)
        self._scheme, self._port = parts.scheme, parts.port
        self._host = ascii_host(parts.hostname or "")
        self._proxy: httpx.Proxy | None = None
        self._tls: ssl.SSLContext | None = None
        if backend is not None:
            self._scheme = "http"
        else:
            self._proxy = proxy_for(base_url)
            if self._scheme == "https":
                self._tls = tls_context(os.environ.get("SSL_CERT_FILE") or None)
        self.origin = f"{self._scheme}://{_address(self._host, self._port)}"
        self._backend = backend or Network()
        self._connection: httpcore.HTTPConnection | httpcore.ConnectionPool | None = None
        self._stream: httpcore.NetworkStream | None = None
        self._has_large_body = False
        self.sent: list[int] = []
        """The sizes of the parts of a request that have left this machine, or may have."""
        self.is_broken = False
        """Whether the connection cannot be used again."""
        self.peer = self._host
        """The host that a connection is opened to, for errors: the server or the proxy."""

    def request(self, method: str, target: str, headers: Mapping[str, str], content: bytes) -> httpcore.Request:
        """Return a request to this server. The target is a path with its query."""
        lines = [("Host", self.origin.partition("://")[2]), *headers.items()]
        if content:
            lines.append(("Content-Length", str(len(content))))
        url = httpcore.URL(scheme=self._scheme, host=self._host, port=self._port, target=target)
        return httpcore.Request(method, url, headers=lines, content=content)

    def send(self, request: httpcore.Request, seconds: float, max_response: int = MAX_RESPONSE) -> RawResponse:
        """Make a request once and return its whole response, of at most ``max_response`` bytes.

        Raises NotReachedError if the request was not sent, NoResponseError if it was, and ConfigurationError.
        """
        self.release()
        self.sent.clear()
        self.is_broken = False
        self.peer = self._host
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        try:
            response = self._read(self._response(request), max_response)
        except _FAILURES as error:
            self.close()
            if self.is_sent:
                raise NoResponseError(self._reason(error)) from error
            raise self._not_reached(error) from error
        except Exception as error:
            self.close()
            # socksio has its own exceptions, and httpcore uses assertions to check the bytes of a SOCKS proxy.
            if self._proxy is None or self.is_sent or isinstance(error, MsgctlError):
                raise
            raise self._not_reached(error) from error
        except BaseException:  # Ctrl-C
            self.close()
            raise
        if self.is_broken:
            self.close()
        return response

    @property
    def is_sent(self) -> bool:
        """Whether a byte of the latest request may have left this machine."""
        return bool(self.sent)

    def release(self) -> None:
        """Let other threads read large bodies: the latest response was parsed."""
        if self._has_large_body:
            _large_bodies.release()
            self._has_large_body = False

    def close(self) -> None:
        """Close the connection; the next request opens a new one."""
        if self._connection is not None:
            self._connection.close()
        if self._stream is not None:  # httpcore leaves it open if connecting is interrupted
            self._stream.close()
        self._connection = self._stream = None

    def left(self) -> float:
        """Return the remaining seconds of the request in progress. Raises httpcore.ReadTimeout at the limit."""
        left: float = self._end - time.monotonic()
        if left <= 0:
            raise httpcore.ReadTimeout
        return left

    def connect_tcp(self, host: str, port: int, timeout: float | None = None, *more: Any, **options: Any) -> _Stream:  # noqa: ARG002
        """Connect within the remaining time."""
        self.peer = host if port in (80, 443) else _address(host, port)
        self._stream = self._backend.connect_tcp(host, port, self.left())
        return _Stream(self._stream, self)

    def _response(self, request: httpcore.Request) -> httpcore.Response:
        """Return the response before its body is read.

        A response that arrives before the request was sent belongs to an earlier request, and is discarded.
        """
        while True:
            if isinstance(self._connection, httpcore.HTTPConnection) and (
                self._connection.is_closed() or self._connection.has_expired()
            ):
                self.close()
            if self._connection is None:
                self._connection = self._new_connection()
            response = self._connection.handle_request(request)
            if self.is_sent:
                return response
            response.close()
            self.close()

    def _new_connection(self) -> httpcore.HTTPConnection | httpcore.ConnectionPool:
        """Return a connection to the server, or a pool with one connection to a proxy.

        Plain http needs no TLS context. A pool takes an eighth of the time of a request, so only proxies have one.
        """
        options: dict[str, Any] = {
            "ssl_context": self._tls,
            "keepalive_expiry": MAX_IDLE,
            "network_backend": self,
        }
        if self._proxy is None:
            return httpcore.HTTPConnection(httpcore.URL(self.origin).origin, **options)
        options["max_connections"] = 1
        url, auth = self._proxy.url, self._proxy.raw_auth
        address = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        if url.scheme not in ("socks5", "socks5h"):
            tls = self._tls if url.scheme == "https" else None
            return httpcore.HTTPProxy(address, auth, self._proxy.headers.raw, proxy_ssl_context=tls, **options)
        try:
            return httpcore.SOCKSProxy(address, auth, **options)
        except RuntimeError:
            raise ConfigurationError("A SOCKS proxy needs the package socksio", install_hint("httpx[socks]")) from None

    def _read(self, response: httpcore.Response, max_response: int) -> RawResponse:
        """Return a response with its whole body, which is not decompressed."""
        raw = RawResponse(response.status, response.headers, b"")
        if raw.header("Content-Encoding").strip().lower() not in ("identity", ""):
            raw = raw._replace(fault="it is compressed, although msgctl did not request compression")
        body = bytearray()
        try:
            for chunk in response.iter_stream():
                body += chunk
                if len(body) > LARGE and not self._has_large_body:
                    self._has_large_body = _large_bodies.acquire(timeout=self.left())
                if len(body) > max_response:
                    raw = raw._replace(fault=f"it is over {max_response:,} bytes", is_cut=True)
                    break
        except _FAILURES as error:
            is_late = isinstance(error, httpcore.TimeoutException)
            raw = raw._replace(fault=self._reason(error), is_cut=True, is_lost=True, is_late=is_late)
        finally:
            response.close()
        return raw._replace(body=bytes(body))

    def _reason(self, error: Exception) -> str:
        """Return why a request got no whole response. The text of an exception may quote the request."""
        if isinstance(error, httpcore.TimeoutException):
            return f"no whole response came within {in_seconds(self._seconds)}"
        if isinstance(error, httpcore.ProtocolError):
            return "the connection was closed before the end of the response, or the response is not HTTP"
        return "the connection was lost while waiting for the response"

    def _not_reached(self, error: Exception) -> NotReachedError:
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


class _Stream(httpcore.NetworkStream):
    """A connection that buffers writes until the first read, so that a request is sent in one packet."""

    def __init__(self, stream: httpcore.NetworkStream, transport: Transport) -> None:
        self._stream = stream
        self._transport = transport
        self._pending = b""

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        self._pending += buffer

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        if self._pending:
            self._flush()
        return self._stream.read(max_bytes, timeout=self._transport.left())

    def _flush(self) -> None:
        """Write the buffer. A failure is ignored until the response has been read, since servers may respond early."""
        data, self._pending = self._pending, b""
        # SOCKS messages begin with a control character.
        is_request = data[:1].isalpha() and not data.startswith(b"CONNECT ")
        try:
            for start in range(0, len(data), PIECE):
                self._send(data[start : start + PIECE], is_request=is_request)
        except httpcore.WriteError:
            # The server would read the next request as the rest of this one.
            self._transport.is_broken = True
            if start == 0:
                self._transport.sent.clear()
                raise

    def _send(self, data: bytes, *, is_request: bool) -> None:
        """Write a part of a request, and take its size down."""
        left, sent = self._transport.left(), self._transport.sent
        connection = self._stream.get_extra_info("socket")
        if not is_request:
            self._stream.write(data, timeout=left)
        elif type(connection) is not socket.socket:  # TLS, or the sandbox
            sent.append(len(data))
            self._stream.write(data, timeout=left)
        else:
            try:
                connection.settimeout(left)
                while data:
                    sent.extend(map(connection.send, (data,)))  # one call, so that Ctrl-C comes before or after both
                    data = data[sent[-1] :]
            except TimeoutError as error:
                raise httpcore.WriteTimeout from error
            except OSError as error:
                raise httpcore.WriteError from error

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


def _address(host: str, port: int | None) -> str:
    """Return a host and its port, if it has one, as a URL contains them."""
    host = f"[{host}]" if ":" in host else host
    return f"{host}:{port}" if port else host


def root_cause(error: BaseException) -> BaseException:
    """Return the first exception of a chain, which is the system's error. httpcore's pool removes the cause."""
    while (earlier := error.__cause__ or error.__context__) is not None:
        error = earlier
    return error
