"""Whose credentials: a profile of the configuration file, the environment, or the sandbox.

A profile that ``-p`` names is taken whole. Otherwise MSGCTL_BASE_URL, MSGCTL_CLIENT and MSGCTL_KEY win over the members
of the profile that MSGCTL_PROFILE or ``default_profile`` names. The sandbox takes nothing from the environment, however
it was named, so that nobody reaches the real service by it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from msgctl.config.base_url import base_url_fault
from msgctl.config.credential import Credential, Secret
from msgctl.config.file import Document
from msgctl.config.key_command import key_of_command
from msgctl.errors import ConfigurationError
from msgctl.text import clean, is_unsafe, shorten

SANDBOX = "sandbox"
SANDBOX_URL = "https://sandbox.invalid/api/v1"
SANDBOX_CLIENT = 1
SANDBOX_KEY = "the-key-of-the-sandbox"

ENVIRONMENT = "environment"
"""What the profile is called that is made of the three variables alone."""

LARGEST_CLIENT = 2**63 - 1
LONGEST_KEY = 4096

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
VARIABLES = {"base_url": "MSGCTL_BASE_URL", "client": "MSGCTL_CLIENT", "key": "MSGCTL_KEY"}
ALLOWED_URLS = "Allowed is https://HOST/api/v1, and plain http to a loopback address or with allow_http = true."
WHERE_THE_KEY_IS = "It stands in the security menu of the account."
ADD_ONE = "Store one with: msgctl profile add NAME --base-url URL --client N. Or try: msgctl -p sandbox balance"


class Profile(NamedTuple):
    """What a command needs to know of an account; the key is fetched only when `credential` is called."""

    name: str
    base_url: str
    client: int
    fetch_key: Callable[[], Secret]
    country_code: str | None = None
    app_name: str | None = None
    voice: str | None = None
    history: bool = True
    """Whether its dispatches are noted on this machine."""

    def __repr__(self) -> str:
        """Its name alone: what fetches the key may hold it."""
        return f"Profile({self.name!r})"

    @property
    def is_sandbox(self) -> bool:
        return self.name == SANDBOX

    def credential(self) -> Credential:
        """Client and key. Runs the profile's key command where it has one. Raises ConfigurationError."""
        key = self.fetch_key()
        if fault := key_fault(key.reveal()):
            raise ConfigurationError(
                f"the key of profile {shorten(self.name, 64)} cannot be used: {fault}",
                WHERE_THE_KEY_IS,
            )
        return Credential(self.client, key)


def sandbox() -> Profile:
    return Profile(SANDBOX, SANDBOX_URL, SANDBOX_CLIENT, lambda: Secret(SANDBOX_KEY))


def find(document: Document, environ: Mapping[str, str], named: str | None) -> Profile:
    """The profile to use; ``named`` is the value of ``-p``. Raises ConfigurationError."""
    choice = chosen(document, environ, named)
    return sandbox() if choice.name == SANDBOX else made_of(choice.name, choice.overridden())


def in_use(document: Document, environ: Mapping[str, str]) -> tuple[str, Mapping[str, Any]]:
    """Name and members of what is used without ``-p``, the environment's values over those of the profile.

    The sandbox has no members here. Raises ConfigurationError.
    """
    choice = chosen(document, environ, None)
    return choice.name, choice.overridden()


