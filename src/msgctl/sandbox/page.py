"""The inbox page. It describes each request; for a refused request, it adds the rule of the API that was broken."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib.resources import files
from urllib.parse import unquote_plus

from msgctl.operations import OPERATIONS, Place
from msgctl.sandbox.protocol import BASE_PATH, WHERE, JsonObject, Reason, SandboxRequest, SandboxResponse, without_keys
from msgctl.text import timestamp

MAX_SHOWN = 2000
"""Maximum characters of a request's path and parameters on the page."""

_RULES = {
    "UNAUTHORIZED": "Every request carries the account's client and key as parameters, from an allowed address.",
    "NOT_FOUND": "The path, the message id or the short URL must exist.",
    "NOT_ENOUGH_CREDITS": "The balance must cover all numbers of a dispatch, or nothing is sent.",
    "INVALID_NAME": "In the sandbox, names and aliases of short URLs are unique.",
    "INVALID_CODE": "A code is for one phone and app name, can be used once, and is void after five wrong guesses.",
    "EXPIRED_CODE": "A code is valid for minutes_to_expire minutes.",
    "NOT_PREMIUM": "region, city, brand, model, browser and lang are for premium URLs.",
}


@cache
def response() -> SandboxResponse:
    """Return the inbox page. Its policy allows only its own script and style, by their hashes, and its own server."""
    text = files("msgctl.sandbox").joinpath("page.html").read_text(encoding="utf-8")

    def source(element: str) -> str:
        (content,) = re.findall(f"<{element}>(.*?)</{element}>", text, re.DOTALL)
        return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"

    policy = (
        f"default-src 'none'; script-src {source('script')}; style-src {source('style')}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )
    headers = {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": policy,
        "referrer-policy": "no-referrer",
        "cache-control": "no-store",
    }
    return SandboxResponse(200, text.encode(), headers)


def described_request(number: int, at: float, request: SandboxRequest, response: SandboxResponse) -> JsonObject:
    """Return a request as a JSON object, without the values of its parameters ``key``."""
    parts = [_parameters(request.query), _parameters(request.body.decode("utf-8", "replace"))]
    entry: JsonObject = {
        "number": number,
        "time": timestamp(at),
        "method": request.method,
        "path": without_keys(request.path)[:MAX_SHOWN],
        "parameters": "&".join(filter(None, parts))[:MAX_SHOWN],
        "status": response.status,
        "faults": list(response.faults),
    }
    if response.refusal is not None:
        entry |= {"error": response.refusal.error, "msg": without_keys(response.refusal.msg)}
        if not response.faults:
            entry["rule"] = _rule(request.path, response.refusal)
    return entry


def _parameters(text: str) -> str:
    """Return a query or a body without keys; a form is decoded."""
    text = without_keys(text)
    if text.lstrip()[:1] in ("{", "["):
        return text
    return "&".join(unquote_plus(pair) for pair in text.split("&"))


def _rule(path: str, refusal: Reason) -> str:
    """Return the rule of the API that a refused request broke."""
    operation = next((known for known in OPERATIONS if BASE_PATH + known.path == path), None)
    if operation is None:
        return f"The operations are under {BASE_PATH}: " + ", ".join(known.path for known in OPERATIONS)
    if refusal.error == "METHOD_NOT_ALLOWED":
        return f"{operation.path} is a {operation.method} operation."
    if refusal.error in _RULES:
        return _RULES[refusal.error]
    name = refusal.parameter
    has_audio = any(field.name == "audio-code" for field in operation.fields)
    if has_audio and (name == "audio-code" or (refusal.error == "MISSING_PARAMETER" and name in ("message", "voice"))):
        return "message and voice are required without audio-code, and must not be combined with it."
    field = next((field for field in operation.fields if field.name == name), None)
    if field is None:
        body = ", and a JSON body" if any(field.place is Place.JSON for field in operation.fields) else ""
        return f"{operation.method} {operation.path} takes client and key {WHERE[operation.credentials]}{body}."
    parts = [
        field.kind.value,
        "required" if field.required else "optional",
        WHERE[field.place],
        "several separated by commas" if field.several else "",
        f"one of {', '.join(field.choices)}" if field.choices else "",
        f"at least {field.least}" if field.least else "",
        f"at most {field.most}" if field.most is not None else "",
    ]
    return f"{name}: {', '.join(filter(None, parts))}."
