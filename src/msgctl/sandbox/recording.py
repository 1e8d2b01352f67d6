"""Record the responses of the real service, and replay them instead of the emulator's responses.

A recording has one JSON object per line: the request without client and key, and the response.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TextIO
from urllib.parse import parse_qsl, quote_plus, unquote

import httpx

from msgctl.errors import ConfigurationError, MsgctlError, NotReachedError
from msgctl.sandbox.protocol import (
    BASE_PATH,
    FORM_TYPE,
    JSON_TYPE,
    Refusal,
    SandboxRequest,
    SandboxResponse,
    json_response,
    masked,
)
from msgctl.storage import files

MAX_RECORDING = 2**26
"""Maximum bytes of a recording that is replayed or examined."""

CREDENTIALS = ("client", "key")
MAX_KEYS = 8
"""Maximum keys in a request; a real request has one key, perhaps in several places and spellings."""

Redact = Callable[[bytes, str], bytes]
"""Removes a key from a body."""


def recorder(
    forward: Callable[[SandboxRequest], httpx.Response], redact: Redact, file: TextIO
) -> Callable[[SandboxRequest, str], SandboxResponse]:
    """Return a function that forwards requests to the service, and adds each one with its response to a file.

    All keys of a request are redacted in the file. The returned response is unchanged.
    """

    def respond(request: SandboxRequest, _address: str) -> SandboxResponse:
        if not request.path.startswith(BASE_PATH + "/"):
            return Refusal("NOT_FOUND", f"the service is below {BASE_PATH}", status=404).response()
        if _has_dot_segments(request.path):
            return Refusal("INVALID_PATH", "the path must not contain . or .. as a segment", status=400).response()
        described, keys = _described(request, redact)
        try:
            response = forward(request)
        except MsgctlError as error:
            status = 502 if isinstance(error, NotReachedError) else 504
            return json_response({"error": error.kind, "msg": error.message}, status)
        content_type, content = response.headers.get("content-type", ""), response.content
        for key in keys:
            content = redact(content, key)
        exchange = {
            "status": response.status_code,
            "content_type": _without(keys, content_type, redact),
            "body": content.decode("utf-8", "surrogateescape"),
        }
        file.write(json.dumps({**described, **exchange}) + "\n")
        file.flush()
        return _response(response.status_code, response.content, content_type)

    return respond


def with_key(request: SandboxRequest, own: str, key: str) -> SandboxRequest:
    """Return a request to the recorder with the account's key in place of the recorder's own key.

    Raises Refusal if the request has another key: its sender must not use the account.
    """
    parameter = re.compile(rf"((?:^|&)key=){own}(?=&|$)")
    by = rf"\g<1>{quote_plus(key)}"
    query, times = parameter.subn(by, request.query)
    body = request.body
    if request.media_type() == FORM_TYPE:
        text, more = parameter.subn(by, body.decode("latin-1"))
        body, times = text.encode("latin-1"), times + more
    if not times:
        raise Refusal("UNAUTHORIZED", "key must be the one that msgctl sandbox record printed")
    return request._replace(query=query, body=body)


def recorded_lines(path: Path) -> list[str]:
    """Return the lines of a recording. Raises ConfigurationError."""
    return files.read_limited(path, MAX_RECORDING).decode(errors="replace").splitlines()


def replayer(lines: Iterable[str], name: str, redact: Redact) -> Callable[[SandboxRequest], SandboxResponse]:
    """Return a function that replays a recording. Raises ConfigurationError if ``lines`` are not a recording.

    A request that was recorded several times gets its responses in order, and then the last one again. A request that
    was not recorded is refused.
    """
    responses: dict[str, list[SandboxResponse]] = {}
    for each in exchanges(lines, name):
        responses.setdefault(_identity(each.request), []).append(each.response)

    def respond(request: SandboxRequest) -> SandboxResponse:
        asked, _ = _described(request, redact)
        found = responses.get(_identity(asked))
        if not found:
            shown = json.dumps(asked["json"] or dict(asked["query"] + asked["form"]), ensure_ascii=False)
            why = f"{asked['method']} {asked['path']} with {shown[:300]} is not in the record"
            return Refusal("NOT_RECORDED", why).response()
        return found.pop(0) if len(found) > 1 else found[0]

    return respond


class Exchange(NamedTuple):
    """One line of a recording: the request as `_described` returns it, and the response."""

    line: int
    request: Mapping[str, Any]
    response: SandboxResponse


def exchanges(lines: Iterable[str], name: str) -> Iterator[Exchange]:
    """Yield the exchanges of a recording. Raises ConfigurationError for a line that is not an exchange."""
    for number, line in enumerate(lines, 1):
        try:
            document = json.loads(line)
            body = document["body"].encode("utf-8", "surrogateescape")
            response = _response(int(document["status"]), body, str(document["content_type"]))
            _identity(document)  # reads all parts of the request
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            raise ConfigurationError(f"{name}, line {number}, is not a recorded exchange") from None
        yield Exchange(number, document, response)


def _response(status: int, body: bytes, content_type: str) -> SandboxResponse:
    return SandboxResponse(status, body, {"content-type": content_type} if content_type else {})


def _described(request: SandboxRequest, redact: Redact) -> tuple[dict[str, Any], set[str]]:
    """Return a request as it is recorded, and the keys that it contains. Raises Refusal if it cannot be recorded.

    The path is without the base path. Client and key are left out, in any case and at any depth, and the keys are
    removed from all other strings.
    """
    keys: set[str] = set()
    media_type, body = request.media_type(), request.body.decode("utf-8", "replace")
    document = _loaded(body, keys) if media_type == JSON_TYPE else None
    form = _parameters(body, keys) if not isinstance(document, (dict, list)) else []
    _parameters(re.sub("[/;?]", "&", request.path), keys)
    places = {
        "path": masked(request.path.removeprefix(BASE_PATH)),
        "query": _parameters(request.query, keys),
        "form": form if media_type == FORM_TYPE else [],
        "json": document,
    }
    if len(keys) > MAX_KEYS:
        raise Refusal("TOO_MANY_KEYS", f"a request must not have more than {MAX_KEYS} keys", status=400)
    try:
        return {"method": request.method, **_without(keys, places, redact)}, keys
    except RecursionError:
        raise Refusal("MALFORMED", "the JSON is nested too deeply", status=400) from None


def _parameters(text: str, keys: set[str]) -> list[tuple[str, str]]:
    """Return the parameters of a query or form without client and key, and add each key to ``keys``."""
    pairs = parse_qsl(text, keep_blank_values=True)
    keys |= {value for name, value in pairs if name.lower() == "key" and value}
    return [pair for pair in pairs if pair[0].lower() not in CREDENTIALS]


def _loaded(body: str, keys: set[str]) -> Any:
    """Return a JSON document without the fields client and key, and add each key to ``keys``."""

    def fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys.update(str(value) for name, value in pairs if name.lower() == "key" and isinstance(value, (str, int)))
        return {name: value for name, value in pairs if name.lower() not in CREDENTIALS}

    try:
        return json.loads(body, object_pairs_hook=fields)
    except (ValueError, RecursionError):
        return masked(body)


def _without(keys: set[str], value: Any, redact: Redact) -> Any:
    """Return a JSON value without the keys."""
    if isinstance(value, dict):
        return {_without(keys, name, redact): _without(keys, each, redact) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without(keys, each, redact) for each in value]
    if isinstance(value, str):
        text = value.encode("utf-8", "surrogatepass")
        for key in keys:
            text = redact(text, key)
        return text.decode("utf-8", "surrogatepass")
    return "***" if str(value) in keys else value


def _has_dot_segments(path: str) -> bool:
    """Return whether a path could lead out of the base path, however often it is decoded."""
    while (decoded := unquote(path)) != path:
        path = decoded
    return any(segment.partition(";")[0] in (".", "..") for segment in re.split(r"[/\\]", path))


def _identity(request: Mapping[str, Any]) -> str:
    """Return a string that is equal for requests with the same response; it ignores the order of parameters."""
    query, form = (sorted([str(name), str(value)] for name, value in request[place]) for place in ("query", "form"))
    return json.dumps([request["method"], request["path"], query, form, request["json"]], sort_keys=True)