class Choice(NamedTuple):
    """Which profile is used: ``by`` names it (``-p``, MSGCTL_PROFILE, ``default_profile``; None where nothing does).

    ``members`` are those of the file, ``given`` what variables say in their place. The sandbox has neither.
    """

    name: str
    by: str | None
    members: Mapping[str, Any] = MappingProxyType({})
    given: Mapping[str, str] = MappingProxyType({})

    def __repr__(self) -> str:
        """Without what it is made of, which may be a key."""
        return f"Choice({self.name!r}, by={self.by!r})"

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the environment that say something in its place."""
        return tuple(VARIABLES[member] for member in self.given)

    def overridden(self, *only: str) -> dict[str, Any]:
        """The members with what variables say in their place, or in the place of some. Raises ConfigurationError."""
        return _overridden(self.members, {each: text for each, text in self.given.items() if not only or each in only})


def chosen(document: Document, environ: Mapping[str, str], named: str | None) -> Choice:
    """Which profile is used, whatever its members are. Raises ConfigurationError where there is none."""
    if named is not None:
        return Choice(named, "-p", {} if named == SANDBOX else stored(document, named))
    by = "MSGCTL_PROFILE" if environ.get("MSGCTL_PROFILE") else "default_profile"
    name = environ.get("MSGCTL_PROFILE") or document.get("default_profile")
    if name == SANDBOX:
        return Choice(name, by)
    given = {member: environ[variable] for member, variable in VARIABLES.items() if environ.get(variable)}
    complete = len(given) == len(VARIABLES)
    known = document.get("profiles", {})
    if name and (known or not complete):
        return Choice(name, by, stored(document, name, by), given)
    if complete:
        return Choice(name or ENVIRONMENT, by if name else None, {}, given)
    raise _nothing_chosen(known, given)


def _overridden(members: Mapping[str, Any], given: Mapping[str, str]) -> dict[str, Any]:
    merged = {**members, **given}
    if "base_url" in given:
        fault = base_url_fault(given["base_url"], allow_http=members.get("allow_http") is True)
        _check_variable("base_url", fault, ALLOWED_URLS)
    if "key" in given:
        _check_variable("key", key_fault(given["key"]), WHERE_THE_KEY_IS)
        merged.pop("key_command", None)
    if "client" in given:
        text = given["client"]
        number = int(text) if len(text) < 20 and text.isascii() and text.isdigit() else -1
        wrong = not 0 <= number <= LARGEST_CLIENT
        _check_variable("client", f"'{shorten(text, 40)}' is not a whole number (int64)" if wrong else None)
        merged["client"] = number
    return merged


def _check_variable(member: str, fault: str | None, hint: str | None = None) -> None:
    if fault:
        raise ConfigurationError(f"{VARIABLES[member]} cannot be used: {fault}", hint)


def _nothing_chosen(known: Mapping[str, Any], given: Mapping[str, str]) -> ConfigurationError:
    if given:
        missing = ", ".join(variable for member, variable in VARIABLES.items() if member not in given)
        return ConfigurationError(f"no profile is chosen, and of the environment {missing} is not set", ADD_ONE)
    if known:
        names = ", ".join(clean(name) for name in sorted(known))
        return ConfigurationError(
            f"no profile is chosen, and there is no default among {names}",
            "Name one with -p, or make it the default with: msgctl profile use NAME",
        )
    return ConfigurationError("there is no profile yet", ADD_ONE)


def stored(document: Document, name: str, chosen_by: str | None = None) -> Mapping[str, Any]:
    """The members of a stored profile; ``chosen_by`` is what names it, if not the command line.

    Raises ConfigurationError where there is none of that name.
    """
    known: Mapping[str, Mapping[str, Any]] = document.get("profiles", {})
    if name not in known:
        names = ", ".join(clean(each) for each in (*sorted(known), SANDBOX))
        named = f", which {chosen_by} names" if chosen_by else ""
        raise ConfigurationError(f"there is no profile '{shorten(name, 64)}'{named}", f"There are: {names}.")
    return known[name]


def made_of(name: str, members: Mapping[str, Any]) -> Profile:
    """A profile made of the members of a table. Raises ConfigurationError where one cannot be used."""
    base_url, client = base_url_of(name, members), client_of(name, members)
    check_more(name, members)
    return Profile(
        name=name,
        base_url=base_url,
        client=client,
        fetch_key=key_source_of(name, members),
        country_code=members.get("country_code"),
        app_name=members.get("app_name"),
        voice=members.get("voice"),
        history=members.get("history", True),
    )


def base_url_of(name: str, members: Mapping[str, Any]) -> str:
    """The base URL of a profile, without a slash at its end. Raises ConfigurationError."""
    shown = shorten(name, 64)
    base_url = members.get("base_url")
    if not isinstance(base_url, str):
        raise _member_fault(shown, "base_url", "missing" if base_url is None else "not a string")
    allow_http = members.get("allow_http", False)
    if not isinstance(allow_http, bool):
        raise _member_fault(shown, "allow_http", "neither true nor false")
    if fault := base_url_fault(base_url, allow_http=allow_http):
        raise ConfigurationError(
            f"the base_url of profile {shown} cannot be used: {fault}",
            ALLOWED_URLS,
        )
    return base_url.rstrip("/")


def client_of(name: str, members: Mapping[str, Any]) -> int:
    """The client identifier of a profile. Raises ConfigurationError."""
    client = members.get("client")
    if not isinstance(client, int) or isinstance(client, bool) or not 0 <= client <= LARGEST_CLIENT:
        fault = "missing" if client is None else "not a whole number (int64)"
        raise _member_fault(shorten(name, 64), "client", fault)
    return client


def check_more(name: str, members: Mapping[str, Any]) -> None:
    """Raise ConfigurationError where a member that a profile need not have cannot be used."""
    shown = shorten(name, 64)
    history = members.get("history", True)
    if not isinstance(history, bool):
        raise ConfigurationError(
            f"history of profile {shown} is neither true nor false", "Write history = true, or history = false."
        )
    for member in ("country_code", "app_name", "voice"):
        if not isinstance(members.get(member, ""), str):
            raise _member_fault(shown, member, "not a string")


def _member_fault(name: str, member: str, fault: str) -> ConfigurationError:
    return ConfigurationError(
        f"{member} of profile {name} is {fault}",
        f"Store the profile again with: msgctl profile add {name} --base-url URL --client N --force",
    )


def key_source_of(name: str, members: Mapping[str, Any]) -> Callable[[], Secret]:
    """What fetches the key of a profile when it is called. Raises ConfigurationError, then too."""
    shown = shorten(name, 64)
    key, command = members.get("key"), members.get("key_command")
    if key is not None and command is not None:
        raise ConfigurationError(f"profile {shown} has both key and key_command", "Keep one of them.")
    if isinstance(command, str) and command:
        return lambda: key_of_command(shown, command)
    if isinstance(key, str) and key:
        return lambda: Secret(key)
    raise _member_fault(shown, "key_command" if command is not None else "key", "missing or not a string")


def key_fault(key: str) -> str | None:
    """Why a text cannot be a key, or None where it can. The text is not part of the answer."""
    if not key.strip():
        return "it is empty"
    if len(key) > LONGEST_KEY:
        return f"it is longer than {LONGEST_KEY} characters"
    if any(is_unsafe(char) for char in key):
        return "it holds control characters, or is not UTF-8 text"
    return None


def name_fault(name: str) -> str | None:
    """Why a text cannot be the name of a stored profile, or None where it can."""
    if name == SANDBOX:
        return "it is the built-in profile of the sandbox"
    if not _NAME.fullmatch(name):
        return "allowed are up to 64 letters, digits, dots, dashes and underscores, a letter or digit first"
    return None
