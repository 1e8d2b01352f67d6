"""The output of -v and -vv: limited, and without characters that act on a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from faults.hostile.exit_codes import unsafe
from msgctl.text import is_unsafe
from support.service import Behaviour, Service, raw, respond
from support.terminal import Terminal, in_a_terminal
from support.tool import Tool

ASSIGNED = (*range(0xD800), *range(0xE000, 0x20000), *range(0xE0000, 0xE1000))  # other planes have only ideographs
CONTROLS = "".join(char for char in map(chr, ASSIGNED) if is_unsafe(char))
OSC = "\x1b]52;c;Y2F0\x07\x1b]8;;file:///etc/passwd\x1b\\link\x1b]8;;\x1b\\\x9b31m\x9d0;title\x9c"


def of_controls(body: bytes) -> Behaviour:
    """Return a response with all bytes that a server can put into its reason and headers, and this body."""
    obsolete = bytes(range(0x80, 0x100))  # RFC 9112, section 4: "obs-text"; it includes C1
    head = b"HTTP/1.1 200 \x9b31m\xc2\x9b%s\r\nX-Odd: \x9d0;t\x9c%s\r\n" % (obsolete, obsolete)
    return raw(head + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


@pytest.mark.parametrize(
    ("flags", "body"),
    [
        (("-vv",), f"{OSC}{CONTROLS}".encode()),
        (("-v",), json.dumps({"status": 1, "more": OSC}).encode()),
        (("-vv", "--json"), bytes(range(256))),
        (("-vv",), b"\x1b]52;c;Y"),
    ],
    ids=["text", "JSON", "bytes", "half a sequence"],
)
def test_no_control_character_of_a_response_reaches_the_terminal(
    body: bytes, flags: tuple[str, ...], service: Service, tool: Tool
) -> None:
    service.will(of_controls(body))
    done = tool("--no-color", *flags, "balance", terminal=True)
    assert (done.code, unsafe(done.out + done.err), "X-Odd: \\" in done.err) == (1, set(), "-vv" in flags)


@in_a_terminal
def test_no_control_character_of_a_request_reaches_the_terminal(service: Service, home: Path) -> None:
    body = home / "body.json"
    above_ascii = "".join(char for char in CONTROLS if char > "\x7f")
    body.write_text(json.dumps({"phone": "1", "body": [above_ascii]}, ensure_ascii=False), encoding="utf-8")
    service.will(respond({"id": "d1", "status": "sent"}))
    with Terminal("--no-color", "-vv", "chatapp", "send", "--template", "t", "--body", str(body)) as terminal:
        assert terminal.end() == 0
        assert unsafe(terminal.shown.decode().replace("\r\n", "\n")) == set()
        assert b"\\u202e" in terminal.shown


PLAIN = {f"X-{number}": "v" for number in range(150)}
LONG = {f"X-{number}": "v" * 900 for number in range(9)}


@pytest.mark.parametrize(
    ("headers", "body", "lines"),
    [
        (PLAIN, b"", 101),
        (LONG, b"", 8),
        ({"X-Odd": "\x9b" * 5000}, b"", 4),
        ({}, b"\n" * 2**18, 101),
        ({}, b"x\n" * 99 + b"y" * 2**18, 100),
        ({}, b"\x9b" * 5000, 1),
        ({}, "\x9b".encode() * 5000, 1),
    ],
    ids=["header lines", "headers", "escapes in headers", "lines", "characters", "bytes", "escapes"],
)
def test_headers_and_bodies_are_shown_up_to_a_limit(
    headers: dict[str, str], body: bytes, lines: int, service: Service, tool: Tool
) -> None:
    service.will(respond(body, headers=headers))
    _, *shown = [line[2:] for line in tool("-vv", "balance").err.split("\n") if line.startswith("<")]
    if body:
        assert shown[2] == "Connection: close"
        shown = shown[3:]
    assert len(shown) == lines
    assert shown[-1].endswith("…")
    assert 0 < sum(map(len, shown)) <= 4001  # with the ellipsis of a line that is left out


def test_a_body_of_exactly_the_limit_is_shown_whole(service: Service, tool: Tool) -> None:
    for body, last in (("x" * 4000, "x" * 4000), ("x" * 4001, "x" * 3999 + "…"), ("x" * 3999 + "\ny", "y")):
        service.will(respond(body.encode()))
        assert tool("-vv", "balance").err.split("< ")[-1].split("\n")[0] == last
