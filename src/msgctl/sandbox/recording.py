"""Record the responses of the real service, and replay them instead of those of the emulator.

A record has one JSON object per line: the request without client and key, and the response.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Callable, Iterable, Mapping
from threading import Lock
from typing import Any, NamedTuple, TextIO
from urllib.parse import parse_qsl

from msgctl.errors import ConfigurationError, MsgctlError, NotReachedError
from msgctl.operations import Place
from msgctl.sandbox.decode import FORM_TYPE, JSON_TYPE
from msgctl.sandbox.protocol import BASE_PATH, Refusal, SandboxRequest, SandboxResponse, json_response

Pairs = tuple[tuple[str, str], ...]


class Forwarded(NamedTuple):
    """A request on its way to the service: its path below the base URL, and its parameters without credentials."""

    method: str
    path: str
    credentials: Place
    query: Pairs
    form: Pairs
    json: bytes | None

    def key(self) -> str:
        """Return a value that is equal for requests with the same response; it ignores the order of parameters."""
        document = None if self.json is None else _loaded(self.json)
        return json.dumps([self.method, self.path, sorted(self.query), sorted(self.form), document], sort_keys=True)


class ExchangeRecorder:
    """Forwards requests to the service, and adds each one with its response to a file.

    A request must carry the account's own client and key, so that no other program spends its credits.
    """

    def __init__(
        self,
        forward: Callable[[Forwarded], SandboxResponse],
        file: TextIO,
        *,
        client: int,
        key: str,
    ) -> None:
        self._forward = forward
        self._file = file
        self._one_at_a_time = Lock()
        self._client = str(client)
        self._key = key

    def respond(self, request: SandboxRequest, _address: str) -> SandboxResponse:
        """Return the service's response; its body is not changed."""
        try:
            forwarded, client, key = _read(request)
            if client != self._client or not hmac.compare_digest(key.encode(), self._key.encode()):
                return Refusal("UNAUTHORIZED", "client or key is wrong; nothing was forwarded").response()
            with self._one_at_a_time:
                response = self._forward(forwarded)
                self._file.write(_line(forwarded, response))
                self._file.flush()
                return response
        except Refusal as refusal:
            return refusal.response()
        except MsgctlError as error:
            status = 502 if isinstance(error, NotReachedError) else 504
            return json_response({"error": error.kind, "msg": error.message}, status=status)


class Replay:
    """Replays a record. A request that was recorded several times gets its responses in order, then the last."""

    def __init__(self, lines: Iterable[str], name: str) -> None:
        """Read a record. Raises ConfigurationError if it is not one."""
        self._responses: dict[str, list[SandboxResponse]] = {}
        for number, line in enumerate(lines, 1):
            try:
                key, response = _exchange(json.loads(line))
            except (ValueError, TypeError, LookupError, AttributeError):
                raise ConfigurationError(f"{name}, line {number}, is not a recorded exchange") from None
            self._responses.setdefault(key, []).append(response)

    def respond(self, request: SandboxRequest) -> SandboxResponse:
        """Return the recorded response, or a refusal that names the request without one."""
        try:
            forwarded, _, _ = _read(request)
        except Refusal as refusal:
            return refusal.response()
        found = self._responses.get(forwarded.key())
        if not found:
            parameters = dict(forwarded.query + forwarded.form)
            shown = json.dumps(_loaded(forwarded.json) if forwarded.json else parameters, ensure_ascii=False)
            why = f"{forwarded.method} {forwarded.path} with {shown[:300]} is not in the record"
            return Refusal("NOT_RECORDED", why).response()
        return found.pop(0) if len(found) > 1 else found[0]


def _read(request: SandboxRequest) -> tuple[Forwarded, str, str]:
    """Return a request without its credentials, and client and key."""
    if not request.path.startswith(BASE_PATH + "/"):
        raise Refusal("NOT_FOUND", f"the service is below {BASE_PATH}", status=404)
    query = parse_qsl(request.query, keep_blank_values=True)
    form = parse_qsl(request.body.decode("utf-8", "replace"), True) if request.media_type() == FORM_TYPE else []
    document = request.body if request.media_type() == JSON_TYPE else None
    given = dict(query + form)
    own = Place.FORM if any(name == "key" for name, _ in form) else Place.QUERY
    forwarded = Forwarded(
        request.method,
        request.path.removeprefix(BASE_PATH),
        own,
        _without_credentials(query),
        _without_credentials(form),
        document,
    )
    return forwarded, given.get("client", ""), given.get("key", "")


def _without_credentials(pairs: list[tuple[str, str]]) -> Pairs:
    return tuple(pair for pair in pairs if pair[0] not in ("client", "key"))


def _line(request: Forwarded, response: SandboxResponse) -> str:
    document = {
        "method": request.method,
        "path": request.path,
        "query": request.query,
        "form": request.form,
        "json": None if request.json is None else request.json.decode("utf-8", "replace"),
        "status": response.status,
        "content_type": response.headers.get("content-type", ""),
        "body": response.body.decode("utf-8", "surrogateescape"),
    }
    return json.dumps(document) + "\n"


def _exchange(document: Mapping[str, Any]) -> tuple[str, SandboxResponse]:
    query, form = (tuple((str(name), str(value)) for name, value in document[place]) for place in ("query", "form"))
    body = None if document["json"] is None else document["json"].encode()
    request = Forwarded(document["method"], document["path"], Place.QUERY, query, form, body)
    headers = {"content-type": document["content_type"]} if document["content_type"] else {}
    return request.key(), SandboxResponse(
        int(document["status"]), document["body"].encode("utf-8", "surrogateescape"), headers
    )


def _loaded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return body.decode("utf-8", "replace")
