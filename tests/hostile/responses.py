"""Responses of a server, a proxy or an attacker: the table, and what each entry means."""

from __future__ import annotations

import gzip
import socket
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from conftest import KEY
from hostile.bodies import BODIES, BODY, EITHER, NUMBERS, TEXTS, body_of, of_numbers
from hostile.holding import DOUBT, LOST, NOT_WHOLE, READABLE, REFUSED, UNREADABLE, Verdict
from support.service import Behaviour, drip, drop, raw, reset, respond, silent, then


@dataclass(frozen=True)
class Hostile:
    """A response, and what it may mean: several things if RFC 9110 and 9112 leave that to the client."""

    name: str
    behaviour: Behaviour
    verdicts: tuple[Verdict, ...]


FALSE_LENGTH = LOST + UNREADABLE
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
CHUNKS = b"%x\r\n%s\r\n" % (len(BODY), BODY)


def headed(*lines: bytes, body: bytes = BODY) -> Behaviour:
    """A correct response except for some headers."""
    return raw(OK + b"".join(line + b"\r\n" for line in lines) + b"Content-Length: %d\r\n\r\n" % len(body) + body)


def sized(length: bytes, body: bytes = BODY) -> Behaviour:
    """A correct response except for its Content-Length."""
    return raw(OK + b"Content-Length: " + length + b"\r\n\r\n" + body)


