"""`msgctl sandbox serve` as a process that msgctl itself uses."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msgctl import text
from msgctl.sandbox.protocol import SandboxRequest
from support import PATIENCE
from support.tool import Tool, started

from .world import FORM, as_http, raw

PHONE = "573001234567"


@contextlib.contextmanager
def serving(*options: str) -> Iterator[tuple[subprocess.Popen[bytes], Any]]:
    """Start a server, and yield it with what it printed as JSON once it accepted connections."""
    command = [sys.executable, "-m", "msgctl", "sandbox", "serve", "--port", "0", "--json", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGHUP, 0), (signal.SIGINT, 130)])
def test_a_shell_can_evaluate_the_exports_and_a_signal_ends_the_server_even_if_a_client_waits(
    number: int, code: int
) -> None:
    command = [sys.executable, "-m", "msgctl", "sandbox", "serve", "--port", "0", "--key", "a'b c"]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        page, *lines = [process.stdout.readline().strip() for _ in range(4)]
        exported = dict(shlex.split(line)[1].split("=", 1) for line in lines)
        assert set(exported) == {"MSGCTL_BASE_URL", "MSGCTL_CLIENT", "MSGCTL_KEY"}
        assert (page[:2], exported["MSGCTL_KEY"]) == ("# ", "a'b c")
        port = int(exported["MSGCTL_BASE_URL"].split(":")[2].partition("/")[0])
        with socket.create_connection(("127.0.0.1", port), PATIENCE) as waiting:
            waiting.sendall(one_request("/sandbox/inbox?wait=600"))
            process.send_signal(number)
            out, err = process.communicate(timeout=PATIENCE)
    assert (process.returncode, out, err) == (code, "", "")


def test_the_sandbox_commands_control_the_server_and_a_reset_restores_its_first_options(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ("--credits", "7", "--fault", "503:next=2:/send-sms", "--clock", "2026-12-01T09:00:00", "--seed", "3")
    with serving("--client", "77", "--key", "made up", *options) as (_, about):
        monkeypatch.setenv("MSGCTL_BASE_URL", about["base_url"])
        monkeypatch.setenv("MSGCTL_CLIENT", str(about["client"]))
        monkeypatch.setenv("MSGCTL_KEY", about["key"])
        shorten = ("url", "shorten", "https://example.com/x", "--name", "x", "--json")
        first = tool(*shorten).document
        assert tool("sandbox", "fault", "clear").code == 0
        assert tool("sms", "send", PHONE, "-m", "Hola").code == 0
        assert [each["text"] for each in tool("sandbox", "inbox", "--json").document] == ["Hola"]
        assert tool("sandbox", "click", "x", "--count", "3", "--country", "co", "--json").document["clicks"] == 3
        stats = tool("url", "stats", "x", "--since", "2020-01-01", "--until", "2099-12-31", "--json")
        assert stats.document["clicksNumber"] == 3
        assert tool("sandbox", "credit", "+5", "--json").document == {"status": 11}
        assert tool("sandbox", "clock", "start").code == tool("sandbox", "responses", "observed").code == 0
        assert tool("sandbox", "reset", "--yes").code == 0
        assert tool("sandbox", "fault", "--json").document == [{"fault": "503:next=2:/send-sms"}]
        assert tool("sandbox", "clock", "--json").document == {"time": "2026-12-01T09:00:00Z", "stopped": True}
        assert tool("balance", "--json").document == {"status": 7}
        assert tool(*shorten).document == first
        port = str(address(about)[1])
        tool("sandbox", "serve", "--port", port).refused(3, f"port {port}: Address already in use\n")


def test_the_page_and_the_log_contain_no_key_parameter_and_no_control_characters() -> None:
    lines = [b"\x1b[31m /api/v1/balance", b"GET /\x1b]0;x\x07", b"GET / \x1b[2J", "\u202e\x9b /x".encode()]
    requests = [line + b" HTTP/1.1\r\nHost: \x1b[31m\r\nX: \x1b[31m\r\n\r\n" for line in lines]
    requests.append(b"GET /api/v1/balance?client=1&key=a%20hidden a b HTTP/1.1\r\n\r\n")
    requests.append(as_http(SandboxRequest("GET", "/api/v1/balance&client=1&key=a+hidden")))
    requests.append(as_http(SandboxRequest("POST", "/api/v1/send-sms", "", FORM, b"client=1&key=a+hidden&sms=x")))
    with serving() as (process, about):
        responses = [raw(address(about), request) for request in requests]
        page = raw(address(about), one_request("/sandbox/overview")).decode()
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=PATIENCE)
    assert {response[:10] for response in responses} <= {b"HTTP/1.1 4", b"HTTP/1.1 5"}
    assert (len(json.loads(page.partition("\r\n\r\n")[2])["requests"]), log.count(b"\n")) == (2, 8)
    assert "hidden" not in page + log.decode()
    assert [char for char in log.decode().replace("\n", "") if text.is_unsafe(char)] == []


MEGABYTE = 1024 * 1024


@pytest.mark.slow
def test_refused_requests_of_a_megabyte_leave_the_memory_as_it_was() -> None:
    """150 requests of each kind fill the log of requests; an idle server needs a quarter of 128 MiB."""
    account = b"client=1&key=sandbox-key&"
    kinds = [
        as_http(SandboxRequest("POST", "/api/v1/send-sms", "", FORM, account + b"sms=" + b"x" * (MEGABYTE - 100))),
        as_http(SandboxRequest("POST", "/api/v1/send-sms", "", FORM, account + b"a&" * (MEGABYTE // 2 - 100))),
        as_http(SandboxRequest("POST", "/api/v1/nothing", "", FORM, b"x" * MEGABYTE)),
        as_http(SandboxRequest("GET", "/api/v1/balance", "x" * 10_000, {f"h{number}": "" for number in range(5_000)})),
    ]
    with serving("--quiet") as (_, about):
        for request in kinds * 150:
            assert raw(address(about), request)[:12] in (b"HTTP/1.1 404", b"HTTP/1.1 520")
        status = Path(f"/proc/{about['pid']}/status").read_text()
    (kibibytes,) = re.findall(r"VmRSS:\s+(\d+) kB", status)
    assert int(kibibytes) < 128 * 1024


def address(about: Any) -> tuple[str, int]:
    host, _, port = about["page"].split("/")[2].rpartition(":")
    return host, int(port)


def one_request(path: str, body: bytes = b"", agent: str = "") -> bytes:
    """Return the bytes of a request, after which the server closes the connection."""
    sent = {"connection": "close", "user-agent": agent, **(FORM if body else {})}
    return as_http(SandboxRequest("POST" if body else "GET", path, "", sent, body))


def test_a_seed_and_a_stopped_clock_give_the_same_bytes_in_two_runs() -> None:
    account = b"client=1&key=sandbox-key"
    days = b"&since=2026-12-01&until=2026-12-01"
    requests = [
        one_request("/api/v1/send-sms", account + b"&phone=573001234567,573001230002&sms=Hola"),
        one_request("/api/v1/2fa/send-sms", account + b"&phone=573001234567&app-name=Shop"),
        one_request("/api/v1/url/short", account + b"&name=x&url-long=https://a.example&alias=fixed"),
        one_request("/u/fixed", agent="curl/8"),
        one_request("/api/v1/url/short-statistic", account + b"&name-url=x" + days),
        *[one_request("/api/v1/balance?" + account.decode())] * 10,
        one_request("/sandbox/inbox"),
        one_request("/sandbox/clock"),
        one_request("/sandbox/overview"),
    ]

    def run(port: str) -> tuple[str, list[bytes]]:
        options = ("--seed", "7", "--clock", "2026-12-01T09:00:00", "--fault", "520:0.5:/balance", "--port", port)
        with serving(*options) as (_, about):
            return about["page"].strip("/").rpartition(":")[2], [raw(address(about), request) for request in requests]

    port, first = run("0")
    assert run(port) == (port, first)
    assert b"Date: Tue, 01 Dec 2026 09:00:00 GMT" in first[0]
    assert len({response.partition(b" ")[2][:3] for response in first[5:15]}) == 2  # faults met by chance
