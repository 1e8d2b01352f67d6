"""The sandbox as a person or a script uses it: through the tool with `-p sandbox`."""

from __future__ import annotations

import json
from typing import Any

from support.tool import Outcome, Tool

PHONE = "573001234567"
OTHER = "573007654321"


class Sandbox:
    """The tool with `-p sandbox`."""

    def __init__(self, tool: Tool) -> None:
        self.tool = tool

    def __call__(self, *arguments: str) -> Outcome:
        return self.tool("-p", "sandbox", *arguments)

    def done(self, *arguments: str) -> str:
        """Run a command that must succeed, and return its standard output."""
        outcome = self(*arguments)
        assert outcome.code == 0, outcome.err
        return outcome.out

    def document(self, *arguments: str) -> Any:
        return json.loads(self.done("--json", *arguments))

    def code(self, phone: str = PHONE) -> str:
        return str(self.document("sandbox", "inbox", phone)[-1]["code"])
