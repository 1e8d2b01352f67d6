"""Print an error as text or JSON on standard error, and return its exit code.

Errors of the command-line parser are reworded, with suggestions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

import typer

from msgctl import jsontext
from msgctl.cli.context import Context
from msgctl.cli.tree import UnknownCommandError, children_of
from msgctl.errors import Cancelled, ConfigurationError, Interrupted, MsgctlError, UsageError
from msgctl.operations import Effect
from msgctl.output.result import Format
from msgctl.text import shorten
from msgctl.values import MIN_LIKENESS, quote


def report(error: MsgctlError, context: Context, arguments: Sequence[str] = ()) -> int:
    """Print an error on standard error and return its exit code."""
    is_before = isinstance(error, (UsageError, ConfigurationError)) or type(error) is Interrupted
    if is_before and context.operation is not None and not context.carried_out and not error.consequence:
        prevented = {Effect.SENDS: "nothing was sent", Effect.CHANGES: "nothing was changed"}
        error = error.replaced(consequence=prevented.get(context.operation.effect, ""))
    as_json = context.options.format is Format.JSON
    if not context.is_understood:  # the command line was not parsed completely
        as_json |= re.search(r" (--json|(-o|--output)[ =]?json) ", f" {' '.join(arguments)} ", re.I) is not None
    if isinstance(error, Interrupted) and context.stderr.isatty():
        context.say("")  # ends the line with ^C or a prompt
    context.say(_json_line(error) if as_json else _lines(error, context))
    return error.exit_code


def _json_line(error: MsgctlError) -> str:
    """Return the error as a JSON object on one line of ASCII, which every encoding can write."""
    document: dict[str, Any] = {
        "kind": error.kind,
        "reason": error.reason,
        "message": error.message,
        "exit_code": error.exit_code,
    }
    if error.hint:
        document["hint"] = error.hint
    return jsontext.escape(jsontext.dump({**document, **error.details()}), ascii_only=True)


def _lines(error: MsgctlError, context: Context) -> str:
    if isinstance(error, Cancelled):
        return " ".join(f"{part[0].upper()}{part[1:]}." for part in (error.what, error.consequence) if part)
    if not context.stderr.isatty():
        return "\n".join(filter(None, (f"Error: {error.message}", error.hint)))
    red, dim, plain = ("\x1b[31m", "\x1b[2m", "\x1b[0m") if context.screen(context.stderr).color else ("", "", "")
    lines = [f"{red}✗{plain} {context.wrapped(error.message, indent=2)}"]
    for hint in (error.hint or "").splitlines():
        # A hint with a command is never wrapped, so that the command can be copied.
        lines.append(f"  {dim}→ {hint if 'msgctl ' in hint else context.wrapped(hint, indent=4)}{plain}")
    return "\n".join(lines)


_EXTRA = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", re.DOTALL)

SYNONYMS = {
    **dict.fromkeys(("login", "auth"), ("profile add",)),
    **dict.fromkeys(("logout",), ("profile remove",)),
    **dict.fromkeys(("config", "account", "whoami"), ("profile show",)),
    **dict.fromkeys(("credits",), ("balance",)),
    **dict.fromkeys(("logs",), ("history",)),
    **dict.fromkeys(("otp",), ("2fa",)),
    **dict.fromkeys(("whatsapp",), ("chatapp",)),
    **dict.fromkeys(("ls", "all"), ("list",)),
    **dict.fromkeys(("rm", "delete"), ("remove", "clear", "reset")),
    **dict.fromkeys(("get", "show", "view", "info"), ("show", "get", "stats", "list", "doctor")),
    **dict.fromkeys(("status",), ("state", "show", "get", "stats", "list")),
    **dict.fromkeys(("switch", "select", "default"), ("use",)),
    **dict.fromkeys(("message", "messages", "text"), ("sms",)),
    **dict.fromkeys(("create", "new"), ("add", "send", "shorten", "serve")),
    **dict.fromkeys(("edit", "update"), ("set",)),
    **dict.fromkeys(("start", "run", "continue", "retry"), ("resume", "serve")),
    **dict.fromkeys(("check",), ("verify",)),
}
"""Names of commands in other tools, and msgctl's names for them, in any group."""
CANCEL = "To stop a running job press Ctrl-C in its terminal; to delete one: msgctl job remove JOB."
NO_UNBLOCK = "The service has no operation to unblock a number."
NO_RENAMING = "Add the profile under its new name with msgctl profile add, then remove the old one."
SEE_HISTORY = "Did you mean msgctl history?"
NO_COMMAND = {
    **dict.fromkeys(("msgctl job cancel", "msgctl job stop"), CANCEL),
    **dict.fromkeys(("msgctl unblock", "msgctl block remove"), NO_UNBLOCK),
    **dict.fromkeys(("msgctl profile rename", "msgctl profile move", "msgctl profile mv"), NO_RENAMING),
    **{
        f"msgctl {group} {name}": SEE_HISTORY
        for group in ("sms", "call", "chatapp", "block", "2fa")
        for name in ("list", "ls", "log", "logs", "history")
    },
}
"""Hints for commands that only other tools have."""
OPTION_SYNONYMS = {
    **dict.fromkeys(("--text", "--body", "--msg"), "-m/--message"),
    "--format": "-o/--output",
    "--debug": "-v/--verbose",
    "--force": "-y/--yes",
    "--account": "-p/--profile",
    "--file": "--message-file",
}
"""Options of other tools, and msgctl's options for them."""
NUMBER_OPTIONS = frozenset({"--to", "--phone", "--number", "--recipient"})
"""Options of other tools for the number, which is an argument in msgctl."""


