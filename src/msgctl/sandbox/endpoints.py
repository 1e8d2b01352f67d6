"""The endpoints of a served sandbox outside the interface: its inbox and its controls, below ``/sandbox``.

They take no credentials. The server refuses requests of web pages of another origin.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

from msgctl import __version__
from msgctl.errors import UsageError
from msgctl.sandbox import clicks
from msgctl.sandbox.admin import MAX_WAIT, LocalAdmin
from msgctl.sandbox.decode import JSON_TYPE, MAX_BODY
from msgctl.sandbox.protocol import (
    Refusal,
    SandboxRequest,
    SandboxResponse,
    json_response,
    masked,
    quoted,
    wrong_method,
)

PATH = "/sandbox"
NAME = "msgctl"

BAD_REQUEST = 400

Handler = Callable[[LocalAdmin, Mapping[str, Any]], Mapping[str, object]]


class Endpoint(NamedTuple):
    """One endpoint: what it does, and its parameters with their descriptions, in the query or a JSON object."""

    method: str
    path: str
    summary: str
    handle: Handler
    parameters: Mapping[str, str] = {}


def respond(admin: LocalAdmin, request: SandboxRequest) -> SandboxResponse:
    """Carry out a request below ``/sandbox``. Raises Refusal."""
    path = request.path.rstrip("/")
    found = {endpoint.method: endpoint for endpoint in ENDPOINTS if endpoint.path == path}
    if not found:
        raise Refusal("NOT_FOUND", f"nothing at the path {quoted(masked(request.path))}", status=404)
    endpoint = found.get(request.method)
    if endpoint is None:
        raise wrong_method(path, *found)
    given = _query(request) if endpoint.method == "GET" else _document(request)
    try:
        return json_response(endpoint.handle(admin, given))
    except UsageError as error:
        raise _bad(error.message + (f". {error.hint}" if error.hint else "")) from error


def _bad(why: str) -> Refusal:
    return Refusal("INVALID_PARAMETER", why, status=BAD_REQUEST)


def _query(request: SandboxRequest) -> dict[str, Any]:
    try:
        return dict(parse_qsl(request.query, keep_blank_values=True, max_num_fields=20))
    except ValueError:
        raise _bad("cannot read the query string") from None


def _document(request: SandboxRequest) -> dict[str, Any]:
    if request.body and request.media_type() != JSON_TYPE:
        raise _bad(f"Content-Type must be {JSON_TYPE}")
    if len(request.body) > MAX_BODY:
        raise _bad(f"the body must not be larger than {MAX_BODY} bytes")
    try:
        document = json.loads(request.body or b"{}")
    except (ValueError, RecursionError):
        raise _bad("the body must be JSON") from None
    if not isinstance(document, dict):
        raise _bad("the body must be a JSON object")
    return document


def _about(_admin: LocalAdmin, _given: Mapping[str, Any]) -> dict[str, object]:
    listed = [
        {"method": each.method, "path": each.path, "summary": each.summary, "parameters": dict(each.parameters)}
        for each in ENDPOINTS
    ]
    return {"sandbox": NAME, "version": __version__, "endpoints": listed}


def _inbox(admin: LocalAdmin, given: Mapping[str, Any]) -> dict[str, object]:
    found = admin.inbox(
        given.get("phone") or None,
        given.get("kind") or None,
        after=_number(given, "after", 0),
        wait=_seconds(given, "wait"),
        limit=_number(given, "limit", 0) or None,
    )
    return {"messages": found}


def _click(admin: LocalAdmin, given: Mapping[str, Any]) -> dict[str, object]:
    visitor = {field: _text(given, field) for field in clicks.VISITOR if field in given}
    name = _text(given, "name")
    made = admin.click(name, _number(given, "count", 1), _number(given, "days", 1), visitor)
    return {"name": name, "clicks": made}


def _credit(admin: LocalAdmin, given: Mapping[str, Any]) -> dict[str, object]:
    if ("credits" in given) == ("add" in given):
        raise _bad("send either credits or add")
    if "credits" in given:
        return {"status": admin.credit(_number(given, "credits", 0))}
    return {"status": admin.credit(_number(given, "add", 0), add=True)}


def _fault(admin: LocalAdmin, given: Mapping[str, Any]) -> dict[str, object]:
    specs = given.get("faults")
    if not isinstance(specs, list) or not all(isinstance(spec, str) for spec in specs):
        raise _bad("faults must be an array of strings")
    return {"faults": admin.fault(*specs)}


def _clock(admin: LocalAdmin, given: Mapping[str, Any]) -> dict[str, object]:
    return admin.clock(_text(given, "change"))


def _reset(admin: LocalAdmin, _given: Mapping[str, Any]) -> dict[str, object]:
    admin.reset()
    return {"status": "empty"}


def _overview(admin: LocalAdmin, given: Mapping[str, Any]) -> dict[str, object]:
    return admin.overview(given.get("since", ""), _seconds(given, "wait"))


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not value:
        raise _bad(f"{name} must be a string")
    return value


def _number(given: Mapping[str, Any], name: str, default: int) -> int:
    """Return a whole number of at most 15 digits, given as a JSON number or in digits. Raises Refusal."""
    value = given.get(name, default)
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 15:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > 10**15:
        raise _bad(f"{name} must be a whole number of at most 15 digits")
    return value


def _seconds(given: Mapping[str, Any], name: str) -> float:
    try:
        seconds = float(given.get(name, 0))
    except ValueError:
        seconds = -1
    if not 0 <= seconds <= MAX_WAIT:
        raise _bad(f"{name} must be a number of seconds from 0 to {MAX_WAIT:g}")
    return seconds


_VISITS = {
    "name": "name of the short URL",
    "count": "number of visits, 1 if omitted",
    "days": "number of days to spread them over, 1 if omitted",
    **dict.fromkeys(clicks.VISITOR, "of the visitor; random if omitted"),
}

ENDPOINTS = (
    Endpoint("GET", PATH, "List these endpoints.", _about),
    Endpoint(
        "GET",
        f"{PATH}/inbox",
        "Return the messages that phones received, newest last.",
        _inbox,
        {
            "phone": "only this number, in any spelling",
            "kind": "only sms, call or chatapp",
            "after": "only messages after this number",
            "limit": "only the newest",
            "wait": "seconds to wait if there are no messages",
        },
    ),
    Endpoint("POST", f"{PATH}/click", "Simulate visits to a short URL.", _click, _VISITS),
    Endpoint(
        "POST",
        f"{PATH}/credit",
        "Set the balance.",
        _credit,
        {"credits": "the new balance", "add": "or the amount to add"},
    ),
    Endpoint("GET", f"{PATH}/fault", "Return the faults.", lambda admin, _given: {"faults": admin.faults()}),
    Endpoint(
        "POST",
        f"{PATH}/fault",
        "Replace the faults.",
        _fault,
        {"faults": "array of KIND[:PROBABILITY][:PATH] or KIND:next=N[:PATH]; empty for none"},
    ),
    Endpoint("GET", f"{PATH}/clock", "Return the time of the sandbox.", lambda admin, _given: admin.clock()),
    Endpoint(
        "POST",
        f"{PATH}/clock",
        "Change the clock.",
        _clock,
        {"change": "+10m (s, m, h, d), stop, start, or a time at which it stops"},
    ),
    Endpoint("POST", f"{PATH}/reset", "Delete everything.", _reset),
    Endpoint(
        "GET",
        f"{PATH}/overview",
        "Return messages, short URLs, requests, balance, faults and clock, newest first.",
        _overview,
        {"since": "wait until the version differs from this", "wait": "maximum seconds to wait"},
    ),
)
