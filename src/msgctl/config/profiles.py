"""Profiles: where the service is, and which credentials and defaults to use.

A profile chosen with ``-p`` is taken whole. Otherwise MSGCTL_BASE_URL, MSGCTL_CLIENT and MSGCTL_KEY override the one
that MSGCTL_PROFILE or ``default_profile`` names. The sandbox takes nothing from the environment, however it was chosen,
so that it never reaches the real service.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msgctl.config import keychain
from msgctl.config.base_url import base_url_fault
from msgctl.config.credential import Credential, Secret
from msgctl.config.file import ConfigFile
from msgctl.config.key_command import key_of_command
from msgctl.errors import ConfigurationError
from msgctl.text import clean, is_unsafe, shorten

SANDBOX = "sandbox"
SANDBOX_URL = "https://sandbox.invalid/api/v1"
SANDBOX_CLIENT = 1
SANDBOX_KEY = "the-key-of-the-sandbox"

ENVIRONMENT = "environment"
"""The name of the profile that consists of the three variables."""

LARGEST_CLIENT = 2**63 - 1
LONGEST_KEY = 4096

VARIABLES = {"base_url": "MSGCTL_BASE_URL", "client": "MSGCTL_CLIENT", "key": "MSGCTL_KEY"}
URL_HINT = "Use https://HOST/api/v1. Plain http is allowed to loopback addresses, or with allow_http = true."
KEY_HINT = "You will find client and key in the account's Security menu."
ADD_HINT = "Add a profile with: msgctl profile add NAME. Or try the sandbox: msgctl -p sandbox balance"

_OPTIONS = {
    "base_url": "--base-url URL",
    "client": "--client N",
    "key": "--key-stdin",
    "key_command": "--key-command CMD",
    "country_code": "--country-code CC",
    "app_name": "--app-name NAME",
    "voice": "--voice NAME",
    "timezone": "--timezone ZONE",
}
"""The option of `msgctl profile set` for a setting."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Profile(NamedTuple):
    """What a command needs to know about an account; the key is fetched when `credential` is called."""

    name: str
    base_url: str
    client: int
    fetch_key: Callable[[], Secret]
    country_code: str | None = None
    app_name: str | None = None
    voice: str | None = None
    timezone: str | None = None
    history: bool = True
    """Whether messages sent with it are recorded on this machine."""
    keep_days: int | None = None
    """After how many days records of sent messages are deleted; None: never."""

    def __repr__(self) -> str:
        return f"Profile({self.name!r})"

    @property
    def is_sandbox(self) -> bool:
        return self.name == SANDBOX

    def credential(self) -> Credential:
        """Return client and key. Runs the profile's key command if it has one. Raises ConfigurationError."""
        return Credential(self.client, self.fetch_key())


def sandbox() -> Profile:
    return Profile(SANDBOX, SANDBOX_URL, SANDBOX_CLIENT, lambda: Secret(SANDBOX_KEY))


def find(config: ConfigFile, environ: Mapping[str, str], named: str | None) -> Profile:
    """Return the profile to use; ``named`` is the value of ``-p``. Raises ConfigurationError."""
    return choose(config, environ, named).profile()


def choose(config: ConfigFile, environ: Mapping[str, str], named: str | None) -> Choice:
    """Return the profile to use, its settings unchecked. Raises ConfigurationError if no profile is selected."""
    if named is not None:
        return Choice(named, "-p") if named == SANDBOX else stored(config, named, "-p")
    name, by = environ.get("MSGCTL_PROFILE") or config.default, "default_profile"
    if environ.get("MSGCTL_PROFILE"):
        by = "MSGCTL_PROFILE"
    if name == SANDBOX:
        return Choice(name, by)
    given = {setting: environ[variable] for setting, variable in VARIABLES.items() if environ.get(variable)}
    if name and (config.profiles or len(given) < len(VARIABLES)):
        choice = stored(config, name, by)
        return Choice(name, by, choice.settings, given, choice.place)
    if len(given) == len(VARIABLES):
        return Choice(name or ENVIRONMENT, by if name else "", {}, given)
    raise _nothing_chosen(config, given)


def stored(config: ConfigFile, name: str, by: str = "") -> Choice:
    """Return a stored profile; ``by`` is what names it. Raises ConfigurationError if it is not there."""
    if name not in config.profiles:
        names = ", ".join(clean(each) for each in (*sorted(config.profiles), SANDBOX))
        source = f" (from {by})" if by and by != "-p" else ""
        raise ConfigurationError(f'There is no profile "{shorten(name, 64)}"{source}', f"Profiles: {names}")
    return Choice(name, by, config.profiles[name], {}, config.place(name))


def _nothing_chosen(config: ConfigFile, given: Mapping[str, str]) -> ConfigurationError:
    if given:
        missing = [variable for setting, variable in VARIABLES.items() if setting not in given]
        verb = "is" if len(missing) == 1 else "are"
        return ConfigurationError(f"No profile is selected, and {' and '.join(missing)} {verb} not set", ADD_HINT)
    if config.profiles:
        names = ", ".join(clean(name) for name in sorted(config.profiles))
        return ConfigurationError(
            f"No profile is selected, and none is the default: {names}",
            "Choose one with -p NAME, or make it the default with: msgctl profile use NAME",
        )
    return ConfigurationError("There is no profile yet", ADD_HINT)


