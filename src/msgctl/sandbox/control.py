"""What a served sandbox answers beside the interface: its inbox, clicks, credits and reset, below ``/sandbox``.

================================  =================================================================================
GET  /sandbox                     that it is one, and of which version
GET  /sandbox/inbox               what the phones received; in the query ``phone``, ``kind``, ``after``, ``limit``
POST /sandbox/click               visits of a short URL: a JSON object with ``name`` and what `tools.click` takes
POST /sandbox/credit              a JSON object with ``credits`` (set) or ``add``
POST /sandbox/reset               everything is forgotten
================================  =================================================================================

They ask for no credentials. A web page cannot use the POST ones from a browser: they need the content type JSON, for
which a browser first asks leave, and gets none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import parse_qsl

from msgctl import __version__
from msgctl.errors import UsageError
from msgctl.sandbox import tools
from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.sources import JSON_TYPE, MOST_BODY
from msgctl.sandbox.state import remove
from msgctl.sandbox.wire import Call, Refusal, Reply, masked, quoted, reply

PATH = "/sandbox"
NAME = "msgctl"

BAD_REQUEST = 400

_CLICK_TEXTS = frozenset(
    {"country", "region", "city", "device", "brand", "model", "operating_system", "browser", "lang"}
)


def answer(emulator: Emulator, call: Call) -> Reply:
    """Carry out a call below ``/sandbox``. Raises Refusal."""
    found = _ROUTES.get(call.path.rstrip("/"))
    if found is None:
        raise Refusal("NOT_FOUND", f"there is nothing at the path {quoted(masked(call.path))}", status=404)
    method, handle = found
    if call.method != method:
        raise Refusal(
            "METHOD_NOT_ALLOWED", f"{call.path} takes the method {method}", status=405, headers={"allow": method}
        )
    try:
        return reply(handle(emulator, _query(call) if method == "GET" else _document(call)))
    except UsageError as error:
        raise _bad(error.message) from error


def _bad(why: str) -> Refusal:
    return Refusal("INVALID_PARAMETER", why, status=BAD_REQUEST)


def _query(call: Call) -> dict[str, Any]:
    try:
        return dict(parse_qsl(call.query, keep_blank_values=True, max_num_fields=20))
    except ValueError:
        raise _bad("the query string cannot be read") from None


def _document(call: Call) -> dict[str, Any]:
    if call.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON_TYPE:
        raise _bad(f"Content-Type must be {JSON_TYPE}")
    if len(call.body) > MOST_BODY:
        raise _bad(f"the body must not be larger than {MOST_BODY} bytes")
    try:
        document = json.loads(call.body or b"{}")
    except (ValueError, RecursionError):
        raise _bad("the body must be JSON") from None
    if not isinstance(document, dict):
        raise _bad("the body must be a JSON object")
    return document


def _about(_emulator: Emulator, _given: Mapping[str, Any]) -> dict[str, object]:
    return {"sandbox": NAME, "version": __version__}


def _inbox(emulator: Emulator, given: Mapping[str, Any]) -> dict[str, object]:
    messages = tools.inbox(
        emulator.state,
        emulator.clock,
        given.get("phone"),
        given.get("kind"),
        limit=_number(given, "limit", 0) or None,
        after=_number(given, "after", 0),
    )
    return {"messages": messages}


def _click(emulator: Emulator, given: Mapping[str, Any]) -> dict[str, object]:
    texts = {name: given[name] for name in _CLICK_TEXTS & given.keys()}
    for name, text in {"name": given.get("name"), **texts}.items():
        if not isinstance(text, str) or not text:
            raise _bad(f"{name} must be a string")
    made = tools.click(emulator, given["name"], _number(given, "count", 1), days=_number(given, "days", 1), **texts)
    return {"name": given["name"], "clicks": made}


def _credit(emulator: Emulator, given: Mapping[str, Any]) -> dict[str, object]:
    if ("credits" in given) == ("add" in given):
        raise _bad("either credits or add must be sent")
    if "credits" in given:
        return {"status": tools.set_credit(emulator.state, _number(given, "credits", 0))}
    return {"status": tools.add_credit(emulator.state, _number(given, "add", 0))}


def _reset(emulator: Emulator, _given: Mapping[str, Any]) -> dict[str, object]:
    remove(emulator.state.path)
    return {"status": "empty"}


def _number(given: Mapping[str, Any], name: str, default: int) -> int:
    """A whole number of at most 15 digits, as JSON has it or in digits. Raises Refusal."""
    value = given.get(name, default)
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 15:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > 10**15:
        raise _bad(f"{name} must be a whole number of at most 15 digits")
    return value


_ROUTES: Mapping[str, tuple[str, Callable[[Emulator, Mapping[str, Any]], dict[str, object]]]] = {
    PATH: ("GET", _about),
    f"{PATH}/inbox": ("GET", _inbox),
    f"{PATH}/click": ("POST", _click),
    f"{PATH}/credit": ("POST", _credit),
    f"{PATH}/reset": ("POST", _reset),
}
