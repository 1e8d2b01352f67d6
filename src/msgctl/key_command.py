"""A key that another program keeps: the command of a profile that prints it."""

from __future__ import annotations

import os

from msgctl.credential import Secret
from msgctl.errors import ConfigurationError

MOST_SECONDS = 60
"""Seconds that a key command may take; it may have to ask a person."""


def key_of_command(name: str, command: str) -> Secret:
    """The first line that the key command of a profile prints. Raises ConfigurationError."""
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
            timeout=MOST_SECONDS,
            env={variable: value for variable, value in os.environ.items() if variable != "MSGCTL_KEY"},
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ConfigurationError(
            f"the key command of profile {name} did not end within {MOST_SECONDS} seconds",
            f"Run it by hand; msgctl profile show {name} shows it.",
        ) from None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the key command of profile {name} cannot be run ({type(error).__name__})") from None
    return done.returncode, Secret(done.stdout.partition(b"\n")[0].decode("utf-8", "surrogateescape").rstrip("\r"))
