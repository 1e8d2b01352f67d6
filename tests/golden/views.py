"""The views of a terminal as text files that anyone can read: `views/NAME.txt`.

``WRITE_VIEWS=1 pytest tests/golden/test_views.py`` rewrites them. Read the diff before you commit it.
"""

from __future__ import annotations

import os
import re
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

from msgctl.cli.shell import main as cli
from msgctl.cli.shell.context import Context
from msgctl.output.printer import Printer, Screen
from msgctl.output.result import Format, Result
from support.tool import Clock, Stream

FOLDER = Path(__file__).parent / "views"
NOW = 1_795_301_551.0
"""2026-11-21 22:52:31 UTC, 17:52:31 in Bogotá."""
_STYLE = re.compile(r"\x1b\[([0-9;]*)m")
_STYLES = {"0": "", "1": "bold", "2": "dim", "31": "red", "32": "green", "33": "yellow", "36": "cyan"}
_STYLES.update({"39": "default", "49": ""})
_JOB = re.compile(r"\b[0-9]{8}-[0-9a-f]{6}\b")
_ID = re.compile(r"\b[0-9a-f]{16}\b")


class Terminal(NamedTuple):
    """A terminal; ``name`` is the heading of its section in a file."""

    name: str
    width: int
    color: bool = False
    encoding: str = "utf-8"


TERMINALS = (
    Terminal("100 columns", 100),
    Terminal("60 columns", 60),
    Terminal("60 columns, C locale", 60, encoding="ascii"),
    Terminal("100 columns, with colour", 100, color=True),
)


class Viewer:
    """Runs command lines in a terminal, and stores both outputs."""

    def __init__(self, terminal: Terminal) -> None:
        width, color, encoding = terminal.width, terminal.color, terminal.encoding
        self._environ = {**os.environ, "COLUMNS": str(width), "TERM": "xterm"}
        if not color:
            self._environ["NO_COLOR"] = "1"
        self._color = color
        self._width = width
        self._stream = Stream(terminal=True, encoding=encoding)
        self.clock = Clock(NOW)

    def run(self, *arguments: str, typed: str = "") -> int:
        """Run a command line, and return its exit code."""
        self.say(f"$ msgctl {' '.join(arguments)}\n")
        context = Context(
            stdin=Stream(typed.encode(), terminal=True),
            stdout=self._stream,
            stderr=self._stream,
            environ=self._environ,
            clock=self.clock,
            monotonic=self.clock,
            sleep=self.clock.sleep,
        )
        code = cli.run(arguments, context)
        self.say("\n")
        return code

    def forget_the_service(self) -> None:
        """Remove the variables of the test's server from the environment."""
        self._environ = {name: value for name, value in self._environ.items() if not name.startswith("MSGCTL_")}

    def print(self, result: Result) -> None:
        """Print a result as if a command had returned it."""
        screen = Screen(self._stream, self._width, self._color)
        Printer(screen, screen, Format.TABLE, now=lambda: datetime.fromtimestamp(self.clock())).print(result)

    def shown(self) -> str:
        """Return the text on the terminal, with colours as Rich's markup and with fixed IDs."""
        text = self._stream.bytes().decode(self._stream.encoding)
        lines = [_marked_up(line).rstrip() for line in text.split("\n")]
        shown = _ID.sub("0123456789abcdef", "\n".join(lines)).rstrip("\n") + "\n"
        return _JOB.sub("20261121-0123ab", shown)

    def say(self, text: str) -> None:
        self._stream.write(text)


def _marked_up(line: str) -> str:
    """Return a line with its colours and styles as markup, ``[green]✓ done[/]``; blanks have none."""
    parts, style = [], ""
    for number, part in enumerate(_STYLE.split(line)):
        if number % 2:
            style = " ".join(_STYLES[code] for code in part.split(";")).strip()
        elif style and part.strip():
            blank = part[len(part.rstrip()) :]
            parts.append(f"[{style}]{part.rstrip()}[/]{blank}")
        else:
            parts.append(part)
    return "".join(parts)
