"""The command tree as far as it can be completed: commands, options, arguments, and the values that they take."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from typer.core import TyperGroup

from msgctl.cli import options
from msgctl.cli.shells.values import Values, of_argument, of_option
from msgctl.cli.tree import operation_of


@dataclass(frozen=True, slots=True)
class Option:
    """An option: its spellings, its help in a line, its values (None for a flag), and whether it can be given again."""

    names: tuple[str, ...]
    help: str
    values: Values | None
    again: bool


@dataclass(frozen=True, slots=True)
class Node:
    """A command or group: the words that lead to it (empty for the root) and what can follow them.

    ``commands`` are the names of a group's commands with their help in a line, ``arguments`` the values in their order;
    the last of them is taken as often as it is given where ``many`` is true.
    """

    path: str
    commands: dict[str, str]
    options: tuple[Option, ...]
    arguments: tuple[Values, ...]
    many: bool


@dataclass(frozen=True, slots=True)
class Outline:
    """Every command and group, the root first, and the options that all of them take."""

    nodes: tuple[Node, ...]
    common: tuple[Option, ...]


def outline(root: Any) -> Outline:
    """What can be completed of a command tree."""
    return Outline(tuple(_nodes(root, "")), tuple(_option(each, "", None) for each in options.global_options()))


def _nodes(command: Any, path: str) -> Iterator[Node]:
    children = command.commands if isinstance(command, TyperGroup) else {}
    own = [each for each in command.params if each not in options.global_options()]
    arguments = [each for each in own if each.param_type_name == "argument"]
    operation = operation_of(command)
    yield Node(
        path,
        {name: _line(child.get_short_help_str(200)) for name, child in children.items()},
        tuple(_option(each, path, operation) for each in own if each.param_type_name == "option"),
        tuple(of_argument(path, _bare(each)) for each in arguments),
        any(each.nargs == -1 for each in arguments),
    )
    for name, child in children.items():
        yield from _nodes(child, f"{path} {name}".strip())


def _option(parameter: Any, path: str, operation: Any) -> Option:
    names = (*sorted(parameter.opts, key=len), *parameter.secondary_opts)
    takes_value = not (parameter.is_flag or parameter.count)
    values = of_option(path, names[-1], _bare(parameter), operation) if takes_value else None
    return Option(names, _line(parameter.help or ""), values, parameter.multiple)


def _bare(parameter: Any) -> str:
    """What stands for the value in the help: ``PHONE`` for ``[PHONE]...``."""
    return re.sub(r"[\[\].]", "", parameter.metavar or "")


def _line(text: str) -> str:
    """The first sentence of a help text."""
    return text.replace("`", "").partition(". ")[0].removesuffix(".")
