"""Profiles: the service's base URL, the credentials and the defaults to use.

A profile chosen with ``-p`` is used unchanged. Otherwise MSGCTL_BASE_URL, MSGCTL_CLIENT and MSGCTL_KEY override the
profile that MSGCTL_PROFILE or ``default_profile`` specifies. The sandbox ignores these variables, however it was
selected, so that it never reaches the real service.

The environment is trusted less than a profile: a variable by itself never sends a stored key to another address.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

from msgctl.config.file import ConfigFile
from msgctl.errors import ConfigurationError, NoProfileError
from msgctl.text import clean, is_unsafe, shorten

SANDBOX = "sandbox"
SANDBOX_URL = "https://sandbox.invalid/api/v1"
SANDBOX_CLIENT = 1
SANDBOX_KEY = "the-key-of-the-sandbox"

ENVIRONMENT = "environment"
"""The name of the profile that consists of the three variables."""

MAX_CLIENT = 2**63 - 1
MAX_KEY = 4096
MIN_KEY = 6
"""Minimum characters of a key for it to be masked everywhere (see `msgctl.http.redaction`)."""
SHORT_KEY = f"The key has fewer than {MIN_KEY} characters: msgctl masks it only if it is the whole value of a parameter"

VARIABLES = {"base_url": "MSGCTL_BASE_URL", "client": "MSGCTL_CLIENT", "key": "MSGCTL_KEY"}
URL_HINT = (
    "Use https://HOST/api/v1. Plain http is allowed for loopback addresses, "
    "and with allow_http = true for the profile's own address."
)
KEY_HINT = "The client ID and the key are in the account's Security menu."
ADD_HINT = "Add a profile with: msgctl profile add NAME. Or try the sandbox: msgctl -p sandbox balance"

WORDS = ("delivered", "failed", "verified")
"""The keys of the setting ``words``."""
_WORDS_HINT = 'Write it like this: words = {delivered = ["RECEIVED"], failed = [], verified = ["EXITOSO"]}'

_FIXES = {
    "base_url": "--base-url URL",
    "client": "--client N",
    "key": "--key-stdin",
    "key_command": "--key-command CMD",
    "country_code": "--country-code CC",
    "app_name": "--app-name NAME",
    "voice": "--voice NAME",
    "timezone": "--timezone ZONE",
}
"""The options of `msgctl profile set`, by setting."""
OPTIONS = ("country_code", "app_name", "voice", "timezone", "history", "keep_days", "words", "shared")
"""The optional settings of a profile."""
KEY_SOURCES = ("key", "key_command", "keyring")
_NOT_SHOWN = frozenset({"base_url", "key", "key_command", "shared"})
"""Settings that may contain a secret."""

_PROFILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
MAX_BASE_URL = 2048

_AUTHORITY = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[^\[\]:]+))(?::(?P<port>[0-9]*))?", re.I | re.A)
# A name with a number as its last label would be parsed as an address (URL Standard, "ends in a number").
_NAME = re.compile(r"(?:[a-z0-9_-]{1,63}\.)*(?![0-9]+\.?$)[a-z0-9_-]{1,63}\.?", re.I | re.A)


def are_words(value: object) -> bool:
    """Return whether a value is valid for the setting ``words``."""
    return isinstance(value, dict) and all(
        name in WORDS and isinstance(words, list) and all(isinstance(word, str) and word.strip() for word in words)
        for name, words in value.items()
    )


_TEXT = "a non-empty string", lambda it: isinstance(it, str) and it != ""
_FLAG = "true or false", lambda it: isinstance(it, bool)
_RULES: dict[str, tuple[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("base_url", "key", "key_command", "country_code", "app_name", "voice"), _TEXT),
    **dict.fromkeys(("allow_http", "keyring", "history"), _FLAG),
    "client": ("a whole number (int64)", lambda it: type(it) is int and 0 <= it <= MAX_CLIENT),
    "timezone": ("a time zone such as America/Bogota", lambda it: isinstance(it, str) and is_time_zone(it)),
    "keep_days": ("a whole number of days, at least 1", lambda it: type(it) is int and it > 0),
    "shared": ("a URL such as postgresql://user@host/database", lambda it: isinstance(it, str) and is_store_url(it)),
    "words": (f"a table of lists of strings, with the keys {', '.join(WORDS)}", are_words),
}
"""The rule for each setting: its description, and its check."""
_DEFAULTS = {"history": True, "allow_http": False}


class Credential(NamedTuple):
    """Client ID (int64) and account key, which every request contains and no output shows."""

    client: int
    key: str

    def __repr__(self) -> str:
        return f"Credential({self.client}, ***)"


@dataclass(frozen=True, slots=True, repr=False)
class Profile:
    """An account and the defaults for it.

    A setting is checked when it is read. An invalid one raises ConfigurationError, which mentions the file or the
    variable. ``by`` is the selector of the profile: ``-p``, ``MSGCTL_PROFILE`` or ``default_profile``; it is empty for
    a profile from the variables only. ``settings`` come from the file, except the settings in ``given``, which come
    from variables. ``own`` is then the profile without the variables. Messages refer to the profile as ``place``.
    """

    name: str
    by: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    given: tuple[str, ...] = ()
    place: str = ""
    is_sandbox: bool = False
    own: Profile | None = None

    def __repr__(self) -> str:
        return f"Profile({self.name!r})"

    def checked(self, *names: str) -> Profile:
        """Return the profile after validating these settings (default: all except the key)."""
        for name in names or ("base_url", "client", "key_source", *OPTIONS):
            getattr(self, name)
        return self

    def overridden(self, given: Mapping[str, str]) -> Profile:
        """Return the profile with settings overridden by variables."""
        settings: dict[str, Any] = {**self.settings, **given}
        if "key" in given:
            settings = {name: value for name, value in settings.items() if name not in ("key_command", "keyring")}
        if (client := given.get("client", "")).isascii() and client.isdigit() and len(client) < 20:
            settings["client"] = int(client)
        return replace(self, settings=settings, given=tuple(given), own=self)

    @property
    def base_url(self) -> str:
        """The base URL, without a slash at its end."""
        text: str = self.get("base_url", required=True)
        if fault := base_url_fault(text, allow_http=self.get("allow_http") and not self._is_redirected):
            raise ConfigurationError(f"{self._where('base_url')} {fault}", URL_HINT)
        return text.rstrip("/")

    @property
    def _is_redirected(self) -> bool:
        """Return whether MSGCTL_BASE_URL has another scheme, host or port than the profile."""
        if self.own is None or "base_url" not in self.given:
            return False
        return origin(self.own.settings.get("base_url")) != origin(self.settings["base_url"])

    @property
    def key_source(self) -> str:
        """The setting that provides the key, one of `KEY_SOURCES`."""
        found = [setting for setting in KEY_SOURCES if self.settings.get(setting) not in (None, False)]
        if len(found) > 1:
            raise ConfigurationError(f"{self.place}: {' and '.join(found)} are both set", "Keep one of them.")
        source = found[0] if found else "key"
        self.get(source, required=True)
        return source

    def credential(self) -> Credential:
        """Return client and key. Runs the profile's key command if it has one.

        Raises ConfigurationError, without running the command, if MSGCTL_BASE_URL is another address and MSGCTL_KEY is
        not set.
        """
        if self.own and self._is_redirected and "key" not in self.given:
            own, given = shorten(self.own.base_url), shorten(self.base_url)
            raise ConfigurationError(
                f"The key of profile {shorten(self.name, 64)} is for {own}, but MSGCTL_BASE_URL is {given}",
                "Set MSGCTL_KEY too, or choose a profile with -p.",
                consequence="the key was not sent",
            )
        source = self.key_source
        if source == "key":
            key = self.settings["key"]
        else:
            from msgctl.config import credential

            is_command = source == "key_command"
            key = (
                credential.key_of_command(self._where(source), self.settings[source])
                if is_command
                else credential.key_in_keychain(self._where(source), self.name, origin(self.base_url))
            )
        if fault := key_fault(key):
            where = self._where("key") if source == "key" else f"{self.place}: the key"
            raise ConfigurationError(f"{where} {fault}", KEY_HINT)
        return Credential(self.client, key)

    account = property(lambda profile: account(profile.base_url, profile.client))
    client = property(lambda profile: profile.get("client", required=True))
    country_code = property(lambda profile: profile.get("country_code"))
    app_name = property(lambda profile: profile.get("app_name"))
    voice = property(lambda profile: profile.get("voice"))
    timezone = property(lambda profile: profile.get("timezone"))
    history = property(lambda profile: profile.get("history"))
    """Whether messages sent with the profile are recorded on this machine."""
    shared = property(lambda profile: profile.get("shared"))
    """The URL of the shared store, a database; it may contain a password."""
    keep_days = property(lambda profile: profile.get("keep_days"))
    """Days after which records of sent messages are deleted; None keeps them indefinitely."""

    @property
    def words(self) -> Mapping[str, tuple[str, ...]]:
        """The service's own words for a delivered or failed message and for a correct code, by `WORDS`."""
        return {name: tuple(words) for name, words in (self.get("words") or {}).items()}

    def get(self, setting: str, *, required: bool = False) -> Any:
        """Return a setting, or its default if it is missing. Raises ConfigurationError."""
        value = self.settings.get(setting)
        if value is None and not required:
            return _DEFAULTS.get(setting)
        allowed, is_allowed = _RULES[setting]
        if value is not None and is_allowed(value):
            return value
        fix = f"msgctl profile set {self.name} {_FIXES[setting]}" if setting in _FIXES else None
        if setting in self.given or name_fault(self.name):
            fix = KEY_HINT if setting in self.given else None
        elif setting == "words":
            fix = _WORDS_HINT
        if value is None:
            raise ConfigurationError(f"{self._where(setting)} is missing", fix)
        shown = "" if setting in _NOT_SHOWN else f", not {_quoted(value)}"
        raise ConfigurationError(f"{self._where(setting)} must be {allowed}{shown}", fix)

    def _where(self, setting: str) -> str:
        return VARIABLES[setting] if setting in self.given else f"{self.place}: {setting}"


