"""The controls of a sandbox: requests to its own endpoints, in this process or on a server."""

from __future__ import annotations

import json
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from msgctl import values
from msgctl.cli.shell.context import Context
from msgctl.config import profiles, urls
from msgctl.errors import ConfigurationError, NoProfileError, NotReachedError, OutcomeUnknownError, UsageError
from msgctl.text import shorten

if TYPE_CHECKING:
    from msgctl.http.transport import RawResponse

MAX_CONTROL_RESPONSE = 256 * 1024 * 1024
"""Maximum bytes of a response. An inbox can be large. This limit is safe, because the first response must come from a
sandbox.
"""
MAX_REASON = 500
"""Characters of a reason that are shown."""
CHECK_VERSION = "Check that the sandbox has the same version as this msgctl."
START = "Start one with: msgctl sandbox serve"


class Controls:
    """A client of the sandbox's own endpoints, which need no credentials, so none are sent.

    Another server may be at the address, so the first request checks that it is a sandbox. Responses are limited and
    checked like the service's responses.
    """

    def __init__(self, context: Context, base_url: str | None) -> None:
        """Reach a sandbox. Raises ConfigurationError if another server responds, and NotReachedError."""
        import httpx

        from msgctl.http.transport import Transport, ascii_url
        from msgctl.sandbox.endpoints import NAME
        from msgctl.sandbox.transport import SandboxTransport

        url = served_at(context, base_url)
        transport: httpx.BaseTransport
        self._place = "behind -p sandbox"
        if url is None:
            url, transport = profiles.SANDBOX_URL, SandboxTransport(context.emulator, context.sleep)
        else:
            transport = Transport(url)
            self._place = f"at {shorten(urls.without_secrets(urljoin(url, '/')))}"
        self._note = context.note
        self._transport = context.stack.enter_context(closing(transport))
        self._origin = ascii_url(urljoin(url, "/")).rstrip("/")
        self._seconds = context.options.timeout
        try:
            about = self.ask("GET", "")
        except (UsageError, OutcomeUnknownError):
            about = {}
        if about.get("sandbox") != NAME:
            raise ConfigurationError(f"No sandbox at {shorten(self._origin)}", START)

    def ask(self, method: str, path: str, **fields: Any) -> dict[str, Any]:
        """Return the response of the endpoint at a path under ``/sandbox``; fields that are None are not sent.

        Raises UsageError if a field is wrong.
        """
        import httpx

        from msgctl.http.transport import NoResponseError, exchange
        from msgctl.sandbox.protocol import JSON_TYPE, OWN_PATH

        fields = {name: value for name, value in fields.items() if value is not None}
        for name, value in fields.items():
            for text in value if isinstance(value, list) else [value]:
                values.prose(str(text), name)
        content: dict[str, Any] = {}
        if method == "POST":
            content["json"] = fields
        elif fields:
            content["params"] = fields
        request = httpx.Request(method, self._origin + OWN_PATH + path, headers={"Accept": JSON_TYPE}, **content)
        try:
            response = exchange(self._transport, request, self._seconds + fields.get("wait", 0), MAX_CONTROL_RESPONSE)
            fault = response.fault
        except NotReachedError:
            raise NotReachedError(f"No sandbox at {shorten(self._origin)}", START) from None
        except NoResponseError as error:
            fault = str(error)
        if fault:
            raise OutcomeUnknownError(f"No response from the sandbox: {fault}", "Try again.")
        document = _document(response)
        if method == "POST":
            self._note(f"Changed the sandbox {self._place}")
        return document


def served_at(context: Context, base_url: str | None) -> str | None:
    """Return --base-url, or the base URL of the profile or the environment in use; None for this process.

    The default profile is ignored, because it may belong to the real service. MSGCTL_BASE_URL needs no account, because
    no key is sent.
    """
    named = context.options.profile or context.environ.get("MSGCTL_PROFILE")
    source, url = "--base-url", base_url
    if base_url is None:
        source, url = "MSGCTL_BASE_URL", context.environ.get("MSGCTL_BASE_URL") or None
        if named or url:
            with suppress(NoProfileError):
                return None if context.profile.is_sandbox else context.profile.base_url
    if url is not None and (fault := urls.base_url_fault(url, allow_http=True)):
        raise UsageError(f"{source} {fault}: {values.quote(urls.without_secrets(url))}")
    return url


def _document(response: RawResponse) -> dict[str, Any]:
    """Return the JSON object of a response. Raises UsageError and OutcomeUnknownError."""
    from msgctl.sandbox.endpoints import BAD_REQUEST

    try:
        document = json.loads(response.body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise OutcomeUnknownError("Cannot read the response of the sandbox", CHECK_VERSION)
    if response.status != 200:
        reason = shorten(str(document.get("msg")), MAX_REASON)
        if response.status == BAD_REQUEST:
            raise UsageError(reason)
        raise OutcomeUnknownError(f"The sandbox responded with {response.status}: {reason}", CHECK_VERSION)
    return document
