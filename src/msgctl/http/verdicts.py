"""What a reply means for the request: its answer, or the error that says what is known and what to do next."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urljoin, urlsplit

from msgctl import operations
from msgctl.errors import PASSING_STATUSES, MsgctlError, OutcomeUnknownError, RefusedError, UnreadableError
from msgctl.http import answers
from msgctl.http.answers import Answer, ShapeError
from msgctl.http.exchange import Reply
from msgctl.http.request import Request
from msgctl.operations import Effect
from msgctl.text import shorten

ALLOW_ADDRESS = (
    "If nothing is wrong with the values: calls from an address that is not allowed get this answer, too. "
    "Allow this machine's public address in the security menu of the account."
)
CHECK_BEFORE_REPEATING = {
    operations.BLOCK_PHONE: "Block the number again: that changes nothing where it is blocked already.",
    operations.URL_SHORT: "Before making it again, look whether it is there: msgctl url stats NAME --since today",
    operations.VERIFY_2FA: "The code may be used up: where in doubt, send a new one.",
}
"""What to do where it is not known whether a request was carried out; every other one sends."""
CHECK_A_SEND = "Before sending again, check the delivery state, the balance, or the phone itself."
CHECK_CREDENTIALS = (
    "Check client and key, and whether this machine's address is allowed in the account's security menu."
)


class Judge:
    """Reads the replies of the service at a base URL; ``is_local`` where that is the sandbox in this process."""

    def __init__(self, base_url: str, *, is_local: bool) -> None:
        self._base_url = base_url
        self._is_local = is_local

    def answer(self, request: Request, reply: Reply) -> Answer:
        """The answer that was asked for. Raises RefusedError, UnreadableError and OutcomeUnknownError."""
        if reply.status != 200:
            raise self._refused(request, reply)
        try:
            return answers.read(request.operation, reply.whole_body())
        except ShapeError as error:
            raise _unreadable(request, reply, error) from None

    def accept(self, request: Request, reply: Reply) -> None:
        """Accept any whole reply with a status of success. Raises as `answer` does."""
        if not reply.is_success:
            raise self._refused(request, reply)
        try:
            reply.whole_body()
        except ShapeError as error:
            raise _unreadable(request, reply, error) from None

    def _refused(self, request: Request, reply: Reply) -> RefusedError:
        record = _error_record(reply.body)
        said = ": ".join(_said(value) for value in (record or {}).values() if value)
        if reply.status == 520 and record is not None:
            message = f"the service refused the request ({reply.status}){': ' + said if said else ''}"
            consequence = {Effect.SENDS: "; nothing was sent", Effect.CHANGES: "; nothing was changed"}
            return RefusedError(
                message + consequence.get(request.operation.effect, ""),
                None if self._is_local else ALLOW_ADDRESS,
                http_status=reply.status,
                record=record,
            )
        return RefusedError(
            f"the answer is {_described(reply, said)}{_consequence(request.operation.effect, reply.status)}",
            self._advice(request, reply),
            http_status=reply.status,
            record=record,
            certain=_is_certain(request.operation.effect, reply.status),
        )

    def _advice(self, request: Request, reply: Reply) -> str | None:
        if 300 <= reply.status < 400:
            location = reply.header("location")
            where = _origin(self._base_url, location) if location else "nowhere"
            return (
                f"Redirects are not followed, since the key would travel along; it points to {shorten(where)}. "
                "Check the base URL, and before sending again the delivery state or the balance."
            )
        if reply.status in (404, 405):
            return "Check the base URL: it ends in the version segment, /api/v1."
        if reply.status == 520:
            return ALLOW_ADDRESS
        if reply.status in (401, 403):
            return CHECK_CREDENTIALS
        if reply.status == 429 or (
            reply.status in PASSING_STATUSES and request.operation.effect is Effect.READS
        ):  # RFC 6585, 4
            return "Try again a little later."
        return check(request) if reply.status >= 500 else "Check the values and the base URL."


def _error_record(body: bytes) -> dict[str, Any] | None:
    """``error`` and ``msg`` of the service's error record; None where the body is no record."""
    try:
        document = answers.load(body)
    except ShapeError:
        return None
    if not isinstance(document, dict) or (document and not document.keys() & {"error", "msg"}):
        return None
    return {name: document[name] for name in ("error", "msg") if name in document}


def _unreadable(request: Request, reply: Reply, error: ShapeError) -> MsgctlError:
    """The error for an answer that says success and cannot be read."""
    if request.operation.effect is not Effect.READS:
        return outcome_unknown(request, f"the answer cannot be read: {error}", reply.status)
    return UnreadableError(
        f"the answer to {request.operation.name} cannot be read: {error}",
        "Check the base URL; -v shows what was asked for.",
        http_status=reply.status,
    )


def _said(value: Any) -> str:
    """A member of an error record in a message; the interface knows strings, but who can tell."""
    return shorten(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _origin(base_url: str, location: str) -> str:
    """Scheme, host and port of where a redirect leads: the rest may repeat the request, and with it the key."""
    try:
        parts = urlsplit(urljoin(base_url, location))
        port = parts.port
    except ValueError:
        return "a malformed URL"
    if not parts.hostname:
        return "a malformed URL"
    return f"{parts.scheme}://{parts.hostname}" + (f":{port}" if port else "")


def _described(reply: Reply, said: str) -> str:
    if said:
        return f"status {reply.status}: {said}"
    if reply.fault:
        return f"status {reply.status}, and {reply.fault}"
    if not reply.body.strip():
        return f"status {reply.status} with an empty body"
    return f"status {reply.status} with {_kind_of(reply.body)} instead of the service's record"


def _kind_of(body: bytes) -> str:
    """What a body is that is no record, in words."""
    start = body[:2000].lower()
    if b"<html" in start or b"<!doctype" in start:
        return "an HTML page, perhaps of a proxy,"
    try:
        answers.load(body)
    except ShapeError:
        return "a text"
    return "other JSON"


def _is_certain(effect: Effect, status: int) -> bool:
    """Whether a request with such an answer, which is not the service's own, was surely not carried out.

    A 4xx lays the fault on the request, and 301, 307 and 308 ask for it at another place (RFC 9110, 15.4 and 15.5). A
    302 or 303 may be the answer to one that was carried out, and the others may come from a proxy that has passed it
    on.
    """
    return effect is Effect.READS or status in (301, 307, 308) or 400 <= status < 500


def _consequence(effect: Effect, status: int) -> str:
    """What an answer other than the service's own means for the request, as the end of a message."""
    if effect is Effect.READS:
        return ""
    if _is_certain(effect, status):
        return "; nothing was sent" if effect is Effect.SENDS else "; nothing was changed"
    return "; the request may have been carried out all the same"


def check(request: Request) -> str:
    """What to look at before a request is made again."""
    if request.operation.effect is Effect.READS:
        return "Try again."
    return CHECK_BEFORE_REPEATING.get(request.operation, CHECK_A_SEND)


def outcome_unknown(request: Request, why: str, status: int | None = None) -> OutcomeUnknownError:
    if request.operation.effect is Effect.READS:
        return OutcomeUnknownError(
            f"{request.operation.name} was asked for, and {why}", "Try again.", http_status=status
        )
    return OutcomeUnknownError(
        f"the request was sent, and {why}: it may have been carried out", check(request), http_status=status
    )
