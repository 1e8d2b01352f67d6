"""Base URLs: which ones the key may be sent to."""

from __future__ import annotations

import ipaddress
import re
from contextlib import suppress
from urllib.parse import quote, unquote

from msgctl.text import is_unsafe, shorten

LONGEST_BASE_URL = 2048

_AUTHORITY = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[^\[\]:]+))(?::(?P<port>[0-9]*))?", re.I | re.A)
# A name whose last label is a number would be read as an address (URL Standard, "ends in a number").
_NAME = re.compile(r"(?:[a-z0-9_-]{1,63}\.)*(?![0-9]+\.?$)[a-z0-9_-]{1,63}\.?", re.I | re.A)


def is_loopback(host: str) -> bool:
    """Return whether a host name or address means this machine (RFC 1122, RFC 4291, RFC 6761)."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host.lower() == "localhost"


def base_url_fault(text: str, *, allow_http: bool = False) -> str | None:
    """Return why a text cannot be a base URL ("is empty"), or None if it can. A password in it is not repeated.

    Plain http is refused except to a loopback address, since every request carries the key.
    """
    if not text or any(char.isspace() or is_unsafe(char) for char in text):
        return "contains a space or a control character" if text else "is empty"
    if len(text) > LONGEST_BASE_URL:
        return f"is longer than {LONGEST_BASE_URL} characters"
    scheme, _, rest = text.partition("://")
    if scheme.lower() not in {"http", "https"}:
        return "does not begin with https://"
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    if not authority:
        return "names no host"
    if "@" in authority:
        return "contains a user name or password; the credentials are client and key"
    if "?" in text or "#" in text:
        return "contains a query or a fragment"
    parts = _AUTHORITY.fullmatch(authority)
    if parts is None or not 0 < int((parts["port"] or "1")[:6]) < 2**16 or not _is_host(**parts.groupdict()):
        return "has a malformed host or port"
    host = parts["address"] or parts["name"]
    if scheme.lower() == "http" and not allow_http and not is_loopback(host):
        return f"is plain http, which would expose the key on the way to {shorten(host, 60)}"
    return None


def _is_host(address: str | None, name: str, **_: str) -> bool:
    with suppress(ValueError):
        return bool(ipaddress.ip_address(address or name))
    with suppress(ValueError):
        return address is None and _NAME.fullmatch(ascii_host(name)) is not None
    return False


def ascii_host(host: str) -> str:
    """Return a host in lower case and in ASCII, as it is looked up (IDNA 2003, RFC 3490).

    Raises ValueError if it has no such form, or the form of another name (a sharp s becomes ss): the key is sent to the
    host that was written or not at all.
    """
    host = host.lower()
    if host.isascii():
        return host
    encoded = host.encode("idna")
    if encoded.decode("idna") != host:
        raise ValueError("this would be another host name")
    return encoded.decode("ascii")


def path_fault(text: str) -> str | None:
    """Return why a text cannot be the path of a request below a base URL, or None if it can."""
    if not text or any(char.isspace() or is_unsafe(char) for char in text):
        return "it contains a space or a control character" if text else "it is empty"
    if "://" in text or text.startswith("//"):
        return "it names a host, but the key is only sent to the host of the profile"
    if "?" in text or "#" in text:
        return "it contains a query or a fragment"
    if not {".", ".."}.isdisjoint(re.split(r"[/\\]", unquote(text))):
        return "it contains . or .. as a segment, which could lead out of the base URL"
    return None


def without_secrets(text: str) -> str:
    """Return a URL or a path without the parts that may contain a password or the key."""
    scheme, slashes, rest = re.split(r"[?#]", text, maxsplit=1)[0].rpartition("://")
    return scheme + slashes + rest.rpartition("@")[2]


def percent_encoded(path: str) -> str:
    """Return a path in ASCII; what is percent-encoded already stays as it is."""
    return re.sub("%(?![0-9A-Fa-f]{2})", "%25", quote(path, safe="/%:@!$&'()*+,;=~"))
