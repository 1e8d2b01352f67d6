"""SOCKS proxies (extra ``socks``)."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from msgctl import operations as ops
from msgctl.config.credential import Credential, Secret
from msgctl.errors import ConfigurationError, NotReachedError, OutcomeUnknownError
from msgctl.http.client import Client
from support.service import Behaviour, Service, answer, drop, silent

HOST = "service.invalid"
BASE_URL = f"http://{HOST}:8080/api/v1"
GREETING, CONNECTED, REFUSED = b"\x05\x00", b"\x05\x00\x00\x01\0\0\0\0\0\0", b"\x05\x05\x00\x01\0\0\0\0\0\0"
SMS = {"phone": ["573001234567"], "sms": "Hola"}


@contextmanager
def socks(target: int, reply: bytes = CONNECTED) -> Iterator[tuple[str, list[bytes]]]:
    """Run a SOCKS5 proxy (RFC 1928) that leads every connection to a port of this machine; gives what it was asked."""
    asked: list[bytes] = []
    opened: list[socket.socket] = []

    def pass_on(source: socket.socket, to: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def serve(listener: socket.socket) -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.recv(65536)
            connection.sendall(GREETING)
            asked.append(connection.recv(65536))
            connection.sendall(reply)
            if reply != CONNECTED:
                connection.close()
                continue
            onward = socket.create_connection(("127.0.0.1", target))
            opened.extend((connection, onward))
            for pair in ((connection, onward), (onward, connection)):
                threading.Thread(target=pass_on, args=pair, daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        yield f"socks5://127.0.0.1:{listener.getsockname()[1]}", asked
        listener.shutdown(socket.SHUT_RDWR)
    for each in opened:
        each.close()


def send(timeout: float = 20.0) -> str:
    client = Client(BASE_URL, Credential(1, Secret("a-long-key")), timeout=timeout, sleep=lambda _: None)
    try:
        return str(client.send(ops.SEND_SMS, SMS).document["id"])
    finally:
        client.close()


def test_requests_go_through_a_socks_proxy_which_looks_up_the_name(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.will(answer({"id": "d1", "data": []}))
    with socks(service.port) as (url, asked):
        monkeypatch.setenv("ALL_PROXY", url)
        assert send() == "d1"
    assert HOST.encode() in asked[0]
    assert len(service.received) == 1


def test_a_socks_proxy_that_refuses_is_4(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    with socks(service.port, REFUSED) as (url, _):
        monkeypatch.setenv("ALL_PROXY", url)
        with pytest.raises(NotReachedError, match="The proxy did not open a connection"):
            send()
    assert service.received == []


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\x04\x00"])
def test_a_socks_proxy_that_does_not_speak_socks_is_4(
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


def test_a_silent_socks_proxy_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        monkeypatch.setenv("ALL_PROXY", f"socks5://127.0.0.1:{mute.getsockname()[1]}")
        with pytest.raises(NotReachedError, match=r"0\.3 seconds"):
            send(0.3)


def test_without_socksio_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "socksio", None)
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1")
    with pytest.raises(ConfigurationError) as error:
        send()
    assert "msgctl[socks]" in (error.value.hint or "")
