"""A key that another program keeps: the command of a profile that prints it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from msgctl.config.credential import Secret
from msgctl.errors import ConfigurationError

if TYPE_CHECKING:
    from io import BytesIO
    from subprocess import Popen

MOST_BYTES = 64 * 1024
"""What a key command may print, in bytes."""
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
        with subprocess.Popen(  # noqa: S602 (the user's own command, stored by the user for this purpose)
            command,
            shell=True,
            # A pipe holds what the user wants to send, or the rest of a loop's input; a terminal may have to be asked.
            stdin=None if os.isatty(0) else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env={variable: value for variable, value in os.environ.items() if variable != "MSGCTL_KEY"},
        ) as process:
            try:
                return _heard(name, process)
            except BaseException:
                process.kill()
                raise
    except subprocess.TimeoutExpired:
        raise ConfigurationError(
            f"the key command of profile {name} did not end within {MOST_SECONDS} seconds",
            f"Run it by hand; msgctl profile show {name} shows it.",
        ) from None
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"the key command of profile {name} cannot be run ({type(error).__name__})") from None


def _heard(name: str, process: Popen[bytes]) -> tuple[int, Secret]:
    """Exit status and first line of a command. Raises TimeoutExpired, and ConfigurationError where it prints on."""
    import io
    import select
    import time
    from subprocess import TimeoutExpired

    output: Any = process.stdout  # a pipe, as was asked for
    deadline = time.monotonic() + MOST_SECONDS
    printed = io.BytesIO()  # which shows in no traceback what it holds
    while select.select([output], [], [], max(0.0, deadline - time.monotonic()))[0]:
        if not printed.write(os.read(output.fileno(), MOST_BYTES)):
            status = process.wait(max(0.0, deadline - time.monotonic()))
            return status, _first_line(printed)
        if printed.tell() > MOST_BYTES:
            raise ConfigurationError(
                f"the key command of profile {name} printed over {MOST_BYTES // 1024} KiB",
                "It has to print the key on its first line, and end.",
            )
    raise TimeoutExpired(process.args, MOST_SECONDS)


def _first_line(printed: BytesIO) -> Secret:
    return Secret(printed.getvalue().partition(b"\n")[0].decode("utf-8", "surrogateescape").rstrip("\r"))
