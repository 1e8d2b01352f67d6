"""Keys that a user's command prints."""

from __future__ import annotations

import os

from msgctl.errors import ConfigurationError

MAX_SECONDS = 60
"""Time limit of a key command, which may have to ask the user."""

BY_HAND = "Run the command by hand to see why."


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
            timeout=MAX_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise ConfigurationError(
            f"{place} did not end within {MAX_SECONDS} seconds", BY_HAND, reason="no_credentials"
        ) from None
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{place} cannot be run ({type(error).__name__})", BY_HAND, reason="no_credentials"
        ) from None
    if done.returncode != 0:
        raise ConfigurationError(f"{place} failed with exit status {done.returncode}", BY_HAND, reason="no_credentials")
    key = done.stdout.partition(b"\n")[0].decode("utf-8", "surrogateescape").rstrip("\r")
    if not key:
        raise ConfigurationError(f"{place} printed no key on its first line", BY_HAND, reason="no_credentials")
    return key
