"""Failures of a proxy or a TLS handshake: exit 4, and nothing was sent."""

from __future__ import annotations

import datetime
import ssl
from collections.abc import Callable
from typing import Any

import pytest
import trustme

from conftest import KEY
from faults.hostile.exit_codes import FORMS, Verdict, check, run_line
from support.request_lines import Line
from support.service import Behaviour, drop, raw, reset, running
from support.tool import Tool

pytestmark = pytest.mark.usefixtures("trusted")

HOST = "service.invalid"
TRIED = ("balance", "sms send", "2fa verify", "state watch", "doctor", "api")
"""Commands of each kind. All make their requests with one client."""
LONG_AGO = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


def nothing_leaves(name: str, verdict: Verdict, lines: list[Line], tool: Tool) -> None:
    """Check that commands exit with 4, and that one error reports that nothing was sent."""
    for number, line in enumerate(line for line in lines if line.path in TRIED):
        form = FORMS[number % len(FORMS)]
        outcome = run_line(line, tool, form, "--timeout", "5")
        check(name, verdict, line, form, outcome)
        if outcome.code == 4:
            assert "nothing was sent" in " ".join(outcome.err.split()), (name, line.path, outcome.err)


# --- TLS


def certified(authority: trustme.CA, *names: str, **validity: Any) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names, **validity).configure_cert(context)
    return context


CONTEXTS: dict[str, Callable[[trustme.CA], ssl.SSLContext]] = {
    "a certificate that has expired": lambda ca: certified(ca, "127.0.0.1", not_after=LONG_AGO),
    "a certificate for another name": lambda ca: certified(ca, "other.example"),
    "an unknown authority": lambda ca: certified(trustme.CA(), "127.0.0.1"),
}


@pytest.mark.parametrize("name", CONTEXTS)
def test_an_untrusted_certificate_gets_no_request(
    name: str, authority: trustme.CA, lines: list[Line], tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(CONTEXTS[name](authority)) as service:
        monkeypatch.setenv("MSGCTL_BASE_URL", service.base_url)
        nothing_leaves(name, Verdict.NOT_REACHED, lines, tool)
        assert service.received == []


ALERT = b"\x15\x03\x03\x00\x02\x02\x28"
"""A fatal alert: handshake_failure (RFC 8446, 6.2)."""
HELLO = b"\x16\x03\x03\x00\x7a\x02\x00\x00\x76\x03\x03" + bytes(32)
"""The beginning of a server's hello."""

HANDSHAKES: dict[str, Behaviour] = {
    "closed at once": drop,
    "reset at once": reset,
    "plain HTTP": raw(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"),
    "an alert": raw(ALERT),
    "half a hello": raw(HELLO),
}


@pytest.mark.parametrize("name", HANDSHAKES)
def test_a_handshake_that_fails_gets_no_request(
    name: str, lines: list[Line], tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running(blind=True) as service:
        service.always(HANDSHAKES[name])
        monkeypatch.setenv("MSGCTL_BASE_URL", service.base_url.replace("http:", "https:"))
        nothing_leaves(name, Verdict.NO_HANDSHAKE, lines, tool)
    assert service.received
    assert all(b"HTTP/1.1" not in first.body for first in service.received)


# --- a proxy that is to open a tunnel

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
    monkeypatch.setenv("MSGCTL_BASE_URL", f"https://{HOST}/api/v1")
    with running() as proxy:
        proxy.always(TUNNELS[name])
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        verdict = Verdict.NO_HANDSHAKE if name == "a tunnel to no TLS" else Verdict.NOT_REACHED
        nothing_leaves(name, verdict, lines, tool)
        assert {request.method for request in proxy.received} == {"CONNECT"}
