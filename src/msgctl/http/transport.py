"""Make a request on httpcore within a time limit, and know whether its first byte was sent.

`Transport` is an httpx transport. It keeps one connection open, and connects httpcore to this machine's network. So the
remaining time limits each step of a request: name lookup, connection, TLS, proxy, request and response. `exchange`
makes a request over any transport, such as the sandbox's.

`_Stream._send` is the only place that writes to a socket, so it alone decides when a request counts as sent. An
exception before the first byte gets its message in `Transport._not_reached`. An exception after it must be in
`EXCEPTIONS`, or it would count as a bug. `msgctl.http.client` decides what is retried.
``tests/faults/test_connections.py`` has servers that fail at these moments.

There is no `httpx.Client` in between, because it could harm a request that sends messages. It follows redirects, keeps
cookies, decompresses responses (100 KB became 100 MB), and logs the URL with the key. It parses the header Location: a
malformed one raises an exception, so that a refusal becomes unknown.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast
from urllib.parse import urlsplit

import httpcore
import httpx

from msgctl.config.urls import ascii_host, percent_encoded
from msgctl.errors import ConfigurationError, MsgctlError, NotReachedError, install_hint, no_more
from msgctl.http.network import CHECK_ADDRESS, connect, proxy_for, tls_context
from msgctl.text import in_seconds

MAX_IDLE = 4.0
"""Seconds after which an idle connection is not reused; many servers close connections after five."""
LARGE = 256 * 1024
"""Minimum bytes of a large body. Few responses have more."""
PIECE = 16 * 1024
"""Write size; the deadline is checked before each chunk."""
MAX_LARGE = 4
"""Large bodies in memory at a time, whatever the number of threads."""
_large_bodies = threading.BoundedSemaphore(MAX_LARGE)

X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED = 9, 10
"""Constants of OpenSSL that Python does not name."""
CHECK_PROXY = "Check HTTPS_PROXY and NO_PROXY."
OWN_AUTHORITY = (
    "If the service has its own certificate authority, set SSL_CERT_FILE to its file. "
    "If this system has no certificates, install ca-certificates."
)

EXCEPTIONS: dict[type[Exception], type[httpx.TransportError]] = {
    httpcore.TimeoutException: httpx.ReadTimeout,
    httpcore.NetworkError: httpx.ReadError,
    httpcore.ProtocolError: httpx.RemoteProtocolError,
}
"""The exceptions of httpcore for a connection or a response that fails, each with the exception of httpx."""
_FAILURES = tuple(EXCEPTIONS)


class TooLateError(Exception):
    """A request was not sent, because it became too late while the connection was opened. The connection is kept."""


class NoResponseError(Exception):
    """A request was sent, and no response came back. Its text is the reason."""


class RawResponse(NamedTuple):
    """A response as it arrived. If its body cannot be used, ``fault`` is the reason.

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


class LargeBody:
    """A permit to read a large body, for one thread; there are only a few permits."""

    def __init__(self) -> None:
        self._is_taken = False

    def take(self, seconds: float) -> None:
        """Wait for a permit, at most this long. Raises httpx.ReadTimeout."""
        if not self._is_taken:
            self._is_taken = _large_bodies.acquire(timeout=max(0.0, seconds))
            if not self._is_taken:
                raise httpx.ReadTimeout("other large responses take too long")

    def release(self) -> None:
        """Let other threads read large bodies: the latest response was parsed."""
        if self._is_taken:
            _large_bodies.release()
            self._is_taken = False


def exchange(
    transport: httpx.BaseTransport,
    request: httpx.Request,
    seconds: float,
    max_response: int,
    large_body: LargeBody | None = None,
) -> RawResponse:
    """Make a request once and return its whole response, of at most ``max_response`` bytes.

    ``large_body`` limits the large responses in memory. Raises NotReachedError if the request was not sent,
    NoResponseError if it was, and ConfigurationError.
    """
    end = time.monotonic() + seconds
    request.extensions["timeout"] = {"read": seconds}
    try:
        response = transport.handle_request(request)
    except httpx.TransportError as error:
        raise NoResponseError(_reason(error, seconds)) from error
    raw = RawResponse(response.status_code, response.headers.raw, b"")
    if raw.header("Content-Encoding").strip().lower() not in ("identity", ""):
        raw = raw._replace(fault="it is compressed, although msgctl did not request compression")
    body = bytearray()
    stream = cast("httpx.SyncByteStream", response.stream)
    try:
        for chunk in stream:
            body += chunk
            if time.monotonic() > end:  # the connection checks it only when it reads thousands of small chunks
                raise httpx.ReadTimeout("the rest of the response takes too long")
            if large_body and len(body) > LARGE:
                large_body.take(end - time.monotonic())
            if len(body) > max_response:
                raw = raw._replace(fault=f"it is over {max_response:,} bytes", is_cut=True)
                break
    except httpx.TransportError as error:
        is_late = isinstance(error, httpx.TimeoutException)
        raw = raw._replace(fault=_reason(error, seconds), is_cut=True, is_lost=True, is_late=is_late)
    finally:
        stream.close()
    return raw._replace(body=bytes(body))


