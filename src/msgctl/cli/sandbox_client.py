"""The sandbox's own endpoints (`msgctl.sandbox.endpoints`), in this process or served elsewhere.

Another server may be there instead, so responses are bounded and checked like those of the service.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_args, get_origin
from urllib.parse import urlencode, urlsplit

import httpx

from msgctl.errors import ConfigurationError, NotReachedError, OutcomeUnknownError, UsageError
from msgctl.http.request import JSON_TYPE
from msgctl.http.transport import describe
from msgctl.sandbox.endpoints import BAD_REQUEST, ENDPOINTS, NAME, OWN_PATH
from msgctl.text import shorten

CHECK_VERSION = "Check that the sandbox has the same version as this msgctl."
START = "Start one with: msgctl sandbox serve"


def fetch(
    transport: httpx.BaseTransport,
    method: str,
    url: str,
    headers: Mapping[str, str],
    content: bytes,
    seconds: float,
    whose: str,
) -> httpx.Response:
    """Make one request and return its whole response, whatever its status. Raises MsgctlError."""
    extensions: dict[str, Any] = {"timeout": httpx.Timeout(seconds).as_dict()}
    try:
        request = httpx.Request(method, url, headers=headers, content=content, extensions=extensions)
        response = transport.handle_request(request)
        fault = response.extensions.get("fault")
    except httpx.InvalidURL as error:
        raise UsageError(f"Cannot reach {whose}: {error}") from None
    except httpx.HTTPError as error:
        fault = describe(error, seconds)
    if fault:
        raise OutcomeUnknownError(f"No response from {whose}: {fault}", "Try again.")
    return response


class SandboxClient:
    """The sandbox at a base URL. It takes no credentials, and none are sent.

    ``seconds`` limits each request. The first request checks that there is a sandbox: nothing else is sent to any other
    server. Raises ConfigurationError if it is not a sandbox, and NotReachedError.
    """

    def __init__(self, base_url: str, transport: httpx.BaseTransport, seconds: float) -> None:
        parts = urlsplit(base_url)
        self._origin = f"{parts.scheme}://{parts.netloc}"
        self._seconds = seconds
        self._transport = transport
        try:
            about = self.ask("GET", "")
        except (UsageError, OutcomeUnknownError):
            about = {}
        if about.get("sandbox") != NAME:
            self.close()
            raise ConfigurationError(f"No sandbox at {shorten(self._origin)}", START)

    def close(self) -> None:
        self._transport.close()

    def ask(self, method: str, path: str, **fields: Any) -> dict[str, Any]:
        """Return what the endpoint at a path below ``/sandbox`` returns; fields that are None are not sent.

        Raises UsageError if a field is wrong.
        """
        fields = {name: value for name, value in fields.items() if value is not None}
        for name, value in fields.items():
            if value == "":
                raise UsageError(f"{name} must not be empty")
        seconds = self._seconds + fields.get("wait", 0)
        url, headers, content = self._origin + OWN_PATH + path, {"Accept": JSON_TYPE}, b""
        if method == "POST":
            headers["Content-Type"], content = JSON_TYPE, json.dumps(fields).encode()
        elif fields:
            url += "?" + urlencode(fields, errors="replace")
        try:
            response = fetch(self._transport, method, url, headers, content, seconds, "the sandbox")
        except NotReachedError:
            raise NotReachedError(f"No sandbox at {shorten(self._origin)}", START) from None
        (endpoint,) = (each for each in ENDPOINTS if (each.method, each.path) == (method, OWN_PATH + path))
        return _document(response, endpoint.returns)


def _document(response: httpx.Response, returns: Mapping[str, Any]) -> dict[str, Any]:
    """Return the JSON object of a response. Raises UsageError and OutcomeUnknownError."""
    try:
        document = json.loads(response.content)
    except (ValueError, RecursionError):
        document = None
    if isinstance(document, dict) and response.status_code != 200:
        said = shorten(str(document.get("msg")))
        if response.status_code == BAD_REQUEST:
            raise UsageError(said)
        raise OutcomeUnknownError(f"The sandbox responded with {response.status_code}: {said}", CHECK_VERSION)
    if not isinstance(document, dict) or not all(_is_a(document.get(name), kind) for name, kind in returns.items()):
        raise OutcomeUnknownError("Cannot read the response of the sandbox", CHECK_VERSION)
    return document


def _is_a(value: object, kind: Any) -> bool:
    """Tell whether a value is of a type such as ``str`` or ``list[str]``."""
    if get_origin(kind) is list:
        (element,) = get_args(kind)
        return isinstance(value, list) and all(isinstance(each, get_origin(element) or element) for each in value)
    return isinstance(value, kind)
