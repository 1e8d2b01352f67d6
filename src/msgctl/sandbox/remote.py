"""A sandbox that is served elsewhere, seen through its own endpoints (`control`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import urlencode, urlsplit

from msgctl.errors import ConfigurationError, MsgctlError, NotReachedError, OutcomeUnknownError, UsageError
from msgctl.sandbox.control import BAD_REQUEST, NAME, PATH
from msgctl.text import shorten

MOST_BYTES = 16 * 1024 * 1024
"""The largest answer that is read, in bytes."""


class RemoteSandbox:
    """The endpoints of the sandbox at a base URL; they take no credentials, and none are sent.

    Its first act is to ask whether there is a sandbox at all. Raises ConfigurationError where there is none, and
    NotReachedError.
    """

    def __init__(self, base_url: str, *, seconds: float) -> None:
        parts = urlsplit(base_url)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        connection = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._http = connection(parts.hostname or "", parts.port, timeout=seconds)
        try:
            about = self._ask("GET", "")
        except (UsageError, OutcomeUnknownError):
            about = {}
        if about.get("sandbox") != NAME:
            self.close()
            raise ConfigurationError(
                f"there is no sandbox at {shorten(self._origin)}", "Start one with: msgctl sandbox serve"
            )

    def close(self) -> None:
        self._http.close()

    def inbox(self, phone: str | None, kind: str | None, after: int = 0) -> list[dict[str, Any]]:
        """What the phones received after a number, newest last."""
        asked = {"phone": phone, "kind": kind, "after": str(after)}
        query = urlencode({name: value for name, value in asked.items() if value})
        messages = self._ask("GET", f"/inbox?{query}")["messages"]
        return [message for message in messages if isinstance(message, dict)] if isinstance(messages, list) else []

    def click(self, name: str, count: int, days: int, visitor: Mapping[str, str]) -> int:
        """Make visits of a short URL; how many were made."""
        return int(self._ask("POST", "/click", {"name": name, "count": count, "days": days, **visitor})["clicks"])

    def credit(self, amount: int, *, add: bool) -> int:
        """Set the credits, or add to them; how many there are then."""
        return int(self._ask("POST", "/credit", {"add" if add else "credits": amount})["status"])

    def reset(self) -> None:
        """Forget everything."""
        self._ask("POST", "/reset", {})

    def _ask(self, method: str, path: str, document: Mapping[str, Any] | None = None) -> dict[str, Any]:
        body = None if document is None else json.dumps(document)
        try:
            self._connect()
            self._http.request(method, PATH + path, body, {} if body is None else {"Content-Type": "application/json"})
            response = self._http.getresponse()
            return _record(response.status, response.read(MOST_BYTES + 1))
        except (OSError, HTTPException, ValueError) as error:
            raise OutcomeUnknownError(f"the sandbox gave no answer ({type(error).__name__})", "Try again.") from None
        finally:
            self._http.close()

    def _connect(self) -> None:
        try:
            self._http.connect()
        except (OSError, UnicodeError):
            raise NotReachedError(
                f"there is no sandbox at {shorten(self._origin)}", "Start one with: msgctl sandbox serve"
            ) from None


def _record(status: int, body: bytes) -> dict[str, Any]:
    """The JSON object of an answer. Raises UsageError and OutcomeUnknownError."""
    try:
        document = json.loads(body) if len(body) <= MOST_BYTES else None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise OutcomeUnknownError("the answer of the sandbox cannot be read", "Is it a sandbox of another version?")
    if status == BAD_REQUEST:
        raise UsageError(shorten(str(document.get("msg"))))
    if status != 200:
        raise _failure(status, document)
    return document


def _failure(status: int, document: Mapping[str, Any]) -> MsgctlError:
    return OutcomeUnknownError(
        f"the sandbox answered {status}: {shorten(str(document.get('msg')))}", "Is it a sandbox of another version?"
    )
