"""Profiles: the service's base URL, the credentials and the defaults to use.

``-p`` chooses a stored profile. Otherwise, MSGCTL_BASE_URL, MSGCTL_CLIENT and MSGCTL_KEY are the account if all three
are set, or MSGCTL_PROFILE or ``default_profile`` selects a stored profile. The variables count only together, so that a
variable never sends a stored key to another address.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence, Sized
from typing import Any, NamedTuple

from msgctl import files
from msgctl.config.file import ConfigFile
from msgctl.config.urls import account, base_url_fault, is_store
from msgctl.errors import ConfigurationError, NoProfileError
from msgctl.text import clean, is_unsafe, joined, nearest, shorten
from msgctl.values import MAX_CLIENT, zone_of

SANDBOX = "sandbox"
SANDBOX_URL = "https://sandbox.invalid/api/v1"
SANDBOX_CLIENT = 1
SANDBOX_KEY = "the-key-of-the-sandbox"
SANDBOX_STATE = "sandbox.sqlite3"
"""The state of the emulator, a file in the state directory."""
SANDBOX_STORE = "sandbox-store.sqlite3"
"""The separate store of the sandbox, a file in the state directory."""

ENVIRONMENT = "environment"
"""The name of the profile that consists of the three variables."""

MAX_KEY = 4096
MIN_KEY = 6
"""Minimum length of a key that is masked everywhere (see `msgctl.http.redaction`)."""
SHORT_KEY = f"The key has fewer than {MIN_KEY} characters: msgctl masks it only if it is the whole value of a parameter"

VARIABLES = {"base_url": "MSGCTL_BASE_URL", "client": "MSGCTL_CLIENT", "key": "MSGCTL_KEY"}
URL_HINT = (
    "Use https://HOST/api/v1. Plain http is allowed for loopback addresses, and if the profile has allow_http = true."
)
KEY_HINT = "The client ID and the key are in the account's Security menu."
ADD_HINT = "Add a profile: msgctl profile add NAME. Or try: msgctl -p sandbox balance"

WORDS = ("accepted", "refused", "delivered", "failed", "verified")
"""The keys of the setting ``words``."""

_PROFILE_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}"


def are_words(value: object) -> bool:
    """Return whether a value is valid for the setting ``words``."""
    return isinstance(value, dict) and all(
        name in WORDS and isinstance(words, list) and all(isinstance(word, str) and word.strip() for word in words)
        for name, words in value.items()
    )


class Setting(NamedTuple):
    """A setting of a profile.

    ``rule`` describes its values, ``is_valid`` checks one, and ``option`` of `msgctl profile set` changes it.
    ``is_secret`` means that the value may contain a secret, so that no message repeats it.
    """

    option: str
    rule: str = "a non-empty string"
    is_valid: Callable[[Any], bool] = lambda value: isinstance(value, str) and value != ""
    is_secret: bool = False


SETTINGS = {
    "base_url": Setting("--base-url URL", is_secret=True),
    "client": Setting(
        "--client N", "a client ID, such as 12345", lambda value: type(value) is int and 0 <= value <= MAX_CLIENT
    ),
    "key": Setting("--key-stdin", is_secret=True),
    "key_command": Setting("--key-command CMD", is_secret=True),
    "country_code": Setting("--country-code CC"),
    "app_name": Setting("--app-name NAME"),
    "voice": Setting("--voice NAME"),
    "timezone": Setting(
        "--timezone ZONE",
        "a time zone such as America/Bogota",
        lambda value: isinstance(value, str) and is_time_zone(value),
    ),
    "store": Setting(
        "--store STORE",
        "an absolute path, or a URL such as postgresql://user@host/database",
        lambda value: isinstance(value, str) and is_store(value),
        is_secret=True,
    ),
    "words": Setting("--word KIND=TEXT", f"a table of lists of strings (keys: {', '.join(WORDS)})", are_words),
    "allow_http": Setting("", "true or false", lambda value: isinstance(value, bool)),
}
"""All settings of a profile."""
KEY_SOURCES = ("key", "key_command")
OPTIONS = tuple(setting for setting in SETTINGS if setting not in ("base_url", "client", *KEY_SOURCES))
"""The optional settings of a profile."""


class Credential(NamedTuple):
    """Client ID (int64) and account key, which every request contains and no output shows."""

    client: int
    key: str

    def __repr__(self) -> str:
        return f"Credential({self.client}, ***)"


class Profile(NamedTuple):
    """An account and the defaults for it, all checked.

    ``by`` is the selector of the profile: the command line, ``MSGCTL_PROFILE`` or ``default_profile``; it is empty for
    an account from the three variables. Messages refer to the profile as ``label``.
    """

    name: str
    by: str
    label: str
    base_url: str
    """Without a slash at its end."""
    client: int
    key_source: str
    """The setting that provides the key, one of `KEY_SOURCES`."""
    key: str
    """The key, or the command that prints it."""
    country_code: str | None
    app_name: str | None
    voice: str | None
    timezone: str | None
    store: str | None
    """The path or URL of the store; a URL may contain a password."""
    words: Mapping[str, Sequence[str]]
    """The words of the service that the profile adds, by their kind in `WORDS`."""
    is_sandbox: bool

    def __repr__(self) -> str:
        return f"Profile({self.name!r})"

    @property
    def account(self) -> str:
        """The account: base URL in normalized form, and client ID."""
        return account(self.base_url, self.client)

    def credential(self, *, is_quiet: bool = False) -> Credential:
        """Return client and key. Runs the profile's key command if it has one. Raises ConfigurationError.

        ``is_quiet`` discards the standard error of the command.
        """
        key, where = self.key, _where(self, self.key_source)
        if self.key_source == "key_command":
            from msgctl.config.credential import key_of_command

            key = key_of_command(where, key, is_quiet=is_quiet)
            where = f"{self.label}: the key"
        if fault := key_fault(key):
            raise ConfigurationError(f"{where} {fault}", KEY_HINT, reason="no_credentials")
        return Credential(self.client, key)


class StoredProfile(NamedTuple):
    """The settings of a profile as the file or the variables contain them, see `Profile`."""

    name: str
    by: str = ""
    settings: Mapping[str, Any] = {}
    label: str = ""
    is_sandbox: bool = False

    def __repr__(self) -> str:
        return f"StoredProfile({self.name!r})"

    def checked(self) -> Profile:
        """Return the profile. Raises ConfigurationError, which mentions the setting and the file or the variable."""
        base_url: str = self.setting("base_url", required=True)
        if fault := base_url_fault(base_url, allow_http=self.setting("allow_http") is True):
            raise ConfigurationError(f"{_where(self, 'base_url')} {fault}", URL_HINT)
        client = self.setting("client", required=True)
        sources = [setting for setting in KEY_SOURCES if self.settings.get(setting) is not None]
        if len(sources) > 1:
            raise ConfigurationError(f"{self.label}: {' and '.join(sources)} are both set", "Keep one of them.")
        key_source = sources[0] if sources else "key"
        return Profile(
            self.name,
            self.by,
            self.label,
            base_url=base_url.rstrip("/"),
            client=client,
            key_source=key_source,
            key=self.setting(key_source, required=True),
            country_code=self.setting("country_code"),
            app_name=self.setting("app_name"),
            voice=self.setting("voice"),
            timezone=self.setting("timezone"),
            store=self.setting("store"),
            words=self.setting("words") or {},
            is_sandbox=self.is_sandbox,
        )

    def setting(self, setting: str, *, required: bool = False) -> Any:
        """Return a setting, or None if it is missing. Raises ConfigurationError."""
        value = self.settings.get(setting)
        if value is None and not required:
            return None
        option, rule, is_valid, is_secret = SETTINGS[setting]
        if value is not None and is_valid(value):
            return value
        fix = None
        if not self.by:
            fix = KEY_HINT
        elif option and not name_fault(self.name):
            fix = f"msgctl profile set {self.name} {option}"
        if value is None:
            reason = "no_credentials" if setting in ("client", "key") else ""
            raise ConfigurationError(f"{_where(self, setting)} is missing", fix, reason=reason)
        actual = "" if is_secret else f", not {_quoted(value)}"
        raise ConfigurationError(f"{_where(self, setting)} must be {rule}{actual}", fix)


def _where(profile: Profile | StoredProfile, setting: str) -> str:
    """Return the description of a setting for messages."""
    return f"{profile.label}: {setting}" if profile.by else VARIABLES[setting]


COMMAND_LINE = "the command line"
"""The selector of a profile that is chosen on the command line."""
THE_SANDBOX = StoredProfile(
    SANDBOX, COMMAND_LINE, {"base_url": SANDBOX_URL, "client": SANDBOX_CLIENT, "key": SANDBOX_KEY}, is_sandbox=True
)
"""The built-in profile."""


def choose(load: Callable[[], ConfigFile], environ: Mapping[str, str], named: str | None) -> StoredProfile:
    """Return the profile to use; ``named`` is the value of ``-p``, and ``load`` reads the configuration file if needed.

    Raises ConfigurationError, and NoProfileError if no profile is selected.
    """
    if named is not None:
        return THE_SANDBOX if named == SANDBOX else stored(load(), named)
    name, by = environ.get("MSGCTL_PROFILE"), "MSGCTL_PROFILE"
    settings = {setting: environ[variable] for setting, variable in VARIABLES.items() if environ.get(variable)}
    if name and len(settings) == len(VARIABLES):
        raise ConfigurationError(
            f"MSGCTL_PROFILE and {joined(VARIABLES.values())} are all set: it is not clear which account is meant",
            f"Unset MSGCTL_PROFILE, or unset {joined(VARIABLES.values())}.",
        )
    if name == SANDBOX:
        return THE_SANDBOX._replace(by=by)
    if settings:
        return _from_variables(settings)
    config = load()
    if not name:
        name, by = config.default, "default_profile"
    if name == SANDBOX:
        return THE_SANDBOX._replace(by=by)
    if name:
        return stored(config, name, by)
    if config.profiles:
        raise NoProfileError(
            f"No profile is selected, and none is the default: {_names(config)}",
            "Choose one with -p NAME, or make it the default with: msgctl profile use NAME",
            reason="no_profile",
        )
    # The whole path: cron may set another home directory.
    raise NoProfileError(f"There is no profile in {clean(str(config.path))} yet", ADD_HINT, reason="no_profile")


def _from_variables(settings: Mapping[str, str]) -> StoredProfile:
    """Return the account in the three variables. Raises ConfigurationError if one or two of them are missing."""
    if missing := [variable for setting, variable in VARIABLES.items() if setting not in settings]:
        names = joined(VARIABLES[setting] for setting in settings)
        raise ConfigurationError(
            f"{joined(missing)} {_is(missing)} not set, but {names} {_is(settings)}",
            f"The three variables count only together: set {joined(missing)}, or unset {names}.",
            reason="no_credentials",
        )
    client = settings["client"]
    is_number = client.isascii() and client.isdigit() and len(client) < 20
    return StoredProfile(ENVIRONMENT, settings={**settings, "client": int(client) if is_number else client})


def _is(names: Sized) -> str:
    return "is" if len(names) == 1 else "are"


def stored(config: ConfigFile, name: str, by: str = COMMAND_LINE) -> StoredProfile:
    """Return a stored profile; ``by`` is its selector. Raises ConfigurationError if it does not exist."""
    if name not in config.profiles:
        source = "" if by == COMMAND_LINE else f" (from {by})"
        raise ConfigurationError(
            f'There is no profile "{shorten(name, 64)}"{source}',
            f"Profiles: {', '.join(filter(None, (_names(config), SANDBOX)))}",
            reason="no_profile",
        )
    return StoredProfile(name, by, config.profiles[name], config.label(name))


def unknown_settings(config: ConfigFile) -> list[str]:
    """Return a message for each setting of a file that msgctl does not know, with the nearest one."""
    faults = [
        _unknown(files.shown(config.path), name, ("default_profile", "profiles"))
        for name in config.document
        if name not in ("default_profile", "profiles")
    ]
    for profile, settings in config.profiles.items():
        label = config.label(profile)
        faults += [_unknown(label, setting, [*SETTINGS]) for setting in settings if setting not in SETTINGS]
    return faults


def _unknown(label: str, setting: str, known: Sequence[str]) -> str:
    near = nearest(setting, known)
    suggestion = f": did you mean {near}?" if near else ""
    return f"{label}: unknown setting {shorten(setting, 64)}{suggestion}"


def _names(config: ConfigFile) -> str:
    return ", ".join(clean(name) for name in sorted(config.profiles))


def _quoted(value: object) -> str:
    return f'"{shorten(value, 40)}"' if isinstance(value, str) else shorten(_as_toml(value), 40)


def _as_toml(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_as_toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name} = {_as_toml(part)}' for name, part in value.items())}}}"
    if isinstance(value, str):
        return f'"{value}"'
    return str(value).lower() if isinstance(value, bool) else str(value)


def is_time_zone(text: str) -> bool:
    """Return whether a text is the name of a time zone, such as ``America/Bogota``."""
    try:
        zone_of(text)
    except ConfigurationError:
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
    if name == ENVIRONMENT:
        return "means the environment variables, for jobs"
    if not re.fullmatch(_PROFILE_NAME, name):
        return "must have up to 64 letters, digits, dots, dashes and underscores, and begin with a letter or digit"
    return None