def _reason(error: httpx.TransportError, seconds: float) -> str:
    """Return why a request got no whole response. The text of an exception may quote the request."""
    if isinstance(error, httpx.TimeoutException):
        return f"no whole response came within {in_seconds(seconds)}"
    if isinstance(error, httpx.ProtocolError):
        return "the connection was closed before the end of the response, or the response is not HTTP"
    return "the connection was lost while waiting for the response"


def ascii_url(base_url: str) -> str:
    """Return a base URL as requests contain it: its host in ASCII, and its path percent-encoded."""
    parts = urlsplit(base_url)
    address = _address(ascii_host(parts.hostname or ""), parts.port)
    return f"{parts.scheme}://{address}{percent_encoded(parts.path)}"


class Transport(httpx.BaseTransport, httpcore.NetworkBackend):
    """Makes requests to the server at a base URL, over a connection that is kept open; for one thread at a time.

    It does not retry. A request has these extensions. ``timeout`` limits the whole time. ``target`` is a path and query
    to send unchanged. ``sent`` is a list that gets the sizes of the parts that have left this machine, or may have.
    ``may_send`` returns whether it is not too late for the first byte. Raises ConfigurationError if the proxy or the
    certificates of the environment cannot be used.
    """

    def __init__(self, base_url: str) -> None:
        parts = urlsplit(base_url)
        self._scheme, self._port = parts.scheme, parts.port
        self._host = ascii_host(parts.hostname or "")
        self._proxy = proxy_for(base_url)
        self._tls: ssl.SSLContext | None = None
        if self._scheme == "https":
            self._tls = tls_context(os.environ.get("SSL_CERT_FILE") or None)
        self._connection: httpcore.HTTP11Connection | httpcore.ConnectionPool | None = None
        self._stream: httpcore.NetworkStream | None = None
        self._opened = 0.0
        """When the latest stream was opened, on the monotonic clock."""
        self.sent: list[int] = []
        """The sizes of the parts of the latest request that have left this machine, or may have."""
        self.peer = self._host
        """The host that a connection is opened to, for errors: the server or the proxy."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Make a request once and return its response, before its body is read.

        Raises NotReachedError or TooLateError if the request was not sent, httpx.TransportError if it was, and
        ConfigurationError.
        """
        self.sent = request.extensions.get("sent", [])
        self.may_send = request.extensions.get("may_send") or (lambda: True)
        self.peer = self._host
        self._seconds = request.extensions["timeout"]["read"]
        self._end = time.monotonic() + self._seconds
        target = request.extensions.get("target", request.url.raw_path)
        url = httpcore.URL(scheme=self._scheme, host=self._host, port=self._port, target=target)
        outgoing = httpcore.Request(request.method, url, headers=request.headers.raw, content=request.content)
        try:
            response = self._response(outgoing)
        except BaseException as error:  # Ctrl-C, too
            if isinstance(error, TooLateError) and self._proxy is None:
                raise
            self.close()
            is_failure = isinstance(error, _FAILURES)
            if is_failure and self.sent:
                raise _of_httpx(error) from error
            # socksio has its own exceptions, and httpcore uses assertions to check the bytes of a SOCKS proxy.
            is_of_proxy = self._proxy is not None and isinstance(error, Exception)
            if self.sent or isinstance(error, MsgctlError) or not (is_failure or is_of_proxy):
                raise
            raise self._not_reached(error) from error
        return httpx.Response(response.status, headers=response.headers, stream=_Body(response.stream))

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
        self._stream = connect(host, port, self.left())
        self._opened = time.monotonic()
        return _Stream(self._stream, self)

    def _response(self, request: httpcore.Request) -> httpcore.Response:
        """Return the response before its body is read.

        A response that arrives before the request was sent belongs to an earlier request, and is discarded.
        """
        while True:
            if self._is_stale():
                self.close()
            if self._connection is None:
                self._connection = self._new_connection()
            if self._proxy is None and not self.may_send():
                raise TooLateError
            response = self._connection.handle_request(request)
            if self.sent:
                return response
            self.close()

    def _is_stale(self) -> bool:
        """Return whether the server has closed the connection, or may close it soon. A pool checks this itself."""
        if not isinstance(self._connection, httpcore.HTTP11Connection) or self._stream is None:
            return False
        if self._connection.is_idle():
            return self._connection.has_expired()
        if self._connection.is_closed() or time.monotonic() > self._opened + MAX_IDLE:
            return True
        # No request was made yet. After a TLS handshake, a server may send session tickets.
        return self._tls is None and bool(self._stream.get_extra_info("is_readable"))

    def _new_connection(self) -> httpcore.HTTP11Connection | httpcore.ConnectionPool:
        """Return an open connection to the server, or a pool with one connection through a proxy.

        A pool takes an eighth of the time of a request, and opens a connection only for a request.
        """
        if self._proxy is None:
            origin = httpcore.URL(scheme=self._scheme, host=self._host, port=self._port, target="/").origin
            stream = self.connect_tcp(self._host, origin.port)
            if self._tls is not None:
                stream = stream.start_tls(self._tls, self._host)
            return httpcore.HTTP11Connection(origin, stream, keepalive_expiry=MAX_IDLE)
        options: dict[str, Any] = {
            "ssl_context": self._tls,
            "keepalive_expiry": MAX_IDLE,
            "network_backend": self,
            "max_connections": 1,
        }
        url, auth = self._proxy.url, self._proxy.raw_auth
        address = httpcore.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path)
        if url.scheme not in ("socks5", "socks5h"):
            tls = self._tls if url.scheme == "https" else None
            return httpcore.HTTPProxy(address, auth, self._proxy.headers.raw, proxy_ssl_context=tls, **options)
        try:
            return httpcore.SOCKSProxy(address, auth, **options)
        except RuntimeError:
            raise ConfigurationError("A SOCKS proxy needs the package socksio", install_hint("socksio>=1")) from None

    def _not_reached(self, error: BaseException) -> MsgctlError:
        """Return the error for an exception before the request was sent."""
        if isinstance(error, TooLateError):
            return NotReachedError(f"The connection to {self._host} through the proxy took too long", CHECK_PROXY)
        peer, cause = self.peer, error
        while (earlier := cause.__cause__ or cause.__context__) is not None:  # httpcore's pool removes the cause
            cause = earlier
        if isinstance(cause, OSError) and cause.errno in (errno.EMFILE, errno.ENFILE, errno.ENOMEM):
            return no_more("open files or memory")
        if isinstance(error, httpcore.TimeoutException):
            return NotReachedError(f"Cannot connect to {peer} within {in_seconds(self._seconds)}", CHECK_ADDRESS)
        if isinstance(cause, ssl.SSLCertVerificationError):
            what = f"The certificate of {peer} cannot be trusted: {cause.verify_message}"
            hint = OWN_AUTHORITY
            if cause.verify_code in (X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED):
                hint = "Check the date and time of this machine. If they are right, the certificate must be renewed."
            return NotReachedError(what, hint, retryable=False)
        if isinstance(cause, ssl.SSLError):
            reason = cause.reason or "the handshake failed"
            return NotReachedError(
                f"Cannot create a TLS connection to {peer} ({reason})", "Check that the port is for https."
            )
        if isinstance(error, httpcore.ConnectError) or self._proxy is None:
            reason = f": {cause.strerror}" if isinstance(cause, OSError) and cause.strerror else ""
            return NotReachedError(f"Cannot connect to {peer}{reason}", CHECK_ADDRESS)
        status = re.match("[0-9]{3}", str(error))  # httpcore's text is the proxy's status and reason
        response = f" and responded with {status[0]}" if status else ""
        return NotReachedError(
            f"The proxy did not open a connection to {self._host}{response}", CHECK_PROXY, retryable=False
        )


