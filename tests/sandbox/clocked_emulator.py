"""An emulator with a stopped clock and repeatable random values."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from msgctl.errors import UsageError
from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.protocol import BASE_PATH, SandboxRequest, SandboxResponse
from msgctl.sandbox.service import respond

NOON = 1_795_262_400.0
"""2026-11-21T12:00:00Z."""

FORM = {"content-type": "application/x-www-form-urlencoded"}
JSON = {"content-type": "application/json"}
ACCOUNT = {"client": "1", "key": "sandbox"}
PHONE = "573001234567"


class Controls:
    """The sandbox's own endpoints, carried out in this process."""

    def __init__(self, emulator: Emulator) -> None:
        self._emulator = emulator

    def _ask(self, method: str, path: str, fields: dict[str, Any]) -> Any:
        """Return what an endpoint returns. Raises UsageError if it refuses a field."""
        query, body = (
            ("", json.dumps(fields).encode()) if method == "POST" else (urlencode(fields, errors="replace"), b"")
        )
        done = respond(self._emulator, SandboxRequest(method, f"/sandbox{path}", query, JSON, body))
        document = json.loads(done.body)
        if done.status != 200:
            raise UsageError(document["msg"])
        return document

    def inbox(self, **fields: Any) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._ask("GET", "/inbox", fields)["messages"]
        return found

    def click(self, name: str, count: int = 1, **more: str) -> None:
        self._ask("POST", "/click", {"name": name, "count": count, **more})

    def credit(self, credits: int, *, add: bool = False) -> int:
        return int(self._ask("POST", "/credit", {"add" if add else "credits": credits})["status"])

    def fault(self, *specs: str) -> list[str]:
        return list(self._ask("POST", "/fault", {"faults": list(specs)})["faults"])

    def faults(self) -> list[str]:
        return list(self._ask("GET", "/fault", {})["faults"])

    def responses(self) -> str:
        return str(self._ask("GET", "/responses", {})["responses"])

    def clock(self) -> Any:
        return self._ask("GET", "/clock", {})


class World:
    """``now`` is the emulator's time; requests carry the right credentials unless they are overridden with None."""

    def __init__(self, path: Path, seed: int = 7) -> None:
        self.path, self.now = path, NOON
        self.emulator = Emulator(path, clock=lambda: self.now, seed=seed)
        self.respond: Callable[[SandboxRequest], SandboxResponse] = partial(respond, self.emulator)
        self.admin = Controls(self.emulator)

    def send(self, call: SandboxRequest) -> SandboxResponse:
        """Send a request, with its path below the base path."""
        return self.respond(call._replace(path=BASE_PATH + call.path))

    def get(self, path: str, **parameters: str | None) -> SandboxResponse:
        return self.send(SandboxRequest("GET", path, query=encoded(parameters)))

    def post(self, path: str, **parameters: str | None) -> SandboxResponse:
        """Post a form; ``_`` in a parameter's name stands for ``-``."""
        return self.send(SandboxRequest("POST", path, "", FORM, encoded(parameters).encode()))

    def post_json(self, path: str, document: object, **query: str | None) -> SandboxResponse:
        return self.send(SandboxRequest("POST", path, encoded(query), JSON, json.dumps(document).encode()))

    def sms(self, phone: str = PHONE, text: str = "Hola") -> Any:
        return record(self.post("/send-sms", phone=phone, sms=text))

    def state_of(self, message_id: str) -> str:
        return str(record(self.get("/messages-state", id=message_id))["state"])

    def click(self, name: str, count: int = 1, *, at: float | None = None, **more: str) -> None:
        """Visit a short URL, now or at a given time."""
        now, self.now = self.now, self.now if at is None else at
        self.admin.click(name, count, **more)
        self.now = now

    @property
    def credits(self) -> int:
        return int(record(self.get("/balance"))["status"])


def encoded(parameters: dict[str, str | None]) -> str:
    named = {name.replace("_", "-"): value for name, value in {**ACCOUNT, **parameters}.items()}
    return urlencode({name: value for name, value in named.items() if value is not None})


def record(response: SandboxResponse) -> Any:
    """Return the document of a response that must be 200."""
    assert response.status == 200, response.body
    return json.loads(response.body)


def refusal(response: SandboxResponse, status: int = 520) -> tuple[str, str]:
    """Return ``error`` and ``msg`` of a response that must be a refusal."""
    assert response.status == status, response.body
    document = json.loads(response.body)
    assert list(document) == ["error", "msg"]
    return document["error"], document["msg"]
