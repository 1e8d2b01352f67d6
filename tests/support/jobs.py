"""Jobs for tests: files of recipients, a service that accepts messages, their results."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from support.service import Behaviour, Received, Service, accepted, respond
from support.tool import Tool


def numbers(count: int) -> list[str]:
    return [f"57300{number:07}" for number in range(count)]


def of_phones(home: Path, phones: Iterable[str], name: str = "customers.csv") -> str:
    path = home / name
    path.write_text("".join(f"{line}\n" for line in ("phone", *phones)), encoding="utf-8")
    return str(path)


def sends(service: Service) -> list[Received]:
    """The requests that arrived, except reads."""
    return [each for each in service.received if not each.path.endswith(("/balance", "/messages-state"))]


def accepting(service: Service) -> Behaviour:
    """Accepts requests, one connection at a time."""

    def behave(connection: socket.socket) -> None:
        respond(accepted(service.received[-1]))(connection)

    return behave


def sent(tool: Tool, file: str, *more: str, code: int = 0) -> str:
    """Send to a file, one request at a time, and return the ID of the job."""
    done = tool("sms", "bulk", file, "-m", "Hello", "--concurrency", "1", "--yes", "--json", *more)
    assert done.code == code, done.err
    return str(done.document["job"])


def shown(tool: Tool, job: str) -> Any:
    return json.loads(tool("job", "show", job, "--json").out)
