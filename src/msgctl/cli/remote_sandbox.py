"""A sandbox that is served elsewhere, seen through its own endpoints (`msgctl.sandbox.control`).

Whatever may answer there: its answers are bounded and read like those of the service.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

from msgctl.errors import ConfigurationError, NotReachedError, OutcomeUnknownError, UsageError
from msgctl.http.connection import Connection
from msgctl.http.dialing import Dialer
from msgctl.http.exchange import LostError, Outgoing, Reply
from msgctl.http.request import JSON_TYPE
from msgctl.http.response import ShapeError, load_json
from msgctl.sandbox.control import BAD_REQUEST, NAME, PATH
from msgctl.text import shorten

OTHER_VERSION = "Is it a sandbox of another version?"


class RemoteSandbox:
    """The endpoints of the sandbox at a base URL; they take no credentials, and none are sent.

    ``seconds`` bounds each request as a whole. Its first act is to ask whether there is a sandbox at all. Raises
    ConfigurationError where there is none, and NotReachedError.
    """

    def __init__(self, base_url: str, *, seconds: float) -> None:
        parts = urlsplit(base_url)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._seconds = seconds
        self._line = Connection(Dialer(self._origin))
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
        self._line.close()

    def inbox(self, phone: str | None, kind: str | None, after: int = 0) -> list[dict[str, Any]]:
        """What the phones received after a number, newest last."""
        asked = {"phone": phone, "kind": kind, "after": str(after)}
        query = urlencode({name: value for name, value in asked.items() if value})
        messages = self._ask("GET", "/inbox", query).get("messages")
        if not isinstance(messages, list) or not {dict}.issuperset(map(type, messages)):
            raise _unreadable()
        return [{**message, "number": _whole(message, "number")} for message in messages]

    def click(self, name: str, count: int, days: int, visitor: Mapping[str, str]) -> int:
        """Make visits of a short URL; how many were made."""
        visits = {"name": name, "count": count, "days": days, **visitor}
        return _whole(self._ask("POST", "/click", document=visits), "clicks")

    def credit(self, amount: int, *, add: bool) -> int:
        """Set the credits, or add to them; how many there are then."""
        return _whole(self._ask("POST", "/credit", document={"add" if add else "credits": amount}), "status")

    def reset(self) -> None:
        """Forget everything."""
        self._ask("POST", "/reset", document={})

    def _ask(
        self, method: str, path: str, query: str = "", document: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        headers = {"Accept": JSON_TYPE} if document is None else {"Accept": JSON_TYPE, "Content-Type": JSON_TYPE}
        body = b"" if document is None else json.dumps(document).encode()
        try:
            return _record(self._line.exchange(Outgoing(method, PATH + path, query, headers, body), self._seconds))
        except NotReachedError:
            raise NotReachedError(
                f"there is no sandbox at {shorten(self._origin)}", "Start one with: msgctl sandbox serve"
            ) from None
        except LostError as error:
            raise OutcomeUnknownError(f"the sandbox was asked, and {error}", "Try again.") from None


def _record(reply: Reply) -> dict[str, Any]:
    """The JSON object of an answer. Raises UsageError and OutcomeUnknownError."""
    try:
        document = load_json(reply.whole_body())
    except ShapeError:
        document = None
    if not isinstance(document, dict):
        raise _unreadable()
    if reply.status == BAD_REQUEST:
        raise UsageError(shorten(str(document.get("msg"))))
    if reply.status != 200:
        said = shorten(str(document.get("msg")))
        raise OutcomeUnknownError(f"the sandbox answered {reply.status}: {said}", OTHER_VERSION)
    return document


def _whole(record: Mapping[str, Any], name: str) -> int:
    """A whole number of a record. Raises OutcomeUnknownError where it has none of that name."""
    text = str(record.get(name))
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise _unreadable()
    return int(text)


def _unreadable() -> OutcomeUnknownError:
    return OutcomeUnknownError("the answer of the sandbox cannot be read", OTHER_VERSION)
