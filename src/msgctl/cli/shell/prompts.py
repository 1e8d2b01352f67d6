"""Ask the user on the terminal, and read the key of an account."""

from __future__ import annotations

import getpass
import signal
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgctl.config import profiles
from msgctl.errors import Cancelled, ConditionError, Interrupted, UsageError
from msgctl.text import clean, normalized
from msgctl.values import quote

if TYPE_CHECKING:
    from msgctl.cli.shell.context import Context


YES = frozenset({"y", "yes", "s", "si", "sí"})

MAX_LINE = 4096
"""The longest line that is read from a terminal, in bytes; terminals accept no longer lines."""
MAX_INPUT = (profiles.MAX_KEY + 1) * 4
"""The longest line that is read from standard input, in bytes: more than any key in UTF-8."""


def confirm(context: Context, question: str, otherwise: str = "nothing was changed") -> None:
    """Ask for confirmation, unless --yes was given; ``otherwise`` is the consequence of another answer.

    Raises Cancelled for any other answer, Interrupted on Ctrl-C, and UsageError without a terminal.
    """
    if context.options.yes:
        return
    if not context.stdin.isatty():
        raise UsageError(
            "Cannot ask for confirmation: this is not a terminal",
            "Confirm with --yes.",
            consequence=otherwise,
            reason="not_confirmed",
        )
    try:
        answer = ask(context, f"{question} [y/N] ")
    except KeyboardInterrupt:
        raise Interrupted("Interrupted", consequence=otherwise) from None
    if normalized(answer.strip().casefold()) not in YES:
        raise Cancelled("Not confirmed", consequence=otherwise)


def delete_sent(context: Context, numbers: Sequence[int], noun: str, question: str, done: str) -> None:
    """Delete jobs and single sends by their numbers, after the question. ``done`` reports it.

    Raises ConditionError if some were not deleted; ``noun`` is their plural.
    """
    from msgctl.store import removal

    effect = "`msgctl usage` will no longer count the messages."
    confirm(context, f"{question} {effect}")
    deleted = removal.remove(context.store, numbers)
    removal.tidy(context.store)
    if kept := len(numbers) - deleted:
        what = f"{kept:,} of {len(numbers):,} {noun} could not be deleted: another process uses or has deleted them"
        raise ConditionError(what, reason="running_elsewhere")
    context.note(f"{done} {effect}")


def account_in_words(profile: profiles.Profile) -> str:
    """Return a profile and its account for a question: ``profile "main", client 12345 of https://…``."""
    return f"profile {quote(profile.name)}, client {profile.client} of {clean(profile.base_url)}"


def ask(context: Context, prompt: str) -> str:
    """Return a line from the terminal; bytes that are not UTF-8 are lone surrogates (PEP 383).

    Raises Cancelled if the terminal is at its end (Ctrl-D).
    """
    context.stderr.write(prompt)
    context.stderr.flush()
    line = context.stdin.buffer.readline(MAX_LINE).decode("utf-8", "surrogateescape")
    if not line:
        context.stderr.write("\n")
        raise Cancelled("No answer", consequence="nothing was done")
    return line


def read_line(context: Context) -> str:
    """Return the first line of standard input, and leave the rest unread. Raises UsageError for a longer line."""
    line = context.stdin.buffer.readline(MAX_INPUT + 1)
    if len(line) > MAX_INPUT:  # the beginning of a code may be another code
        raise UsageError(f"The line on standard input is too long for a key or a code: at most {MAX_INPUT:,} bytes")
    return line.decode("utf-8", "surrogateescape").rstrip("\r\n")


def read_key(context: Context, *, from_stdin: bool) -> str:
    """Return the key of an account, asked for without echo or read. Raises UsageError and Cancelled."""
    if context.stdin.isatty():  # even with --key-stdin, since the terminal would show the key
        key = _ask_key()
    elif from_stdin:
        key = read_line(context)
    else:
        raise UsageError("Missing option: --key-stdin", "On a terminal, msgctl asks for the key.")
    if fault := profiles.key_fault(key):
        raise UsageError(f"The key {fault}", profiles.KEY_HINT)
    return key


def _ask_key() -> str:
    before = signal.signal(signal.SIGTSTP, signal.SIG_IGN)  # Ctrl-Z: the shell would turn the echo on again
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", getpass.GetPassWarning)
            return getpass.getpass("Key: ")
    except EOFError:
        raise Cancelled("No key", consequence="nothing was saved") from None
    except UnicodeDecodeError:
        raise UsageError("The key is not UTF-8 text", profiles.KEY_HINT) from None
    except getpass.GetPassWarning:
        raise UsageError("This terminal would show the key", "Use --key-stdin or --key-command.") from None
    finally:
        signal.signal(signal.SIGTSTP, before)
