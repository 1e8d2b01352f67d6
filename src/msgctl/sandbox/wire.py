"""HTTP/1.1 for the served sandbox: h11 parses requests and writes responses."""

from __future__ import annotations

import time
from email.utils import formatdate
from functools import lru_cache
from http.client import responses

import h11

from msgctl.sandbox.protocol import CLOSING, SandboxRequest, SandboxResponse

MAX_HEADERS = 64 * 1024
"""Maximum bytes of the request line and the headers, without the last read."""

GARBAGE = b"\x00\xff\x00garbage\r\n\r\n\x1b[2J\xfe" * 8


def request(head: h11.Request) -> SandboxRequest:
    """Return a request without its body."""
    path, _, query = head.target.decode().partition("?")
    headers = {name.decode(): value.decode("latin-1") for name, value in head.headers}
    return SandboxRequest(head.method.decode(), path, query, headers)


def encoded(http: h11.Connection, response: SandboxResponse, *, is_whole: bool = True, has_body: bool = True) -> bytes:
    """Return the bytes of a response, damaged by its faults.

    The connection closes after some faults, and if the request was not read completely (``is_whole``).
    """
    closing = CLOSING & {*response.faults}
    if "garbage" in closing:
        return GARBAGE
    if closing - {"truncate"}:
        return b""
    lines = headers(response)
    if closing or not is_whole:
        lines.append(("Connection", "close"))
    reason = responses.get(response.status, "Unknown Error")
    head = http.send(h11.Response(status_code=response.status, headers=lines, reason=reason)) or b""
    if closing:
        return head + response.body[: len(response.body) // 2]
    body = b""
    if has_body:
        body = http.send(h11.Data(data=response.body)) or b""
    return head + body + (http.send(h11.EndOfMessage()) or b"")


def headers(response: SandboxResponse) -> list[tuple[str, str]]:
    """Return the headers of a response."""
    values = {"server": "msgctl-sandbox", "date": _date(int(time.time())), **response.headers}
    values["x-content-type-options"] = "nosniff"
    values["content-length"] = str(len(response.body))
    return [(name.title(), value) for name, value in values.items()]


@lru_cache(maxsize=1)
def _date(seconds: int) -> str:
    return formatdate(seconds, usegmt=True)