class _Body(httpx.SyncByteStream):
    """The body of a response, as it arrives."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._stream
        except _FAILURES as error:
            raise _of_httpx(error) from error

    def close(self) -> None:
        self._stream.close()


class _Stream(httpcore.NetworkStream):
    """A connection that buffers writes until the first read, so that a request is sent in one packet."""

    def __init__(self, stream: httpcore.NetworkStream, transport: Transport) -> None:
        self._stream = stream
        self._transport = transport
        self._pending = b""
        self._is_broken = False

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
        if is_request and not self._transport.may_send():  # opening a connection through a proxy took too long
            raise TooLateError
        try:
            for start in range(0, len(data), PIECE):
                self._send(data[start : start + PIECE], is_request=is_request)
        except httpcore.WriteError:
            self._is_broken = True
            if not self._transport.sent:
                raise

    def _send(self, data: bytes, *, is_request: bool) -> None:
        """Write a part of a request, and note its size."""
        left, sent = self._transport.left(), self._transport.sent
        connection = self._stream.get_extra_info("socket")
        if not is_request:
            self._stream.write(data, timeout=left)
        elif type(connection) is not socket.socket:  # TLS
            sent.append(len(data))
            try:
                self._stream.write(data, timeout=left)
            except httpcore.WriteError:
                sent.pop()  # a part of a TLS record cannot be read
                raise
        else:
            try:
                connection.settimeout(left)
                while data:
                    sent.extend(map(connection.send, (data,)))  # one call, so that Ctrl-C comes before or after both
                    data = data[sent[-1] :]
            except OSError as error:
                raise httpcore.WriteError from error

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> _Stream:
        self._transport.peer = str(server_hostname)  # httpcore always passes it
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, self._transport.left()), self._transport)

    def close(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable" and self._is_broken:
            return True  # so that it is not reused: the server would read the next request as the rest of this one
        return self._stream.get_extra_info(info)


def _of_httpx(error: BaseException) -> httpx.TransportError:
    """Return httpx's exception for one of httpcore's, without its text, which may quote the request."""
    return next(kind(kind.__name__) for known, kind in EXCEPTIONS.items() if isinstance(error, known))


def _address(host: str, port: int | None) -> str:
    """Return a host, and its port if it has one, formatted as in a URL."""
    host = f"[{host}]" if ":" in host else host
    return f"{host}:{port}" if port else host
