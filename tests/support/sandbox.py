"""The sandbox as a person or a script uses it: through the tool with `-p sandbox`."""

from __future__ import annotations

import csv
import re
from typing import Any

from support.tool import Outcome, Tool

PHONE = "573001234567"
OTHER = "573007654321"


class Sandbox:
    """The tool with `-p sandbox`."""

    def __init__(self, tool: Tool, *, terminal: bool = False) -> None:
        self.tool = tool
        self._terminal = terminal

    def __call__(self, *arguments: str, stdin: str | None = None) -> Outcome:
        return self.tool("-p", "sandbox", *arguments, stdin=stdin, terminal=self._terminal)

    def done(self, *arguments: str, stdin: str | None = None) -> str:
        """Return what a command printed, without colours. It must succeed."""
        outcome = self(*arguments, stdin=stdin)
        assert outcome.code == 0, outcome.err
        return re.sub(r"\x1b\[[0-9;]*m", "", outcome.out)

    def document(self, *arguments: str) -> Any:
        """Return the JSON that a command prints for a script."""
        outcome = self.tool("-p", "sandbox", "--json", *arguments)
        assert outcome.code == 0, outcome.err
        return outcome.document

    def rows(self, *arguments: str) -> list[dict[str, str]]:
        """Return the csv that a command prints for a script."""
        return list(csv.DictReader(self.tool("-p", "sandbox", "-o", "csv", *arguments).out.splitlines()))

    def credits(self) -> int:
        return int(self.document("balance")["status"])

    def code(self, phone: str = PHONE) -> str:
        """The code that a phone received last."""
        return str(self.document("sandbox", "inbox", phone)[-1]["code"])


def refused(done: Outcome, error: str) -> str:
    """Return the service's response to a refused request; only standard error may have it."""
    assert (done.code, done.out) == (1, "")
    assert error in done.err
    return done.err


def shorten(sandbox: Sandbox, *options: str) -> str:
    """Make the short URL `offers`, and return it."""
    arguments = ("url", "shorten", "https://example.com/offers", "--name", "offers", *options)
    return str(sandbox.document(*arguments)["urlShort"])
