"""A table of responses of a server, a proxy or an attacker, and their meanings."""

from __future__ import annotations

import gzip
import socket
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from conftest import KEY
from faults.hostile.bodies import BODIES, BODY, HTML, NUMBERS, OF_TEXTS, TEXTS, body_of, of_numbers
from faults.hostile.exit_codes import Verdict
from support.service import Behaviour, drop, raw, reset, respond, then


@dataclass(frozen=True)
class Hostile:
    """A response, and its meaning."""

    name: str
    behaviour: Behaviour
    verdict: Verdict


LENGTH = b"Content-Length: %d\r\n" % len(BODY)
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
HALF_A_REFUSAL = b"HTTP/1.1 520 No\r\nContent-Length: 99\r\n\r\n{"
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

ODD_HTTP: dict[str, tuple[Behaviour, Verdict]] = {
    # Bytes that are not valid HTTP
    "no status line": (raw(b"Content-Type: application/json\r\n\r\n" + BODY), Verdict.LOST),
    "HTTP/0.9, only a body": (raw(BODY), Verdict.LOST),
    "HTTP/2 preface": (raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Verdict.LOST),
    "a header without a colon": (headed(b"Connection close"), Verdict.LOST),
    "a header line of 1 MB": (headed(b"X-Long: " + b"x" * 1_000_000), Verdict.LOST),
    "100,000 headers": (flood(b"X-More: 1\r\n", 100_000, before=OK), Verdict.LOST),
    "NUL in a header": (headed(b"X-Odd: a\0b", b"Content-Type: application/json\0"), Verdict.LOST),
    "101 Switching Protocols": (raw(b"HTTP/1.1 101 Go\r\nUpgrade: h2c\r\n\r\n" + bytes(9)), Verdict.LOST),
    "endless interim responses": (flood(b"HTTP/1.1 100 Continue\r\n\r\n", 400), Verdict.LOST),
    "every byte there is": (raw(bytes(range(256)) * 64), Verdict.LOST),
    "JSON as something else": (headed(b"Content-Type: multipart/mixed; boundary=\x1b[31m"), Verdict.READABLE),
    "a bomb in gzip": (headed(b"Content-Encoding: gzip", body=gzip.compress(ZEROS, 1)), Verdict.NOT_WHOLE),
    "a bomb in deflate": (headed(b"Content-Encoding: deflate", body=zlib.compress(ZEROS, 1)), Verdict.NOT_WHOLE),
    "a bomb in br": (headed(b"Content-Encoding: br", body=BROTLI), Verdict.NOT_WHOLE),
    # Lengths of the body
    "longer than its length": (sized(b"5"), Verdict.UNREADABLE),
    "shorter than its length": (sized(b"9999"), Verdict.LOST),
    "a huge length": (sized(b"9" * 17), Verdict.LOST),
    "data after the body": (raw(OK + LENGTH + b"\r\n" + BODY + b"GET / HTTP/1.1\r\n\r\n" * 9), Verdict.READABLE),
    "chunks and a false length": (raw(OK + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n" + CHUNKS
                                      + b"0\r\n\r\n"), Verdict.READABLE),
    "no last chunk": (raw(CHUNKED + CHUNKS), Verdict.LOST),
    "100,000 trailers": (flood(b"X: y\r\n", 100_000, CHUNKED + CHUNKS + b"0\r\n", b"\r\n"), Verdict.LOST),
    # Connections that end, at every stage
    "closed before the response": (drop, Verdict.LOST),
    "reset before the response": (reset, Verdict.LOST),
    "reset in the head": (then(raw(OK + LENGTH), reset), Verdict.LOST),
    "closed in the body": (raw(OK + LENGTH + b"\r\n" + BODY[:-1]), Verdict.LOST),
    "closed in the body of a refusal": (raw(HALF_A_REFUSAL), Verdict.DOUBT),
    "reset in the body of a refusal": (then(raw(HALF_A_REFUSAL), reset), Verdict.DOUBT),
}  # fmt: skip


STATUSES = {
    Verdict.READABLE: (201, 202, 206),
    Verdict.UNREADABLE: (204,),
    Verdict.REFUSED_AND_ACCEPTED: (402,),
    Verdict.TOO_MANY_AND_ACCEPTED: (429,),
    Verdict.DOUBT: (304, 408, 409, 999),
    Verdict.UNAVAILABLE: (503,),
}
REDIRECTS = {301: Verdict.REFUSED, 302: Verdict.DOUBT, 303: Verdict.DOUBT, 308: Verdict.REFUSED}


# Heads that clients read differently, before a body that is complete (RFC 9112, sections 2, 6 and 7).
LENGTHS = ("2, 3", "-2", "+2", "2 2", "0x2", "2_0", "²", "9" * 30, "1e1", "2\r\nContent-Length: 02", "")
CHUNK_SIZES = ("-1", "", "zz", "f" * 18, "7fffffffffffffff", "0x2", "1" * 70_000)
CODINGS = ("Transfer-Encoding: gzip", "Transfer-Encoding: chunked, gzip", "none", ": empty")
MALFORMED_HEADS = (
    *(f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n" for length in LENGTHS),
    *(f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{size}\r\n" for size in CHUNK_SIZES),
    *(f"HTTP/1.1 200 OK\r\n{line}\r\nContent-Length: {len(BODY)}\r\n\r\n" for line in CODINGS),
    *(f"{line}\r\nContent-Length: {len(BODY)}\r\n\r\n" for line in ("HTTP/1.1 1000 OK", "200", "{}")),
)


def _heads() -> Iterator[Hostile]:
    for head in MALFORMED_HEADS:
        name = "the head " + ascii(head)[1:-1].replace("\\", "/")[:60]
        yield Hostile(name, raw(head.encode("latin-1") + BODY), Verdict.LOST)


def _statuses() -> Iterator[Hostile]:
    for verdict, statuses in STATUSES.items():
        for status in statuses:
            yield Hostile(f"{status} with the record", respond(BODY, status), verdict)
    for status in (500, 520):
        yield Hostile(f"{status} with a page", respond(HTML, status, {"Content-Type": "text/html"}), Verdict.DOUBT)
    for status, verdict in REDIRECTS.items():
        where = {"Location": f"https://other.example/?key={quote(KEY)}"}
        yield Hostile(f"{status} to another host", respond(b"", status, where), verdict)


def _bodies() -> Iterator[Hostile]:
    for name, (body, verdict) in BODIES.items():
        yield Hostile(f"{name}, as a body", respond(body), verdict)
    for name, number in NUMBERS.items():
        yield Hostile(f"{name}, in every number", respond(of_numbers(number)), Verdict.TEXTS)
    for name, text in TEXTS.items():
        yield Hostile(f"{name}, in every field", respond(body_of(text)), OF_TEXTS.get(name, Verdict.TEXTS))
    for status in (400, 520):
        texts = list(TEXTS.values())
        record = {"error": "".join(texts), "msg": dict.fromkeys(texts, texts)}
        yield Hostile(f"every odd text, in an error of {status}", respond(record, status), Verdict.DOUBT)


RESPONSES: tuple[Hostile, ...] = (
    *(Hostile(name, *entry) for name, entry in ODD_HTTP.items()),
    *_heads(),
    *_statuses(),
    *_bodies(),
)
"""The responses that every command gets: never fewer than 60."""
