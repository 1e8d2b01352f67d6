"""Record the responses of the real service, and replay them instead of those of the emulator.

A record has one JSON object per line: the request without client and key, and the response.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TextIO
from urllib.parse import parse_qsl

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


def recorder(
    forward: Callable[[SandboxRequest], httpx.Response], redact: Callable[[bytes, str], bytes], file: TextIO
) -> Callable[[SandboxRequest, str], SandboxResponse]:
    """Return a function that forwards requests to the service, and adds each one with its response to a file.

    ``redact`` takes a key out of a body before it is written; the response that is returned is not changed.
    """

    def respond(request: SandboxRequest, _address: str) -> SandboxResponse:
        if not request.path.startswith(BASE_PATH + "/"):
            return Refusal("NOT_FOUND", f"the service is below {BASE_PATH}", status=404).response()
        try:
            response = forward(request)
        except MsgctlError as error:
            status = 502 if isinstance(error, NotReachedError) else 504
            return json_response({"error": error.kind, "msg": error.message}, status)
        content_type = response.headers.get("content-type", "")
        body = redact(response.content, _key(request)).decode("utf-8", "surrogateescape")
        exchange = {"status": response.status_code, "content_type": content_type, "body": body}
        file.write(json.dumps({**_described(request), **exchange}) + "\n")
        file.flush()
        return _response(response.status_code, response.content, content_type)

    return respond


def replayer(lines: Iterable[str], name: str) -> Callable[[SandboxRequest], SandboxResponse]:
    """Return a function that replays a record. Raises ConfigurationError if it is not one.

    A request that was recorded several times gets its responses in order, then the last. One that was not recorded is
    refused with its name.
    """
    responses: dict[str, list[SandboxResponse]] = {}
    for number, line in enumerate(lines, 1):
        try:
            document = json.loads(line)
            body = document["body"].encode("utf-8", "surrogateescape")
            response = _response(int(document["status"]), body, document["content_type"])
            responses.setdefault(_same(document), []).append(response)
        except (ValueError, TypeError, LookupError, AttributeError):
            raise ConfigurationError(f"{name}, line {number}, is not a recorded exchange") from None

    def respond(request: SandboxRequest) -> SandboxResponse:
        asked = _described(request)
        found = responses.get(_same(asked))
        if not found:
            shown = json.dumps(asked["json"] or dict(asked["query"] + asked["form"]), ensure_ascii=False)
            why = f"{asked['method']} {asked['path']} with {shown[:300]} is not in the record"
            return Refusal("NOT_RECORDED", why).response()
        return found.pop(0) if len(found) > 1 else found[0]

    return respond


def _response(status: int, body: bytes, content_type: str) -> SandboxResponse:
    return SandboxResponse(status, body, {"content-type": content_type} if content_type else {})


def _described(request: SandboxRequest) -> dict[str, Any]:
    """Return a request as it is recorded: its path below the base path, and its parameters without client and key.

    The key is also taken out of where it does not belong: the path, and a JSON body.
    """
    body = request.body.decode("utf-8", "replace")
    form = parse_qsl(body, keep_blank_values=True) if request.media_type() == FORM_TYPE else []
    query = parse_qsl(request.query, keep_blank_values=True)
    return {
        "method": request.method,
        "path": masked(request.path.removeprefix(BASE_PATH)),
        "query": [pair for pair in query if pair[0] not in ("client", "key")],
        "form": [pair for pair in form if pair[0] not in ("client", "key")],
        "json": _loaded(body) if request.media_type() == JSON_TYPE else None,
    }


def _same(request: Mapping[str, Any]) -> str:
    """Return a text that is equal for requests with the same response; it ignores the order of parameters."""
    query, form = (sorted([str(name), str(value)] for name, value in request[place]) for place in ("query", "form"))
    return json.dumps([request["method"], request["path"], query, form, request["json"]], sort_keys=True)


def _key(request: SandboxRequest) -> str:
    parameters = f"{request.path}&{request.body.decode('utf-8', 'replace')}&{request.query}"
    return dict(parse_qsl(parameters)).get("key", "")


def _loaded(body: str) -> Any:
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        return masked(body)
    if isinstance(document, dict):
        return {name: value for name, value in document.items() if name not in ("client", "key")}
    return document