def flood(piece: bytes, times: int, before: bytes = b"", after: bytes = b"") -> Behaviour:
    """The same piece again and again, as long as the other side listens."""

    def behave(connection: socket.socket) -> None:
        connection.sendall(before)
        block = piece * max(1, 65536 // len(piece))
        for _ in range(max(1, times * len(piece) // len(block))):
            connection.sendall(block)
        connection.sendall(after)

    return behave


ZEROS = bytes(16 * 2**20)
# 100 MB of spaces in brotli (RFC 7932), made with its reference encoder.
BROTLI = bytes.fromhex(
    "cbffff3ff82540e2b14020f7fe8fffff7ff04b00c4611180eefd1fffffffe0970088c30200ddfb3ffeffffc12f011087"
    "0500baf77ffcffff835f02200e0b0074effff8ffff07bf04401c1600e8defff1ffff0f7e0980382c00d0bdffe3ffff1f"
    "fc1200715800a07bffc7ffff3ff82500e2b00040f7fe8fffff7ff04b00c4610180eefd1fffffffe0970088c30200ddfb"
    "bffc07afc32f0110870500bad875"
)

ODD_HTTP: dict[str, tuple[Behaviour, tuple[Verdict, ...]]] = {
    # What is not HTTP, or not quite
    "no status line": (raw(b"Content-Type: application/json\r\n\r\n" + BODY), LOST),
    "HTTP/0.9, only a body": (raw(BODY), LOST),
    "HTTP/2 preface": (raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), LOST),
    "a header without a colon": (headed(b"Connection close"), LOST),
    "a header line of 1 MB": (headed(b"X-Long: " + b"x" * 1_000_000), LOST),
    "100,000 headers": (flood(b"X-More: 1\r\n", 100_000, before=OK), LOST),
    "NUL in a header": (headed(b"X-Odd: a\0b", b"Content-Type: application/json\0"), READABLE + LOST),
    "101 Switching Protocols": (raw(b"HTTP/1.1 101 Go\r\nUpgrade: h2c\r\n\r\n" + bytes(9)), DOUBT + LOST),
    "endless interim responses": (flood(b"HTTP/1.1 100 Continue\r\n\r\n", 400), LOST),
    "every byte there is": (raw(bytes(range(256)) * 64), LOST),
    "JSON as something else": (headed(b"Content-Type: multipart/mixed; boundary=\x1b[31m"), READABLE + LOST),
    "a bomb in gzip": (headed(b"Content-Encoding: gzip", body=gzip.compress(ZEROS, 1)), NOT_WHOLE),
    "a bomb in deflate": (headed(b"Content-Encoding: deflate", body=zlib.compress(ZEROS, 1)), NOT_WHOLE),
    "a bomb in br": (headed(b"Content-Encoding: br", body=BROTLI), NOT_WHOLE),
    # Lengths of the body
    "longer than its length": (sized(b"5"), UNREADABLE),
    "shorter than its length": (sized(b"9999"), LOST),
    "a huge length": (sized(b"9" * 17), FALSE_LENGTH),
    "two lengths that differ": (sized(b"%d\r\nContent-Length: 5" % len(BODY)), LOST),
    "data after the body": (raw(OK + LENGTH + b"\r\n" + BODY + b"GET / HTTP/1.1\r\n\r\n" * 9), READABLE),
    "chunks and a false length": (raw(OK + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n" + CHUNKS
                                      + b"0\r\n\r\n"), READABLE + LOST),
    "a chunk of negative size": (raw(CHUNKED + b"-5\r\n" + BODY), LOST),
    "no last chunk": (raw(CHUNKED + CHUNKS), LOST),
    "100,000 trailers": (flood(b"X: y\r\n", 100_000, CHUNKED + CHUNKS + b"0\r\n", b"\r\n"), READABLE + LOST),
    # Connections that end, at every stage
    "closed before the response": (drop, LOST),
    "reset before the response": (reset, LOST),
    "reset in the head": (then(raw(OK + LENGTH), reset), LOST),
    "closed in the body": (raw(OK + LENGTH + b"\r\n" + BODY[:-1]), LOST),
    "closed in the body of a refusal": (raw(b"HTTP/1.1 520 No\r\nContent-Length: 99\r\n\r\n{"), DOUBT),
    "reset in the body of a refusal": (then(raw(b"HTTP/1.1 520 No\r\nContent-Length: 99\r\n\r\n{"), reset), DOUBT),
}  # fmt: skip


HTML = b"<!DOCTYPE html><html><body><h1>Something went wrong</h1></body></html>"
STATUSES = {READABLE: (201, 202, 206), UNREADABLE: (204,), REFUSED: (402, 429), DOUBT: (304, 408, 409, 503, 999)}
REDIRECTS = {301: REFUSED, 302: DOUBT, 303: DOUBT, 308: REFUSED}


def _statuses() -> Iterator[Hostile]:
    for verdicts, statuses in STATUSES.items():
        for status in statuses:
            yield Hostile(f"{status} with the record", respond(BODY, status), verdicts)
    for status in (500, 520):
        yield Hostile(f"{status} with a page", respond(HTML, status, {"Content-Type": "text/html"}), DOUBT)
    for status, verdicts in REDIRECTS.items():
        where = {"Location": f"https://other.example/?key={quote(KEY)}"}
        yield Hostile(f"{status} to another host", respond(b"", status, where), verdicts)


def _bodies() -> Iterator[Hostile]:
    for name, (body, verdicts) in BODIES.items():
        yield Hostile(f"{name}, as a body", respond(body), verdicts)
    for name, number in NUMBERS.items():
        yield Hostile(f"{name}, in every number", respond(of_numbers(number)), EITHER)
    for name, text in TEXTS.items():
        yield Hostile(f"{name}, in every field", respond(body_of(text)), READABLE)
    for status in (400, 520):
        texts = list(TEXTS.values())
        record = {"error": "".join(texts), "msg": dict.fromkeys(texts, texts)}
        yield Hostile(f"every odd text, in an error of {status}", respond(record, status), REFUSED)


RESPONSES: tuple[Hostile, ...] = (
    *(Hostile(name, *entry) for name, entry in ODD_HTTP.items()),
    *_statuses(),
    *_bodies(),
)
"""The responses that every command gets: never fewer than 60."""


SLOW: tuple[Hostile, ...] = (
    Hostile("silence", silent, LOST),
    Hostile("a head that drips", drip(OK, b"X: y\r\n"), LOST),
    Hostile("interim responses that drip", drip(piece=b"HTTP/1.1 100 Continue\r\n\r\n"), LOST),
    Hostile("a body that drips", drip(OK + b"Content-Length: 100000\r\n\r\n", b" "), LOST),
    Hostile("chunks that drip", drip(CHUNKED, b"1\r\n \r\n"), LOST),
    Hostile("a refusal that drips", drip(b"HTTP/1.1 401 No\r\nContent-Length: 100000\r\n\r\n", b" "), REFUSED),
)
"""Responses that take as long as the server likes."""
