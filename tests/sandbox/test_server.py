"""The server: limits for clients, and hostile clients that do not harm others."""

from __future__ import annotations

import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from ipaddress import ip_network
from pathlib import Path

import pytest

from msgctl.sandbox import server
from msgctl.sandbox.protocol import MAX_BODY, SandboxRequest
from msgctl.sandbox.server import Server
from support import PATIENCE
from support.tool import Tool

from .world import PHONE, Served, World, as_http, encoded, posted, read_response, serving

BALANCE = SandboxRequest("GET", "/api/v1/balance", encoded({}))
SMS = posted("/send-sms", phone=PHONE, sms="Hola")


def status_of(response: bytes) -> int:
    return int(response.split(b" ", 2)[1])


def test_a_body_may_come_in_chunks(served: Served) -> None:
    body = SMS.body
    head = b"POST /api/v1/send-sms HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n"
    head += b"Content-Type: application/x-www-form-urlencoded\r\n\r\n"
    chunks = b"%x;note\r\n%s\r\n%x\r\n%s\r\n0\r\nTrailer: x\r\n\r\n" % (5, body[:5], len(body) - 5, body[5:])
    response = served.raw(head + chunks + as_http(BALANCE))
    assert status_of(response) == 200
    assert response.endswith(b'{"status":999}\n')


@pytest.mark.parametrize(
    "body", [b"x" * (20 * MAX_BODY), encoded({}).encode() + b"&a" * 500_000], ids=["size", "number"]
)
def test_a_body_over_the_limit_or_with_very_many_parameters_is_refused(
    world: World, served: Served, body: bytes
) -> None:
    with served.connect() as connection, ThreadPoolExecutor(1) as sender:
        sending = sender.submit(_send_until_closed, connection, as_http(SMS._replace(body=body)))
        assert read_response(connection, "POST").status == 520
        sending.result()
    assert world.credits == 1000


def _send_until_closed(connection: socket.socket, data: bytes) -> None:
    try:
        connection.sendall(data)
    except OSError:
        return


HOST = b"Host: 127.0.0.1\r\n"
SMS_HEAD = b"POST /api/v1/send-sms HTTP/1.1\r\n" + HOST
MALFORMED = (
    b"GET\r\n\r\n",
    b"\r\n\r\n\x00\xff\x00",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET /" + b"a" * 150_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n",
    b"GET / HTTP/1.1\r\n" + HOST + b"X: y\r\n" * 40_000 + b"\r\n",
    SMS_HEAD + b"Content-Length: -1\r\n\r\n",
    SMS_HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    SMS_HEAD + b"Transfer-Encoding: gzip\r\n\r\nabc",
    SMS_HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
)


def test_malformed_and_too_large_requests_are_refused_and_the_server_continues(served: Served) -> None:
    for malformed in MALFORMED:
        response = served.raw(malformed)
        assert status_of(response) in (400, 431, 501), malformed[:99]
        assert b'"error":"MALFORMED"' in response, malformed[:99]
        assert status_of(served.raw(as_http(BALANCE))) == 200
    assert not [line for line in served.log if "ended with" in line]


def test_a_half_sent_request_does_nothing_and_does_not_block_others(
    world: World, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "HEADER_SECONDS", 2 * PATIENCE)
    whole = as_http(SMS)
    with ExitStack() as stack:
        for half in [whole[:20], *[whole[:-3]] * 200]:
            stack.enter_context(served.connect()).sendall(half)
        assert served.send(SMS).status == 200
    assert served.raw(whole[:-3]) == b""
    assert world.credits == 999


