"""Keys that a user's command prints."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from msgctl.errors import ConfigurationError

if TYPE_CHECKING:
    from subprocess import Popen

MAX_SECONDS = 60
"""Time limit of a key command, which may have to ask the user."""
MAX_OUTPUT = 64 * 1024
"""Maximum bytes that a key command prints."""
POLL = 0.05
"""Seconds between two checks whether a command whose output is open has ended."""


def key_of_command(label: str, command: str, *, is_quiet: bool = False) -> str:
    """Run a key command in the shell and return the first line that it prints.

    Messages refer to the setting as ``label``. ``is_quiet`` discards its standard error. Raises ConfigurationError.
    """
    import subprocess

    stdin = stderr = None
    if not os.isatty(0):  # a pipe contains the user's message; on a terminal, the command can ask for a passphrase
        stdin = subprocess.DEVNULL
    if is_quiet:
        stderr = subprocess.DEVNULL
    try:
        process = subprocess.Popen(  # noqa: S602 (the user's own command, stored by the user for this purpose)
            command, shell=True, stdin=stdin, stdout=subprocess.PIPE, stderr=stderr
        )
    except (OSError, ValueError) as error:
        raise _failed(f"{label} cannot be run ({type(error).__name__})") from None
    stdout: Any = process.stdout
    deadline = time.monotonic() + MAX_SECONDS
    try:
        output = _output(process, stdout.fileno(), deadline)
        if len(output) > MAX_OUTPUT:
            raise _failed(f"{label} printed over {MAX_OUTPUT:,} bytes")
        code = process.wait(max(0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise _failed(f"{label} did not end within {MAX_SECONDS} seconds") from None
    finally:
        process.kill()
        process.wait()
        stdout.close()
    if code != 0:
        raise _failed(f"{label} failed with exit status {code}")
    key = output.partition(b"\n")[0].decode("utf-8", "surrogateescape").rstrip("\r")
    if not key:
        raise _failed(f"{label} printed no key on its first line")
    return key


def _output(process: Popen[bytes], stdout: int, deadline: float) -> bytes:
    """Return the output of a process until it ends, even if a child process keeps the pipe open."""
    import select

    output, has_ended = b"", False
    while len(output) <= MAX_OUTPUT and time.monotonic() < deadline:
        if select.select([stdout], [], [], POLL)[0]:
            data = os.read(stdout, MAX_OUTPUT)
            if not data:
                break
            output += data
        elif has_ended:
            break
        has_ended = process.poll() is not None
    return output


def _failed(what: str) -> ConfigurationError:
    return ConfigurationError(what, "Run the command by hand to see why.", reason="no_credentials")
