"""`msgctl sandbox serve` as a process, used by the tool itself and the sandbox commands."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import shlex
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from msgctl import text
from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.protocol import SandboxRequest
from support.service import Service, respond
from support.tool import Tool

from .clocked_emulator import FORM, JSON, Controls
from .served import as_http, raw

PHONE = "573001234567"
PATIENCE = 30.0
"""Seconds after which a process that should have ended fails the test."""


@contextlib.contextmanager
def serving(*options: str, verb: str = "serve") -> Iterator[tuple[subprocess.Popen[bytes], Any]]:
    """Start a server, and yield it with what it printed as JSON once it accepted connections."""
    command = [sys.executable, "-m", "msgctl", "sandbox", verb, "--port", "0", "--json", *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A server that the environment points to."""
    with serving("--client", "77", "--key", "made up", "--credits", "20") as (_, about):
        monkeypatch.setenv("MSGCTL_BASE_URL", about["base_url"])
        monkeypatch.setenv("MSGCTL_CLIENT", str(about["client"]))
        monkeypatch.setenv("MSGCTL_KEY", about["key"])
        yield about


def test_the_lines_to_export_can_be_read_by_a_shell() -> None:
    command = [sys.executable, "-m", "msgctl", "sandbox", "serve", "--port", "0", "--key", "a'b c"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        lines = [process.stdout.readline().strip() for _ in range(4)]
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE)
    assert lines[0].startswith("# ")
    exported = dict(shlex.split(line)[1].split("=", 1) for line in lines[1:])
    assert set(exported) == {"MSGCTL_BASE_URL", "MSGCTL_CLIENT", "MSGCTL_KEY"}
    assert exported["MSGCTL_KEY"] == "a'b c"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGHUP, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it_even_if_a_client_waits(number: int, code: int) -> None:
    with serving() as (process, about), socket.create_connection(address(about), PATIENCE) as waiting:
        waiting.sendall(one_request("/sandbox/inbox?wait=600") + one_request("/sandbox"))
        process.send_signal(number)
        out, err = process.communicate(timeout=PATIENCE)
        assert (process.returncode, out, err) == (code, b"", b"")


def test_the_sandbox_commands_reach_it(served: Any, tool: Tool) -> None:
    assert tool("sms", "send", PHONE, "-m", "Hola").code == 0
    assert tool("url", "shorten", "https://example.com/x", "--name", "x").code == 0
    assert [each["text"] for each in tool("sandbox", "inbox", "--json").document] == ["Hola"]
    assert tool("sandbox", "click", "x", "--count", "3", "--country", "co", "--json").document["clicks"] == 3
    assert (
        tool("url", "stats", "x", "--since", "2020-01-01", "--until", "2099-12-31", "--json").document["clicksNumber"]
        == 3
    )
    assert tool("sandbox", "credit", "+5", "--json").document == {"status": 24}
    assert tool("sandbox", "reset", "--yes").code == 0
    assert tool("balance", "--json").document == {"status": 20}


def test_another_server_gets_only_the_check_for_a_sandbox(service: Service, tool: Tool) -> None:
    service.will(respond({"status": 1}))
    refused = tool("sandbox", "reset")
    assert refused.code == 3
    assert "No sandbox" in refused.err
    assert [request.target for request in service.received] == ["/sandbox"]


def test_the_sandbox_commands_ignore_a_default_profile(server: Service, tool: Tool) -> None:
    added = tool("profile", "add", "real", "--base-url", server.base_url, "--client", "1", "--key-stdin", stdin="a key")
    assert added.code == 0, added.err
    assert tool("sandbox", "credit", "5", "--json").document == {"status": 5}
    assert server.received == []


