"""SOCKS proxies (the package ``httpx[socks]``)."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import trustme

from support import PATIENCE
from support.commands import SENDS
from support.service import Behaviour, Service, certified, drop, forward, respond, running, silent
from support.tool import Outcome, Tool

pytestmark = [
    pytest.mark.usefixtures("trusted"),
    # httpcore leaves the connection to a proxy that refuses to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]

HOST = "service.invalid"
BASE_URL = f"https://{HOST}:8080/api/v1"
CONNECTED, REFUSED = b"\x05\x00\x00\x01\0\0\0\0\0\0", b"\x05\x05\x00\x01\0\0\0\0\0\0"
ACCEPTED = respond(SENDS["sms send"].record)


@pytest.fixture
def remote(authority: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    """A service behind TLS, under a name that only the proxy knows."""
    for name, value in {"BASE_URL": BASE_URL, "CLIENT": "1", "KEY": "a-long-key"}.items():
        monkeypatch.setenv(f"MSGCTL_{name}", value)
    with running(certified(authority, HOST)) as server:
        yield server


@contextmanager
def socks(target: int, reply: bytes = CONNECTED, account: str = "", scheme: str = "socks5") -> Iterator[list[bytes]]:
    """A SOCKS5 proxy (RFC 1928) in the environment, whose tunnels lead to a port of this machine. Yields its requests.

    With an account, it accepts any password (RFC 1929).
    """
    asked: list[bytes] = []

    def behave(client: socket.socket) -> None:
        client.sendall(b"\x05\x02" if account else b"\x05\x00")
        if account:
            asked.append(client.recv(65536))
            client.sendall(b"\x01\x00")
        asked.append(client.recv(65536))
        client.sendall(reply)
        if reply == CONNECTED:
            forward(client, target)

    with running(blind=True) as proxy, pytest.MonkeyPatch.context() as patch:
        proxy.always(behave)
        patch.setenv("ALL_PROXY", f"{scheme}://{account}127.0.0.1:{proxy.port}")
        yield asked


def send(tool: Tool, timeout: str = "20") -> Outcome:
    return tool(*SENDS["sms send"].line, "--timeout", timeout)


@pytest.mark.parametrize("scheme", ["socks5", "socks5h"])
def test_requests_go_through_a_socks_proxy_which_looks_up_the_name(scheme: str, remote: Service, tool: Tool) -> None:
    remote.will(ACCEPTED)
    with socks(remote.port, scheme=scheme) as asked:
        assert send(tool).code == 0
    assert HOST.encode() in asked[0]


def test_a_socks_proxy_gets_its_password(remote: Service, tool: Tool) -> None:
    remote.will(ACCEPTED)
    with socks(remote.port, account="ana:p%40ss@") as asked:
        assert send(tool).code == 0
    assert asked[0] == b"\x01\x03ana\x04p@ss"


@pytest.mark.parametrize("reply", [REFUSED, b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x04\x00"])
def test_a_proxy_that_refuses_or_does_not_speak_socks_exits_with_4(reply: bytes, remote: Service, tool: Tool) -> None:
    with socks(remote.port, reply):
        assert send(tool).code == 4
    assert remote.received == []


@pytest.mark.parametrize("behaviour", [drop, silent], ids=["lost", "late"])
def test_a_response_lost_behind_a_socks_proxy_leaves_the_outcome_unknown(
    behaviour: Behaviour, remote: Service, tool: Tool
) -> None:
    remote.will(behaviour)
    with socks(remote.port):
        assert send(tool, "0.5").code == 5
    assert len(remote.received) == 1


def test_a_silent_socks_proxy_ends_at_the_time_limit(
    remote: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        monkeypatch.setenv("ALL_PROXY", f"socks5://127.0.0.1:{mute.getsockname()[1]}")
        send(tool, "0.2").refused(4, "0.2 seconds")
    assert remote.connections == 0


def test_the_error_without_socksio_gives_the_command_to_install_it(tmp_path: Path) -> None:
    code = "import sys; sys.modules['socksio'] = None; from msgctl.__main__ import console; console()"
    account = {"MSGCTL_BASE_URL": BASE_URL, "MSGCTL_CLIENT": "1", "MSGCTL_KEY": "key-of-account"}
    done = subprocess.run(
        [sys.executable, "-c", code, "balance"],
        env={**os.environ, **account, "ALL_PROXY": "socks5://127.0.0.1:1", "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert done.returncode == 3
    assert f"{sys.executable} -m pip install 'socksio>=1'" in done.stderr
