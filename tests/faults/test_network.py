"""Requests over TLS, proxies, redirects and plain http, and their headers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import httpx
import pytest
import trustme

from conftest import KEY
from msgctl.http.network import proxy_for
from msgctl.http.transport import ascii_url
from support import PATIENCE
from support.commands import READS, SENDS, Command, each
from support.files import table, write_config
from support.service import Service, certified, proxying, raw, respond, running
from support.tool import Tool

HOST = "service.invalid"
SMS = SENDS["sms send"].line
BOTH = each({"balance": READS["balance"], "sms send": SENDS["sms send"]})
"""A command that reads, and one that sends."""


@pytest.fixture
def tls_service(service: Service, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A service with TLS, under a host name that only a proxy can look up."""
    with running(certified(authority, HOST)) as server:
        monkeypatch.setenv("MSGCTL_BASE_URL", f"https://{HOST}/api/v1")
        yield server


# --- TLS, and plain http


@pytest.mark.parametrize("content", [None, b"no certificate"])
def test_an_unusable_ssl_cert_file_exits_with_3(
    content: bytes | None, tls_service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tool: Tool
) -> None:
    file = tmp_path / "authority.pem"
    if content is not None:
        file.write_bytes(content)
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    tool(*SMS).refused(3, "SSL_CERT_FILE")


@pytest.mark.parametrize(
    "url",
    [
        "http://service.invalid/api/v1",
        "http://127.0.0.1.service.invalid/api/v1",
        "http://127.0.0.1@service.invalid/api/v1",
        "http://0.0.0.0/api/v1",
    ],
)
def test_plain_http_to_another_machine_is_refused_before_any_connection(
    url: str, service: Service, monkeypatch: pytest.MonkeyPatch, tool: Tool
) -> None:
    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise AssertionError("a name was looked up or a connection was made")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setenv("MSGCTL_BASE_URL", url)
    assert tool(*SMS).code == 3


def test_a_profile_may_allow_plain_http(service: Service, monkeypatch: pytest.MonkeyPatch, tool: Tool) -> None:
    lookup = socket.getaddrinfo

    def to_this_machine(host: Any, *rest: Any, **more: Any) -> Any:
        return lookup("127.0.0.1", *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", to_this_machine)
    write_config(table("main", "allow_http = true", base_url=f"http://service.invalid:{service.port}/api/v1"))
    service.will(respond({"status": 1}))
    assert tool("balance", "-p", "main").code == 0
    assert service.received[0].headers["host"] == f"service.invalid:{service.port}"


# --- redirects


@pytest.mark.parametrize("status", [301, 302, 307])
@BOTH
def test_a_redirect_is_not_followed(command: Command, status: int, service: Service, tool: Tool) -> None:
    with running() as elsewhere:

        def redirect(connection: socket.socket) -> None:
            request = service.received[-1]
            there = f"http://127.0.0.1:{elsewhere.port}{request.target}?{request.body.decode()}&again={KEY[:-4]}"
            respond(b"", status, {"Location": there.encode().decode("latin-1")})(connection)

        service.will(redirect)
        outcome = tool(*command.line)
        assert outcome.code == (5 if status == 302 and command.line == SMS else 1)
        assert (elsewhere.connections, service.connections) == (0, 1)
        assert f"http://127.0.0.1:{elsewhere.port}" in outcome.err
        assert "awkward" not in outcome.err


@pytest.mark.parametrize(
    "location", ["", "/api/v2/balance", "//[", "http://[::1", "javascript:alert(1)", "\x1b[31m", "http://h\xff/", "?x"]
)
def test_any_redirect_exits_with_1(location: str, service: Service, tool: Tool) -> None:
    service.will(raw(f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode("latin-1")))
    outcome = tool("balance", "--no-color", terminal=True)
    assert (outcome.code, "\x1b" in outcome.err) == (1, False)


# --- proxies


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_https_goes_through_the_proxy_which_does_not_see_the_key(
    variable: str, tls_service: Service, monkeypatch: pytest.MonkeyPatch, tool: Tool
) -> None:
    with proxying(tls_service.port) as proxy:
        monkeypatch.setenv(variable, proxy.url)
        tls_service.will(respond(SENDS["sms send"].record))
        assert tool(*SMS).code == 0
        assert [(request.method, request.target) for request in proxy.received] == [("CONNECT", f"{HOST}:443")]
        assert "awkward" not in str(proxy.received)


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("is_trusted", [True, False])
def test_a_proxy_behind_tls_needs_a_certificate_to_trust(
    is_trusted: bool, tls_service: Service, authority: trustme.CA, monkeypatch: pytest.MonkeyPatch, tool: Tool
) -> None:
    context = certified(authority if is_trusted else trustme.CA(), "127.0.0.1")
    with proxying(tls_service.port, context) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        tls_service.will(*[respond({"status": 1})] * is_trusted)
        assert tool("balance").code == (0 if is_trusted else 4)
        assert len(proxy.received) == is_trusted


@pytest.mark.parametrize(
    ("base_url", "exception", "is_direct"),
    [
        ("https://service.example/api/v1", "service.example", True),
        ("https://service.example/api/v1", "other.example,service.example", True),
        ("https://service.example/api/v1", ".example", True),
        ("https://service.example/api/v1", "*", True),
        ("https://service.example/api/v1", "service.example:443", True),
        ("HTTPS://service.example/api/v1", "service.example:80", False),
        ("https://service.example:8443/api/v1", "service.example:8443", True),
        ("https://service.example:8443/api/v1", "service.example:443", False),
        ("https://127.0.0.1:8443/api/v1", "service.example", True),
        ("https://LOCALHOST/api/v1", "service.example", True),
        ("http://service.example/api/v1", "other.example", True),
    ],
)
def test_no_proxy_may_have_a_port_and_a_proxy_needs_no_scheme(
    base_url: str, exception: str, is_direct: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", exception)
    proxy = proxy_for(base_url)
    assert (None if proxy is None else str(proxy.url)) == (None if is_direct else "http://proxy.example:3128")


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "ALL_PROXY", "http_proxy"])
@pytest.mark.parametrize("kind", ["http:", "socks5:"])
def test_plain_http_never_uses_a_proxy(
    kind: str, variable: str, service: Service, monkeypatch: pytest.MonkeyPatch, tool: Tool
) -> None:
    """A proxy would see the key."""
    write_config(table("main", "allow_http = true", base_url=f"http://{HOST}/api/v1"))
    service.will(respond({"status": 1}))
    with proxying(service.port) as proxy:
        monkeypatch.setenv(variable, proxy.url.replace("http:", kind))
        assert tool("-p", "main", "balance").code == 4
        assert tool("balance").code == 0, "a service on this machine is reached without the proxy"
        assert proxy.connections == 0


