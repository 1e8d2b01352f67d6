"""Completion scripts for bash, zsh and fish, written from the command tree.

Each script is a template in this directory with a table of the commands, options and values put into it. It starts no
process, except that msgctl lists profiles and jobs.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgctl import phones
from msgctl.reference.description import Node, Parameter

FILES = {"bash": "msgctl.bash", "zsh": "_msgctl", "fish": "msgctl.fish"}
"""The file name of each shell's script."""


def script(shell: str, nodes: Mapping[str, Node]) -> str:
    """Return the completion script of a shell, one of `FILES`."""
    branch, row = (_fish_branch, _fish_row) if shell == "fish" else (_branch, shlex.quote)
    places = {
        "TABLE": [line for node in nodes.values() for line in branch(node.path, map(row, _rows(node)))],
        "COMMON": [row(_option(each)) for each in nodes[""].options],
        "COUNTRIES": [" ".join(sorted(phones.country_names()))],
    }
    text = (Path(__file__).parent / FILES[shell]).read_text(encoding="utf-8")
    for place, lines in places.items():
        text = text.replace(f"    @{place}@", "\n".join(f"    {line}" for line in lines))
    return text


def _rows(node: Node) -> Iterator[str]:
    """Yield what can follow a command, in the form that the templates explain."""
    for name, summary in node.children.items():
        yield f"command {name} - {_line(summary)}"
    for argument in node.arguments:
        values = _values(argument)
        yield f"argument{'s' * argument.multiple} - {'-' if values == 'text' else values} "
    for option in node.options if node.path else ():  # the root's options are common to all commands
        yield _option(option)


def _option(option: Parameter) -> str:
    return f"option{'s' * option.multiple} {','.join(option.names)} {_values(option)} {_line(option.help)}"


def _values(parameter: Parameter) -> str:
    if parameter.value is None:
        return "-"
    return f"={','.join(parameter.choices)}" if parameter.choices else parameter.source


def _line(text: str) -> str:
    """Return the first sentence of a help text."""
    return text.replace("`", "").partition(". ")[0].removesuffix(".")


def _branch(path: str, rows: Iterable[str]) -> list[str]:
    """Return the branch of a case statement that sets the table of a command."""
    return [f"{shlex.quote(path)})", "    table=(", *(f"        {row}" for row in rows), "    ) ;;"]


def _fish_quoted(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _fish_row(row: str) -> str:
    return f"echo {_fish_quoted(row)}"


def _fish_branch(path: str, rows: Iterable[str]) -> list[str]:
    return [f"case {_fish_quoted(path)}", *(f"    {row}" for row in rows)]
