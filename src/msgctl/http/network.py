"""This machine's network: looking up a name, connecting, the proxy and the certificates to trust."""

from __future__ import annotations

import ipaddress
import os
import queue
import socket
import ssl
import threading
import time
from contextlib import suppress
from functools import lru_cache
from urllib.parse import urlsplit

import httpcore
import httpx

from msgctl.config.urls import is_loopback
from msgctl.errors import ConfigurationError, NotReachedError, no_more

CHECK_ADDRESS = "Check the base URL and its port, the network, and HTTPS_PROXY if you use a proxy."
CHECK_VARIABLES = "Check HTTPS_PROXY and ALL_PROXY."


def connect(host: str, port: int, seconds: float) -> httpcore.NetworkStream:
    """Connect to a host within a time limit. Try each of its addresses in turn, dividing the time between them."""
    end = time.monotonic() + seconds
    addresses = look_up(host, port, seconds)
    for index, address in enumerate(addresses):
        share = (end - time.monotonic()) / (len(addresses) - index)
        if share <= 0:
            raise httpcore.ConnectTimeout
        try:
            return httpcore.SyncBackend().connect_tcp(address, port, share)
        except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
            failure = error
    raise failure


def look_up(host: str, port: int, seconds: float) -> list[str]:
    """Return the addresses of a host. Raises NotReachedError, and ConfigurationError without threads.

    A lookup has no time limit, so it runs in a separate thread, which is abandoned at the limit.
    """
    with suppress(ValueError):
        return [str(ipaddress.ip_address(host))]
    results: queue.SimpleQueue[list[str] | Exception] = queue.SimpleQueue()

    def look() -> None:
        try:
            entries = socket.getaddrinfo(host, port)
            results.put(list(dict.fromkeys(str(address[0]) for _, _, _, _, address in entries)))
        except (OSError, UnicodeError) as error:
            results.put(error)

    try:
        threading.Thread(target=look, daemon=True).start()
        result = results.get(timeout=seconds)
    except RuntimeError:  # out of threads
        raise no_more("threads") from None
    except queue.Empty:
        raise httpcore.ConnectTimeout from None
    if isinstance(result, Exception):
        retryable = isinstance(result, socket.gaierror) and result.errno == socket.EAI_AGAIN
        raise NotReachedError(f"Cannot resolve {host}", CHECK_ADDRESS, retryable=retryable) from result
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
    if "://" not in url:
        url = f"http://{url}"
    try:
        proxy = httpx.Proxy(url)
    except (ValueError, httpx.InvalidURL):
        proxy = None
    if proxy is None or not proxy.url.host:
        raise ConfigurationError(
            "The URL of the proxy cannot be used: it must begin with http://, https:// or socks5://", CHECK_VARIABLES
        )
    return proxy


@lru_cache(maxsize=4)  # takes 13 ms to read the certificates of all authorities
def tls_context(file: str | None) -> ssl.SSLContext:
    """Return a TLS context with the system's certificates, or with the certificates in a file."""
    try:
        context = ssl.create_default_context(cafile=file)
    except (OSError, ValueError) as error:
        what = f"The certificates to trust cannot be read ({type(error).__name__})"
        raise ConfigurationError(what, "Check the variable SSL_CERT_FILE.") from error
    context.set_alpn_protocols(["http/1.1"])
    return context
