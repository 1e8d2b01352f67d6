"""Turn a response into the error it means, with what it says and what to do next."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from msgctl import jsontext, operations
from msgctl.config.profiles import is_loopback
from msgctl.errors import (
    RETRYABLE_STATUSES,
    MsgctlError,
    OutcomeUnknownError,
    RefusedError,
    UnreadableError,
)
from msgctl.operations import Effect
from msgctl.recipients import words
from msgctl.text import shorten

if TYPE_CHECKING:
    import httpx

    from msgctl.http.request import Request

LONGEST_QUOTE = 300
LONGEST_BODY = 4000
"""Characters of a response that an error carries."""

REFUSALS = frozenset({301, 307, 308, 400, 401, 402, 403, 404, 405, 413, 415, 422, 429})
"""Statuses of a request that was certainly not carried out."""
SERVICE_ERROR = 520
"""The status of the service's own refusals; without its error record it comes from something in between."""
SAYING = ("error", "msg", "message", "detail", "errors")
"""Fields in which a service says what is wrong."""

CHECK_BEFORE_RETRYING = {
    operations.BLOCK_PHONE: "Block the number again: that changes nothing if it is blocked already.",
    operations.URL_SHORT: "Before making it again, check if it exists: msgctl url stats NAME --since today",
    operations.VERIFY_2FA: "The code may be used up: if in doubt, send a new one.",
}
"""What to do if it is not known whether a request was carried out; all other operations send."""
CHECK_A_SEND = "Before sending again, check the delivery state, the balance, or the phone itself."
CHECK_ADDRESS_TOO = (
    "If the values are right, this machine's IP address may not be allowed: see the account's Security menu."
)
CHECK_CREDENTIALS = "Check client and key"
CHECK_CREDENTIALS_TOO = f"{CHECK_CREDENTIALS}, and that the account's Security menu allows this machine's IP address."
CHECK_URL = "Check the base URL: it ends in the version, /api/v1."

_COMPLAINTS = frozenset(
    """
    parameter parameters param params missing required invalid format length long short empty value field fields found
    credit credits balance funds number phone sms message voice retries template alias name url code
    parametro parametros falta requerido requerida invalido invalida formato vacio valor campo numero telefono mensaje
    plantilla codigo saldo creditos credito
    """.split()
)
"""Words of an error about a parameter or the balance …"""
_CREDENTIALS = frozenset(
    """
    client key ip address auth authentication authorization authorized unauthorized access forbidden denied allowed
    credentials account cliente clave llave direccion acceso autorizado denegado permitido permitida cuenta credenciales
    """.split()
)
"""… unless one of these says that it is about the caller."""


def check(request: Request) -> str:
    """Return what to check before a request is made again."""
    if request.operation.effect is Effect.READS:
        return "Try again."
    return CHECK_BEFORE_RETRYING.get(request.operation, CHECK_A_SEND)


def outcome_unknown(request: Request, why: str, **response: Any) -> OutcomeUnknownError:
    """Return the error for a request that was sent and got no usable response."""
    consequence = "" if request.operation.effect is Effect.READS else "it may have been carried out"
    return OutcomeUnknownError(f"The request was sent, but {why}", check(request), consequence=consequence, **response)