@dataclass(frozen=True, slots=True, repr=False)
class Choice:
    """A profile as it was chosen, its settings not checked yet.

    ``by`` is what chose it: ``-p``, ``MSGCTL_PROFILE``, ``default_profile``, or nothing if only the variables did.
    ``settings`` are those of the file, which variables in ``given`` override. ``place`` is what messages call it.
    Each method raises ConfigurationError.
    """

    name: str
    by: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, str] = field(default_factory=dict)
    place: str = ""

    @property
    def is_sandbox(self) -> bool:
        return self.name == SANDBOX and self.by != ""

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the environment that override its settings."""
        return tuple(VARIABLES[setting] for setting in self.given)

    def profile(self) -> Profile:
        if self.is_sandbox:
            return sandbox()
        return Profile(self.name, self.base_url(), self.client(), self.key_source(), **self.options())

    def base_url(self) -> str:
        """Return the base URL, without a slash at its end."""
        text = self.given.get("base_url") or self._text("base_url", required=True)
        if fault := base_url_fault(text, allow_http=self._flag("allow_http", default=False)):
            raise ConfigurationError(f"{self._where('base_url')} {fault}", URL_HINT)
        return text.rstrip("/")

    def client(self) -> int:
        if "client" in self.given:
            text = self.given["client"]
            client: object = int(text) if len(text) < 20 and text.isascii() and text.isdigit() else text
        else:
            client = self._setting("client", required=True)
        if type(client) is int and 0 <= client <= LARGEST_CLIENT:
            return client
        raise self._wrong("client", "a whole number (int64)", client)

    def key_source(self) -> Callable[[], Secret]:
        """Return what fetches the key when it is called; it raises ConfigurationError, too."""
        fetch = self._key_source()

        def fetch_checked() -> Secret:
            key = fetch()
            if fault := key_fault(key.reveal()):
                raise ConfigurationError(f"{self.key_place} {fault}", KEY_HINT)
            return key

        return fetch_checked

    @property
    def key_place(self) -> str:
        """What messages call the key."""
        return self._where("key") if "key" in self.given or "key" in self.settings else f"{self.place}: the key"

    @property
    def key_origin(self) -> str:
        """Where the key comes from."""
        if "key" in self.given:
            return "MSGCTL_KEY"
        origins = {"key_command": "the key command", "keyring": "the keychain"}
        return next(
            (origin for setting, origin in origins.items() if setting in self.settings), "the configuration file"
        )

    def _key_source(self) -> Callable[[], Secret]:
        if "key" in self.given:
            return lambda: Secret(self.given["key"])
        sources = [setting for setting in ("key", "key_command", "keyring") if self.settings.get(setting) is not None]
        if len(sources) > 1:
            raise ConfigurationError(f"{self.place}: {' and '.join(sources)} are both set", "Keep one of them.")
        if sources == ["key_command"]:
            command = self._text("key_command", required=True)
            return lambda: key_of_command(self._where("key_command"), command)
        if sources == ["keyring"] and self._flag("keyring", default=False):
            return lambda: keychain.load(self.name)
        self._text("key", required=True)
        return lambda: Secret(self.settings["key"])

    def options(self) -> dict[str, Any]:
        """Return the settings that a profile need not have, checked."""
        texts = {setting: self._text(setting) for setting in ("country_code", "app_name", "voice", "timezone")}
        if texts["timezone"] is not None and not is_time_zone(texts["timezone"]):
            raise self._wrong("timezone", "a time zone such as America/Bogota", texts["timezone"])
        days = self._setting("keep_days")
        if days is not None and not (type(days) is int and days > 0):
            raise self._wrong("keep_days", "a whole number of days, at least 1", days)
        return {**texts, "history": self._flag("history", default=True), "keep_days": days}

    def _where(self, setting: str) -> str:
        return VARIABLES[setting] if setting in self.given else f"{self.place}: {setting}"

    def _setting(self, setting: str, *, required: bool = False) -> Any:
        value = self.settings.get(setting)
        if required and value is None:
            raise ConfigurationError(f"{self._where(setting)} is missing", self._fix(setting))
        return value

    def _text(self, setting: str, *, required: bool = False) -> Any:
        value = self._setting(setting, required=required)
        if value is not None and not (isinstance(value, str) and (value or not required)):
            raise self._wrong(setting, "a string", value)
        return value

    def _flag(self, setting: str, *, default: bool) -> bool:
        value = self.settings.get(setting, default)
        if not isinstance(value, bool):
            raise self._wrong(setting, "true or false", value)
        return value

    def _wrong(self, setting: str, allowed: str, value: object) -> ConfigurationError:
        shown = "" if setting in ("key", "key_command", "base_url") else f", not {_quoted(value)}"
        return ConfigurationError(f"{self._where(setting)} must be {allowed}{shown}", self._fix(setting))

    def _fix(self, setting: str) -> str | None:
        if setting in self.given or setting not in _OPTIONS or name_fault(self.name):
            return KEY_HINT if setting in self.given else None
        return f"msgctl profile set {self.name} {_OPTIONS[setting]}"


def _quoted(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{shorten(value, 40)}"' if isinstance(value, str) else shorten(str(value), 40)


def is_time_zone(text: str) -> bool:
    """Return whether a text is the name of a time zone, such as ``America/Bogota``."""
    import zoneinfo

    try:
        zoneinfo.ZoneInfo(text)
    except (KeyError, ValueError, OSError):
        return False
    return True


def key_fault(key: str) -> str | None:
    """Return why a text cannot be a key ("is empty"), or None if it can. The reason does not contain the text."""
    if not key.strip():
        return "is empty"
    if len(key) > LONGEST_KEY:
        return f"is longer than {LONGEST_KEY} characters"
    if any(is_unsafe(char) for char in key):
        return "contains control characters, or is not UTF-8 text"
    return None


def name_fault(name: str) -> str | None:
    """Return why a text cannot be the name of a stored profile, or None if it can."""
    if name == SANDBOX:
        return "is the built-in profile of the sandbox"
    if not _NAME.fullmatch(name):
        return "must be up to 64 letters, digits, dots, dashes and underscores, and begin with a letter or digit"
    return None
