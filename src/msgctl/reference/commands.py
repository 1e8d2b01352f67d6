"""The description of every command that `msgctl commands --json` prints, for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgctl import __version__
from msgctl.operations import Effect
from msgctl.reference.description import Node, Parameter

SCHEMAS = Path(__file__).parent / "schema"
"""A JSON Schema for each output of msgctl's own."""

EXIT_CODES = {
    "0": "done",
    "1": "the service refused the request; nothing was sent",
    "2": "usage error, found before anything was sent",
    "3": "configuration: no profile, no credentials, or a file that is unreadable or not private",
    "4": "not reached; nothing was sent",
    "5": "outcome unknown: the request was sent, but no usable response came back",
    "6": "condition not met",
    "130": "interrupted or cancelled",
}

OUTPUTS = {
    "block bulk": "job",
    "call bulk": "job",
    "chatapp bulk": "job",
    "commands": "commands",
    "completion": "completion",
    "doctor": "doctor",
    "history list": "history",
    "job list": "jobs",
    "job report": "report",
    "job resend": "job",
    "job resume": "job",
    "job run-due": "jobs",
    "job show": "job",
    "job states": "job",
    "optout list": "optouts",
    "profile list": "profiles",
    "profile path": "path",
    "profile show": "profile",
    "sandbox click": "clicks",
    "sandbox clock": "clock",
    "sandbox credit": "credit",
    "sandbox fault": "faults",
    "sandbox inbox": "inbox",
    "sms bulk": "job",
    "sms segments": "segments",
    "usage": "usage",
    "version": "version",
}
"""The schema of each command's output, unless the service determines it."""


def document(nodes: Mapping[str, Node]) -> dict[str, Any]:
    """Return the whole description as a JSON object."""
    return {
        "version": __version__,
        "exit_codes": EXIT_CODES,
        "global_options": [_option(option) for option in nodes[""].options],
        "commands": [_command(node) for node in nodes.values() if not node.is_group],
    }


def schema(name: str) -> dict[str, Any]:
    """Return a schema by its name."""
    found: dict[str, Any] = json.loads((SCHEMAS / f"{name}.json").read_text(encoding="utf-8"))
    return found


def _command(node: Node) -> dict[str, Any]:
    effect = node.facts.effect
    return {
        "name": node.path,
        "summary": node.summary,
        "effect": effect.value if effect else "local",
        "costs_credits": effect is Effect.SENDS,
        "arguments": [_argument(argument) for argument in node.arguments],
        "options": [_option(option) for option in node.options],
        "output": _output(node),
        "examples": list(node.facts.examples),
    }


def _argument(argument: Parameter) -> dict[str, Any]:
    described = _option(argument)
    return {"name": argument.names[0], **{name: described[name] for name in ("help", "required", "multiple")}}


def _option(option: Parameter) -> dict[str, Any]:
    return {name: value for name, value in option._asdict().items() if name != "source"}


def _output(node: Node) -> list[str]:
    """Return the names of the fields that a command prints."""
    if name := OUTPUTS.get(node.path):
        own = schema(name)
        return list(own.get("items", own)["properties"])
    if node.facts.performs is None:
        return []
    record = node.facts.performs.answer
    return [field.name for field in record.entries or record.members]