def test_the_default_profile_sandbox_keeps_its_commands_in_this_process(
    server: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert tool("profile", "use", "sandbox").code == 0
    assert tool("sms", "send", PHONE, "-m", "one").code == 0
    assert [each["text"] for each in tool("sandbox", "inbox", "--json").document] == ["one"]
    assert server.received == []


def test_a_reset_restores_the_options_of_the_start(tool: Tool) -> None:
    options = ("--credits", "7", "--fault", "503:next=2:/send-sms", "--clock", "2026-12-01T09:00:00", "--seed", "3")
    with serving(*options) as (_, about):
        url = ("--base-url", about["base_url"])
        request = one_request("/api/v1/url/short", b"client=1&key=sandbox-key&name=x&url-long=https://a.example")
        first = raw(address(about), request)
        for change in (("credit", "9"), ("fault", "clear"), ("clock", "start"), ("responses", "observed")):
            assert tool("sandbox", *change, *url).code == 0
        assert tool("sandbox", "reset", "--yes", *url).code == 0
        assert tool("sandbox", "fault", "--json", *url).document == [{"fault": "503:next=2:/send-sms"}]
        assert tool("sandbox", "clock", "--json", *url).document == {"time": "2026-12-01T09:00:00Z", "stopped": True}
        assert tool("sandbox", "credit", "+0", "--json", *url).document == {"status": 7}
        assert raw(address(about), request) == first


def test_a_kill_in_the_middle_of_many_clients_loses_no_credit(home: Path) -> None:
    path = home / "state.sqlite3"
    enough = threading.Event()
    statuses: list[int] = []

    def client(base_url: str) -> None:
        body = f"client=1&key=sandbox-key&phone={PHONE}&sms=x".encode()
        with contextlib.suppress(OSError, http.client.HTTPException):
            while True:
                with urllib.request.urlopen(base_url + "/send-sms", body, timeout=PATIENCE) as response:
                    statuses.append(response.status)
                if len(statuses) > 300:
                    enough.set()

    with serving("--state", str(path), "--credits", "100000") as (process, about), ThreadPoolExecutor(64) as clients:
        for _ in range(64):
            clients.submit(client, about["base_url"])
        assert enough.wait(PATIENCE)
        process.kill()
    with contextlib.closing(Emulator(path)) as emulator:
        admin = Controls(emulator)
        left, kept = admin.credit(0, add=True), len(admin.inbox())
    assert left + kept == 100000
    assert kept >= len(statuses)  # each request with a response was charged, and perhaps some without a response


def test_a_key_that_is_typed_into_a_path_is_not_logged() -> None:
    with serving("--key", "made-up-key") as (process, about):
        for target in ("/balance&client=1&key=made-up-key", "/balance?client=1&key=made-up-key&x=a"):
            with contextlib.suppress(urllib.error.HTTPError):
                urllib.request.urlopen(about["base_url"] + target, timeout=PATIENCE)
        with socket.create_connection(address(about), PATIENCE) as connection:
            connection.sendall(b"GET /api/v1/balance?client=1&key=made-up-key a b HTTP/1.1\r\n\r\n")
            reported = connection.recv(4096)
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=PATIENCE)
    assert log.count(b"\n") == 3
    assert b"made-up-key" not in log + reported


def test_the_page_and_the_log_have_no_key_in_any_spelling() -> None:
    spelled = ["a key/to+hide", "a+key%2fto%2bhide", "a%20key%2Fto%2Bhide"]
    with serving("--key", "a key/to+hide") as (process, about):
        for each in spelled:
            path = each.replace(" ", "%20")
            for request in (
                SandboxRequest("GET", f"/api/v1/{'x' * 20}{path}", f"client=1&name={path}"),
                SandboxRequest("POST", "/api/v1/send-sms", "", FORM, f"client=1&key=x&sms=My key: {each}".encode()),
                SandboxRequest("POST", "/api/v1/chatapp/send", "", JSON, f'{{"phone": "{each}"}}'.encode()),
            ):
                raw(address(about), as_http(request))
        page = raw(address(about), one_request("/sandbox/overview")).decode()
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=PATIENCE)
    shown = page + log.decode()
    assert (len(json.loads(page.partition("\r\n\r\n")[2])["requests"]), log.count(b"\n")) == (9, 10)
    assert not re.findall(r"hid|a[ +]k", shown), shown


