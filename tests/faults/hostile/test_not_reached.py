"""Failures of a proxy or a TLS handshake: exit 4, and nothing was sent."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Callable

import pytest
import trustme

from conftest import KEY
from faults.hostile.exit_codes import FORMS, JSON, check, run_line
from support.request_lines import Line
from support.service import Behaviour, certified, drop, raw, reset, running
from support.tool import Tool

pytestmark = pytest.mark.usefixtures("trusted")

TRIED = ("sms send", "2fa verify", "balance")
"""Commands of each kind. All make their requests with one client."""
LONG_AGO = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


def assert_nothing_is_sent(name: str, lines: list[Line], tool: Tool) -> None:
    tried = [line for line in lines if line.path in TRIED]
    for line, form in zip(tried, FORMS, strict=True):
        outcome = run_line(line, tool, form, "--quiet", "--no-color", "--timeout", "5")
        check(name, 4, line, form, outcome)
        if form == JSON:
            assert (outcome.error["reason"], outcome.error["nothing_sent"]) == ("not_reached", True)


CONTEXTS: dict[str, Callable[[trustme.CA], ssl.SSLContext]] = {
    "a certificate that has expired": lambda ca: certified(ca, "127.0.0.1", not_after=LONG_AGO),
    "a certificate for another name": lambda ca: certified(ca, "other.example"),
    "an unknown authority": lambda _: certified(trustme.CA(), "127.0.0.1"),
}


@pytest.mark.parametrize("name", CONTEXTS)
def test_an_untrusted_certificate_gets_no_request(
    name: str, authority: trustme.CA, lines: list[Line], tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(CONTEXTS[name](authority)) as service:
        monkeypatch.setenv("MSGCTL_BASE_URL", service.base_url)
        assert_nothing_is_sent(name, lines, tool)
        assert service.received == []


HANDSHAKES: dict[str, Behaviour] = {
    "closed at once": drop,
    "reset at once": reset,
    "plain HTTP": raw(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    "an alert": raw(b"\x15\x03\x03\x00\x02\x02\x28"),  # handshake_failure (RFC 8446, 6.2)
    "half a hello": raw(b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03" + bytes(32)),
}


@pytest.mark.parametrize("name", HANDSHAKES)
def test_a_handshake_that_fails_gets_no_request(
    name: str, lines: list[Line], tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(blind=True) as service:
        service.always(HANDSHAKES[name])
        monkeypatch.setenv("MSGCTL_BASE_URL", service.base_url.replace("http:", "https:"))
        assert_nothing_is_sent(name, lines, tool)
    assert service.received
    assert all(b"HTTP/1.1" not in first.body for first in service.received)


TUNNELS: dict[str, Behaviour] = {
    "closed at once": drop,
    "reset": reset,
    "no HTTP": raw(bytes(range(256)) * 9),
    "100,000 headers": raw(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000),
    "a response other than 200": raw(b"HTTP/1.1 407 \x1b[31mNo\r\nProxy-Authenticate: Basic\r\n\r\n"),
    "a redirect with the key": raw(f"HTTP/1.1 302 Go\r\nLocation: http://x/?{KEY}\r\n\r\n".encode()),
    "a tunnel to no TLS": raw(b"HTTP/1.1 200 OK\r\n\r\nHTTP/1.1 200 OK\r\n\r\n{}"),
}


@pytest.mark.parametrize("name", TUNNELS)
def test_a_failed_tunnel_gets_no_request(
    name: str, lines: list[Line], tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSGCTL_BASE_URL", "https://service.invalid/api/v1")
    with running() as proxy:
        proxy.always(TUNNELS[name])
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        assert_nothing_is_sent(name, lines, tool)
        assert {request.method for request in proxy.received} == {"CONNECT"}
