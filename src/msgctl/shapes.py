"""`msgctl sandbox shapes`: list the recorded responses that msgctl does not understand."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx

from msgctl import operations as ops
from msgctl import recipients
from msgctl.delivery import contradicts_success
from msgctl.errors import OutcomeUnknownError, RefusedError, UnreadableError
from msgctl.http.record import RESULTS, levels
from msgctl.http.request import Request
from msgctl.http.response import MAX_BODY, Response, credits_left, parse
from msgctl.operations import Operation
from msgctl.sandbox.recording import Exchange, exchanges, recorded_lines
from msgctl.values import quote

_OPERATIONS = {(operation.method, operation.path): operation for operation in ops.OPERATIONS}
_BASE_URL = "https://recorded.invalid/api/v1"


def not_understood(name: str) -> tuple[list[dict[str, Any]], int]:
    """Return the responses in a file that msgctl does not understand, and the number of all responses.

    Raises ConfigurationError if the file is not a recording.
    """
    lines = recorded_lines(Path(name))
    return list(_listed(exchanges(lines, quote(name)))), len(lines)


def _listed(recorded: Iterable[Exchange]) -> Iterator[dict[str, Any]]:
    for each in recorded:
        operation = _OPERATIONS.get((each.request["method"], each.request["path"]))
        if operation is not None and 200 <= each.response.status < 300 and (reason := _fault(operation, each)):
            yield {
                "line": each.line,
                "operation": operation.name,
                "http_status": each.response.status,
                "reason": reason,
                "body": each.response.body.decode(errors="replace")[:MAX_BODY],
            }


def _fault(operation: Operation, exchange: Exchange) -> str:
    """Return why the response to a request that succeeded is not understood; empty if it is."""
    request = _request(operation, exchange)
    response = httpx.Response(
        exchange.response.status, headers=dict(exchange.response.headers), content=exchange.response.body
    )
    try:
        return _gap(request, parse(request, response, _BASE_URL))
    except (UnreadableError, OutcomeUnknownError) as error:
        return error.what
    except RefusedError as error:
        is_unclear = operation is ops.VERIFY_2FA and not any(map(_is_failure, levels(error.document)))
        return "it is not a known success, so the code counts as wrong" if is_unclear else ""


def _is_failure(level: Mapping[str, Any]) -> bool:
    """Return whether the response to a code reports a failure, and not a success in unknown words."""
    found = [level[name] for name in (*RESULTS, "msg", "message") if name in level]
    return recipients.has_error(level) or any(
        recipients.is_zero(each) or (isinstance(each, str) and contradicts_success(each)) for each in found
    )


def _request(operation: Operation, exchange: Exchange) -> Request:
    """Return the request of an exchange."""
    recorded = exchange.request
    query, form = (tuple((str(name), str(value)) for name, value in recorded[place]) for place in ("query", "form"))
    body = None if recorded["json"] is None else json.dumps(recorded["json"]).encode()
    return Request(operation, query, form, body)


def _gap(request: Request, response: Response) -> str:
    """Return the reason why a readable response is incomplete; empty if it is complete."""
    operation = request.operation
    if operation is ops.BALANCE:
        return "" if credits_left(response) is not None else "the credits left are not a number"
    if operation is ops.MESSAGES_STATE:
        messages = response.document["data"]
        has_state = all(message.get("state") is not None for message in messages)
        return "" if has_state else "it has no delivery state"
    if operation.effect is not ops.Effect.SENDS:
        return ""
    found = recipients.outcomes(operation, response.document, request.phones)
    unknown = [each.phone for each in found if each.outcome == recipients.UNKNOWN]
    who = ", ".join(phone or "the recipient" for phone in unknown[:3]) + (", …" if len(unknown) > 3 else "")
    return f"it does not show whether {who} was accepted" if unknown else ""
