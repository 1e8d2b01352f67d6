"""Keys outside the configuration file: a user's command prints them, or the system's keychain stores them.

The keychain needs the extra ``msgctl[keyring]``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgctl.errors import ConfigurationError

MAX_SECONDS = 60
"""Time limit of a key command, which may have to ask the user."""

BY_HAND = "Run the command by hand to see why."

DIAGNOSE = "See what is wrong with: keyring diagnose"

SERVICE = "msgctl"
"""msgctl's service name in the keychain."""


def key_of_command(place: str, command: str) -> str:
    """Run a key command in the shell and return the first line that it prints.

    Messages refer to the setting as ``place``. Raises ConfigurationError.
    """
    import subprocess

    try:
        done = subprocess.run(  # noqa: S602 (the user's own command, stored by the user for this purpose)
            command,
            shell=True,
            check=False,
            # A pipe contains the user's message; on a terminal, the command can ask for a passphrase.
            stdin=None if os.isatty(0) else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env={variable: value for variable, value in os.environ.items() if variable != "MSGCTL_KEY"},
            timeout=MAX_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise ConfigurationError(f"{place} did not end within {MAX_SECONDS} seconds", BY_HAND) from None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{place} cannot be run ({type(error).__name__})", BY_HAND) from None
    if done.returncode != 0:
        raise ConfigurationError(f"{place} failed with exit status {done.returncode}", BY_HAND)
    key = done.stdout.partition(b"\n")[0].decode("utf-8", "surrogateescape").rstrip("\r")
    if not key:
        raise ConfigurationError(f"{place} printed no key on its first line", BY_HAND)
    return key


def key_in_keychain(place: str, profile: str, address: str | None) -> str:
    """Return the key of a profile at an address; messages refer to it as ``place``. Raises ConfigurationError.

    An entry belongs to one address: if the profile's address changes, the key is not sent to the new one.
    """
    with _keyring(place) as keyring:
        key: str | None = keyring.get_password(SERVICE, _entry(profile, address))
        if key is not None:
            return key
        is_old = keyring.get_password(SERVICE, profile) is not None
    reason = ", only one without an address, from an earlier version" if is_old else ""
    raise ConfigurationError(
        f"{place}: the keychain has no key for {address}{reason}",
        f"Enter the key with: msgctl profile set {profile} --keyring",
    )


def save_in_keychain(profile: str, address: str | None, key: str) -> None:
    """Store the key of a profile at an address. Raises ConfigurationError, even if the keychain ignores the key."""
    with _keyring() as keyring:
        keyring.set_password(SERVICE, _entry(profile, address), key)
        if keyring.get_password(SERVICE, _entry(profile, address)) != key:  # keyring's null backend stores nothing
            raise ConfigurationError(
                f"The system's keychain did not store the key (backend {type(keyring.get_keyring()).__name__})",
                f"{DIAGNOSE}. Or use --key-stdin or --key-command without --keyring.",
            )
        _delete(keyring, profile)


def delete_from_keychain(profile: str, address: str | None) -> None:
    """Delete the key of a profile at an address, if there is one. Raises ConfigurationError."""
    with _keyring() as keyring:
        _delete(keyring, _entry(profile, address))
        _delete(keyring, profile)


def _entry(profile: str, address: str | None) -> str:
    """Return the name of an entry. Earlier versions used only the profile's name."""
    return f"{profile} {address}"


def _delete(keyring: Any, entry: str) -> None:
    if keyring.get_password(SERVICE, entry) is not None:
        keyring.delete_password(SERVICE, entry)


@contextmanager
def _keyring(place: str = "The system's keychain") -> Iterator[Any]:
    """Yield the keyring package, and convert its errors to ConfigurationError; messages begin with ``place``."""
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        from msgctl import extras

        raise ConfigurationError(
            f"{place} needs the keyring package, which is not installed", f"Install it: {extras.install('keyring')}"
        ) from None
    try:
        yield keyring
    except (KeyringError, OSError, RuntimeError) as error:
        raise ConfigurationError(f"{place} cannot be used: {type(error).__name__}", DIAGNOSE) from None
