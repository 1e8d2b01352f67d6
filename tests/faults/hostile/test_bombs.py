"""Responses that expand in memory, or are as large as allowed, use limited memory and time."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import uuid
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

import msgctl
from faults.hostile.exit_codes import CSV, INCOMPLETE, JSON, NOT_JSON, REFUSED, TABLE, check
from faults.hostile.responses import CHUNKED, Hostile
from msgctl import operations as ops
from msgctl.http.request import build
from support.request_lines import Line
from support.service import Service, raw, respond
from support.tool import Outcome, Tool

MIB = 2**20
MAX_COMMAND = 256 * MIB
MAX_JOB = 512 * MIB
MAX_SECONDS = 100
"""Processor time of all runs of a test; without a limit, one of these responses takes longer."""

# One process for all: it prints how each run ended, and the peak of its own memory.
RUN = """
import json, re, resource, sys
from pathlib import Path
seconds, lines = json.loads(sys.stdin.read())
resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
from support.tool import Tool
for arguments, screen in lines:
    outcome = Tool()(*arguments, screen=screen)
    print(json.dumps([outcome.code, outcome.err]), flush=True)
print(re.search("VmHWM:\\\\s+([0-9]+) kB", Path("/proc/self/status").read_text())[1])
"""
PHONES = [str(573_000_000_000 + number) for number in range(100)]
TEXT = "😀" * 550
LONG = ("-m", TEXT, "--max-segments", "20")
SEND = build(ops.SEND_SMS, {"phone": PHONES, "sms": TEXT})
SIXTY_FOUR = 64


def filled(head: bytes, piece: bytes, tail: bytes, size: int) -> bytes:
    """A document of almost ``size`` bytes. A ``%d`` in the piece is its number."""
    if b"%d" not in piece:
        return head + piece * ((size - len(head) - len(tail)) // len(piece)) + tail
    number = (size - len(head) - len(tail)) // (len(piece) + 5)
    return head + b"".join(piece % place for place in range(number)) + tail


HEAD = b'{"status":1,"id":"d","urlShort":"u","more":['
THOUSAND = b'"data":[' + b"{}," * 1000 + b"{}]"
PIECES: dict[str, tuple[bytes, bytes, bytes]] = {
    "small strings": (HEAD, b'"ab",', b"1]}"),
    "entries": (b'{"status":1,"id":"d","urlShort":"u","data":[', b'{"id":1},', b'{"id":1}]}'),
    "newlines": (b"", b"\n", HEAD + b"]}"),
    "numbers": (HEAD, b"1234,", b"1]}"),
    "fractions": (HEAD, b"-1.5,", b"1]}"),
    "a number of many digits": (HEAD, b"1", b"]}"),
    "nested arrays": (HEAD + b"[" * 500, b"[[]],", b"1" + b"]" * 501 + b"}"),
    "objects of one field": (HEAD, b'{"a":1},', b"1]}"),
    "objects": (HEAD, b'{"":{}},', b"1]}"),
    "controls": (b'{"status":1,"id":"d","urlShort":"', b"\xc2\x9b", b'"}'),
    "fields for a thousand entries": (HEAD[:-8] + THOUSAND, b',"%d":1', b"}"),
    "an ID for a thousand entries": (
        b'{"status":1,"urlShort":"u","data":[' + b"{}," * 1000 + b'{}],"id":"',
        b"x",
        b'"}',
    ),
}
"""Content of responses: the beginning, the piece that is repeated, and the end."""
UNREADABLE = {
    "url stats": ("nested arrays", "objects of one field", "objects"),
    "state get": ("nested arrays", "entries", "fields for a thousand entries", "an ID for a thousand entries"),
}
"""The commands that cannot read a body of the largest size: it has too many values, levels or messages."""


def run_all(lines: Sequence[tuple[Sequence[str], bool]], seconds: int = MAX_SECONDS) -> tuple[list[Outcome], int]:
    """Run command lines, each on a screen or not; return their outcomes and the peak of the memory in bytes.

    ``seconds`` limits their processor time.
    """
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input=json.dumps([seconds, lines]),
        capture_output=True,
        text=True,
        check=False,
        timeout=4 * seconds,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": str(Path(msgctl.__file__).parents[1])},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    *outcomes, peak = done.stdout.splitlines()
    return [Outcome(code, b"", err.encode()) for code, err in map(json.loads, outcomes)], int(peak) * 1024


def too_large() -> list[Hostile]:
    successes = [
        Hostile(f"6 MiB of {name}", respond(filled(*PIECES[name], size=6 * MIB)), INCOMPLETE)
        for name in ("small strings", "entries", "newlines")
    ]
    return [
        *successes,
        Hostile("6 MiB of a refusal", respond(filled(HEAD, b"1,", b"1]}", 6 * MIB), 403), REFUSED),
        Hostile("chunks without end", raw(CHUNKED + (b"100000\r\n" + b" " * MIB + b"\r\n") * 6), INCOMPLETE),
        Hostile("gzip that is not named", respond(gzip.compress(bytes(32 * MIB), 1)), NOT_JSON),
    ]


def test_a_response_that_is_too_large_is_not_read(lines: list[Line], server: Service) -> None:
    asked = [
        (bomb, line) for path in ("block add", "api") for line in lines if line.path == path for bomb in too_large()
    ]
    server.will(*(bomb.behaviour for bomb, _ in asked))
    outcomes, peak = run_all([(("--quiet", *JSON, *line.arguments), False) for _, line in asked])
    for (bomb, line), outcome in zip(asked, outcomes, strict=True):
        check(bomb.name, bomb.codes.of(line), line, JSON, outcome)
    assert server.unused == 0
    assert peak < MAX_COMMAND / 2


@pytest.mark.slow
def test_no_response_takes_much_memory_or_time(lines: list[Line], server: Service) -> None:
    stats = next(line for line in lines if line.path == "url stats")
    send = Line("sms send", ("sms", "send", *PHONES, *LONG), reads=False)
    state = Line("state get", ("state", "get", "m1"), reads=True)
    api = Line("api", ("api", "GET", "/anything"), reads=True)
    states = build(ops.MESSAGES_STATE, {"id": "m1"}).max_response
    sizes = [(stats, CSV, 4 * MIB), (send, TABLE, SEND.max_response), (state, TABLE, states), (api, JSON, 4 * MIB)]
    asked = [(name, line, form, size) for line, form, size in sizes for name in PIECES]
    server.will(*(respond(filled(*PIECES[name], size=size)) for name, _, _, size in asked))
    # On a terminal, except for csv.
    runs = [(("--quiet", "--no-color", *form, *line.arguments), form != CSV) for _, line, form, _ in asked]
    outcomes, peak = run_all(runs)
    for (name, line, form, _), outcome in zip(asked, outcomes, strict=True):
        code = int(name in UNREADABLE.get(line.path, ()))
        if line is send and name != "newlines":  # the response is too long to be judged
            code = 5
        check(name, code, line, form, outcome)
    assert server.unused == 0
    assert peak < MAX_COMMAND


@pytest.mark.slow
@pytest.mark.parametrize("name", ["small strings", "numbers"])
def test_64_large_responses_at_the_same_time_take_little_memory(name: str, server: Service, tmp_path: Path) -> None:
    recipients = SIXTY_FOUR * len(PHONES)
    file = tmp_path / "people.csv"
    file.write_text("phone\n" + "".join(f"{573_000_000_000 + number}\n" for number in range(recipients)))
    server.always(respond(filled(*PIECES[name], size=SEND.max_response)))
    options = ("--yes", "--quiet", "--json", "--batch-size", str(len(PHONES)), "--concurrency", str(SIXTY_FOUR))
    [outcome], peak = run_all([(("sms", "bulk", str(file), *LONG, *options), False)])
    assert outcome.code == 6, outcome.err
    assert len(server.received) > SIXTY_FOUR / 2
    assert peak < MAX_JOB


ONE_RECORD: dict[str, Any] = {"status": 1, "id": "m100001"}
NAMES = dict.fromkeys((f"k{number:x}" for number in range(20_000)), 1)


@pytest.mark.parametrize(
    ("more", "code"),
    [
        (dict(islice(NAMES.items(), 300)), 0),
        (dict(islice(NAMES.items(), 400)), 5),
        (NAMES, 5),
        ({"more": [1] * 1_900}, 0),
        ({"more": [1] * 2_100}, 5),
        ({"more": [*NAMES][:300]}, 0),
        ({"more": [*NAMES][:400]}, 5),
        ({"more": ["x" * 3_900 + str(number) for number in range(5)]}, 0),
        ({"more": ["x" * 3_900 + str(number) for number in range(6)]}, 5),
        ({"more": ["é" * 3_900]}, 0),
        ({"more": ["é" * 3_900, "è" * 3_900]}, 5),
        ({"sms": TEXT, "message": [TEXT] * 10}, 0),  # a text of the request may be repeated
    ],
    ids=range(12),
)
def test_a_response_with_more_names_and_texts_than_a_send_needs_is_unknown(
    more: dict[str, Any], code: int, service: Service, tool: Tool
) -> None:
    service.always(respond({**ONE_RECORD, **more}))
    outcome = tool("sms", "send", PHONES[0], *LONG, "--quiet", "--json")
    assert outcome.code == code, outcome.err


@pytest.mark.parametrize("status", [401, 429])
def test_a_refusal_with_more_names_than_a_send_needs_is_unknown(status: int, service: Service, tool: Tool) -> None:
    service.always(respond(NAMES, status))
    assert tool("sms", "send", PHONES[0], *LONG, "--quiet", "--json").code == 5


def test_a_response_about_a_thousand_recipients_is_read(service: Service, tool: Tool, tmp_path: Path) -> None:
    phones = [str(573_000_000_000 + number) for number in range(1_000)]
    file = tmp_path / "people.csv"
    file.write_text("phone\n" + "\n".join(phones))
    usual = {"status": "Enviado", "credits": "1", "country": "CO", "operator": "Móvil", "segments": 1, "sms": "Hola"}
    data = [
        {
            **usual,
            "id": str(uuid.uuid4()),
            "reference": str(uuid.uuid4()),
            "date": f"2026-09-21T{phone}",
            "phone": phone,
        }
        for phone in phones
    ]
    service.always(respond({**ONE_RECORD, "data": data}))
    options = ("--yes", "--quiet", "--json", "--batch-size", "1000")
    assert tool("sms", "bulk", str(file), "-m", "Hola", *options).code == 0


def test_64_responses_of_many_names_take_little_time(server: Service, tmp_path: Path) -> None:
    file = tmp_path / "people.csv"
    file.write_text("phone\n" + "\n".join(PHONES[:SIXTY_FOUR]))
    server.always(respond({"status": "zza", "state": "zzb", "msg": "zzc", "message": "zzd", **NAMES}))
    options = ("--yes", "--quiet", "--json", "--batch-size", "1", "--concurrency", str(SIXTY_FOUR))
    [outcome], _ = run_all([(("sms", "bulk", str(file), "-m", "Hola", *options), False)], seconds=20)
    assert outcome.code == 6, outcome.err
