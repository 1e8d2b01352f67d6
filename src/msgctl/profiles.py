"""Whose credentials: a profile of the configuration file, the environment, or the sandbox.

A profile that ``-p`` names is taken whole. Otherwise MSGCTL_BASE_URL, MSGCTL_CLIENT and MSGCTL_KEY win over the members
of the profile that MSGCTL_PROFILE or ``default_profile`` names. The sandbox takes nothing from the environment, however
it was named, so that nobody reaches the real service by it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from msgctl.addresses import base_url_fault
from msgctl.config import Document
from msgctl.credential import Credential, Secret
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
SECONDS_FOR_KEY_COMMAND = 60

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
_VARIABLES = {"base_url": "MSGCTL_BASE_URL", "client": "MSGCTL_CLIENT", "key": "MSGCTL_KEY"}
ALLOWED_URLS = "Allowed is https://HOST/api/v1, and plain http to a loopback address or with allow_http = true."
WHERE_THE_KEY_IS = "It stands in the security menu of the account."
ADD_ONE = "Store one with: msgctl profile add NAME --base-url URL --client N. Or try: msgctl -p sandbox balance"


@dataclass(frozen=True, slots=True)
class Profile:
    """What a command needs to know of an account; the key is fetched only when `credential` is called."""

    name: str
    base_url: str
    client: int
    fetch_key: Callable[[], Secret] = field(repr=False)
    country_code: str | None = None
    app_name: str | None = None
    voice: str | None = None
    history: bool = True
    """Whether its dispatches are noted on this machine."""

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
    if named is not None:
        return sandbox() if named == SANDBOX else made_of(named, stored(document, named))
    name, members = in_use(document, environ)
    return sandbox() if name == SANDBOX else made_of(name, members)


def in_use(document: Document, environ: Mapping[str, str]) -> tuple[str, Mapping[str, Any]]:
    """Name and members of what is used without ``-p``, the environment's values over those of the profile.

    The sandbox has no members here. Raises ConfigurationError.
    """
    name = environ.get("MSGCTL_PROFILE") or document.get("default_profile")
    if name == SANDBOX:
        return name, {}
    given = {member: environ[variable] for member, variable in _VARIABLES.items() if environ.get(variable)}
    complete = len(given) == len(_VARIABLES)
    known = document.get("profiles", {})
    if name and (known or not complete):
        chosen_by = "MSGCTL_PROFILE" if environ.get("MSGCTL_PROFILE") else "default_profile"
        return name, _overridden(stored(document, name, chosen_by), given)
    if complete:
        return name or ENVIRONMENT, _overridden({}, given)
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
        raise ConfigurationError(f"{_VARIABLES[member]} cannot be used: {fault}", hint)


def _nothing_chosen(known: Mapping[str, Any], given: Mapping[str, str]) -> ConfigurationError:
    if given:
        missing = ", ".join(variable for member, variable in _VARIABLES.items() if member not in given)
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
    client = members.get("client")
    if not isinstance(client, int) or isinstance(client, bool) or not 0 <= client <= LARGEST_CLIENT:
        raise _member_fault(shown, "client", "missing" if client is None else "not a whole number (int64)")
    history = members.get("history", True)
    if not isinstance(history, bool):
        raise ConfigurationError(
            f"history of profile {shown} is neither true nor false", "Write history = true, or history = false."
        )
    for member in ("country_code", "app_name", "voice"):
        if not isinstance(members.get(member, ""), str):
            raise _member_fault(shown, member, "not a string")
    return Profile(
        name=name,
        base_url=base_url.rstrip("/"),
        client=client,
        fetch_key=_key_source(shown, members),
        country_code=members.get("country_code"),
        app_name=members.get("app_name"),
        voice=members.get("voice"),
        history=history,
    )


def _member_fault(name: str, member: str, fault: str) -> ConfigurationError:
    return ConfigurationError(
        f"{member} of profile {name} is {fault}",
        f"Store the profile again with: msgctl profile add {name} --base-url URL --client N --force",
    )


def _key_source(name: str, members: Mapping[str, Any]) -> Callable[[], Secret]:
    key, command = members.get("key"), members.get("key_command")
    if key is not None and command is not None:
        raise ConfigurationError(f"profile {name} has both key and key_command", "Keep one of them.")
    if isinstance(command, str) and command:
        return lambda: _key_of_command(name, command)
    if isinstance(key, str) and key:
        return lambda: Secret(key)
    raise _member_fault(name, "key_command" if command is not None else "key", "missing or not a string")


def _key_of_command(name: str, command: str) -> Secret:
    """The first line that a key command prints."""
    by_hand = f"Run it by hand; msgctl profile show {name} shows it."
    status, key = _run(name, command)
    if status != 0:
        raise ConfigurationError(f"the key command of profile {name} failed with exit status {status}", by_hand)
    if not key.reveal():
        raise ConfigurationError(f"the key command of profile {name} printed no key on its first line", by_hand)
    return key


def _run(name: str, command: str) -> tuple[int, Secret]:
    """Exit status and first line of a command that the shell runs, as its user would type it."""
    import subprocess

    try:
        done = subprocess.run(  # noqa: S602 (the user's own command, stored by the user for this purpose)
            command,
            shell=True,
            # A pipe holds what the user wants to send, or the rest of a loop's input; a terminal may have to be asked.
            stdin=None if os.isatty(0) else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            timeout=SECONDS_FOR_KEY_COMMAND,
            env={variable: value for variable, value in os.environ.items() if variable != "MSGCTL_KEY"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ConfigurationError(
            f"the key command of profile {name} did not end within {SECONDS_FOR_KEY_COMMAND} seconds",
            f"Run it by hand; msgctl profile show {name} shows it.",
        ) from None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the key command of profile {name} cannot be run ({type(error).__name__})") from None
    return done.returncode, Secret(done.stdout.partition(b"\n")[0].decode("utf-8", "surrogateescape").rstrip("\r"))


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
