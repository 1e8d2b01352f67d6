"""A sandbox that is served elsewhere, seen through its own endpoints (`control`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx

from msgctl.errors import ConfigurationError, MsgctlError, NotReachedError, OutcomeUnknownError, UsageError
from msgctl.sandbox.control import BAD_REQUEST, NAME, PATH
from msgctl.text import shorten


class RemoteSandbox:
    """The endpoints of the sandbox at a base URL; they take no credentials, and none are sent.

    Its first act is to ask whether there is a sandbox at all. Raises ConfigurationError where there is none, and
    NotReachedError.
    """

    def __init__(self, base_url: str, *, seconds: float) -> None:
        parts = urlsplit(base_url)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._http = httpx.Client(base_url=self._origin, timeout=seconds, trust_env=False, follow_redirects=False)
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
        messages = self._ask("GET", "/inbox", params={name: value for name, value in asked.items() if value})[
            "messages"
        ]
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

    def _ask(
        self,
        method: str,
        path: str,
        document: Mapping[str, Any] | None = None,
        *,
        params: Mapping[str, str] | None = None,
    ) -> dict[str, Any]:
        try:
            response = self._http.request(method, PATH + path, json=document, params=params)
        except httpx.ConnectError:
            raise NotReachedError(
                f"there is no sandbox at {shorten(self._origin)}", "Start one with: msgctl sandbox serve"
            ) from None
        except httpx.HTTPError as error:
            raise OutcomeUnknownError(f"the sandbox gave no answer ({type(error).__name__})", "Try again.") from None
        return _record(response)


def _record(response: httpx.Response) -> dict[str, Any]:
    try:
        document = json.loads(response.content)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise OutcomeUnknownError("the answer of the sandbox cannot be read", "Is it a sandbox of another version?")
    if response.status_code == BAD_REQUEST:
        raise UsageError(shorten(str(document.get("msg"))))
    if response.status_code != 200:
        raise _failure(response.status_code, document)
    return document


def _failure(status: int, document: Mapping[str, Any]) -> MsgctlError:
    return OutcomeUnknownError(
        f"the sandbox answered {status}: {shorten(str(document.get('msg')))}", "Is it a sandbox of another version?"
    )