def test_the_log_contains_no_control_characters() -> None:
    with serving() as (process, about):
        for line in (b"\x1b[31m /api/v1/balance", b"GET /\x1b]0;x\x07", b"GET / \x1b[2J", "\u202e\x9b /x".encode()):
            with socket.create_connection(address(about), PATIENCE) as connection:
                connection.sendall(line + b" HTTP/1.1\r\nHost: \x1b[31m\r\nX: \x1b[31m\r\n\r\n")
                assert connection.recv(4096).startswith(b"HTTP/1.1 4")
        process.send_signal(signal.SIGTERM)
        _, log = process.communicate(timeout=PATIENCE)
    assert log.count(b"\n") == 4
    assert [char for char in log.decode().replace("\n", "") if text.is_unsafe(char)] == []


MEGABYTE = 1024 * 1024


@pytest.mark.slow
def test_refused_requests_of_a_megabyte_leave_the_memory_as_it_was() -> None:
    """150 requests of each kind fill the log of requests; an idle server needs a quarter of 128 MiB."""
    account = b"client=1&key=sandbox-key&"
    kinds = [
        ("/api/v1/send-sms", FORM, account + b"sms=" + b"x" * (MEGABYTE - 100)),
        ("/api/v1/send-sms", FORM, b"client=1&key=wrong&sms=" + b"x" * (MEGABYTE - 100)),
        ("/api/v1/send-sms", FORM, account + b"phone=" + b"x" * (MEGABYTE - 100)),
        ("/api/v1/send-sms", FORM, account + b"a&" * (MEGABYTE // 2 - 100)),
        ("/api/v1/nothing", FORM, b"x" * MEGABYTE),
        ("/api/v1/balance?" + "x" * 10_000, {f"h{number}": "" for number in range(5_000)}, b""),
    ]
    with (
        serving("--quiet") as (_, about),
        contextlib.closing(http.client.HTTPConnection(*address(about), timeout=PATIENCE)) as connection,
    ):
        for path, headers, body in kinds * 150:
            connection.request("POST" if body else "GET", path, body, headers)
            response = connection.getresponse()
            assert response.status in (404, 520)
            response.read()
        status = Path(f"/proc/{about['pid']}/status").read_text()
    (kibibytes,) = re.findall(r"VmRSS:\s+(\d+) kB", status)
    assert int(kibibytes) < 128 * 1024


@pytest.mark.parametrize(
    ("options", "code", "named"),
    [
        (["--port", "65536"], 2, "65536"),
        (["--client", "-1"], 2, "-1"),
        (["--key", ""], 2, "--key"),
        (["--credits", "-5"], 2, "-5"),
        (["--allow-ip", "300.0.0.1"], 2, "300.0.0.1"),
        (["--fault", "drop:1:/sned-sms"], 2, "/sned-sms"),
        (["--clock", "never"], 2, "never"),
        (["--state", "/dev/zero"], 3, "/dev/zero"),
        (["--responses", "real"], 2, "choose from documented, observed"),
        (["--host", "no such host"], 3, "no such host"),
        (["--state", "/proc/nowhere/state"], 3, "/proc/nowhere"),
        (["-n"], 2, "--dry-run"),
    ],
)
def test_a_server_that_cannot_start_reports_the_reason(options: list[str], code: int, named: str, tool: Tool) -> None:
    port = [] if "--port" in options else ["--port", "0"]
    refused = tool("sandbox", "serve", *port, *options)
    assert refused.code == code, refused.err
    assert named in refused.err
    assert refused.out == ""


def test_the_error_for_a_port_in_use_mentions_it_once(served: Any, tool: Tool) -> None:
    port = str(address(served)[1])
    tool("sandbox", "serve", "--port", port).refused(3, f"port {port}: Address already in use\n")


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