THE_SANDBOX = Profile(
    SANDBOX, "-p", {"base_url": SANDBOX_URL, "client": SANDBOX_CLIENT, "key": SANDBOX_KEY}, is_sandbox=True
)
"""The built-in profile."""


def choose(config: ConfigFile, environ: Mapping[str, str], named: str | None) -> Profile:
    """Return the profile to use; ``named`` is the value of ``-p``.

    Raises ConfigurationError, and NoProfileError if no profile is selected.
    """
    if named is not None:
        return THE_SANDBOX if named == SANDBOX else stored(config, named, "-p")
    by = "MSGCTL_PROFILE" if environ.get("MSGCTL_PROFILE") else "default_profile"
    name = environ.get("MSGCTL_PROFILE") or config.default
    if name == SANDBOX:
        return replace(THE_SANDBOX, by=by)
    given = {setting: environ[variable] for setting, variable in VARIABLES.items() if environ.get(variable)}
    if name and (config.profiles or len(given) < len(VARIABLES)):
        return stored(config, name, by).overridden(given)
    if len(given) == len(VARIABLES):
        return Profile(name or ENVIRONMENT, by if name else "").overridden(given)
    if given:
        missing = [variable for setting, variable in VARIABLES.items() if setting not in given]
        verb = "is" if len(missing) == 1 else "are"
        raise NoProfileError(f"No profile is selected, and {' and '.join(missing)} {verb} not set", ADD_HINT)
    if config.profiles:
        raise NoProfileError(
            f"No profile is selected, and none is the default: {_names(config)}",
            "Choose one with -p NAME, or make it the default with: msgctl profile use NAME",
        )
    raise NoProfileError("There is no profile yet", ADD_HINT)


