"""What a server, a proxy or an attacker could answer: the table, and what each entry amounts to."""

from __future__ import annotations

import gzip
import socket
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

from conftest import KEY
from hostile.bodies import BODIES, BODY, EITHER, MORE_BODIES, NUMBERS, TEXTS, body_of, of_numbers
from hostile.holding import DOUBT, LOST, NOT_WHOLE, READABLE, REFUSED, UNREADABLE, Verdict
from support.service import Behaviour, answer, drip, drop, raw, reset, silent


@dataclass(frozen=True)
class Hostile:
    """An answer, and what it may be taken for: several where RFC 9110 and 9112 leave that to the client."""

    name: str
    behaviour: Behaviour
    verdicts: tuple[Verdict, ...]


FALSE_LENGTH = LOST + UNREADABLE
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
CHUNKS = b"%x\r\n%s\r\n" % (len(BODY), BODY)


def headed(*lines: bytes, first: bytes = OK, body: bytes = BODY) -> Behaviour:
    """A correct answer but for a first line, or lines of the head."""
    return raw(first + b"".join(line + b"\r\n" for line in lines) + b"Content-Length: %d\r\n\r\n" % len(body) + body)


def sized(length: bytes, body: bytes = BODY) -> Behaviour:
    """A correct answer but for its Content-Length."""
    return raw(OK + b"Content-Length: " + length + b"\r\n\r\n" + body)


def then(*behaviours: Behaviour) -> Behaviour:
    """One after the other on the same connection."""

    def behave(connection: socket.socket) -> None:
        for behaviour in behaviours:
            behaviour(connection)

    return behave


