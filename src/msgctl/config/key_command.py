"""Keys that another program prints: the ``key_command`` of a profile."""

from __future__ import annotations

import os

from msgctl.config.credential import Secret
from msgctl.errors import ConfigurationError

MOST_SECONDS = 60
"""The longest that a key command may run, in seconds; it may have to ask the user."""

BY_HAND = "Run the command by hand to see why."


def key_of_command(place: str, command: str) -> Secret:
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
    return Secret(key)
