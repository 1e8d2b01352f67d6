"""Keys that another program prints: the ``key_command`` of a profile."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from msgctl.config.credential import Secret
from msgctl.errors import ConfigurationError

if TYPE_CHECKING:
    from subprocess import Popen

MOST_BYTES = 64 * 1024
"""The most that a key command may print, in bytes."""
MOST_SECONDS = 60
"""The longest that a key command may run, in seconds; it may have to ask the user."""

BY_HAND = "Run the command by hand to see why."


def key_of_command(place: str, command: str) -> Secret:
    """Run a key command in the shell and return the first line that it prints.

    ``place`` is what messages call the setting. Raises ConfigurationError.
    """
    status, key = _run(place, command)
    if status != 0:
        raise ConfigurationError(f"{place} failed with exit status {status}", BY_HAND)
    if not key.reveal():
        raise ConfigurationError(f"{place} printed no key on its first line", BY_HAND)
    return key


def _run(place: str, command: str) -> tuple[int, Secret]:
    import subprocess

    try:
        with subprocess.Popen(  # noqa: S602 (the user's own command, stored by the user for this purpose)
            command,
            shell=True,
            # A pipe holds what the user wants to send; a terminal lets the command ask for a passphrase.
            stdin=None if os.isatty(0) else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env={variable: value for variable, value in os.environ.items() if variable != "MSGCTL_KEY"},
        ) as process:
            try:
                return _first_line(place, process)
            except BaseException:
                process.kill()
                raise
    except subprocess.TimeoutExpired:
        raise ConfigurationError(f"{place} did not end within {MOST_SECONDS} seconds", BY_HAND) from None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"{place} cannot be run ({type(error).__name__})", BY_HAND) from None


def _first_line(place: str, process: Popen[bytes]) -> tuple[int, Secret]:
    """Return exit status and first line of a command. Raises TimeoutExpired and ConfigurationError."""
    import io
    import select
    import time
    from subprocess import TimeoutExpired

    output: Any = process.stdout
    deadline = time.monotonic() + MOST_SECONDS
    printed = io.BytesIO()  # unlike bytes, it does not show the key in a traceback's locals
    while select.select([output], [], [], max(0.0, deadline - time.monotonic()))[0]:
        if not printed.write(os.read(output.fileno(), MOST_BYTES)):
            status = process.wait(max(0.0, deadline - time.monotonic()))
            return status, Secret(
                printed.getvalue().partition(b"\n")[0].decode("utf-8", "surrogateescape").rstrip("\r")
            )
        if printed.tell() > MOST_BYTES:
            raise ConfigurationError(
                f"{place} printed more than {MOST_BYTES // 1024} KiB",
                "It must print the key on its first line, and end.",
            )
    raise TimeoutExpired(process.args, MOST_SECONDS)
