"""Proxies that the environment asks for: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY and NO_PROXY, in either case."""

from __future__ import annotations

import base64
import os
from typing import NamedTuple
from urllib.parse import SplitResult, unquote_to_bytes, urlsplit

from msgctl.config.base_url import is_loopback
from msgctl.errors import ConfigurationError


class Proxy(NamedTuple):
    """An HTTP proxy; ``headers`` hold its credentials, if it wants any (RFC 7617)."""

    host: str
    port: int
    headers: dict[str, str]

    def __repr__(self) -> str:
        """Without credentials."""
        return f"Proxy({self.host!r}, {self.port})"


def proxy_for(scheme: str, host: str, port: int) -> Proxy | None:
    """The proxy through which a host is asked for, or None.

    A loopback address is never asked for through a proxy, since plain http is allowed there because it stays on the
    machine. Raises ConfigurationError.
    """
    if is_loopback(host) or not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    # Only here, since it takes 20 ms to load.
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    url = proxies.get(scheme) or proxies.get("all")
    return None if not url or proxy_bypass(f"{host}:{port}") else _proxy(url)


def _proxy(url: str) -> Proxy:
    """The proxy at a URL, which is in no message since it may hold a password. Raises ConfigurationError."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        host, port = parts.hostname, parts.port or 80
    except ValueError:
        host = None
    if not host:
        raise ConfigurationError("the URL of the proxy is malformed", "Check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY.")
    if parts.scheme != "http":
        raise ConfigurationError(
            "the proxy cannot be used: only http:// proxies can, which do not see what goes through them encrypted",
            "Check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY, or name the host in NO_PROXY.",
        )
    return Proxy(host, port, _credentials(parts))


def _credentials(parts: SplitResult) -> dict[str, str]:
    if parts.username is None:
        return {}
    user_and_password = unquote_to_bytes(parts.username) + b":" + unquote_to_bytes(parts.password or "")
    return {"Proxy-Authorization": "Basic " + base64.b64encode(user_and_password).decode("ascii")}
