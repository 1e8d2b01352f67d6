"""The command tree as plain data, for the manual and `msgctl commands --json`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from msgctl import __version__
from msgctl.cli.shell.tree import CommandFacts, children_of
from msgctl.errors import EXIT_CODES, REASONS
from msgctl.operations import Effect

TYPES = {
    "N": "integer",
    "RATE": "number",
    "S": "duration",
    "SECONDS": "duration",
    "DATE": "date",
    "TIME": "time",
    "FILE": "file",
    "PATH": "file",
    "PHONE": "phone",
    "P": "phone",
    "URL": "url",
    "LONG_URL": "url",
}
"""The types of options by the placeholders of their values; all others are text. A duration is in seconds."""


class Parameter(NamedTuple):
    """An argument or an option.

    ``names`` are the spellings of an option, the short one first, or the placeholder of an argument; ``off`` are the
    spellings that switch a flag off. ``value`` is the placeholder of the value, and None for a flag. ``choices`` are
    the only values, if there are any.
    """

    names: tuple[str, ...]
    off: tuple[str, ...]
    type: str
    value: str | None
    help: str
    choices: tuple[str, ...]
    default: str | None
    required: bool
    multiple: bool


class Node(NamedTuple):
    """A command or a group. ``children`` are the names of its commands."""

    path: str
    summary: str
    help: str
    panel: str
    children: tuple[str, ...]
    arguments: tuple[Parameter, ...]
    options: tuple[Parameter, ...]
    facts: CommandFacts

    @property
    def is_group(self) -> bool:
        return bool(self.children)

    @property
    def is_command(self) -> bool:
        """Whether it can be run: a command, or a group that does something without a command."""
        return not self.is_group or bool(self.facts.examples)

    def is_in(self, name: str) -> bool:
        """Return whether this is the group or command with a name, or a command in that group."""
        return self.path == name or self.path.startswith(f"{name} ")


def describe(root: Any) -> dict[str, Node]:
    """Return every command and group by path, the root first: its path is empty, and its options are global."""
    return {node.path: node for node in _nodes(root, "")}


def _nodes(command: Any, path: str) -> Iterator[Node]:
    children = dict(children_of(command))
    # The options of the root are the global options.
    parameters = [parameter for parameter in command.params if not path or parameter.expose_value]
    panel = command.rich_help_panel
    if not isinstance(panel, str):
        panel = ""
    yield Node(
        path,
        summary=command.get_short_help_str(200),
        help=command.help or "",
        panel=panel,
        children=tuple(children),
        arguments=tuple(_parameter(parameter) for parameter in parameters if parameter.param_type_name == "argument"),
        options=tuple(_parameter(parameter) for parameter in parameters if parameter.param_type_name == "option"),
        facts=command.facts,
    )
    for name, child in children.items():
        yield from _nodes(child, f"{path} {name}".strip())


def _parameter(parameter: Any) -> Parameter:
    metavar, text, default = parameter.metavar or "", parameter.help or "", parameter.default
    if default is not None:
        default = ",".join(default) if isinstance(default, tuple) else str(default)
    placeholder = re.sub(r"[\[\].]", "", metavar)
    if stated := re.search(r" ?\[default: (.*?)\]", text):
        text, default = text.replace(stated[0], ""), stated[1]
    choices = getattr(getattr(parameter.type, "func", None), "choices", ())  # of the parser, if there is one
    if parameter.param_type_name == "argument":
        is_required = parameter.required or not metavar.startswith("[")
        multiple = parameter.nargs == -1
        return Parameter((placeholder,), (), "text", placeholder, text, choices, default, is_required, multiple)
    names, off = tuple(sorted(parameter.opts, key=len)), tuple(parameter.secondary_opts)
    if parameter.is_flag or parameter.count:
        return Parameter(names, off, "flag", None, text, (), None, required=False, multiple=False)
    kind = TYPES.get(placeholder, "text")
    return Parameter(names, off, kind, placeholder, text, choices, default, parameter.required, parameter.multiple)


# --- for programs


def as_json(nodes: Mapping[str, Node]) -> dict[str, Any]:
    """Return the whole description as a JSON object."""
    return {
        "version": __version__,
        "exit_codes": {str(number): code.description for number, code in EXIT_CODES.items()},
        "reasons": REASONS,
        "global_options": [_option(option) for option in nodes[""].options],
        "commands": [_command(node) for node in nodes.values() if node.is_command],
    }


def _command(node: Node) -> dict[str, Any]:
    effect = node.facts.effect
    return {
        "name": node.path,
        "summary": node.summary,
        "effect": effect.value if effect else "local",
        "costs_credits": effect is Effect.SENDS,
        "arguments": [
            {
                "name": argument.names[0],
                "help": argument.help,
                "required": argument.required,
                "multiple": argument.multiple,
            }
            for argument in node.arguments
        ],
        "options": [_option(option) for option in node.options],
        "output": list(node.facts.columns),
        "json": node.facts.json,
        "examples": list(node.facts.examples),
    }


def _option(option: Parameter) -> dict[str, Any]:
    is_value = " " not in (option.default or "")  # "the job's own" is not a value
    return option._asdict() if is_value else option._replace(default=None)._asdict()
