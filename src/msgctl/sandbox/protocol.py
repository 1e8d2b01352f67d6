"""The requests and responses of the sandbox, independent of how they are carried."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

BASE_PATH = "/api/v1"
"""The path of the interface, below which the operations are."""

UNKNOWN_ERROR = 520
"""The status of a refused operation (interface, "Errors")."""


@dataclass(frozen=True, slots=True)
class SandboxRequest:
    """One request: ``query`` without its question mark, header names in lower case."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def media_type(self) -> str:
        """Return the content type in lower case, without its parameters."""
        return self.headers.get("content-type", "").partition(";")[0].strip().lower()


@dataclass(frozen=True, slots=True)
class SandboxResponse:
    """One response; ``refusal`` is the reason if the request was refused, ``faults`` names the faults that it met."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    refusal: Refusal | None = None
    faults: tuple[str, ...] = ()


class Refusal(Exception):  # noqa: N818 - a response of the service, not a failure of the emulator
    """A refused request: the fields ``error`` and ``msg`` of the error record, and the HTTP status.

    ``parameter`` names the parameter that breaks a rule, if it is one parameter.
    """

    def __init__(
        self,
        error: str,
        msg: str,
        *,
        status: int = UNKNOWN_ERROR,
        headers: Mapping[str, str] | None = None,
        parameter: str | None = None,
    ) -> None:
        super().__init__(msg)
        self.error = error
        self.msg = msg
        self.status = status
        self.headers = headers or {}
        self.parameter = parameter

    def response(self) -> SandboxResponse:
        """Return the error record as a response."""
        record = json_response({"error": self.error, "msg": self.msg}, status=self.status, headers=self.headers)
        return SandboxResponse(record.status, record.body, record.headers, self)


def missing(name: str, where: str) -> Refusal:
    """Return the refusal of a request that lacks a required parameter."""
    return Refusal("MISSING_PARAMETER", f"{name} is required {where}", parameter=name)


def invalid(name: str, rule: str) -> Refusal:
    """Return the refusal of a parameter, or of the part of the request, that breaks a rule."""
    return Refusal("INVALID_PARAMETER", f"{name} {rule}", parameter=name)


def wrong_method(path: str, *allowed: str) -> Refusal:
    """Return the refusal of a method that a path does not support."""
    return Refusal(
        "METHOD_NOT_ALLOWED",
        f"{path} supports {' and '.join(allowed)} only",
        status=405,
        headers={"allow": ", ".join(allowed)},
    )


_KEY = re.compile(r"""(key=|"key"\s*:\s*")[^&\s'"]*""", re.IGNORECASE)


def masked(text: str) -> str:
    """Return a text without the values of its ``key`` parameters, for a log line or a message."""
    return _KEY.sub(r"\1***", text)


def quoted(text: str, limit: int = 40) -> str:
    """Return a received value for a message: in quotes, in ASCII, and shortened."""
    return json.dumps(text if len(text) <= limit else text[:limit] + "...")


def json_response(
    document: Mapping[str, object], *, status: int = 200, headers: Mapping[str, str] | None = None
) -> SandboxResponse:
    """Return a response with a JSON object on one line."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"
    return SandboxResponse(status, text.encode(), {"content-type": "application/json", **(headers or {})})
