"""The newest requests to a served sandbox, and for refused ones the rule of the interface that they broke."""

from __future__ import annotations

from collections import deque
from typing import Any
from urllib.parse import unquote_plus

from msgctl.operations import OPERATIONS, SEND_CALL
from msgctl.sandbox.decode import WHERE
from msgctl.sandbox.protocol import BASE_PATH, Refusal, SandboxRequest, SandboxResponse, masked
from msgctl.text import timestamp

MAX_REQUESTS = 200
MAX_SHOWN = 2000
"""Characters of a request's parameters that are kept."""

_RULES = {
    "UNAUTHORIZED": "Every request carries the account's client and key as parameters, from an allowed address.",
    "NOT_FOUND": "The path, the message id or the short URL must exist.",
    "NOT_ENOUGH_CREDITS": "The balance must cover all numbers of a dispatch, or nothing is sent.",
    "ALREADY_TAKEN": "In the sandbox, names and aliases of short URLs are unique.",
    "INVALID_CODE": "A code is for one phone and app name, and can be used once.",
    "EXPIRED_CODE": "A code is valid for minutes_to_expire minutes.",
    "NOT_PREMIUM": "region, city, brand, model, browser and lang are for premium URLs.",
}


class RequestLog:
    """Remembers requests without their keys, as JSON objects; any number of threads may use it."""

    def __init__(self) -> None:
        self._entries: deque[dict[str, Any]] = deque(maxlen=MAX_REQUESTS)
        self.count = 0

    def add(self, request: SandboxRequest, response: SandboxResponse, at: float) -> None:
        self.count += 1
        body = request.body[:MAX_SHOWN].decode("utf-8", "replace")
        parameters = "&".join(filter(None, (request.query, body)))
        entry: dict[str, Any] = {
            "number": self.count,
            "time": timestamp(at),
            "method": request.method,
            "path": masked(request.path).encode("utf-8", "replace").decode(),
            "parameters": unquote_plus(masked(parameters)[:MAX_SHOWN]).encode("utf-8", "replace").decode(),
            "status": response.status,
            "faults": list(response.faults),
        }
        if response.refusal is not None:
            entry |= {"error": response.refusal.error, "msg": response.refusal.msg}
            if not response.faults:
                entry["rule"] = _rule(request.path, response.refusal)
        self._entries.append(entry)

    def described(self) -> list[dict[str, Any]]:
        """Return the requests, newest first."""
        return list(reversed(self._entries.copy()))


def _rule(path: str, refusal: Refusal) -> str:
    """Return the rule that a refused request broke, in words of the interface."""
    operation = next((each for each in OPERATIONS if BASE_PATH + each.path == path), None)
    if operation is None:
        return f"The operations are below {BASE_PATH}: " + ", ".join(each.path for each in OPERATIONS)
    if refusal.error == "METHOD_NOT_ALLOWED":
        return f"{operation.path} is a {operation.method} operation."
    if refusal.error in _RULES:
        return _RULES[refusal.error]
    name = refusal.parameter
    if operation is SEND_CALL and (
        name == "audio-code" or (refusal.error == "MISSING_PARAMETER" and name in ("message", "voice"))
    ):
        return "message and voice are required without audio-code, and must not be combined with it."
    field = next((field for field in operation.fields if field.name == name), None)
    if field is None:
        return f"{operation.method} {operation.path} takes client and key {WHERE[operation.credentials]}."
    parts = [
        field.kind.value,
        "required" if field.required else "optional",
        WHERE[field.place],
        "several separated by commas" if field.several else "",
        f"one of {', '.join(field.choices)}" if field.choices else "",
        f"at least {field.least}" if field.least else "",
        f"at most {field.most}" if field.most is not None else "",
    ]
    return f"{name}: {', '.join(filter(None, parts))}."
