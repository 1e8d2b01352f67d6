"""Responses that are small to send and large to hold, or as large as allowed: memory and time are limited."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import msgctl
from hostile.exit_codes import CSV, Verdict, check
from hostile.responses import CHUNKED, Hostile
from support.request_lines import Line
from support.service import Service, raw, respond
from support.tool import Outcome

MAX_MEMORY = 2**30
"""Bytes of address space."""
MAX_SECONDS = 100
MIB = 2**20

# One process for all: it says how each run ended.
RUN = """
import json, resource, sys
memory, seconds, lines = json.loads(sys.stdin.read())
resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
from support.tool import Tool
for arguments in lines:
    outcome = Tool()(*arguments)
    print(json.dumps([outcome.code, outcome.err]), flush=True)
"""


def filled(head: bytes, piece: bytes, tail: bytes, size: int = 16 * MIB) -> bytes:
    """A document of all but ``size`` bytes."""
    return head + piece * ((size - len(head) - len(tail)) // len(piece)) + tail


HEAD = b'{"status":1,"id":"d","more":['


def cheap_bombs() -> list[Hostile]:
    return [
        Hostile("gzip that is not named", respond(gzip.compress(bytes(32 * MIB), 1)), Verdict.UNREADABLE),
        Hostile("16 MiB of brackets", respond(filled(b'{"status":', b"[", b"")), Verdict.UNREADABLE),
        Hostile("16 MiB and a little", respond(filled(HEAD, b"1,", b"1]}") + b" " * 100), Verdict.NOT_WHOLE),
        Hostile("chunks without end", raw(CHUNKED + (b"100000\r\n" + b" " * MIB + b"\r\n") * 20), Verdict.NOT_WHOLE),
    ]


def dear_bombs() -> list[Hostile]:
    """Those that take seconds to read."""
    controls = filled(b'{"status":1,"id":"', b"\xc2\x9b", b'"}', 2 * MIB)
    errors = filled(b'{"error":[', b'"a",', b'1],"msg":""}', 4 * MIB)
    return [
        Hostile("16 MiB of numbers", respond(filled(HEAD, b"1,", b"1]}")), Verdict.READABLE),
        Hostile("1 MiB of objects", respond(filled(HEAD, b"{},", b"1]}", MIB)), Verdict.READABLE),
        Hostile("2 MiB of controls", respond(controls), Verdict.READABLE),
        Hostile("4 MiB of errors", respond(errors, 520), Verdict.REFUSED),
    ]


def run_all(lines: list[list[str]]) -> list[Outcome]:
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps([MAX_MEMORY, MAX_SECONDS, lines]),
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * MAX_SECONDS,
        cwd=Path(__file__).parents[1],
        env={**os.environ, "PYTHONPATH": str(Path(msgctl.__file__).parents[1])},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [Outcome(code, b"", err.encode()) for code, err in map(json.loads, done.stdout.splitlines())]


def test_no_response_fills_the_memory_or_takes_indefinitely(lines: list[Line], server: Service) -> None:
    read, send = (line for path in ("balance show", "block add") for line in lines if line.path == path)
    bombs = cheap_bombs()
    asked = [(bomb, read) for bomb in bombs + dear_bombs()] + [(bomb, send) for bomb in bombs]
    server.will(*(bomb.behaviour for bomb, _ in asked))
    outcomes = run_all([["--quiet", *CSV, *line.arguments] for _, line in asked])
    for (bomb, line), outcome in zip(asked, outcomes, strict=True):
        check(bomb.name, bomb.verdict, line, CSV, outcome)
    assert server.unused == 0