@pytest.mark.parametrize(
    ("url", "code"),
    [("nonsense://x", 3), ("socks4://127.0.0.1:1", 3), ("http://", 3), ("http://[::1", 3), ("http://127.0.0.1:1", 4)],
)
def test_the_error_for_a_proxy_that_cannot_be_used_mentions_its_variable(
    url: str, code: int, tls_service: Service, monkeypatch: pytest.MonkeyPatch, tool: Tool
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", url)
    tool(*SMS).refused(code, "HTTPS_PROXY")


# --- the time limit, and requests that must not be sent after it


def test_a_request_that_timed_out_is_never_sent(service: Service, monkeypatch: pytest.MonkeyPatch, tool: Tool) -> None:
    lookup = socket.getaddrinfo
    released, ended = threading.Event(), threading.Event()

    def slow(*arguments: Any, **more: Any) -> Any:
        released.wait(PATIENCE)
        ended.set()
        return lookup(*arguments, **more)

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    monkeypatch.setenv("MSGCTL_BASE_URL", f"http://localhost:{service.port}/api/v1")
    before = set(threading.enumerate())
    outcome = tool(*SMS, "--timeout", "0.1", "--json")
    assert not ended.is_set(), "the time limit applies to a lookup"
    released.set()
    for thread in set(threading.enumerate()) - before:
        thread.join(PATIENCE)
    assert (outcome.error["reason"], outcome.error["nothing_sent"]) == ("not_reached", True)
    assert service.received == []


# --- addresses and headers


def test_no_cookie_is_kept(service: Service, tool: Tool) -> None:
    state = respond({"state": "sent", "id": "m"}, headers={"Set-Cookie": "session=1; Path=/"})
    service.will(state, state)
    assert tool("state", "get", "m1", "m2").code == 0
    assert all("cookie" not in request.headers for request in service.received)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.0 200 OK\r\n",
        b"HTTP/1.1 200\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: Identity\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding:\r\n",
        b"HTTP/1.1 200 \xff\xfe\r\nX-Odd: \xff\x80\r\nSet-Cookie: =;;;=\xff; expires=never\r\n",
    ],
)
def test_unusual_headers_do_no_harm(head: bytes, service: Service, tool: Tool) -> None:
    service.will(raw(head + b'Connection: close\r\nContent-Length: 13\r\n\r\n{"status": 1}'))
    outcome = tool("balance", "--json")
    assert (outcome.code, outcome.stdout, outcome.stderr) == (0, b'{"status": 1}\n', b"")


@pytest.mark.parametrize(
    ("base_url", "host"),
    [
        ("https://Service.example:8443/api/v1", b"service.example:8443"),
        ("https://ñandú.example", b"xn--and-6ma2c.example"),
        ("http://[::1]:8000", b"[::1]:8000"),
    ],
)
def test_the_base_url_may_have_a_port_an_ip_address_or_letters_beyond_ascii(base_url: str, host: bytes) -> None:
    assert httpx.Request("GET", ascii_url(base_url)).headers["Host"].encode() == host


def test_a_path_below_the_root_is_kept(service: Service, monkeypatch: pytest.MonkeyPatch, tool: Tool) -> None:
    monkeypatch.setenv("MSGCTL_BASE_URL", f"http://127.0.0.1:{service.port}/behind/gatewáy/api/v1/")
    service.will(respond({"status": 1}))
    assert tool("balance").code == 0
    assert service.received[0].target.startswith("/behind/gatew%C3%A1y/api/v1/balance?")