class Failure(NamedTuple):
    """A response without the requested record, and the error that it means.

    ``document`` is its JSON, None if it is not whole JSON.
    """

    request: Request
    response: httpx.Response
    document: Any
    base_url: str
    is_sandbox: bool

    @property
    def _object(self) -> Mapping[str, Any]:
        return self.document if isinstance(self.document, dict) else {}

    @property
    def _reads(self) -> bool:
        return self.request.operation.effect is Effect.READS

    @property
    def _status(self) -> int:
        return self.response.status_code

    def of_status(self) -> MsgctlError:
        """Return the error for a status other than 2xx."""
        is_own = self._status == SERVICE_ERROR and any(self._object.get(name) for name in ("error", "msg"))
        if is_own or self._status in REFUSALS:
            return self.refused()
        said = self._said()
        what = f"status {self._status}" + (f": {said}" if said else " without a message")
        if self._reads:
            return RefusedError(f"The response is {what}", self._advice(), **self._attached())
        return self.in_doubt(f"the response is {what}")

    def refused(self, what: str = "The service refused the request") -> RefusedError:
        """Return the error for a request that was certainly not carried out."""
        consequence = {Effect.SENDS: "nothing was sent", Effect.CHANGES: "nothing was changed"}
        if self.request.operation is operations.VERIFY_2FA:
            consequence = {}
        said = self._said()
        return RefusedError(
            f"{what} ({self._status}){': ' + said if said else ''}",
            self._advice(),
            consequence=consequence.get(self.request.operation.effect, ""),
            **self._attached(),
        )

    def unusable(self, reason: str) -> MsgctlError:
        """Return the error for a 2xx response without the requested record."""
        said = self._said()
        why = f"he response ({self._status}) cannot be used: {reason}" + (f'. It says: "{said}"' if said else "")
        if self._reads:
            return UnreadableError(f"T{why}", "Check the base URL; -v shows the request.", **self._attached())
        return self.in_doubt(f"t{why}")

    def in_doubt(self, why: str) -> OutcomeUnknownError:
        """Return the error for a request that may have been carried out."""
        error = outcome_unknown(self.request, why, **self._attached())
        if 300 <= self._status < 400:
            error.hint = f"{self._redirect()} {error.hint}"
        return error

    def _attached(self) -> dict[str, Any]:
        text = self.response.content.decode(errors="replace")
        return {
            "http_status": self._status,
            "record": {name: self._object[name] for name in ("error", "msg") if name in self._object},
            "body": text[:LONGEST_BODY],
            "document": self.document if len(text) <= LONGEST_BODY else None,
        }

    def _said(self) -> str:
        """Return what the service or the page says, for a message."""
        said = [_text(self._object[name]) for name in SAYING if self._object.get(name)]
        if not said and self.document is not None:
            said = [_text(self.document)]
        elif not said:
            text = self.response.content[:LONGEST_BODY].decode(errors="replace")
            said = [" ".join(re.sub("(?s)<(script|style)\\b.*?</\\1>|<[^>]*>", " ", text).split())]
        return shorten(": ".join(said), LONGEST_QUOTE)

    def _advice(self) -> str | None:
        if 300 <= self._status < 400:
            return self._redirect()
        if self._status in (401, 403):
            return f"{CHECK_CREDENTIALS}." if self._is_here() else CHECK_CREDENTIALS_TOO
        if self._status == SERVICE_ERROR or self.response.is_success:
            return CHECK_ADDRESS_TOO if self._status == SERVICE_ERROR and self._could_be_the_address() else None
        if self._status in (404, 405) and not self._object.get("error"):
            return CHECK_URL
        if self._status in RETRYABLE_STATUSES or self._status >= 500:
            return "Try again a little later."
        return "Check the values and the base URL."

    def _is_here(self) -> bool:
        """Return whether the service runs on this machine."""
        return self.is_sandbox or is_loopback(urlsplit(self.base_url).hostname or "")

    def _could_be_the_address(self) -> bool:
        """Return whether the service may refuse this machine, and not a parameter."""
        found = words(_text(self._object.get("error")))
        return not self._is_here() and (_COMPLAINTS.isdisjoint(found) or not _CREDENTIALS.isdisjoint(found))

    def _redirect(self) -> str:
        """Return the advice for a redirect. It shows only scheme and host: the rest may repeat the key."""
        from httpx import URL, InvalidURL

        try:
            url = URL(self.base_url).join(self.response.headers.get("location", ""))
            to = f"{url.scheme}://{url.netloc.decode('ascii')}"
        except InvalidURL:
            to = "a malformed URL"
        return (
            "Redirects are not followed, because they would send the key elsewhere; "
            f"this one points to {shorten(to)}. Check the base URL."
        )


def _text(value: Any) -> str:
    """Return the beginning of a JSON value as text: a string as it is, anything else as JSON."""
    return value if isinstance(value, str) else "".join(islice(jsontext.pieces(value), LONGEST_QUOTE))