def usage_error(error: typer.TyperException) -> UsageError:
    """Return an error of the parser as a UsageError."""
    if isinstance(error, UnknownCommandError):
        return _no_command(error.ctx, error.name, error.argument)
    ctx = getattr(error, "ctx", None)
    what, hint = _explained(error, ctx)
    see = f"See: {ctx.command_path if ctx else 'msgctl'} --help"
    return UsageError(what, " ".join(filter(None, (hint, see))))


def _no_command(ctx: Any, name: str, argument: str) -> UsageError:
    """Return the error for a name that is not a command of a group; ``argument`` follows it."""
    names = ctx.command.list_commands(ctx)
    path = ctx.command_path
    synonyms = [each for each in SYNONYMS.get(name.lower(), ()) if each.split()[0] in names]
    if synonyms and argument in dict(children_of(ctx.command.get_command(ctx, group := synonyms[0].split()[0]))):
        synonyms = [f"{group} {argument}"]
    similar = synonyms[:1] or get_close_matches(name.lower(), names, n=1, cutoff=MIN_LIKENESS)
    if not similar:
        similar = [f"{each} {name}" for each, child in children_of(ctx.command) if name in dict(children_of(child))]
    listed = f"See: {path} --help" if similar and path == "msgctl" else f"Commands: {', '.join(names)}"
    hint = f"{_did_you_mean([f'{path} {each}' for each in similar])} {listed}".strip()
    return UsageError(f"Unknown command {quote(name)}", NO_COMMAND.get(f"{path} {name.lower()}", hint))


def _shown(parameter: Any) -> str:
    """Return the usage of a parameter: ``PHONE``, ``--since DATE``."""
    metavar = re.sub(r"[^A-Z_]", "", parameter.metavar or "")
    return metavar if parameter.param_type_name == "argument" else f"{max(parameter.opts, key=len)} {metavar}".strip()


def _explained(error: typer.TyperException, ctx: Any) -> tuple[str, str]:
    """Return the message and the hint for an error of the parser."""
    if type(error).__name__ == "MissingParameter":
        lacking = [_shown(each) for each in ctx.command.params if each.required and each.name not in ctx.params]
        return f"{_joined(lacking, 'and')} {'is' if len(lacking) == 1 else 'are'} missing", ""
    message = error.format_message().strip().rstrip(".")
    option = getattr(error, "option_name", None)
    if hasattr(error, "possibilities"):
        return f"Unknown option {shorten(str(option), 60)}", _option_hint(str(option), ctx)
    if option is not None:
        return f"{shorten(option, 60)} {'takes no' if 'not take' in message else 'needs a'} value", ""
    if ctx is not None and (extra := _EXTRA.fullmatch(message)):
        may_be_a_key = "--key-stdin" in _options(ctx.command)
        names = [each.metavar for each in ctx.command.params if each.param_type_name == "argument"]
        takes = f"{ctx.command_path} takes {' '.join(names) if names else 'no arguments'}."
        return f"Unexpected argument{'' if may_be_a_key else ' ' + quote(extra[1])}", takes
    return shorten(message, 400) or "The command line cannot be understood", ""


def _option_hint(option: str, ctx: Any) -> str:
    """Return a hint about an unknown option."""
    if option == "--jq":
        return "Pipe the output of --json to jq, or use --fields."
    arguments = [each.metavar for each in ctx.command.params if each.param_type_name == "argument"] if ctx else []
    if option in NUMBER_OPTIONS and any("PHONE" in each for each in arguments):
        message = " -m …" if "--message" in _options(ctx.command) else ""
        return f"The number needs no option: {ctx.command_path} 573001234567{message}"
    return _did_you_mean(_meant(option, ctx))


def _meant(option: str, ctx: Any) -> list[str]:
    """Return suggestions: a longer option, or else a synonym, a similar option, or an option of a subcommand."""
    if ctx is None or not option.startswith("--"):
        return []
    known = list(_options(ctx.command))
    near = get_close_matches(option.lower()[2:], [each[2:] for each in known], n=1, cutoff=MIN_LIKENESS)
    synonym = OPTION_SYNONYMS.get(option.lower(), "")
    return (
        [name for name in known if name.startswith(option)]
        or ([synonym] if synonym.split("/")[-1] in known else [])
        or [f"--{name}" for name in near]
        or [f"{ctx.command_path} {n} {option}" for n, each in children_of(ctx.command) if option in _options(each)]
    )


def _options(command: Any) -> Iterator[str]:
    """Return every long option of a command."""
    for parameter in command.params:
        if parameter.param_type_name == "option":
            yield from (name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("--"))


def _joined(names: Sequence[str], word: str) -> str:
    return f" {word} ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _did_you_mean(names: Sequence[str]) -> str:
    return f"Did you mean {_joined(names, 'or')}?" if names else ""
