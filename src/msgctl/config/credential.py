"""Keys that are not in the configuration file: a command of the user prints them, or the system's keychain has them.

The keychain needs the extra ``msgctl[keyring]``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgctl.errors import ConfigurationError

MOST_SECONDS = 60
"""The longest that a key command may run, in seconds; it may have to ask the user."""

BY_HAND = "Run the command by hand to see why."

SERVICE = "msgctl"
"""The name of msgctl in the keychain."""


def key_of_command(place: str, command: str) -> str:
    """Run a key command in the shell and return the first line that it prints.

    ``place`` is what messages call the setting. Raises ConfigurationError.
    """
    import subprocess

    try:
        done = subprocess.run(  # noqa: S602 (the user's own command, stored by the user for this purpose)
            command,
            shell=True,
            check=False,
            # A pipe holds what the user wants to send; a terminal lets the command ask for a passphrase.
            stdin=None if os.isatty(0) else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env={variable: value for variable, value in os.environ.items() if variable != "MSGCTL_KEY"},
            timeout=MOST_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise ConfigurationError(f"{place} did not end within {MOST_SECONDS} seconds", BY_HAND) from None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{place} cannot be run ({type(error).__name__})", BY_HAND) from None
    if done.returncode != 0:
        raise ConfigurationError(f"{place} failed with exit status {done.returncode}", BY_HAND)
    key = done.stdout.partition(b"\n")[0].decode("utf-8", "surrogateescape").rstrip("\r")
    if not key:
        raise ConfigurationError(f"{place} printed no key on its first line", BY_HAND)
    return key


def key_in_keychain(profile: str) -> str:
    """Return the key of a profile. Raises ConfigurationError."""
    with _keyring() as keyring:
        key: str | None = keyring.get_password(SERVICE, profile)
    if key is None:
        raise ConfigurationError(
            f'The keychain has no key for profile {profile} (service "{SERVICE}")',
            f"msgctl profile set {profile} --keyring",
        )
    return key


def save_in_keychain(profile: str, key: str) -> None:
    """Store the key of a profile. Raises ConfigurationError."""
    with _keyring() as keyring:
        keyring.set_password(SERVICE, profile, key)


def delete_from_keychain(profile: str) -> None:
    """Delete the key of a profile, if there is one. Raises ConfigurationError."""
    with _keyring() as keyring:
        if keyring.get_password(SERVICE, profile) is not None:
            keyring.delete_password(SERVICE, profile)


@contextmanager
def _keyring() -> Iterator[Any]:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError:
        raise ConfigurationError(
            "The system's keychain needs the keyring package, which is not installed",
            "pip install 'msgctl[keyring]'",
        ) from None
    try:
        yield keyring
    except (KeyringError, OSError, RuntimeError) as error:
        raise ConfigurationError(
            f"Cannot use the system's keychain: {type(error).__name__}", "See what is wrong with: keyring diagnose"
        ) from None