def flood(piece: bytes, times: int, before: bytes = b"", after: bytes = b"") -> Behaviour:
    """The same piece again and again, as long as the other side listens."""

    def behave(connection: socket.socket) -> None:
        connection.sendall(before)
        block = piece * max(1, 65536 // len(piece))
        for _ in range(max(1, times * len(piece) // len(block))):
            connection.sendall(block)
        connection.sendall(after)

    return behave


# --- what is not HTTP, or not quite

BROKEN_HTTP: dict[str, tuple[Behaviour, tuple[Verdict, ...]]] = {
    "no status line": (raw(b"Content-Type: application/json\r\n\r\n" + BODY), LOST),
    "HTTP/0.9, a body alone": (raw(BODY), LOST),
    "HTTP/2 preface": (raw(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), LOST),
    "a first line of 1 MB": (raw(b"HTTP/1.1 200 " + b"x" * 1_000_000 + b"\r\n\r\n"), LOST),
    "a header without a colon": (headed(b"Connection close"), LOST),
    "a header line of 1 MB": (headed(b"X-Long: " + b"x" * 1_000_000), LOST),
    "100,000 headers": (flood(b"X-More: 1\r\n", 100_000, before=OK), LOST),
    "NUL in a header": (headed(b"X-Odd: a\0b", b"Content-Type: application/json\0"), READABLE + LOST),
    "101 Switching Protocols": (raw(b"HTTP/1.1 101 Go\r\nUpgrade: h2c\r\n\r\n" + bytes(9)), DOUBT + LOST),
    "interim answers without end": (flood(b"HTTP/1.1 100 Continue\r\n\r\n", 40_000), LOST),
    "102 without end": (flood(b"HTTP/1.1 102 Processing\r\nX: y\r\n\r\n", 40_000), LOST),
    "every byte there is": (raw(bytes(range(256)) * 64), LOST),
}  # fmt: skip

# --- how long the body is

LENGTHS: dict[str, tuple[Behaviour, tuple[Verdict, ...]]] = {
    "longer than its length": (sized(b"5"), UNREADABLE),
    "shorter than its length": (sized(b"9999"), LOST),
    "a huge length": (sized(b"9" * 17), FALSE_LENGTH),
    "two lengths that differ": (sized(b"%d\r\nContent-Length: 5" % len(BODY)), LOST),
    "data after the body": (raw(OK + LENGTH + b"\r\n" + BODY + b"GET / HTTP/1.1\r\n\r\n" * 9), READABLE),
    "chunks and a false length": (raw(OK + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n" + CHUNKS
                                      + b"0\r\n\r\n"), READABLE + LOST),
    "a chunk of negative size": (raw(CHUNKED + b"-5\r\n" + BODY), LOST),
    "a chunk shorter than it says": (raw(CHUNKED + b"fff\r\n" + BODY), LOST),
    "no last chunk": (raw(CHUNKED + CHUNKS), LOST),
    "a chunk extension of 1 MB": (raw(CHUNKED + b"1;" + b"x" * 1_000_000), LOST),
    "100,000 trailers": (flood(b"X: y\r\n", 100_000, CHUNKED + CHUNKS + b"0\r\n", b"\r\n"), READABLE + LOST),
}  # fmt: skip

# --- content codings, which were not asked for

_ZEROS = bytes(16 * 2**20)
_GZIP = gzip.compress(_ZEROS, 1)
# 100 MB of spaces in brotli (RFC 7932), made with its reference encoder.
_BROTLI = bytes.fromhex(
    "cbffff3ff82540e2b14020f7fe8fffff7ff04b00c4611180eefd1fffffffe0970088c30200ddfb3ffeffffc12f011087"
    "0500baf77ffcffff835f02200e0b0074effff8ffff07bf04401c1600e8defff1ffff0f7e0980382c00d0bdffe3ffff1f"
    "fc1200715800a07bffc7ffff3ff82500e2b00040f7fe8fffff7ff04b00c4610180eefd1fffffffe0970088c30200ddfb"
    "bffc07afc32f0110870500bad875"
)


def coded(coding: bytes, body: bytes, first: bytes = OK) -> Behaviour:
    return headed(b"Content-Encoding: " + coding, first=first, body=body)


CODED: dict[str, tuple[Behaviour, tuple[Verdict, ...]]] = {
    "a bomb in gzip": (coded(b"gzip", _GZIP), NOT_WHOLE),
    "a bomb in deflate": (coded(b"deflate", zlib.compress(_ZEROS, 1)), NOT_WHOLE),
    "a bomb in br": (coded(b"br", _BROTLI), NOT_WHOLE),
}

# --- connections that end, at every stage


def at_once(connection: socket.socket) -> None:
    """The connection is reset while the answer is on its way."""
    connection.sendall(OK + LENGTH)
    reset(connection)


ENDS: dict[str, tuple[Behaviour, tuple[Verdict, ...]]] = {
    "closed before the answer": (drop, LOST),
    "reset before the answer": (reset, LOST),
    "reset in the head": (at_once, LOST),
    "closed in the body": (raw(OK + LENGTH + b"\r\n" + BODY[:-1]), LOST),
    "closed in the body of a refusal": (raw(b"HTTP/1.1 520 No\r\nContent-Length: 99\r\n\r\n{"), DOUBT),
    "reset in the body of a refusal": (then(raw(b"HTTP/1.1 520 No\r\nContent-Length: 99\r\n\r\n{"), reset), DOUBT),
}

# --- variants

MORE: dict[str, tuple[Behaviour, tuple[Verdict, ...]]] = {
    "a status of four digits": (headed(first=b"HTTP/1.1 2000 OK\r\n"), LOST),
    "a folded header": (headed(b"X-Odd: a", b"\tb", b" c"), READABLE),
    "ten interim answers": (then(raw(b"HTTP/1.1 103 Hints\r\nLink: </x>\r\n\r\n" * 10), answer(BODY)), READABLE),
    "a negative length": (sized(b"-1"), LOST),
    "chunks": (raw(CHUNKED + CHUNKS + b"0\r\n\r\n"), READABLE),
    "gzip that is not named": (answer(gzip.compress(BODY)), UNREADABLE),
    "no length": (raw(OK + b"Connection: close\r\n\r\n" + BODY), READABLE),
    "HTTP/0.9 by name": (headed(first=b"HTTP/0.9 200 OK\r\n"), LOST + READABLE),
    "HTTP/2 settings frame": (raw(b"\x00\x00\x00\x04\x00\x00\x00\x00\x00"), LOST),
    "HTTP/2.0 by name": (headed(first=b"HTTP/2.0 200 OK\r\n"), LOST + READABLE),
    "a status of two digits": (headed(first=b"HTTP/1.1 20 OK\r\n"), LOST),
    "no status at all": (headed(first=b"HTTP/1.1\r\n"), LOST),
    "a reason of escape sequences": (headed(first=b"HTTP/1.1 200 \x1b[2J\x1b]0;x\x07\r\n"), LOST + READABLE),
    "a bare carriage return": (headed(b"X: a\rX-Other: b"), READABLE + LOST),
    "bare line feeds": (raw((OK + LENGTH).replace(b"\r", b"") + b"\n" + BODY), LOST + READABLE),
    "a header without a name": (headed(b": nothing"), LOST),
    "a space before the colon": (headed(b"X-Odd : 1"), LOST),
    "escape sequences in headers": (headed(b"X-Odd: \x1b[31m\x9b\xff", b"Content-Type: \x1b]0;x\x07"), LOST + READABLE),
    "an interim answer with a body": (raw(b"HTTP/1.1 103 Hints\r\nContent-Length: 2\r\n\r\n{}"), LOST),
    "the request itself, sent back": (raw(b"POST /api/v1/send-sms HTTP/1.1\r\n\r\n"), LOST),
    "a length that is none": (sized(b"all of it"), LOST),
    "chunks of one byte": (raw(CHUNKED + b"".join(b"1\r\n%c\r\n" % byte for byte in BODY) + b"0\r\n\r\n"), READABLE),
    "a chunk without its end": (raw(CHUNKED + CHUNKS.rstrip()), LOST),
    "another transfer encoding": (headed(b"Transfer-Encoding: gzip"), LOST),
    "a trailer of 1 MB": (raw(CHUNKED + CHUNKS + b"0\r\nX: " + b"x" * 1_000_000), LOST + READABLE),
    "a refusal that is a bomb": (coded(b"gzip", _GZIP, b"HTTP/1.1 520 No\r\n"), DOUBT),
    "gzip that is none": (coded(b"gzip", BODY), NOT_WHOLE),
    "reset in the first line": (then(raw(b"HTTP/1.1 2"), reset), LOST),
    "closed in the head": (raw(OK + b"Content-Le"), LOST),
    "reset in the body": (then(raw(OK + LENGTH + b"\r\n" + BODY[:20]), reset), LOST),
    "HTTP/11": (headed(first=b"HTTP/11 200 OK\r\n"), LOST),
    "ICY": (headed(first=b"ICY 200 OK\r\n"), LOST),
    "a signed status": (headed(first=b"HTTP/1.1 +200 OK\r\n"), LOST + READABLE),
    "a status with an underscore": (headed(first=b"HTTP/1.1 2_00 OK\r\n"), LOST + READABLE),
    "a status of 5,000 digits": (headed(first=b"HTTP/1.1 " + b"2" * 5000 + b" OK\r\n"), LOST),
    "lower-case http": (headed(first=b"http/1.1 200 ok\r\n"), LOST),
    "a header name of 60,000 characters": (headed(b"x" * 60_000 + b": 1"), LOST + READABLE),
    "101 headers": (headed(*[b"X-More: 1"] * 101), LOST + READABLE),
    "direction marks in headers": (headed("X-Odd: \u202e\u2066".encode()), READABLE),
    "a cookie of nonsense": (headed(b"Set-Cookie: =;;;=\xff; expires=never; domain=."), READABLE),
    "mail": (raw(b"220 mail.example ESMTP\r\n"), LOST),
    "SSH": (raw(b"SSH-2.0-OpenSSH_9.6\r\n"), LOST),
    "zeros": (raw(bytes(100_000)), LOST),
    "From, as in a mailbox": (headed(b"From someone Sat Nov 21 2026"), READABLE + LOST),
    "empty lines before it": (raw(b"\r\n" * 10 + OK + LENGTH + b"\r\n" + BODY), LOST + READABLE),
    "a status in other digits": (headed(first="HTTP/1.1 ２００ OK\r\n".encode()), LOST),
    "a negative status": (headed(first=b"HTTP/1.1 -200 OK\r\n"), LOST),
    "HTTP/1.0": (headed(first=b"HTTP/1.0 200 OK\r\n"), READABLE),
    "a head that begins folded": (headed(b" X-Odd: a"), LOST),
    "a signed length": (sized(b"+%d" % len(BODY)), LOST),
    "a length of 5,000 digits": (sized(b"9" * 5000), LOST),
    "a length of nothing": (sized(b""), LOST),
    "two lengths in a list": (sized(b"5, %d" % len(BODY)), LOST),
    "a chunk of no size": (raw(CHUNKED + b"\r\n" + BODY), LOST),
    "a chunk size that is none": (raw(CHUNKED + b"zz\r\n" + BODY), LOST),
    "a chunk size of 1 MB": (raw(CHUNKED + b"1" * 1_000_000), LOST),
    "odd chunk extensions": (raw(CHUNKED + CHUNKS.replace(b"\r\n", b';\x1b[31m="\r\n', 1) + b"0;x\r\n\r\n"), READABLE),
    "trailers": (raw(CHUNKED + CHUNKS + b"0\r\nContent-Length: 1\r\nX: \x1b\r\n\r\n"), READABLE),
    "no length, and half of it": (raw(OK + b"Connection: close\r\n\r\n" + BODY[:-9]), UNREADABLE),
    "the same length twice": (sized(b"%d, %d" % (len(BODY), len(BODY))), READABLE + LOST),
    "another answer after it": (raw((OK + LENGTH + b"\r\n" + BODY) * 3), READABLE),
    "a bomb in zstd": (coded(b"zstd", b"\x28\xb5\x2f\xfd\x80" + b"\xff" * 8), NOT_WHOLE),
    "a coding that nobody knows": (coded(b"\x1b[31m", BODY), NOT_WHOLE),
    "a bomb in gzip twice": (coded(b"gzip, gzip", gzip.compress(_GZIP)), NOT_WHOLE),
    "closed in the first line": (raw(b"HTTP/1.1 2"), LOST),
    "closed after the head": (raw(OK + LENGTH + b"\r\n"), LOST),
    "a length in hexadecimal": (sized(b"0x%x" % len(BODY)), LOST),
    "a chunk of 2^64 bytes": (raw(CHUNKED + b"10000000000000000\r\n" + BODY), LOST),
    "chunked twice": (headed(b"Transfer-Encoding: chunked, chunked"), LOST),
}  # fmt: skip


def _bodies() -> Iterator[Hostile]:
    for name, (body, verdicts) in BODIES.items():
        yield Hostile(f"{name}, as a body", answer(body), verdicts)
    for name, number in NUMBERS.items():
        yield Hostile(f"{name}, in every number", answer(of_numbers(number)), EITHER)
    for name, text in TEXTS.items():
        yield Hostile(f"{name}, in every field", answer(body_of(text)), READABLE)
    for status in (400, 520):
        texts = list(TEXTS.values())
        record = {"error": "".join(texts), "msg": dict.fromkeys(texts, texts)}
        yield Hostile(f"every odd text, in an error of {status}", answer(record, status), REFUSED)


# --- statuses, redirects, content types

HTML = b"<!DOCTYPE html><html><body><h1>Something went wrong</h1></body></html>"
STATUSES = (
    dict.fromkeys((201, 202, 206), READABLE)
    | dict.fromkeys((402, 429), REFUSED)
    | dict.fromkeys((304, 408, 409, 503, 999), DOUBT)
    | {204: UNREADABLE}
)
ELSEWHERE = "https://other.example/?key={key}"
LOCATIONS = {
    "to another host, with the key": "https://other.example/login?key={key}&next=%2F{key}",
    "with the key in the host": "https://{key}.other.example/",
    "with the key as its user": "https://12345:{key}@other.example/",
    "to plain http": "http://other.example/api/v1",
    "to a file": "file:///etc/passwd",
    "to a script": "javascript:alert(1)",
    "to no URL": "http://[::1",
    "of escape sequences": "\x1b[31mhttps://x\x9b/\x07",
    "of direction marks": "https://\u202ex.example/\u2066",
    "to nowhere": "",
    "of 60,000 characters": "https://other.example/" + "x" * 60_000,
}


def redirect(status: int, location: str) -> Behaviour:
    where = location.replace("{key}", KEY).encode()
    return raw(b"HTTP/1.1 %d Go\r\nContent-Length: 0\r\nLocation: %s\r\n\r\n" % (status, where))


def _statuses() -> Iterator[Hostile]:
    for status, verdict in STATUSES.items():
        yield Hostile(f"{status} with the record", answer(BODY, status), verdict)
    yield Hostile("204 with an HTML page", answer(HTML, 204, {"Content-Type": "text/html"}), UNREADABLE)
    yield Hostile("500 with an HTML page", answer(HTML, 500, {"Content-Type": "text/html"}), DOUBT)
    for status in (301, 303, 308):
        yield Hostile(f"{status} to another host", redirect(status, ELSEWHERE), DOUBT if status == 303 else REFUSED)
    for kind in ("text/html", "\x1b[31m", "multipart/mixed; boundary=x"):
        yield Hostile(f"JSON as {kind!r}", answer(BODY, headers={"Content-Type": kind}), READABLE)


def _redirects() -> Iterator[Hostile]:
    for name, location in LOCATIONS.items():
        yield Hostile(f"a redirect {name}", redirect(302, location), DOUBT + LOST)


ANSWERS: tuple[Hostile, ...] = (
    *(Hostile(name, *entry) for table in (BROKEN_HTTP, LENGTHS, CODED, ENDS) for name, entry in table.items()),
    *_bodies(),
    *_statuses(),
)
"""The answers that every command gets."""

VARIANTS: tuple[Hostile, ...] = (
    *(Hostile(name, *entry) for name, entry in MORE.items()),
    *(Hostile(f"{name}, as a body", answer(body), verdicts) for name, (body, verdicts) in MORE_BODIES.items()),
    *_redirects(),
)
"""Variants of them, for one command that reads and one that sends."""

SLOW: tuple[Hostile, ...] = (
    Hostile("silence", silent, LOST),
    Hostile("a first line that drips", drip(b"HTTP/1.1 200", b"0"), LOST),
    Hostile("a head that drips", drip(OK, b"X: y\r\n"), LOST),
    Hostile("a header that drips", drip(OK + b"X: ", b"y"), LOST),
    Hostile("interim answers that drip", drip(piece=b"HTTP/1.1 100 Continue\r\n\r\n"), LOST),
    Hostile("a body that drips", drip(OK + b"Content-Length: 100000\r\n\r\n", b" "), LOST),
    Hostile("a body without end that drips", drip(OK + b"Connection: close\r\n\r\n", b" "), LOST),
    Hostile("chunks that drip", drip(CHUNKED, b"1\r\n \r\n"), LOST),
    Hostile("a chunk extension that drips", drip(CHUNKED + b"1;", b"x"), LOST),
    Hostile("trailers that drip", drip(CHUNKED + CHUNKS + b"0\r\n", b"X: y\r\n"), LOST),
    Hostile("a refusal that drips", drip(b"HTTP/1.1 401 No\r\nContent-Length: 100000\r\n\r\n", b" "), REFUSED),
)
"""Answers that take as long as the server likes."""
