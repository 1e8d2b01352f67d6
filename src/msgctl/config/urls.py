"""The URLs in a profile: the base URL, which the key may be sent to, and the path or URL of a store.

Either may contain a password, which no message repeats.
"""

from __future__ import annotations

import ipaddress
import os
import re
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote, unquote_plus, urlsplit

from msgctl.errors import ConfigurationError
from msgctl.text import clean, is_unsafe, shorten

MAX_BASE_URL = 2048

_AUTHORITY = r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[^\[\]:]+))(?::(?P<port>[0-9]*))?"
# A name with a number as its last label would be parsed as an address (URL Standard, "ends in a number").
_NAME = r"(?:[a-z0-9_-]{1,63}\.)*(?![0-9]+\.?$)[a-z0-9_-]{1,63}\.?"

_HOST = r"(?:\[[0-9A-Fa-f:.%]*\]|[^][:@/?#,]*)(?::[0-9]*)?"
_STORE_URL = (
    rf"[^:/?#@]*://(?:[^:@/?#]*(?P<password>:[^@/?#]*)?@)?(?P<place>{_HOST}(?:,{_HOST})*(?:/[^@?#]*)?)"
    r"(?:\?(?P<parameters>[^@#]*))?"
)
"""The URL of a store."""


# --- the base URL


