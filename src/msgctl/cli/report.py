"""An error as a person or a script reads it: one message on standard error, and an exit code."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from msgctl.cli.context import Context
from msgctl.cli.terminal import is_terminal
from msgctl.errors import ConfigurationError, Interrupted, MsgctlError, UsageError
from msgctl.operations import Effect
from msgctl.output.form import Format


def report(error: MsgctlError, context: Context, arguments: Sequence[str] = ()) -> int:
    """Say what happened on standard error and give the exit code."""
    error.consequence = error.consequence or _consequence(error, context)
    as_json = context.options.format is Format.JSON or (not context.is_understood and _asks_for_json(arguments))
    if isinstance(error, Interrupted) and is_terminal(context.stderr):
        context.say("")  # away from ^C, and from a prompt
    context.say(_json_line(error) if as_json else _lines(error, context))
    return error.exit_code


def _consequence(error: MsgctlError, context: Context) -> str:
    """What a mistake that was found before any request left undone."""
    if not isinstance(error, (UsageError, ConfigurationError)) or context.operation is None or context.carried_out:
        return ""
    return {Effect.SENDS: "nothing was sent", Effect.CHANGES: "nothing was changed"}.get(context.operation.effect, "")


def _json_line(error: MsgctlError) -> str:
    """The error as a JSON object on one line of ASCII, which every encoding can write."""
    from msgctl.output import jsontext

    document: dict[str, Any] = {"kind": error.kind, "message": error.message, "exit_code": error.exit_code}
    if error.hint:
        document["hint"] = error.hint
    return jsontext.escape(jsontext.dump({**document, **error.details()}), ascii_only=True)


def _lines(error: MsgctlError, context: Context) -> str:
    text = context.wrapped("\n".join([f"Error: {_sentence(error.message)}", *([error.hint] if error.hint else [])]))
    return text.replace("Error:", "\x1b[1;31mError:\x1b[0m", 1) if context.has_color(context.stderr) else text


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!", "…")) else f"{text}."


def _asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether JSON was asked for on a command line that could not be understood far enough to know."""
    asked = False
    for before, argument in pairwise(("", *arguments)):
        if argument == "--":
            break
        if before in ("-o", "--output"):
            asked = argument.lower() == "json"
        elif argument.startswith(("--json", "-o", "--output=")):
            asked = argument.lower() in ("--json", "-ojson", "--output=json")
    return asked
