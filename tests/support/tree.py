"""Walk the command tree, so that tests need no list of commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from typer.core import TyperGroup

from msgctl.cli.shell import main as cli
from msgctl.cli.shell.tree import CommandFacts, children_of


class Node(NamedTuple):
    """A command or group, and its path (``sms send``; empty for the root)."""

    path: str
    command: Any

    @property
    def is_group(self) -> bool:
        return isinstance(self.command, TyperGroup)

    @property
    def facts(self) -> CommandFacts:
        facts: CommandFacts = self.command.facts
        return facts

    @property
    def names(self) -> list[str]:
        return self.path.split()


def walk(command: Any = None, path: str = "") -> Iterator[Node]:
    """Every command and group, the root first."""
    command = command or cli.build()
    yield Node(path, command)
    for name, child in children_of(command):
        yield from walk(child, f"{path} {name}".strip())


NODES = tuple(walk())
COMMANDS = tuple(node for node in NODES if not node.is_group or node.facts.examples)
