"""The standard streams of a run, and what msgctl prints on standard error: notes, warnings and commands to copy."""

import os
import re
import shlex
from collections.abc import Mapping
from typing import TYPE_CHECKING, TextIO

from msgctl.cli.shell.global_options import GlobalOptions
from msgctl.output.result import Format

if TYPE_CHECKING:
    from msgctl.output.printer import Screen

_COMMAND = re.compile(r"\bmsgctl (?=(?:2fa|balance|doctor|history|job|optout|state|store|url)\b)(?!.*--help)")
"""The beginning of the commands in hints that depend on the account."""


class Streams:
    """The standard streams, and the options and variables that decide what is printed on them."""

    def __init__(self, stdin: TextIO, stdout: TextIO, stderr: TextIO, environ: Mapping[str, str] | None) -> None:
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.environ = os.environ if environ is None else environ
        self.options = GlobalOptions()
        self.usual_format = Format.TABLE if stdout.isatty() else Format.TSV
        """The output format of a run without -o and --json."""

    @property
    def format(self) -> Format:
        return self.options.format or self.usual_format

    @property
    def is_json(self) -> bool:
        """Whether --json was given: then standard error has only JSON, too."""
        return self.options.format is Format.JSON

    @property
    def shows_notes(self) -> bool:
        return not (self.options.quiet or self.is_json)

    def screen(self, stream: TextIO) -> "Screen":
        """Return the screen of a stream. In this order, --no-color, NO_COLOR, FORCE_COLOR and TERM decide on colour."""
        from msgctl.output.printer import Screen, terminal_width

        is_terminal = stream.isatty()
        is_refused = self.options.no_color or self.environ.get("NO_COLOR")
        has_color = is_terminal and self.environ.get("TERM", "") not in ("", "dumb", "unknown")
        color = not is_refused and (has_color or bool(self.environ.get("FORCE_COLOR")))
        return Screen(stream, terminal_width(stream) if is_terminal else None, color)

    def for_profile(self, text: str) -> str:
        """Add the -p of this run to the commands in a hint, so that copied commands act on the same account."""
        if not self.options.profile:
            return text
        prefix = f"msgctl -p {shlex.quote(self.options.profile)} "
        return _COMMAND.sub(lambda _: prefix, text)

    def note(self, text: str) -> None:
        """Print a line on standard error, unless --quiet or --json, which keeps standard error for JSON only."""
        if self.shows_notes:
            self._write(self.for_profile(text))

    def warn(self, text: str) -> None:
        """Print a warning on standard error, even with --quiet, but not under --json."""
        if not self.is_json:
            self._write(f"Warning: {text}")

    def _write(self, text: str) -> None:
        """Print a text, wrapped unless it contains a command to copy."""
        self.say(text if "msgctl " in text else self.wrapped(text))

    def wrapped(self, text: str, *, indent: int = 0) -> str:
        """Return a text wrapped at words if standard error is a terminal; lines after the first are indented."""
        if not self.stderr.isatty():
            return text
        from textwrap import TextWrapper

        from msgctl.output.printer import terminal_width

        width = terminal_width(self.stderr) - indent
        wrapper = TextWrapper(width, break_long_words=False, break_on_hyphens=False)
        return ("\n" + " " * indent).join(part for line in text.split("\n") for part in wrapper.wrap(line) or [""])

    def say(self, text: str) -> None:
        """Print a line on standard error."""
        self.stderr.write(text + "\n")
        self.stderr.flush()
