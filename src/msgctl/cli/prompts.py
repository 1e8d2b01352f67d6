"""Ask a person at the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgctl.cli.terminal import is_terminal
from msgctl.errors import Cancelled, UsageError

if TYPE_CHECKING:
    from msgctl.cli.context import Context

LONGEST_LINE = 4096
"""The longest line that is read from a terminal, in bytes; terminals themselves accept no longer ones."""


def confirm(context: Context, question: str, otherwise: str = "nothing was changed") -> None:
    """Ask for a yes, unless --yes was given. Raises Cancelled for any other answer, UsageError without a terminal."""
    if context.options.yes:
        return
    if not is_terminal(context.stdin):
        raise UsageError(
            "Cannot ask for confirmation: this is not a terminal", "Confirm with --yes.", consequence=otherwise
        )
    if ask(context, f"{question} [y/N] ").strip().casefold() not in {"y", "yes"}:
        raise Cancelled("Cancelled", consequence=otherwise)


def ask(context: Context, prompt: str) -> str:
    """Return a line from the terminal; bytes that are not UTF-8 are lone surrogates (PEP 383).

    Raises Cancelled if the terminal is at its end (Ctrl-D).
    """
    context.stderr.write(prompt)
    context.stderr.flush()
    line = context.stdin.buffer.readline(LONGEST_LINE).decode("utf-8", "surrogateescape")
    if not line:
        context.stderr.write("\n")
        raise Cancelled("Cancelled", consequence="nothing was done")
    return line
