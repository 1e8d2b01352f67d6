"""Print an error for a person or a script: one message on standard error, and an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from msgctl.cli.context import Context
from msgctl.cli.terminal import is_terminal
from msgctl.errors import Cancelled, ConfigurationError, Interrupted, MsgctlError, UsageError
from msgctl.operations import Effect
from msgctl.output.result import Format


def report(error: MsgctlError, context: Context, arguments: Sequence[str] = ()) -> int:
    """Print an error on standard error and return its exit code."""
    error.consequence = error.consequence or _consequence(error, context)
    as_json = context.options.format is Format.JSON or (not context.is_understood and _asks_for_json(arguments))
    if isinstance(error, Interrupted) and is_terminal(context.stderr):
        context.say("")  # away from ^C, and from a prompt
    context.say(_json_line(error) if as_json else _lines(error, context))
    return error.exit_code


def _consequence(error: MsgctlError, context: Context) -> str:
    """Return what an error found before the request prevented."""
    is_before = isinstance(error, (UsageError, ConfigurationError)) or type(error) is Interrupted
    if not is_before or context.operation is None or context.carried_out:
        return ""
    return {Effect.SENDS: "nothing was sent", Effect.CHANGES: "nothing was changed"}.get(context.operation.effect, "")


def _json_line(error: MsgctlError) -> str:
    """Return the error as a JSON object on one line of ASCII, which every encoding can write."""
    from msgctl.output import jsontext

    document: dict[str, Any] = {"kind": error.kind, "message": error.message, "exit_code": error.exit_code}
    if error.hint:
        document["hint"] = error.hint
    return jsontext.escape(jsontext.dump({**document, **error.details()}), ascii_only=True)


def _lines(error: MsgctlError, context: Context) -> str:
    if isinstance(error, Cancelled):
        return " ".join(f"{part[0].upper()}{part[1:]}." for part in (error.what, error.consequence) if part)
    if not is_terminal(context.stderr):
        return "\n".join(filter(None, (f"Error: {error.message}", error.hint)))
    red, dim, plain = ("\x1b[31m", "\x1b[2m", "\x1b[0m") if context.has_color(context.stderr) else ("", "", "")
    lines = [f"{red}✗{plain} {context.wrapped(error.message, indent=2)}"]
    for hint in (error.hint or "").splitlines():
        # A hint that holds a command is never wrapped, so that it can be copied.
        lines.append(f"  {dim}→ {hint if 'msgctl ' in hint else context.wrapped(hint, indent=4)}{plain}")
    return "\n".join(lines)


def _asks_for_json(arguments: Sequence[str]) -> bool:
    """Tell whether a command line that was not parsed to its end asks for JSON."""
    asked = False
    for before, argument in pairwise(("", *arguments)):
        if argument == "--":
            break
        if before in ("-o", "--output"):
            asked = argument.lower() == "json"
        elif argument.startswith(("--json", "-o", "--output=")):
            asked = argument.lower() in ("--json", "-ojson", "--output=json")
    return asked