@pytest.mark.slow
def test_a_header_that_takes_longer_than_ten_seconds_ends_the_connection(served: Served) -> None:
    with served.connect() as connection:
        connection.sendall(b"GET /sandbox HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
        with pytest.raises(OSError, match=r"reset|pipe"):  # noqa: PT012 - the close is noticed by a later write
            for _ in range(600):
                connection.sendall(b"x")
                time.sleep(0.1)
    assert status_of(served.raw(as_http(BALANCE))) == 200


# --- who may call


@pytest.mark.parametrize(
    ("address", "allowed", "status"),
    [
        ("127.0.0.1", "127.0.0.0/8", 200),
        ("127.0.0.1", "192.0.2.0/24", 520),
        ("127.0.0.1", "::1", 520),
        ("::", "127.0.0.0/8", 200),  # all addresses include IPv4
    ],
)
def test_only_allowed_addresses_may_use_the_api(tmp_path: Path, address: str, allowed: str, status: int) -> None:
    if address == "::" and not socket.has_dualstack_ipv6():
        pytest.skip("needs IPv6")
    world = World(tmp_path / "state.db", allowed=[ip_network(allowed)])
    with closing(world.emulator), serving(world, Server(address, 0, lambda _: None)) as served:
        assert served.send(BALANCE).status == status
        assert served.send(SandboxRequest("GET", "/sandbox")).status == 200


@pytest.mark.parametrize(
    ("address", "host"), [("127.0.0.1", "127.0.0.1"), ("0.0.0.0", "127.0.0.1"), ("::1", "[::1]"), ("::", "[::1]")]
)
def test_a_server_on_all_addresses_is_reached_through_loopback(address: str, host: str) -> None:
    if ":" in address and not socket.has_dualstack_ipv6():
        pytest.skip("needs IPv6")
    with closing(Server(address, 0, lambda _: None)) as served:
        assert served.origin == f"http://{host}:{served.socket.getsockname()[1]}"


def test_the_error_for_a_port_in_use_has_its_reason(tool: Tool) -> None:
    with closing(Server("127.0.0.1", 0, lambda _: None)) as served:
        port = served.socket.getsockname()[1]
        done = tool("sandbox", "serve", "--port", str(port))
    assert (done.code, done.err) == (
        3,
        f'Error: Cannot listen on "127.0.0.1", port {port}: Address already in use\nChoose another --port or --host.\n',
    )


def test_own_and_allowed_addresses_are_accepted_as_host(world: World) -> None:
    with serving(world, Server("127.0.0.1", 0, lambda _: None, ["sandbox", "::1"])) as served:
        for host in ("127.0.0.1", "127.0.0.1:80", "localhost:8520", "LOCALHOST", "sandbox:8520", "[::1]:8520"):
            assert served.send(SandboxRequest("GET", "/sandbox", headers={"host": host})).status == 200, host


@pytest.mark.parametrize("path", ["/sandbox/inbox", "/api/v1/balance", "/"])
@pytest.mark.parametrize("host", ["evil.example:8520", "127.0.0.1.example", ""])
def test_another_host_is_refused_everywhere(served: Served, path: str, host: str) -> None:
    assert served.send(SandboxRequest("GET", path, headers={"host": host})).status == 403


@pytest.mark.parametrize(
    ("origin", "status"),
    [("http://127.0.0.1", 200), ("http://evil.example", 403), ("null", 403), ("https://127.0.0.1", 403)],
)
def test_a_page_of_another_origin_is_refused(served: Served, origin: str, status: int) -> None:
    assert served.send(SandboxRequest("POST", "/sandbox/reset", headers={"origin": origin})).status == status


def test_browsers_must_not_guess_the_type_of_a_response(world: World, served: Served) -> None:
    world.post("/url/short", name="x", url_long="https://a.example", alias="short")
    for method, path, status in (
        ("GET", "/", 200),
        ("GET", "/sandbox/inbox", 200),
        ("GET", "/u/short", 302),
        ("GET", "/api/v1/balance", 520),
        ("PUT", "/sandbox", 405),
        ("GE T", "/", 400),
    ):
        response = served.send(SandboxRequest(method, path))
        assert (response.status, response.headers["x-content-type-options"]) == (status, "nosniff"), path
