"""A request and its answer as the emulator sees them, whatever carried them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

UNKNOWN_ERROR = 520
"""The status of every refusal (interface, "Errors")."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request: ``query`` without its question mark, header names in lower case."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer: status, JSON text that ends in a newline, headers."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class Refusal(Exception):  # noqa: N818 - an answer of the service, not a failure of the emulator
    """What a call is refused with: the members ``error`` and ``msg`` of the error record, and the status."""

    def __init__(
        self, error: str, msg: str, *, status: int = UNKNOWN_ERROR, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(msg)
        self.error = error
        self.msg = msg
        self.status = status
        self.headers = headers or {}

    def reply(self) -> Reply:
        return reply({"error": self.error, "msg": self.msg}, status=self.status, headers=self.headers)


def missing(name: str, why: str = "") -> Refusal:
    """The refusal of a call without a parameter that it needs."""
    return Refusal("MISSING_PARAMETER", f"the parameter {name} is required" + (f" {why}" if why else ""))


def invalid(name: str, why: str) -> Refusal:
    """The refusal of a parameter, or of the part of the call with this name; ``why`` goes on after the name."""
    return Refusal("INVALID_PARAMETER", f"{name} {why}")


_KEY = re.compile(r"(key=)[^&\s'\"]*", re.IGNORECASE)


def masked(text: str) -> str:
    """A text without the keys that stand in it as parameters, for a log line or a message."""
    return _KEY.sub(r"\1***", text)


def quoted(text: str, limit: int = 40) -> str:
    """What somebody sent, for a message: in quotes, in ASCII, and not too long."""
    return json.dumps(text if len(text) <= limit else text[:limit] + "...")


def reply(document: Mapping[str, object], *, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    """An answer with a JSON object, its members in their order."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"
    return Reply(status, text.encode(), {"content-type": "application/json", **(headers or {})})
