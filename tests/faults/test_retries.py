"""Requests that are retried after a lost response, and requests that never are: a second message costs money and
trust.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

from support.commands import MADE_ONCE, PHONE, READS, SENDS, Command, each
from support.jobs import Jobs, accepting, numbers, of_phones
from support.service import Behaviour, Service, drip, drop, raw, reset, respond, running, silent
from support.tool import Tool

BOTH = {"balance": READS["balance"], "sms send": SENDS["sms send"]}
"""A command that reads, and one that sends."""
LATE = ("--timeout", "0.3")
CUT = raw(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"status": 1')
BAD_LUCK: dict[str, Behaviour] = {
    "closed": drop,
    "reset": reset,
    "half a response": CUT,
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


@pytest.mark.parametrize(
    ("command", "name"), [*(("balance", each) for each in BAD_LUCK), ("state get", "closed"), ("url stats", "503")]
)
def test_a_read_is_made_up_to_three_times_with_growing_pauses(
    command: str, name: str, service: Service, tool: Tool
) -> None:
    service.always(BAD_LUCK[name])
    outcome = tool(*READS[command].line)
    assert outcome.code == (1 if name == "half a response" else 4)
    assert len(service.received) == 3
    first, second = tool.clock.slept
    assert 0 < first < second < 10


@pytest.mark.parametrize("behaviour", list(BAD_LUCK.values()), ids=list(BAD_LUCK))
def test_a_read_succeeds_if_a_retry_does(behaviour: Behaviour, service: Service, tool: Tool) -> None:
    command = READS["state get"]
    service.will(behaviour, behaviour, respond(command.record))
    outcome = tool(*command.line)
    assert (outcome.code, outcome.err) == (0, "")
    assert len(service.received) == 3
    assert len({(each.method, each.target, each.body) for each in service.received}) == 1


@pytest.mark.parametrize("name", BAD_LUCK)
def test_requests_that_send_or_change_are_made_once(name: str, service: Service, tool: Tool) -> None:
    service.always(BAD_LUCK[name])
    for number, command in enumerate(MADE_ONCE.values(), 1):
        outcome = tool(*command.line)
        assert outcome.code == (4 if name == "429" else 5), command
        assert len(service.received) == service.connections == number, command
    assert tool.clock.slept == []


@each(BOTH)
def test_other_statuses_are_not_retried(command: Command, service: Service, tool: Tool) -> None:
    statuses = (301, 400, 401, 403, 404, 408, 500, 501, 505, 520)
    for status in statuses:
        service.will(respond({"error": "no", "msg": "no"}, status))
        code = 1
        if status in (408, 500, 501, 505, 520):
            code = 4 if command in READS.values() else 5
        elif status == 400 and command not in READS.values():
            code = 5
        assert tool(*command.line).code == code, status
    assert len(service.received) == len(statuses)
    assert tool.clock.slept == []


@each(READS)
def test_a_complete_but_unreadable_response_is_not_requested_again(
    command: Command, service: Service, tool: Tool
) -> None:
    service.will(respond(b"[7]"))
    assert tool(*command.line).code == 1
    assert tool.clock.slept == []


@pytest.mark.parametrize(
    ("command", "slowness"),
    [*(("sms send", each) for each in SLOWNESS), ("chatapp send", "silent"), ("2fa verify", "dripping body")],
)
def test_a_send_without_a_response_in_time_is_not_retried(
    command: str, slowness: str, service: Service, tool: Tool
) -> None:
    service.always(SLOWNESS[slowness])
    outcome = tool(*MADE_ONCE[command].line, *LATE)
    assert outcome.code == 5
    assert "0.3 seconds" in outcome.err
    assert "may have been carried out" in outcome.err
    assert len(service.received) == 1
    assert tool.clock.slept == []


def test_a_refusal_whose_body_never_ends_is_still_a_refusal(service: Service, tool: Tool) -> None:
    service.always(drip(b"HTTP/1.1 401 No\r\nContent-Length: 100000\r\n\r\n", b" "))
    for command in BOTH.values():
        assert tool(*command.line, *LATE).code == 1


def test_the_commands_of_the_sandbox_end_at_the_time_limit(service: Service, tool: Tool) -> None:
    for name in ("silent", "dripping body"):
        service.always(SLOWNESS[name])
        assert tool("sandbox", "credit", "5", *LATE).code == 3


@pytest.mark.parametrize("slowness", ["silent", "dripping body", "dripping head"])
def test_a_read_without_a_response_in_time_is_not_retried(slowness: str, service: Service, tool: Tool) -> None:
    service.will(SLOWNESS[slowness])
    outcome = tool("balance", *LATE)
    assert outcome.code == 4
    assert "0.3 seconds" in outcome.err
    assert len(service.received) == 1, "retries have no time left"


# --- requests that were not sent


@pytest.fixture
def tls_service(
    authority: trustme.CA, trusted: None, monkeypatch: pytest.MonkeyPatch, service: Service
) -> Iterator[Service]:
    """A service behind TLS: nothing is sent before the handshake is done."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with running(context) as server:
        monkeypatch.setenv("MSGCTL_BASE_URL", server.base_url)
        yield server


@pytest.mark.parametrize("failures", [1, 2])
@each(BOTH)
def test_an_unsent_request_is_retried_and_arrives_once(
    command: Command, failures: int, tls_service: Service, tool: Tool
) -> None:
    tls_service.hang_up(failures)
    tls_service.will(respond(command.record))
    assert tool(*command.line).code == 0
    assert tls_service.connections == failures + 1
    assert len(tls_service.received) == 1


def test_a_send_is_not_retried_once_it_was_sent(tls_service: Service, tool: Tool) -> None:
    tls_service.hang_up(1)
    tls_service.will(drop)
    assert tool("sms", "send", PHONE, "-m", "Hola").code == 5
    assert tls_service.connections == 2
    assert len(tls_service.received) == 1


def test_a_service_that_closes_connections_is_not_reached_after_three_attempts(
    tls_service: Service, tool: Tool
) -> None:
    tls_service.hang_up(100)
    assert tool("sms", "send", PHONE, "-m", "Hola").code == 4
    assert tls_service.connections == 3


@each(BOTH)
def test_a_handshake_that_does_not_end_in_time_exits_with_4(
    command: Command, service: Service, monkeypatch: pytest.MonkeyPatch, tool: Tool
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        monkeypatch.setenv("MSGCTL_BASE_URL", f"https://127.0.0.1:{mute.getsockname()[1]}/api/v1")
        outcome = tool(*command.line, *LATE)
    assert outcome.code == 4
    assert "nothing was sent" in outcome.err
    assert "0.3 seconds" in outcome.err
    assert tool.clock.slept == [], "retries have no time left"


@pytest.mark.slow
def test_a_job_pauses_after_each_request_that_did_not_leave(jobs: Jobs, home: Path) -> None:
    with running(keeps=True) as service, pytest.MonkeyPatch.context() as patch:
        for name, value in (("BASE_URL", service.base_url), ("CLIENT", "1"), ("KEY", "key")):
            patch.setenv(f"MSGCTL_{name}", value)
        service.always(accepting(service))
        jobs.sms(of_phones(home, numbers(10)), "--yes", "--batch-size", "1", "--canary", "1", "--name", "day")
        service.stop()
        begun = time.monotonic()
        assert jobs("job", "resume", "day", "--yes", "--json").error["reason"] == "not_reached"
        assert time.monotonic() - begun > 4.0, "five failures in a row stop a job"
