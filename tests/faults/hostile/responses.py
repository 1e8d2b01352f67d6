"""A table of responses of a server, a proxy or an attacker, and their meanings."""

from __future__ import annotations

import gzip
import socket
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

from conftest import KEY
from faults.hostile.bodies import BODIES, BODY, HTML, NUMBERS, ODD_TEXTS, body_of, of_numbers
from faults.hostile.exit_codes import (
    BREAKDOWN,
    INCOMPLETE,
    NO_RESPONSE,
    NOT_JSON,
    RECORD,
    REDIRECTED,
    REFUSED_AND_ACCEPTED,
    TEXTS,
    TOO_MANY_AND_ACCEPTED,
    UNAVAILABLE,
    UNREADABLE,
    Codes,
)
from support.service import Behaviour, drop, raw, reset, respond, then


@dataclass(frozen=True)
class Hostile:
    """A response and the exit codes of commands after it. If ``is_for_all``, every command is tested with it."""

    name: str
    behaviour: Behaviour
    codes: Codes
    is_for_all: bool = False


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
    """Send the same bytes again and again until the client closes the connection."""

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

ODD_HTTP: dict[str, tuple[Behaviour, Codes]] = {
    # Bytes that are not valid HTTP
    "no status line": (raw(b"Content-Type: application/json\r\n\r\n" + BODY), NO_RESPONSE),
    "HTTP/0.9, only a body": (raw(BODY), NO_RESPONSE),
    "HTTP/2 preface": (raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), NO_RESPONSE),
    "a header without a colon": (headed(b"Connection close"), NO_RESPONSE),
    "a header line of 1 MB": (headed(b"X-Long: " + b"x" * 1_000_000), NO_RESPONSE),
    "100,000 headers": (flood(b"X-More: 1\r\n", 100_000, before=OK), NO_RESPONSE),
    "NUL in a header": (headed(b"X-Odd: a\0b", b"Content-Type: application/json\0"), NO_RESPONSE),
    "101 Switching Protocols": (raw(b"HTTP/1.1 101 Go\r\nUpgrade: h2c\r\n\r\n" + bytes(9)), NO_RESPONSE),
    "endless interim responses": (flood(b"HTTP/1.1 100 Continue\r\n\r\n", 400), NO_RESPONSE),
    "every byte there is": (raw(bytes(range(256)) * 64), NO_RESPONSE),
    "JSON as something else": (headed(b"Content-Type: multipart/mixed; boundary=\x1b[31m"), RECORD),
    "a bomb in gzip": (headed(b"Content-Encoding: gzip", body=gzip.compress(ZEROS, 1)), INCOMPLETE),
    "a bomb in deflate": (headed(b"Content-Encoding: deflate", body=zlib.compress(ZEROS, 1)), INCOMPLETE),
    "a bomb in br": (headed(b"Content-Encoding: br", body=BROTLI), INCOMPLETE),
    # Lengths of the body
    "longer than its length": (sized(b"5"), NOT_JSON),
    "shorter than its length": (sized(b"9999"), INCOMPLETE),
    "a huge length": (sized(b"9" * 17), INCOMPLETE),
    "data after the body": (raw(OK + LENGTH + b"\r\n" + BODY + b"GET / HTTP/1.1\r\n\r\n" * 9), RECORD),
    "chunks and a false length": (raw(OK + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n" + CHUNKS
                                      + b"0\r\n\r\n"), RECORD),
    "no last chunk": (raw(CHUNKED + CHUNKS), INCOMPLETE),
    "100,000 trailers": (flood(b"X: y\r\n", 100_000, CHUNKED + CHUNKS + b"0\r\n", b"\r\n"), INCOMPLETE),
    # Connections that end, at every stage
    "closed before the response": (drop, NO_RESPONSE),
    "reset before the response": (reset, NO_RESPONSE),
    "reset in the head": (then(raw(OK + LENGTH), reset), NO_RESPONSE),
    "closed in the body": (raw(OK + LENGTH + b"\r\n" + BODY[:-1]), INCOMPLETE),
    "closed in the body of a refusal": (raw(HALF_A_REFUSAL), UNAVAILABLE),
    "reset in the body of a refusal": (then(raw(HALF_A_REFUSAL), reset), UNAVAILABLE),
}  # fmt: skip


STATUSES = {
    201: RECORD,
    202: RECORD,
    206: INCOMPLETE,
    204: NOT_JSON,
    402: REFUSED_AND_ACCEPTED,
    429: TOO_MANY_AND_ACCEPTED,
    304: INCOMPLETE,
    408: UNAVAILABLE,
    409: UNREADABLE,
    503: UNAVAILABLE,
    999: UNREADABLE,
}
REDIRECTS = {301: REDIRECTED, 302: INCOMPLETE, 303: INCOMPLETE, 308: REDIRECTED}

# Heads that clients read differently, before a body that is complete (RFC 9112, sections 2, 6 and 7).
LENGTHS = ("2, 3", "-2", "+2", "2 2", "0x2", "2_0", "²", "9" * 30, "1e1", "2\r\nContent-Length: 02", "")
CHUNK_SIZES = ("-1", "", "zz", "f" * 18, "7fffffffffffffff", "0x2", "1" * 70_000)
CODINGS = ("Transfer-Encoding: gzip", "Transfer-Encoding: chunked, gzip", "none", ": empty")
MALFORMED_HEADS = (
    *((f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n", NO_RESPONSE) for length in LENGTHS),
    *((f"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{size}\r\n", INCOMPLETE) for size in CHUNK_SIZES),
    *((f"HTTP/1.1 200 OK\r\n{line}\r\nContent-Length: {len(BODY)}\r\n\r\n", NO_RESPONSE) for line in CODINGS),
    *((f"{line}\r\nContent-Length: {len(BODY)}\r\n\r\n", NO_RESPONSE) for line in ("HTTP/1.1 1000 OK", "200", "{}")),
)


def _all() -> Iterator[Hostile]:
    for name, (behaviour, codes) in ODD_HTTP.items():
        yield Hostile(name, behaviour, codes)
    for head, codes in MALFORMED_HEADS:
        name = "the head " + ascii(head)[1:-1].replace("\\", "/")[:60]
        yield Hostile(name, raw(head.encode("latin-1") + BODY), codes)
    for status, codes in STATUSES.items():
        yield Hostile(f"{status} with the record", respond(BODY, status), codes)
    for status in (500, 520):
        yield Hostile(f"{status} with a page", respond(HTML, status, {"Content-Type": "text/html"}), UNAVAILABLE)
    for status, codes in REDIRECTS.items():
        where = {"Location": f"https://other.example/?key={quote(KEY)}"}
        yield Hostile(f"{status} to another host", respond(b"", status, where), codes)
    for name, (body, codes) in BODIES.items():
        yield Hostile(f"{name}, as a body", respond(body), codes)
    for name, (number, codes) in NUMBERS.items():
        yield Hostile(f"{name}, in every number", respond(of_numbers(number)), codes, is_for_all=True)
    for name, text in ODD_TEXTS.items():
        yield Hostile(f"{name}, in every field", respond(body_of(text)), TEXTS, is_for_all=True)
    texts = list(ODD_TEXTS.values())
    record = {"error": "".join(texts), "msg": dict.fromkeys(texts, texts)}
    for status in (400, 520):
        yield Hostile(f"every odd text, in an error of {status}", respond(record, status), BREAKDOWN)


RESPONSES = tuple(_all())
