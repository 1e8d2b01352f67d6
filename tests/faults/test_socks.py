"""SOCKS proxies (the package ``httpx[socks]``)."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

import httpcore
import pytest
import trustme

from msgctl import operations as ops
from msgctl.config.profiles import Credential
from msgctl.errors import ConfigurationError, NotReachedError, OutcomeUnknownError
from msgctl.http.client import Client
from msgctl.http.request import build
from support.proxy import Proxy, proxying
from support.service import Behaviour, Service, drop, respond, running, silent

pytestmark = [
    pytest.mark.usefixtures("trusted"),
    # httpcore leaves the connection to a proxy that refuses to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

HOST = "service.invalid"
BASE_URL = f"https://{HOST}:8080/api/v1"
GREETING, CONNECTED, REFUSED = b"\x05\x00", b"\x05\x00\x00\x01\0\0\0\0\0\0", b"\x05\x05\x00\x01\0\0\0\0\0\0"
SMS = {"phone": ["573001234567"], "sms": "Hola"}


@pytest.fixture
def service(authority: trustme.CA) -> Iterator[Service]:
    """A service behind TLS, under a name that only the proxy knows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(HOST).configure_cert(context)
    with running(context) as server:
        yield server


class Socks(Proxy):
    """A SOCKS5 proxy (RFC 1928), which accepts any password (RFC 1929)."""

    def __init__(self, port: int, reply: bytes) -> None:
        super().__init__(port)
        self._reply = reply

    def opens(self, client: socket.socket) -> bool:
        if b"\x02" in client.recv(65536)[2:]:
            client.sendall(b"\x05\x02")
            self.asked.append(client.recv(65536))
            client.sendall(b"\x01\x00")
        else:
            client.sendall(GREETING)
        self.asked.append(client.recv(65536))
        client.sendall(self._reply)
        return self._reply == CONNECTED


@contextmanager
def socks(target: int, reply: bytes = CONNECTED) -> Iterator[tuple[str, list[bytes]]]:
    """A SOCKS proxy that leads every connection to a port of this machine: its URL, and what it was asked."""
    with proxying(target, proxy=Socks(target, reply)) as proxy:
        yield proxy.url.replace("http:", "socks5:"), proxy.asked


def send(timeout: float = 20.0) -> str:
    client = Client(BASE_URL, Credential(1, "a-long-key"), timeout=timeout, sleep=lambda _: None)
    try:
        return str(client.send(build(ops.SEND_SMS, SMS)).document["id"])
    finally:
        client.close()


def test_requests_go_through_a_socks_proxy_which_looks_up_the_name(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.will(respond({"id": "d1", "data": []}))
    with socks(service.port) as (url, asked):
        monkeypatch.setenv("ALL_PROXY", url)
        assert send() == "d1"
    assert HOST.encode() in asked[0]
    assert len(service.received) == 1


def test_a_socks_proxy_gets_its_password(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    service.will(respond({"id": "d1", "data": []}))
    with socks(service.port) as (url, asked):
        monkeypatch.setenv("ALL_PROXY", url.replace("//", "//ana:p%40ss@"))
        assert send() == "d1"
    assert asked[0] == b"\x01\x03ana\x04p@ss"


def test_a_socks_proxy_that_refuses_exits_with_4(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    with socks(service.port, REFUSED) as (url, _):
        monkeypatch.setenv("ALL_PROXY", url)
        with pytest.raises(NotReachedError, match="The proxy did not open a connection"):
            send()
    assert service.received == []


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x04\x00"])
def test_a_proxy_that_does_not_speak_socks_exits_with_4(
    reply: bytes, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socks(service.port, reply) as (url, _):
        monkeypatch.setenv("ALL_PROXY", url)
        with pytest.raises(NotReachedError):
            send()
    assert service.received == []


@pytest.mark.parametrize("behaviour", [drop, silent], ids=["lost", "late"])
def test_a_response_lost_behind_a_socks_proxy_leaves_the_outcome_unknown(
    behaviour: Behaviour, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.will(behaviour)
    with socks(service.port) as (url, _):
        monkeypatch.setenv("ALL_PROXY", url)
        with pytest.raises(OutcomeUnknownError):
            send(1.0)
    assert len(service.received) == 1


def test_a_silent_socks_proxy_ends_at_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        monkeypatch.setenv("ALL_PROXY", f"socks5://127.0.0.1:{mute.getsockname()[1]}")
        with pytest.raises(NotReachedError, match=r"0\.3 seconds"):
            send(0.3)


def test_the_error_without_socksio_gives_the_command_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> NoReturn:
        raise RuntimeError("socksio is not installed")

    monkeypatch.setattr(httpcore, "SOCKSProxy", fail)
    monkeypatch.setenv("ALL_PROXY", "socks5h://127.0.0.1:1")
    with pytest.raises(ConfigurationError) as error:
        send()
    assert error.value.what == "A SOCKS proxy needs the package socksio"
    assert "pipx inject msgctl 'httpx[socks]'" in str(error.value.hint)


def test_a_command_without_socksio_exits_with_3(tmp_path: Path) -> None:
    code = "import sys; sys.modules['socksio'] = None; from msgctl.__main__ import console; console()"
    environ = {
        "ALL_PROXY": "socks5://127.0.0.1:1",
        "MSGCTL_BASE_URL": BASE_URL,
        "MSGCTL_CLIENT": "1",
        "MSGCTL_KEY": "key-of-account",
        "XDG_STATE_HOME": str(tmp_path),
    }
    done = subprocess.run(
        [sys.executable, "-c", code, "balance"],
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 3
    assert done.stderr.startswith("Error: A SOCKS proxy needs the package socksio\n")
    assert "pip install 'httpx[socks]'" in done.stderr
