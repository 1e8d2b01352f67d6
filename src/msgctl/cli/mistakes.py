"""Mistakes that the parser of the command line finds, in the words of the tool. Only a run that fails needs them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from typing import Any

import typer
from typer.core import TyperGroup

from msgctl.errors import UsageError
from msgctl.text import shorten
from msgctl.values import LEAST_LIKENESS, quote

_EXTRA = re.compile(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", re.DOTALL)
_FLAGS = ("help", "version")
"""What other tools have commands for, and this one options."""


def usage(error: typer.TyperException) -> UsageError:
    """An error of the parser as one of ours: what is wrong, what may have been meant, and where it is explained."""
    ctx = getattr(error, "ctx", None)
    message, advice = _told(error, ctx)
    see = f"See: {ctx.command_path if ctx else 'msgctl'} --help"
    return UsageError(message, " ".join(filter(None, (advice, see))))


def no_command(ctx: Any, name: str) -> UsageError:
    """The error for a name that is not among the commands of a group."""
    names = ctx.command.list_commands(ctx)
    path = ctx.command_path
    near = get_close_matches(name.lower(), names, n=1, cutoff=LEAST_LIKENESS)
    if near:
        meant = [f"{path} {near[0]}"]
    elif name in _FLAGS:
        meant = [f"{path} --{name}"]
    else:
        meant = [f"{path} {each.name} {name}" for each in _children(ctx) if name in getattr(each, "commands", ())]
    return UsageError(
        f"{quote(name)} is not a command of {path}: allowed are {', '.join(names)}",
        f"{f'Did you mean {_either(meant)}? ' if meant else ''}See: {path} --help",
    )


def _told(error: typer.TyperException, ctx: Any) -> tuple[str, str | None]:
    """What is wrong, and advice."""
    said = error.format_message().strip().rstrip(".")
    option = getattr(error, "option_name", None)
    if hasattr(error, "possibilities"):
        return f"there is no option {shorten(str(option), 60)}", _meant(str(option), ctx)
    if option is not None:
        return f"{shorten(option, 60)} {'takes no' if 'not take' in said else 'needs a'} value", None
    parameter = getattr(error, "param", None)
    if parameter is not None and said.startswith("Missing"):
        return _missing(parameter)
    if extra := _EXTRA.fullmatch(said):
        may_be_a_key = ctx is not None and "--key-stdin" in _options(ctx.command)
        return f"there is no place for {'one more argument' if may_be_a_key else quote(extra[1])}", _taken(ctx)
    return shorten(said[:1].lower() + said[1:], 400) or "the command line cannot be understood", None


def _missing(parameter: Any) -> tuple[str, str | None]:
    if parameter.param_type_name == "argument":
        return f"{re.sub(r'[^A-Z_]', '', parameter.metavar or '')} is missing", None
    name = max(parameter.opts, key=len)
    return f"{name} is missing", f"Give {name} {parameter.metavar}."


def _taken(ctx: Any) -> str | None:
    """The arguments that a command takes."""
    if ctx is None:
        return None
    names = [each.metavar for each in ctx.command.params if each.param_type_name == "argument"]
    return f"{ctx.command_path} takes {' '.join(names) if names else 'no arguments'}."


def _meant(option: str, ctx: Any) -> str | None:
    """Options that may have been meant: longer ones, else the nearest, else that of a command of the group."""
    if ctx is None or not option.startswith("--"):
        return None
    known = list(_options(ctx.command))
    meant = [name for name in known if name.startswith(option)]
    meant = meant or get_close_matches(option.lower(), known, n=1, cutoff=LEAST_LIKENESS)
    meant = meant or [f"{ctx.command_path} {each.name} {option}" for each in _children(ctx) if option in _options(each)]
    return f"Did you mean {_either(meant)}?" if meant else None


def _options(command: Any) -> Iterator[str]:
    """Every long option of a command."""
    for parameter in command.params:
        if parameter.param_type_name == "option":
            yield from (name for name in (*parameter.opts, *parameter.secondary_opts) if name.startswith("--"))


def _children(ctx: Any) -> Iterable[Any]:
    return ctx.command.commands.values() if isinstance(ctx.command, TyperGroup) else ()


def _either(names: Sequence[str]) -> str:
    return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
