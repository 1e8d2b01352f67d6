"""Keys in the system's keychain, through the ``keyring`` package (the extra ``msgctl[keyring]``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from msgctl.config.credential import Secret
from msgctl.errors import ConfigurationError

SERVICE = "msgctl"


def load(profile: str) -> Secret:
    """Return the key of a profile. Raises ConfigurationError."""
    with _keyring() as keyring:
        key = keyring.get_password(SERVICE, profile)
    if key is None:
        raise ConfigurationError(
            f'The keychain has no key for profile {profile} (service "{SERVICE}")',
            f"msgctl profile set {profile} --keyring",
        )
    return Secret(key)


def save(profile: str, key: Secret) -> None:
    """Store the key of a profile. Raises ConfigurationError."""
    with _keyring() as keyring:
        keyring.set_password(SERVICE, profile, key.reveal())


def delete(profile: str) -> None:
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