def is_loopback(host: str) -> bool:
    """Return whether a host name or address means this machine (RFC 1122, RFC 4291, RFC 6761)."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host.lower() == "localhost"


def base_url_fault(text: str, *, allow_http: bool = False) -> str | None:
    """Return why a text is not a valid base URL ("is empty"), or None if it is. A password in it is not repeated.

    Plain http is refused except to a loopback address, since every request contains the key.
    """
    if not text or any(char.isspace() or is_unsafe(char) for char in text):
        return "contains a space or a control character" if text else "is empty"
    if len(text) > MAX_BASE_URL:
        return f"is longer than {MAX_BASE_URL} characters"
    scheme, _, rest = text.partition("://")
    if scheme.lower() not in {"http", "https"}:
        return "does not begin with https://"
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    if not authority:
        return "has no host"
    if "@" in authority:
        return "contains a user name or password; the credentials are the client ID and the key"
    if "?" in text or "#" in text:
        return "contains a query or a fragment"
    parts = re.fullmatch(_AUTHORITY, authority, re.I | re.A)
    host = (parts["address"] or parts["name"]) if parts else ""
    is_host = False
    if parts and 0 < int((parts["port"] or "1")[:6]) < 2**16:
        with suppress(ValueError):
            is_host = parts["address"] is None and re.fullmatch(_NAME, ascii_host(host), re.I | re.A) is not None
        with suppress(ValueError):
            is_host = is_host or bool(ipaddress.ip_address(host))
    if not is_host:
        return "has a malformed host or port"
    if scheme.lower() == "http" and not allow_http and not is_loopback(host):
        return f"is plain http, which would expose the key on the way to {shorten(host, 60)}"
    return None


def origin(base_url: object) -> str | None:
    """Return scheme, host and port of a base URL in one spelling, or None for a value that is not a base URL."""
    if not isinstance(base_url, str) or base_url_fault(base_url, allow_http=True):
        return None
    parts = urlsplit(base_url)
    host = ascii_host(parts.hostname or "")
    with suppress(ValueError):
        host = ipaddress.ip_address(host).compressed
    if ":" in host:
        host = f"[{host}]"
    usual_port = {"http": 80, "https": 443}[parts.scheme]
    port = "" if parts.port in (None, usual_port) else f":{parts.port}"
    return f"{parts.scheme}://{host}{port}"


def account(base_url: str, client: int | str) -> str:
    """Return a base URL in normalized form, followed by the client ID.

    Spellings of a URL differ in the case of scheme and host, a default port, dot segments (RFC 3986, section 5.2.4) or
    a final slash.
    """
    if (where := origin(base_url)) is None:
        return f"{base_url} {client}"
    path: list[str] = []
    for segment in urlsplit(base_url).path.split("/")[1:]:
        if segment == "..":
            path = path[:-1]
        elif segment != ".":
            path.append(segment)
    return f"{'/'.join([where, *path]).rstrip('/')} {client}"


def ascii_host(host: str) -> str:
    """Return a host in lower case and in ASCII, the form for lookups (IDNA 2003, RFC 3490).

    Raises ValueError if there is no such form. Raises it if the form is another name (a sharp s becomes ss), too: the
    key is only sent to the host as written.
    """
    host = host.lower()
    if host.isascii():
        return host
    encoded = host.encode("idna")
    if encoded.decode("idna") != host:
        raise ValueError("this would be another host name")
    return encoded.decode("ascii")


def without_secrets(text: str) -> str:
    """Return a URL or a path without the parts that may contain a password or the key."""
    scheme, slashes, rest = re.split(r"[?#]", text, maxsplit=1)[0].rpartition("://")
    return scheme + slashes + rest.rpartition("@")[2]


def percent_encoded(path: str) -> str:
    """Return a path percent-encoded in ASCII; existing percent-encoding is kept."""
    return re.sub("%(?![0-9A-Fa-f]{2})", "%25", quote(path, safe="/%:@!$&'()*+,;=~"))


# --- the store


def is_store(text: str) -> bool:
    """Return whether a text may be the absolute path or the URL of a store; the path may begin with ``~``."""
    return "\0" not in text and (is_store_url(text) or (text.startswith(("/", "~")) and "://" not in text))


def is_store_url(text: str) -> bool:
    """Return whether a string looks like the URL of a PostgreSQL database."""
    return text.startswith(("postgresql://", "postgres://"))


def location_of(store: str) -> str | Path:
    """Return the absolute path of a store, or its URL unchanged. Raises ConfigurationError."""
    if "://" in store:
        return store
    if store.lower().startswith(("postgresql:", "postgres:")):  # it may contain a password
        raise ConfigurationError(
            "The URL of the store must begin with postgresql://", "Write it like postgresql://user@host/database."
        )
    try:
        return Path(store).expanduser().absolute()
    except RuntimeError:
        raise ConfigurationError(
            f'The path of the store begins with an unknown user: "{shorten(store)}"', "Use an absolute path."
        ) from None


def resolved(location: str | Path) -> str | Path:
    """Return the path of a store without symbolic links, or its URL unchanged. Each file has only one such path."""
    return location if isinstance(location, str) else Path(os.path.realpath(location))


def has_password(store: str) -> bool:
    """Return whether a store is a URL with a password, or a malformed URL, which may contain one anywhere."""
    if "://" not in store:
        return False
    url = re.fullmatch(_STORE_URL, store)
    return url is None or url["password"] is not None or "password" in unquote_plus(url["parameters"] or "").lower()


def store_shown(store: str) -> str:
    """Return the path or URL of a store without its password."""
    if not has_password(store):
        return clean(store)
    url = re.fullmatch(_STORE_URL, store)
    place = "***" if url is None else url["place"]
    return f"{clean(store.partition('://')[0])}://{clean(place)} (with a password)"


def without_password(store: str) -> str:
    """Return the path or URL of a store, with the user but without the password, so that the user can retype it."""
    url = re.fullmatch(_STORE_URL, store)
    if url is None:
        return store_shown(store)
    scheme, _, rest = store.partition("://")
    user, has_user, _ = rest.rpartition("@")
    address = f"{scheme}://{user.partition(':')[0]}{has_user}{url['place']}"
    parameters = (url["parameters"] or "").split("&")
    others = [pair for pair in parameters if pair and "password" not in unquote_plus(pair.partition("=")[0]).lower()]
    return clean("?".join(filter(None, (address, "&".join(others)))))
