"""Check the values of options: each is used, or refused before anything is sent."""

from __future__ import annotations

import json
from typing import Any

from support.service import Service, respond
from support.tool import Outcome, Tool

PHONE = "573001234567"
OTHER = "573007654321"

RESPONSE = {"id": "1", "status": "1"}
"""A response that fits most records."""
STATISTIC = {"urlShort": "https://s.example/1"}


def refused(tool: Tool, service: Service, *command: str, names: tuple[str, ...], **streams: Any) -> str:
    """Run a command line that cannot be used, as text and under --json; return the message and the hint.

    It is exit 2 with one message that has ``names`` in it, nothing on standard output, and no request.
    """
    plain = tool("--no-color", *command, **streams)
    assert (plain.code, plain.out) == (2, ""), plain.err
    assert plain.err.startswith(("Error: ", "✗ "))
    assert len(plain.err.splitlines()) <= 2
    document = _under_json(tool(command[0], "--json", *command[1:], **streams))
    printed = " ".join(filter(None, (document["message"], document.get("hint"))))
    assert [name for name in names if name not in printed] == [], printed
    assert (service.received, service.connections) == ([], 0)
    return printed


def _under_json(outcome: Outcome) -> Any:
    assert (outcome.code, outcome.out, len(outcome.err.splitlines())) == (2, "", 1), outcome.err
    document = json.loads(outcome.err)
    assert (document["kind"], document["exit_code"]) == ("usage", 2)
    return document


def used(tool: Tool, service: Service, *command: str, **streams: Any) -> dict[str, str]:
    """Run a command line that makes one request, and return the form that it sent."""
    before = len(service.received)
    service.will(respond(STATISTIC if command[0] == "url" else RESPONSE))
    outcome = tool(*command, **streams)
    assert (outcome.code, len(service.received)) == (0, before + 1), outcome.err
    form = service.received[-1].form
    assert len(dict(form)) == len(form)
    return dict(form)
