"""Base URLs: which ones the key may travel to."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

from msgctl.text import is_unsafe, shorten

LONGEST_BASE_URL = 2048

_AUTHORITY = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[^\[\]:]+))(?::(?P<port>[0-9]*))?", re.I | re.A)
# A name whose last label is a number would be read as an address (URL Standard, "ends in a number").
_NAME = re.compile(r"(?:[a-z0-9_-]+\.)*(?![0-9]+\.?$)[a-z0-9_-]+\.?", re.I | re.A)


def is_loopback(host: str) -> bool:
    """Whether a host name or address means this machine (RFC 1122, RFC 4291, RFC 6761)."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def base_url_fault(text: str, *, allow_http: bool = False) -> str | None:
    """Why a text cannot be a base URL, or None where it can. User name, password and query are not in the answer.

    Plain http is refused but to a loopback address, since the key travels in every request.
    """
    if not text or any(char.isspace() or is_unsafe(char) for char in text):
        return "it is empty" if not text else "it holds a space or a control character"
    if len(text) > LONGEST_BASE_URL:
        return f"it is longer than {LONGEST_BASE_URL} characters"
    try:
        parts = urlsplit(text)
    except ValueError:
        return "its host or port is malformed"
    if parts.scheme not in {"http", "https"}:
        return "it does not begin with https://"
    if not parts.netloc:
        return "it names no host"
    if "@" in parts.netloc:
        return "it holds a user name or password"
    if "?" in text or "#" in text:
        return "it holds a query or a fragment"
    return _host_fault(text, parts, allow_http=allow_http)


def _host_fault(text: str, parts: SplitResult, *, allow_http: bool) -> str | None:
    authority = _AUTHORITY.fullmatch(parts.netloc)
    if authority is None or not 0 < int((authority["port"] or "1")[:6]) < 2**16:
        return "its host or port is malformed"
    host: str = authority["address"] or authority["name"]
    if not (_is_address(host) if authority["address"] else _is_address(host) or _is_name(text, host)):
        return "its host is malformed"
    if parts.scheme == "http" and not allow_http and not is_loopback(host):
        return f"plain http to {shorten(host, 60)} would show the key to everyone on the way"
    return None


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_name(text: str, host: str) -> bool:
    """Whether a host is a name that can be looked up."""
    try:
        host.encode("idna")  # labels of 1 to 63 characters, as the look-up wants them
    except ValueError:
        return False
    if host.isascii() and "xn--" not in host.lower():
        return _NAME.fullmatch(host) is not None
    return _is_international(text)


def _is_international(text: str) -> bool:
    """Whether the host is one of IDNA 2008, of which only the HTTP library knows."""
    import httpx

    try:
        return bool(httpx.URL(text).host)
    except (ValueError, httpx.InvalidURL):
        return False
