"""How the key of an account is given: on the terminal without echo, on standard input, or by a command."""

from __future__ import annotations

import getpass
import warnings
from typing import TYPE_CHECKING, Any

from msgctl import values
from msgctl.cli.inputs import read_line
from msgctl.cli.terminal import echo_kept_off, is_terminal
from msgctl.config import profiles
from msgctl.errors import Cancelled, UsageError

if TYPE_CHECKING:
    from msgctl.cli.context import Context


def check_options(key_stdin: bool, key_command: str | None, keyring: bool) -> None:
    """Check that the options for the key go together. Raises UsageError."""
    if key_command is not None and (key_stdin or keyring):
        raise UsageError(f"Use either --key-command or {'--key-stdin' if key_stdin else '--keyring'}, not both")


def read(context: Context, key_stdin: bool, key_command: str | None, keyring: bool) -> dict[str, Any]:
    """Return the settings of a profile for the key, which is read or asked for. Raises UsageError and Cancelled.

    A key for the keychain is also under ``key``; the caller moves it there.
    """
    if key_command is not None:
        return {"key_command": values.words(key_command, "--key-command")}
    if is_terminal(context.stdin):  # even with --key-stdin, since the terminal would show what is typed
        key = _ask()
    elif key_stdin:
        key = read_line(context, profiles.LONGEST_KEY * 4, "the key")
    else:
        raise UsageError("Missing option: --key-stdin", "On a terminal, msgctl asks for the key.")
    if fault := profiles.key_fault(key):
        raise UsageError(f"The key {fault}", profiles.KEY_HINT)
    return {"key": key, "keyring": True} if keyring else {"key": key}


def _ask() -> str:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", getpass.GetPassWarning)
            with echo_kept_off():
                return getpass.getpass("Key: ")
    except EOFError:
        raise Cancelled("Cancelled", consequence="nothing was saved") from None
    except UnicodeDecodeError:
        raise UsageError("The key is not UTF-8 text", profiles.KEY_HINT) from None
    except getpass.GetPassWarning:
        raise UsageError("This terminal would show the key", "Use --key-stdin or --key-command.") from None
