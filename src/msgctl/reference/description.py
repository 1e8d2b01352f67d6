"""The command tree as plain data, from which the manual, the completions and `msgctl commands` are generated."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from msgctl import operations
from msgctl.cli import job
from msgctl.cli.context import global_options
from msgctl.cli.tree import Facts, children_of
from msgctl.operations import Operation
from msgctl.output.result import Format
from msgctl.sandbox import faults
from msgctl.sandbox.handlers import KINDS

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
SHELLS = ("bash", "zsh", "fish")


class Parameter(NamedTuple):
    """An argument or an option.

    ``names`` are the spellings of an option, the short one first, or the placeholder of an argument. ``value`` is the
    placeholder of the value, and None for a flag. ``source`` says what a shell offers if there are no ``choices``:
    files, profiles, stored (profiles without the sandbox), jobs, countries, or text for nothing.
    """

    names: tuple[str, ...]
    value: str | None
    help: str
    choices: tuple[str, ...]
    default: str | None
    required: bool
    multiple: bool
    source: str


class Node(NamedTuple):
    """A command or a group. ``children`` maps the names of its commands to summaries."""

    path: str
    summary: str
    help: str
    panel: str
    children: dict[str, str]
    arguments: tuple[Parameter, ...]
    options: tuple[Parameter, ...]
    facts: Facts

    @property
    def is_group(self) -> bool:
        return bool(self.children)

    def is_in(self, name: str) -> bool:
        """Tell whether this is a group or command of the root, or a command of that group."""
        return self.path == name or self.path.startswith(f"{name} ")


def describe(root: Any) -> dict[str, Node]:
    """Return every command and group by path, the root first: its path is empty, and its options are global."""
    return {node.path: node for node in _nodes(root, "")}


def _nodes(command: Any, path: str) -> Iterator[Node]:
    children = dict(children_of(command))
    facts: Facts = command.facts
    parameters: dict[str, list[Parameter]] = {"argument": [], "option": []}
    for each in command.params:
        if not path or each not in global_options():
            parameters[each.param_type_name].append(_parameter(each, path, facts.performs))
    yield Node(
        path,
        command.get_short_help_str(200),
        command.help or "",
        command.rich_help_panel if isinstance(command.rich_help_panel, str) else "",
        {name: child.get_short_help_str(200) for name, child in children.items()},
        tuple(parameters["argument"]),
        tuple(parameters["option"]),
        facts,
    )
    for name, child in children.items():
        yield from _nodes(child, f"{path} {name}".strip())


def _parameter(parameter: Any, path: str, operation: Operation | None) -> Parameter:
    placeholder = re.sub(r"[\[\].]", "", parameter.metavar or "")
    is_argument = parameter.param_type_name == "argument"
    is_flag = not is_argument and (parameter.is_flag or parameter.count)
    names = (placeholder,) if is_argument else (*sorted(parameter.opts, key=len), *parameter.secondary_opts)
    text = parameter.help or ""
    default = re.search(r" ?\[default: (.*?)\]", text)
    stated = parameter.default if isinstance(parameter.default, str) else None
    choices, source = _values(path, names[-1], placeholder, operation)
    return Parameter(
        names,
        None if is_flag else placeholder,
        text.replace(default[0], "") if default else text,
        choices,
        default[1] if default else stated,
        parameter.required,
        parameter.nargs == -1 if is_argument else parameter.multiple,
        source,
    )


_SOURCES = {
    "--profile NAME": "profiles",
    "profile show NAME": "profiles",
    "profile use NAME": "profiles",
    "profile remove NAME": "stored",
    "FILE": "files",
    "--message-file PATH": "files",
    "JOB": "jobs",
    "CC": "countries",
}
"""Where a shell looks up values: by placeholder, preceded by the option or the command if it means others elsewhere."""


@cache
def _choices() -> dict[str, tuple[str, ...]]:
    """The values to choose from, by the same names."""
    voices = dict.fromkeys((*operations.CALL_VOICES, *operations.VERIFICATION_VOICES))
    return {
        "--output FORMAT": tuple(each.value for each in Format),
        "--kind KIND": KINDS,
        "--fault SPEC": faults.KINDS,
        "--only OUTCOME": (*job.OUTCOMES, "undelivered"),
        "job resend OUTCOME": ("undelivered", "refused"),
        "--voice NAME": tuple(voices),
        "METHOD": METHODS,
        "api PATH": tuple(operation.path for operation in operations.OPERATIONS),
        "SHELL": SHELLS,
    }


def _values(path: str, name: str, placeholder: str, operation: Operation | None) -> tuple[tuple[str, ...], str]:
    """Return the choices for a value, and where a shell looks up values without choices."""
    for field in operation.fields if operation else ():
        if field.typed == name and field.choices:
            return field.choices, "text"
    keys = [f"{path} {placeholder}", f"{name} {placeholder}", placeholder]
    choices = next((_choices()[key] for key in keys if key in _choices()), ())
    return choices, next((_SOURCES[key] for key in keys if key in _SOURCES), "text")
