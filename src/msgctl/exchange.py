"""One HTTP exchange: a request goes out once, within a time limit, and it is known whether it left.

A limit on the whole exchange cannot be had from socket time-outs alone: looking up a name has none, and a server that
sends a byte a second resets it for ever. So the exchange runs in a thread of its own, and whoever waits for it gives
up at the limit. The `Journey` between the two sees to it that a request that was given up before it left never leaves.
"""

from __future__ import annotations

import queue
import socket
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http.cookiejar import CookieJar
from typing import Any

import httpx

from msgctl.addresses import is_loopback
from msgctl.answers import MOST_BYTES, ShapeError
from msgctl.errors import ConfigurationError, NotReachedError

CHECK_ADDRESS = "Check the base URL, its port included, the network, and HTTPS_PROXY where a proxy is in between."


class NoCookies(CookieJar):
    """Keeps nothing and gives nothing: the interface knows no cookies, and one request says nothing to the next."""

    def extract_cookies(self, response: Any, request: Any) -> None:
        pass

    def add_cookie_header(self, request: Any) -> None:
        pass


@dataclass(frozen=True, slots=True)
class Reply:
    """Status and body of an answer.

    ``fault`` says why the body is not the whole answer (it is then empty), and is None where it is.
    """

    status: int
    body: bytes
    fault: str | None = None
    location: str | None = None

    def whole_body(self) -> bytes:
        """The body. Raises ShapeError where it is not whole."""
        if self.fault is not None:
            raise ShapeError(self.fault)
        return self.body


class LostError(Exception):
    """The request left, or may have left, and no whole answer came back; the text says why."""


class GivenUpError(Exception):
    """Raised inside an exchange that nobody waits for any more, before it lets its request leave."""


class Journey:
    """How far a request has come: shared by the thread that sends it and the one that waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._given_up = False
        self.left = False
        self.status: int | None = None

    def leave(self) -> None:
        """Called just before the first byte of the request is written. Raises GivenUpError."""
        with self._lock:
            if self._given_up:
                raise GivenUpError
            self.left = True

    def give_up(self) -> bool:
        """From now on the request does not leave; true where it had left before."""
        with self._lock:
            self._given_up = True
            return self.left

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        """An httpx trace hook. A CONNECT to a proxy carries no credentials and is not the request.

        The first event about the request itself counts as its leaving, whatever the event is called: to take a lost
        request for one that never left would send it twice.
        """
        request = info.get("request")
        if event.endswith(".started") and request is not None and request.method != b"CONNECT":
            self.leave()


def exchange(
    client: httpx.Client, request: httpx.Request, journey: Journey, seconds: float, *, traced: bool = True
) -> Reply:
    """Send a request once and read its answer, within ``seconds``.

    ``traced`` is false where the transport does not report when a request leaves. Raises NotReachedError where it
    never left, and LostError where it did and no whole answer came back.
    """

    def work() -> Reply:
        if not traced:
            journey.leave()
        return _read(client, request, journey)

    try:
        return _within(seconds, work)
    except TimeoutError:
        left = journey.give_up()
        late = f"no answer came within {seconds:g} seconds"
    except httpx.TimeoutException:
        left = journey.left
        late = f"no answer came within {seconds:g} seconds"
    except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
        if journey.left:
            raise LostError(_reason(error)) from error
        raise _not_reached(request.url.host, error) from error
    if journey.status not in (None, 200):
        return Reply(journey.status or 0, b"", fault="its body did not come in time")
    if left:
        raise LostError(late)
    raise NotReachedError(f"no connection to {request.url.host} within {seconds:g} seconds", CHECK_ADDRESS)


def _read(client: httpx.Client, request: httpx.Request, journey: Journey) -> Reply:
    response = client.send(request, stream=True, follow_redirects=False)
    try:
        journey.status = response.status_code
        location = response.headers.get("location")
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", ""):
            return Reply(response.status_code, b"", "it is compressed, which was not asked for", location)
        body = bytearray()
        try:
            for chunk in response.iter_raw():
                body += chunk
                if len(body) > MOST_BYTES:
                    return Reply(response.status_code, b"", f"it is over {MOST_BYTES // 2**20} MiB", location)
        except httpx.HTTPError:
            if response.status_code == 200:
                raise
            return Reply(response.status_code, b"", "the connection was lost within its body", location)
        return Reply(response.status_code, bytes(body), None, location)
    finally:
        response.close()


def _within(seconds: float, work: Callable[[], Reply]) -> Reply:
    """The result of ``work``, done in a thread that is left behind at the time limit. Raises TimeoutError."""
    outcome: queue.SimpleQueue[Reply | BaseException] = queue.SimpleQueue()

    def run() -> None:
        try:
            outcome.put(work())
        except BaseException as error:  # noqa: BLE001 (it is raised again where the result is waited for)
            outcome.put(error)

    threading.Thread(target=run, name="exchange", daemon=True).start()
    try:
        result = outcome.get(timeout=seconds)
    except queue.Empty:
        raise TimeoutError from None
    if isinstance(result, BaseException):
        raise result
    return result


def _reason(error: Exception) -> str:
    """Why no answer came back, in words; the libraries' own texts may quote what was sent."""
    if isinstance(error, httpx.RemoteProtocolError):
        return "the connection was closed, or what came back is not HTTP"
    if isinstance(error, httpx.ReadError):
        return "the connection was lost while waiting for the answer"
    if isinstance(error, httpx.WriteError):
        return "the connection was lost while sending"
    return f"the exchange broke off ({type(error).__name__})"


