"""Base URLs: which ones the key may travel to."""

from __future__ import annotations

import ipaddress
from urllib.parse import urlsplit

from msgctl.text import is_unsafe, shorten


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine (RFC 1122, RFC 4291, RFC 6761)."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def base_url_fault(text: str, *, allow_http: bool = False) -> str | None:
    """Why a text cannot be a base URL, or None where it can.

    Plain http is refused but to a loopback address, since the key travels in every request.
    """
    if not text or any(char.isspace() or is_unsafe(char) for char in text):
        return "it is empty" if not text else "it holds a space or a control character"
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
        (host or "").encode("idna")
    except ValueError:
        return "its host or port is malformed"
    if parts.scheme not in {"http", "https"}:
        return "it does not begin with https://"
    if not host or port == 0:
        return "it names no host" if not host else "its port is 0"
    if parts.username is not None or parts.password is not None:
        return "it holds a user name or password"
    if "?" in text or "#" in text:
        return "it holds a query or a fragment"
    if parts.scheme == "http" and not allow_http and not is_loopback(host):
        return f"plain http to {shorten(host, 60)} would show the key to everyone on the way"
    return None
