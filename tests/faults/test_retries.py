"""Only requests that change nothing are retried after a lost response, because a second message costs money."""

from __future__ import annotations

import json
import re
import socket
import ssl
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
import trustme

from support import PATIENCE
from support.commands import MADE_ONCE, PHONE, READS, SENDS, Command, each
from support.jobs import numbers, of_phones
from support.server import Server
from support.service import Behaviour, Service, certified, drip, drop, raw, reset, respond, running, silent
from support.tool import Tool

BALANCE, SMS = READS["balance"], SENDS["sms send"]
BOTH = {"balance": BALANCE, "sms send": SMS}
"""A command that reads, and one that sends."""
LATE = ("--timeout", "0.25")
BAD_LUCK: dict[str, Behaviour] = {
    "closed": drop,
    "reset": reset,
    "half a response": raw(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"status": 1'),
    "garbage": raw(b"\x00\x01\x02\x03\r\n\r\n"),
    "429": respond(b"", 429),
    "502": respond(b"<html>", 502),
    "503": respond({"error": "busy", "msg": "later"}, 503, {"Retry-After": "3600"}),
    "504": respond(b"", 504),
}
SLOWNESS: dict[str, Behaviour] = {
    "silent": silent,
    "dripping head": drip(b"HTTP/1.1 200 OK\r\nX-Slow: "),
    "dripping body": drip(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n{"),
    "endless body": drip(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{"),
    "endless 100 Continue": drip(piece=b"HTTP/1.1 100 Continue\r\n\r\n"),
    "dripping chunks": drip(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
}


@pytest.mark.parametrize("name", BAD_LUCK)
def test_a_read_is_made_up_to_three_times_with_growing_pauses(name: str, service: Service, tool: Tool) -> None:
    service.always(BAD_LUCK[name])
    assert tool(*BALANCE.line).code == (1 if name == "half a response" else 4)
    assert len(service.received) == 3
    first, second = tool.clock.slept
    assert 0 < first < second < 10
    for command in READS.values():
        service.received.clear()
        service.will(BAD_LUCK[name], BAD_LUCK[name], respond(command.record))
        outcome = tool(*command.line)
        assert (outcome.code, outcome.err) == (0, ""), command
        assert len({(request.method, request.target, request.body) for request in service.received}) == 1


@pytest.mark.parametrize(("timeout", "attempts"), [("1", 2), ("0.3", 1)])
def test_all_attempts_and_pauses_share_the_time_limit(
    timeout: str, attempts: int, service: Service, tool: Tool
) -> None:
    service.always(respond(b"", 503))
    assert tool(*BALANCE.line, "--timeout", timeout, sleep=time.sleep).code == 4
    assert len(service.received) == attempts


def test_the_last_attempt_ends_at_the_time_limit(service: Service, tool: Tool) -> None:
    service.will(drop, silent)
    outcome = tool(*BALANCE.line, "--timeout", "1.5")
    assert outcome.code == 4
    assert re.search(r"within [01](\.[0-4]\d?)? seconds?", outcome.err), outcome.err


@pytest.mark.parametrize("name", BAD_LUCK)
def test_requests_that_send_or_change_are_made_once(name: str, service: Service, tool: Tool) -> None:
    service.always(BAD_LUCK[name])
    for number, command in enumerate(MADE_ONCE.values(), 1):
        outcome = tool(*command.line)
        assert outcome.code == (4 if name == "429" else 5), command
        assert len(service.received) == service.connections == number, command
    assert tool.clock.slept == []


@each(BOTH)
def test_a_request_with_any_other_response_is_not_retried(command: Command, service: Service, tool: Tool) -> None:
    responses = [respond(b"[7]"), *(respond(b"", each) for each in (301, 400, 401, 404, 408, 500, 501, 505, 520))]
    service.will(*responses)
    for _ in responses:
        assert tool(*command.line).code != 0
    assert len(service.received) == len(responses)
    assert tool.clock.slept == []


@pytest.mark.parametrize(
    ("command", "slowness"),
    [*((SMS, name) for name in SLOWNESS), (BALANCE, "dripping head"), (BALANCE, "dripping body")],
)
def test_a_request_without_a_response_in_time_is_not_retried(
    command: Command, slowness: str, service: Service, tool: Tool
) -> None:
    service.always(SLOWNESS[slowness])
    outcome = tool(*command.line, *LATE)
    assert outcome.code == (4 if command is BALANCE else 5), outcome.err
    assert "0.25 seconds" in outcome.err
    assert (len(service.received), tool.clock.slept) == (1, [])


def test_a_refusal_whose_body_never_ends_is_still_a_refusal(service: Service, tool: Tool) -> None:
    service.always(drip(b"HTTP/1.1 401 No\r\nContent-Length: 100000\r\n\r\n"))
    assert tool(*SMS.line, *LATE).code == 1


def test_the_commands_of_the_sandbox_end_at_the_time_limit(service: Service, tool: Tool) -> None:
    service.always(SLOWNESS["dripping body"])
    assert tool("sandbox", "credit", "5", *LATE).code == 3


# --- requests that were not sent


@pytest.fixture
def tls_service(
    authority: trustme.CA, trusted: None, monkeypatch: pytest.MonkeyPatch, service: Service
) -> Iterator[Service]:
    """A service with TLS: nothing is sent before the end of the handshake."""
    with running(certified(authority, "127.0.0.1")) as server:
        monkeypatch.setenv("MSGCTL_BASE_URL", server.base_url)
        yield server


@each(BOTH)
def test_an_unsent_request_is_retried_and_arrives_once(command: Command, tls_service: Service, tool: Tool) -> None:
    tls_service.hang_up(2)
    tls_service.will(respond(command.record))
    assert tool(*command.line).code == 0
    assert (tls_service.connections, len(tls_service.received)) == (3, 1)


def test_a_send_is_not_retried_after_its_request_was_sent(tls_service: Service, tool: Tool) -> None:
    tls_service.hang_up(1)
    tls_service.will(drop)
    assert tool(*SMS.line).code == 5
    assert (tls_service.connections, len(tls_service.received)) == (2, 1)


def test_a_send_that_tls_could_not_write_is_retried_and_arrives_once(
    tls_service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    send = ssl.SSLSocket.send

    def fail(*_: object) -> NoReturn:
        monkeypatch.setattr(ssl.SSLSocket, "send", send)
        raise BrokenPipeError

    monkeypatch.setattr(ssl.SSLSocket, "send", fail)
    tls_service.will(respond(SMS.record))
    assert tool(*SMS.line).code == 0
    assert (tls_service.connections, len(tls_service.received)) == (2, 1)


def test_a_service_that_closes_connections_is_not_reached_after_three_attempts(
    tls_service: Service, tool: Tool
) -> None:
    tls_service.hang_up(100)
    assert tool("sms", "send", PHONE, "-m", "Hola").code == 4
    assert tls_service.connections == 3


def test_a_handshake_that_does_not_end_in_time_exits_with_4(
    service: Service, monkeypatch: pytest.MonkeyPatch, tool: Tool
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        monkeypatch.setenv("MSGCTL_BASE_URL", f"https://127.0.0.1:{mute.getsockname()[1]}/api/v1")
        outcome = tool(*SMS.line, *LATE, "--json")
    assert (outcome.error["reason"], outcome.error["nothing_sent"]) == ("not_reached", True)
    assert tool.clock.slept == [], "retries have no time left"


# --- a service that is away


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    server = Server()
    monkeypatch.setenv("MSGCTL_BASE_URL", server.base_url)
    monkeypatch.setenv("MSGCTL_CLIENT", "1")
    monkeypatch.setenv("MSGCTL_KEY", "a-key")
    yield server
    server.stop()


def test_a_job_waits_for_a_service_that_is_away(server: Server, home: Path) -> None:
    server.script("waits", 200, "", None, "")
    options = ("-m", "Hello", "--batch-size", "1", "--concurrency", "1", "--yes", "--json")
    command = [sys.executable, "-m", "msgctl", "-v", "sms", "bulk", of_phones(home, numbers(3)), *options]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=-1, stderr=-1, text=True) as process:
        assert process.stderr is not None
        assert server.wait_for(1, None, PATIENCE)
        server.go_down()  # the request in flight gets its response
        for _ in range(2):
            assert any(line.startswith("< not sent POST") for line in process.stderr)
        server.come_back()
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert json.loads(out)["accepted"] == 3
    assert sorted(phone for request in server.requests(None) for phone in request.phones) == numbers(3)