def _not_reached(host: str, error: Exception) -> NotReachedError:
    causes = list(_causes(error))
    for cause in causes:
        if isinstance(cause, socket.gaierror):
            return NotReachedError(
                f"the name {host} cannot be looked up", CHECK_ADDRESS, passing=cause.errno == socket.EAI_AGAIN
            )
        if isinstance(cause, ssl.SSLCertVerificationError):
            return NotReachedError(
                f"the certificate of {host} cannot be trusted: {cause.verify_message}",
                "If the service has a certificate authority of its own, name its file in SSL_CERT_FILE.",
                passing=False,
            )
        if isinstance(cause, ssl.SSLError):
            return NotReachedError(
                f"no TLS connection to {host} ({cause.reason or 'the handshake failed'})",
                "Check the base URL: is it https that answers at this port?",
            )
        if isinstance(cause, ConnectionRefusedError):
            return NotReachedError(f"{host} refused the connection", CHECK_ADDRESS)
    if any(isinstance(cause, httpx.ProxyError) for cause in causes):
        return NotReachedError(
            f"the proxy did not open a connection to {host}", "Check HTTPS_PROXY and NO_PROXY.", passing=False
        )
    return NotReachedError(f"no connection to {host}", CHECK_ADDRESS)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it, the innermost first."""
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain:
        chain.append(current)
        current = current.__cause__ or current.__context__
    return reversed(chain)


def open_client(base_url: str, seconds: float) -> httpx.Client:
    """An HTTP client for a service: certificates verified, SSL_CERT_FILE and the proxy variables honoured.

    A loopback address is never asked for through a proxy, since plain http is allowed there because it stays on the
    machine. Raises ConfigurationError where the certificates cannot be read.
    """
    url = httpx.URL(base_url)
    local = is_loopback(url.host)
    try:
        # Plain http to this machine needs no certificates, whose reading costs a tenth of a short command.
        verify: ssl.SSLContext | bool = False if local and url.scheme == "http" else httpx.create_ssl_context()
        return httpx.Client(
            verify=verify,
            timeout=seconds,
            follow_redirects=False,
            trust_env=not local,
            cookies=NoCookies(),
            headers={"Accept-Encoding": "identity"},
        )
    except (OSError, ValueError, ImportError, httpx.InvalidURL) as error:
        raise ConfigurationError(
            f"the settings for TLS or proxies cannot be used ({type(error).__name__})",
            "Check the variables SSL_CERT_FILE, HTTPS_PROXY and NO_PROXY.",
        ) from error
