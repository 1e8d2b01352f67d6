"""A sandbox served elsewhere, used through its own endpoints (`msgctl.sandbox.endpoints`).

The server there may not be a sandbox, so responses are limited and checked like those of the service.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx

from msgctl.errors import ConfigurationError, NotReachedError, OutcomeUnknownError, UsageError
from msgctl.http.request import JSON_TYPE
from msgctl.http.response import ShapeError, load_json
from msgctl.http.transport import Route, describe
from msgctl.sandbox.endpoints import BAD_REQUEST, NAME, PATH
from msgctl.text import shorten

CHECK_VERSION = "Check whether the sandbox is of the same version as this msgctl."
START = "Start one with: msgctl sandbox serve"


class RemoteAdmin:
    """The sandbox at a base URL. It takes no credentials, and none are sent.

    ``seconds`` limits each request. The first request checks that there is a sandbox: nothing else is sent to any other
    server. Raises ConfigurationError if it is not a sandbox, and NotReachedError.
    """

    def __init__(self, base_url: str, *, seconds: float) -> None:
        parts = urlsplit(base_url)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._seconds = seconds
        self._transport = Route(self._origin).transport()
        try:
            about = self._get("")
        except (UsageError, OutcomeUnknownError):
            about = {}
        if about.get("sandbox") != NAME:
            self.close()
            raise ConfigurationError(f"No sandbox at {shorten(self._origin)}", START)

    def close(self) -> None:
        self._transport.close()

    def inbox(self, phone: str | None, kind: str | None, after: int = 0, wait: float = 0) -> list[dict[str, Any]]:
        query = {"phone": phone, "kind": kind, "after": str(after), "wait": f"{wait:g}" if wait else None}
        messages = self._get("/inbox?" + urlencode({name: value for name, value in query.items() if value}), wait)
        found = messages.get("messages")
        if not isinstance(found, list) or not all(isinstance(message, dict) for message in found):
            raise _unreadable()
        return [{**message, "number": _whole(message, "number")} for message in found]

    def click(self, name: str, count: int, days: int, visitor: Mapping[str, str]) -> int:
        return _whole(self._post("/click", {"name": name, "count": count, "days": days, **visitor}), "clicks")

    def credit(self, amount: int, *, add: bool) -> int:
        return _whole(self._post("/credit", {"add" if add else "credits": amount}), "status")

    def fault(self, *specs: str) -> list[str]:
        return _strings(self._post("/fault", {"faults": specs}))

    def faults(self) -> list[str]:
        return _strings(self._get("/fault"))

    def clock(self, change: str | None = None) -> dict[str, Any]:
        clock = self._get("/clock") if change is None else self._post("/clock", {"change": change})
        if not isinstance(clock.get("time"), str) or not isinstance(clock.get("stopped"), bool):
            raise _unreadable()
        return clock

    def reset(self) -> None:
        self._post("/reset", {})

    def _get(self, path: str, wait: float = 0) -> dict[str, Any]:
        return self._request("GET", path, wait=wait)

    def _post(self, path: str, document: Mapping[str, Any]) -> dict[str, Any]:
        return self._request("POST", path, json.dumps(document).encode())

    def _request(self, method: str, path: str, body: bytes | None = None, wait: float = 0) -> dict[str, Any]:
        seconds = self._seconds + wait
        headers = {"Accept": JSON_TYPE} if body is None else {"Accept": JSON_TYPE, "Content-Type": JSON_TYPE}
        request = httpx.Request(
            method,
            self._origin + PATH + path,
            headers=headers,
            content=body,
            extensions={"timeout": httpx.Timeout(seconds).as_dict()},
        )
        try:
            return _record(self._transport.handle_request(request))
        except NotReachedError:
            raise NotReachedError(f"No sandbox at {shorten(self._origin)}", START) from None
        except httpx.HTTPError as error:
            raise OutcomeUnknownError(
                f"No response from the sandbox: {describe(error, seconds)}", "Try again."
            ) from None


def _record(response: httpx.Response) -> dict[str, Any]:
    """Return the JSON object of a response. Raises UsageError and OutcomeUnknownError."""
    try:
        document = None if "fault" in response.extensions else load_json(response.content)
    except ShapeError:
        document = None
    if not isinstance(document, dict):
        raise _unreadable()
    if response.status_code == BAD_REQUEST:
        raise UsageError(shorten(str(document.get("msg"))))
    if response.status_code != 200:
        said = shorten(str(document.get("msg")))
        raise OutcomeUnknownError(f"The sandbox responded with {response.status_code}: {said}", CHECK_VERSION)
    return document


def _whole(record: Mapping[str, Any], name: str) -> int:
    """Return a whole number of a record. Raises OutcomeUnknownError if it is missing."""
    text = str(record.get(name))
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise _unreadable()
    return int(text)


def _strings(record: Mapping[str, Any]) -> list[str]:
    found = record.get("faults")
    if not isinstance(found, list) or not all(isinstance(spec, str) for spec in found):
        raise _unreadable()
    return found


def _unreadable() -> OutcomeUnknownError:
    return OutcomeUnknownError("Cannot read the response of the sandbox", CHECK_VERSION)
