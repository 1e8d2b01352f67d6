"""The examples of the commands, run: whatever a command needs is in its examples."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import NamedTuple

from msgctl.cli.help_page import examples_of
from support.tool import Outcome, Tool
from support.tree import COMMANDS, Node

FILES = {
    "notice.txt": "Your order is ready",
    "code.txt": "123456\n",
    "body.json": '{"phone": "573001234567", "body": ["Ana", "8:00"]}',
    "order.json": '{"phone": "573001234567", "body": ["Ana", "1029"]}',
}


class Example(NamedTuple):
    """A command, and a line of shell that shows it."""

    node: Node
    line: str

    @property
    def words(self) -> list[str]:
        """The arguments of the msgctl part: of ``a | msgctl … < file`` and of ``"$(msgctl …)"`` alike."""
        found = re.search(r"msgctl( [^|<)]*)", self.line)
        assert found is not None, self.line
        return shlex.split(found[1])

    @property
    def stdin(self) -> bytes:
        """What the line sends to standard input; files are those of `FILES`."""
        redirected = re.search(r"< (\S+)", self.line)
        if redirected:
            return FILES.get(redirected[1], "").encode()
        return b"text of another program\n" if "| msgctl" in self.line else b""

    def run(self, tool: Tool, *more: str) -> Outcome:
        """Run the line, with further options, without a terminal."""
        return tool(*self.words, *more, stdin=self.stdin)


def goes_on(line: str) -> bool:
    """Whether a line runs until it is stopped."""
    return "sandbox serve" in line or "--follow" in line


EXAMPLES = tuple(Example(node, line) for node in COMMANDS for line in examples_of(node.command) if not goes_on(line))
FIRST = tuple({example.node.path: example for example in reversed(EXAMPLES)}.values())


def write_files(folder: Path) -> None:
    """Make the files that the examples read."""
    for name, content in FILES.items():
        (folder / name).write_text(content, encoding="utf-8")


def line_of(value: object) -> str | None:
    """The id of a parametrized test."""
    return value.line if isinstance(value, Example) else None