def stored(config: ConfigFile, name: str, by: str = "") -> Profile:
    """Return a stored profile; ``by`` is its selector. Raises ConfigurationError if it does not exist."""
    if name not in config.profiles:
        source = f" (from {by})" if by and by != "-p" else ""
        raise ConfigurationError(
            f'There is no profile "{shorten(name, 64)}"{source}',
            f"Profiles: {', '.join(filter(None, (_names(config), SANDBOX)))}",
        )
    return Profile(name, by, config.profiles[name], (), config.place(name))


def _names(config: ConfigFile) -> str:
    return ", ".join(clean(name) for name in sorted(config.profiles))


def _quoted(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{shorten(value, 40)}"' if isinstance(value, str) else shorten(str(value), 40)


def is_store_url(text: str) -> bool:
    """Return whether a string looks like the URL of a PostgreSQL database."""
    return text.startswith(("postgresql://", "postgres://"))


def is_time_zone(text: str) -> bool:
    """Return whether a text is the name of a time zone, such as ``America/Bogota``."""
    import zoneinfo

    try:
        zoneinfo.ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        return False
    return True


def key_fault(key: str) -> str | None:
    """Return why a text is not a valid key ("is empty"), or None if it is. The reason does not contain the text."""
    if not key.strip():
        return "is empty"
    if len(key) > MAX_KEY:
        return f"is longer than {MAX_KEY} characters"
    if any(is_unsafe(char) for char in key):
        return "contains control characters, or is not UTF-8 text"
    return None


def name_fault(name: str) -> str | None:
    """Return why a text is not a valid name of a stored profile, or None if it is."""
    if name == SANDBOX:
        return "is the built-in profile of the sandbox"
    if not _PROFILE_NAME.fullmatch(name):
        return "must be up to 64 letters, digits, dots, dashes and underscores, and begin with a letter or digit"
    return None


# --- base URLs that the key may be sent to


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
    parts = _AUTHORITY.fullmatch(authority)
    host = (parts["address"] or parts["name"]) if parts else ""
    is_host = False
    if parts and 0 < int((parts["port"] or "1")[:6]) < 2**16:
        with suppress(ValueError):
            is_host = parts["address"] is None and _NAME.fullmatch(ascii_host(host)) is not None
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
    port = f":{parts.port}" if parts.port not in (None, {"http": 80, "https": 443}[parts.scheme]) else ""
    return f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}"


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

    Raises ValueError if there is no such form, or if it is the form of another name (a sharp s becomes ss), so that the
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
