"""Print an error as text or JSON on standard error, and return its exit code.

Errors of the command-line parser are reworded, with suggestions.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

import typer

from msgctl import jsontext
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.tree import UnknownCommandError, children_of
from msgctl.config import profiles
from msgctl.errors import (
    NOTHING_SENT,
    STORE_ERRORS,
    Cancelled,
    ConfigurationError,
    Interrupted,
    MsgctlError,
    UsageError,
)
from msgctl.operations import Effect
from msgctl.text import capitalized, joined, nearest, shorten, timestamp
from msgctl.values import MIN_LIKENESS, quote


def print_error(error: MsgctlError, context: Context, arguments: Sequence[str] = ()) -> int:
    """Print an error on standard error and return its exit code."""
    run = context.run
    sends_nothing = run.effect is not Effect.SENDS and error.consequence == NOTHING_SENT
    if isinstance(error, STORE_ERRORS) and (run.sent.count or sends_nothing):
        error = error.replaced(consequence="")
    is_before = isinstance(error, (UsageError, ConfigurationError)) or type(error) is Interrupted
    if is_before and run.operation is not None and not run.sent.count and not error.consequence:
        error = error.replaced(consequence=run.operation.effect.prevented)
    error = with_missing_words(error, context)
    if run.effect is Effect.SENDS:
        error.recipients = error.recipients or run.recipients
    if error.hint:
        error = error.replaced(hint=context.for_profile(error.hint))
    as_json = context.is_json
    if not run.is_understood:  # the command line was not parsed completely
        as_json |= re.search(r" (--json|(-o|--output)[ =]?json) ", f" {' '.join(arguments)} ", re.I) is not None
    if isinstance(error, Interrupted) and context.stderr.isatty() and not as_json:
        context.say("")  # ends the line with ^C or a prompt
    if as_json:
        context.say(_json_line(error, context))
    else:
        context.say(_lines(error, context))
    return error.exit_code


MAX_WORD = 60
"""Maximum characters of a string that a hint suggests adding to a profile."""
MEANINGS = {
    "accepted": "that the service accepted it",
    "verified": "that the code is right",
    "delivered": "that it was delivered",
}


def with_missing_words(error: MsgctlError, context: Context) -> MsgctlError:
    """Add a hint to an error: the command that adds the unknown words to the profile."""
    kind, texts = error.missing_words or ("", ())
    words = [" ".join(text.split()) for text in texts]
    is_short = all(len(word) <= MAX_WORD and word.isprintable() for word in words)
    if not words or not is_short or context.profile.is_sandbox:
        return error
    added = [f"{kind}={word}" for word in words]
    options = " ".join(f"--word {shlex.quote(word)}" for word in added)
    command = f"run: msgctl profile set {shlex.quote(context.profile.name)} {options}"
    if context.profile.name == profiles.ENVIRONMENT:
        command = f"create a profile (msgctl profile add main), then run: msgctl profile set main {options}"
    verb = "means" if len(words) == 1 else "mean"
    hint = f"If {' and '.join(map(quote, words))} {verb} {MEANINGS[kind]}, {command}"
    return error.with_hint(hint).replaced(missing_words=None)


def _json_line(error: MsgctlError, context: Context) -> str:
    """Return the error as a JSON object on one line of ASCII, which every encoding can write."""
    run = context.run
    document: dict[str, Any] = {
        "kind": error.kind,
        "reason": error.reason,
        "message": error.message,
        "exit_code": error.exit_code,
        "nothing_sent": not run.sent.count or (run.operation is not None and run.operation.verifies),
        "time": timestamp(context.clock()),
        "command": run.command,
    }
    if error.hint:
        document["hint"] = error.hint
    if job := error.job or run.job:
        document["job"] = job
    if run.is_replayed:
        document["replayed"] = True
    return jsontext.escape_json(jsontext.dump({**document, **error.document()}), ascii_only=True)


def _lines(error: MsgctlError, context: Context) -> str:
    if isinstance(error, Cancelled):
        return " ".join(f"{capitalized(part)}." for part in (error.what, error.consequence) if part)
    if not context.stderr.isatty():
        return "\n".join(filter(None, (f"Error: {error.message}", error.hint)))
    red = dim = plain = ""
    if context.screen(context.stderr).color:
        red, dim, plain = "\x1b[31m", "\x1b[2m", "\x1b[0m"
    lines = [f"{red}✗{plain} {context.wrapped(error.message, indent=2)}"]
    for line in (error.hint or "").splitlines():
        # A line with a command is never wrapped, so that the command can be copied.
        hint = line if _COMMAND.search(line) else context.wrapped(line, indent=4)
        lines.append(f"  {dim}→ {hint}{plain}")
    return "\n".join(lines)


_COMMAND = re.compile("msgctl |^(export|rm) ")
_EXTRA = r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)"


def usage_error(error: typer.TyperException) -> UsageError:
    """Convert an error of the command-line parser to a UsageError."""
    if isinstance(error, UnknownCommandError):
        return _no_command(error.ctx, error.name)
    ctx = getattr(error, "ctx", None)
    what, hint = _reworded(error, ctx)
    see = f"See: {ctx.command_path if ctx else 'msgctl'} --help"
    return UsageError(what, " ".join(filter(None, (hint, see))))


def _no_command(ctx: Any, name: str) -> UsageError:
    """Return the error for a name that is not a command of a group."""
    names = ctx.command.list_commands(ctx)
    last_words = {path: path for path in names}
    for group, command in children_of(ctx.command):  # `msgctl shorten` lacks the group
        last_words |= {f"{group} {child}": child for child, _ in children_of(command)}
    near = nearest(name.lower(), last_words.values(), MIN_LIKENESS)
    meant = [f"{ctx.command_path} {path}" for path, word in last_words.items() if word == near]
    hint = f"{_did_you_mean(meant)} Commands: {', '.join(names)}"
    return UsageError(f"Unknown command {quote(name)}", hint.strip())


def _usage_of(parameter: Any) -> str:
    """Return the usage of a parameter: ``PHONE``, ``--since DATE``."""
    metavar = re.sub(r"[^A-Z_]", "", parameter.metavar or "")
    return metavar if parameter.param_type_name == "argument" else f"{max(parameter.opts, key=len)} {metavar}".strip()


def _reworded(error: typer.TyperException, ctx: Any) -> tuple[str, str]:
    """Return the message and the hint for an error of the parser."""
    if type(error).__name__ == "MissingParameter":
        missing = [_usage_of(param) for param in ctx.command.params if param.required and param.name not in ctx.params]
        verb = "is" if len(missing) == 1 else "are"
        return f"{joined(missing)} {verb} missing", ""
    message = error.format_message().strip().rstrip(".")
    option = getattr(error, "option_name", None)
    if hasattr(error, "possibilities"):
        hint = _set_later(str(option), ctx) or _did_you_mean(_meant(str(option), ctx))
        return f"Unknown option {shorten(str(option), 60)}", hint
    if option is not None:
        needs = "takes no" if "not take" in message else "needs a"
        return f"{shorten(option, 60)} {needs} value", ""
    if ctx is not None and (extra := re.fullmatch(_EXTRA, message, re.DOTALL)):
        names = [param.metavar for param in ctx.command.params if param.param_type_name == "argument"]
        hint = f"{ctx.command_path} takes {' '.join(names) or 'no arguments'}."
        if "--key-stdin" in _options(ctx.command):  # the argument may be a key
            return "Unexpected argument", hint
        if "--code" in _options(ctx.command):
            hint += f" Write the code as --code {shlex.quote(extra[1])}."
        if any(name.startswith("--message") for name in _options(ctx.command)):
            hint += " Write a message of several words in quotes."
        return f"Unexpected argument {quote(extra[1])}", hint
    return shorten(message, 400) or "The command line cannot be understood", ""


def _set_later(option: str, ctx: Any) -> str:
    """Return a hint for an option of `profile set` that `profile add` does not have."""
    if ctx is not None and ctx.command_path == "msgctl profile add":
        for parameter in dict(children_of(ctx.parent.command))["set"].params:
            if option in parameter.opts:
                return f"Add the profile, then: msgctl profile set NAME {option} {parameter.metavar}."
    return ""


def _meant(option: str, ctx: Any) -> list[str]:
    """Return suggestions for an unknown option: longer options, or else the nearest one."""
    if ctx is None or not option.startswith("--"):
        return []
    known = list(_options(ctx.command))
    if longer := [name for name in known if name.startswith(option)]:
        return longer
    near = nearest(option.lower()[2:], [name[2:] for name in known], MIN_LIKENESS)
    return [f"--{near}"] if near else []


def _options(command: Any) -> Iterator[str]:
    """Return every long option of a command."""
    for parameter in command.params:
        if parameter.param_type_name == "option":
            yield from (name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("--"))


def _did_you_mean(names: Sequence[str]) -> str:
    return f"Did you mean {joined(names, 'or')}?" if names else ""
