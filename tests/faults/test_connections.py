"""Kept connections, responses with wrong headers, and failures before and after the request is sent."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from itertools import repeat
from typing import Any, NoReturn

import httpx
import pytest
import trustme
from httpcore._backends.sync import SyncStream

from conftest import KEY
from msgctl import operations
from msgctl.config.profiles import Credential
from msgctl.errors import Interrupted, NotReachedError, OutcomeUnknownError, TurnedAwayError
from msgctl.http import SentCounter, request, transport
from msgctl.http.client import Client
from msgctl.http.transport import TooLateError
from support import PATIENCE
from support.commands import PHONE, SENDS
from support.postgres import Cluster
from support.service import (
    Behaviour,
    Service,
    certified,
    drip,
    drop,
    hang_up,
    proxying,
    raw,
    respond,
    running,
    silent,
    then,
)
from support.tool import Outcome, Tool

RECORD = SENDS["sms send"].record
SEND = request.build(operations.SEND_SMS, {"phone": (PHONE,), "sms": "Hola"})
BALANCE = request.build(operations.BALANCE, {})
DATES = {"since": "2026-01-01", "until": "2026-01-02"}
STATS = request.build(operations.URL_STATISTIC, {"name-url": "n", **DATES})
URL = "https://service.invalid/api/v1"
BODY = b'{"id":"d1"}'
WHOLE = raw(b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n" + BODY)


@pytest.fixture
def keeper() -> Iterator[Service]:
    """A server that keeps its connections open."""
    with running(keeps=True) as service:
        yield service


@contextlib.contextmanager
def calling(base_url: str) -> Iterator[Client]:
    with contextlib.closing(Client(base_url, Credential(1, KEY), timeout=PATIENCE, sleep=lambda _: None)) as client:
        yield client


@pytest.mark.parametrize(
    ("sent", "line", "consequence", "count"),
    [(SEND, "> ", "nothing was sent", 1), (SEND, "< ", "it may have been carried out", 2), (BALANCE, "< ", "", 1)],
)
def test_ctrl_c_reports_whether_the_request_was_sent(
    sent: request.Request, line: str, consequence: str, count: int, keeper: Service
) -> None:
    logged: list[str] = []

    def log(text: str) -> None:
        logged.append(text)
        if len(logged) > 2 and text.startswith(line):  # interrupt the second request
            raise KeyboardInterrupt

    keeper.always(WHOLE)
    counter = SentCounter()
    with contextlib.closing(Client(keeper.base_url, Credential(1, KEY), log=log, counter=counter)) as client:
        client.fetch(SEND)
        with pytest.raises(Interrupted, match=r"^Interrupted\b") as stopped:
            client.fetch(sent)
    assert (stopped.value.consequence, counter.count) == (consequence, count)
    assert len(keeper.received) == (1 if line == "> " else 2)


def test_a_request_with_its_own_time_limit_is_not_retried_and_never_exceeds_the_limit_of_the_command() -> None:
    with running() as service, contextlib.closing(Client(service.base_url, Credential(1, KEY), timeout=0.2)) as client:
        service.will(drop, silent)
        for reason in ("closed", r"0\.2 seconds"):
            with pytest.raises(TurnedAwayError, match=reason):
                client.send(BALANCE, timeout=PATIENCE)


def test_large_responses_to_more_threads_than_may_read_them_at_once_arrive(keeper: Service) -> None:
    keeper.always(respond(b"x" * 2 * transport.LARGE, headers={"Connection": "keep-alive"}))
    with calling(keeper.base_url) as client:
        for thread in [client.sibling() for _ in range(transport.MAX_LARGE + 1)]:
            with contextlib.closing(thread):
                assert not thread.fetch(BALANCE).is_lost


# --- a connection is kept


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n" + BODY + b"\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\nKeep-Alive: timeout=5, max=100\r\n\r\n" + BODY,
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" + CHUNKED,
    ],
)  # fmt: skip
def test_requests_go_over_one_connection(data: bytes, keeper: Service) -> None:
    keeper.always(raw(data))
    with calling(keeper.base_url) as client:
        assert [client.send(SEND).body for _ in range(3)] == [BODY] * 3
    assert (len(keeper.received), keeper.connections) == (3, 1)


@pytest.mark.parametrize(
    "data",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 11\r\n\r\n" + BODY,
        b"HTTP/1.0 200 OK\r\nContent-Length: 11\r\n\r\n" + BODY,
        b"HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\n" + BODY + b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    ],
    ids=["close", "HTTP/1.0", "one response too many"],
)
def test_a_connection_is_not_reused(data: bytes, keeper: Service) -> None:
    keeper.always(raw(data))
    with calling(keeper.base_url) as client:
        assert [client.send(SEND).body for _ in range(2)] == [BODY] * 2
    assert (len(keeper.received), keeper.connections) == (2, 2)


def test_a_response_may_have_exactly_as_many_bytes_as_its_request_allows(keeper: Service) -> None:
    for allowed in (SEND, STATS):
        largest = BODY.ljust(allowed.max_response)
        keeper.will(respond(largest), respond(largest + b" "))
        with calling(keeper.base_url) as client:
            response = client.fetch(allowed)
            assert (response.body == largest, response.fault) == (True, "")
            response = client.fetch(allowed)
        assert response.fault == f"it is over {allowed.max_response:,} bytes"


def test_a_body_of_small_chunks_without_end_is_read_until_the_time_limit() -> None:
    endless = httpx.MockTransport(lambda _: httpx.Response(200, content=repeat(b"x")))
    response = transport.exchange(endless, httpx.Request("GET", URL), 0.05, max_response=20 * 2**20)
    assert (response.is_late, response.fault) == (True, "no whole response came within 0.05 seconds")


@pytest.mark.parametrize(("errno", "tries"), [(socket.EAI_AGAIN, 3), (socket.EAI_NONAME, 1)])
def test_a_name_is_looked_up_again_only_if_the_lookup_may_succeed_later(
    errno: int, tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def fail(host: str, *_: Any, **__: Any) -> NoReturn:
        asked.append(host)
        raise socket.gaierror(errno, "no")

    monkeypatch.setattr(socket, "getaddrinfo", fail)
    with calling(URL) as client, pytest.raises(NotReachedError):
        client.fetch(SEND)
    assert asked == ["service.invalid"] * tries


@pytest.mark.parametrize(
    "meanwhile", [hang_up, raw(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 2\r\n\r\n{}")], ids=["end", "bytes"]
)
def test_data_between_two_requests_loses_no_message(meanwhile: Behaviour, keeper: Service) -> None:
    done = threading.Event()
    keeper.will(then(WHOLE, meanwhile, done=done), WHOLE)
    with calling(keeper.base_url) as client:
        client.send(SEND)
        assert done.wait(PATIENCE)
        assert client.send(SEND).body == BODY
    assert (len(keeper.received), keeper.connections) == (2, 2)


@pytest.mark.parametrize("loss", [hang_up, then(raw(b"HTTP/1.1 200 OK\r\nContent-Le"), hang_up)])
def test_a_request_lost_on_a_kept_connection_is_not_retried(loss: Behaviour, keeper: Service) -> None:
    keeper.will(WHOLE, loss, WHOLE)
    with calling(keeper.base_url) as client:
        client.send(SEND)
        with pytest.raises(OutcomeUnknownError):
            client.send(SEND)
        assert (len(keeper.received), keeper.connections) == (2, 1)
        client.send(SEND)
    assert (len(keeper.received), keeper.connections) == (3, 2)


def test_a_late_response_is_not_used_for_the_next_request(keeper: Service) -> None:
    keeper.will(silent, WHOLE)
    with calling(keeper.base_url) as client:
        with pytest.raises(OutcomeUnknownError):
            client.send(SEND, timeout=0.2)
        assert client.send(SEND).body == BODY
    assert keeper.connections == 2


# --- stages before a request is sent


def test_a_slow_proxy_ends_at_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as proxy:
        proxy.will(drip(b"HTTP/1.1 200 OK\r\nX-Slow: "))
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        with calling(URL) as client, pytest.raises(NotReachedError, match=r"0\.2 seconds"):
            client.send(SEND, timeout=0.2)


def test_the_certificate_behind_a_proxy_is_from_the_service(monkeypatch: pytest.MonkeyPatch) -> None:
    with behind_a_proxy(trustme.CA(), monkeypatch) as (service, client):
        with pytest.raises(NotReachedError, match="The certificate of service") as error:
            client.send(SEND)
        assert not error.value.retryable
        assert service.received == []


def test_the_password_of_a_proxy_goes_to_the_proxy_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    with running() as proxy:
        proxy.always(respond(status=407))
        monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//ana:p%40ss@"))
        with calling(URL) as client, pytest.raises(NotReachedError, match="responded with 407") as refused:
            client.send(SEND)
        assert proxy.received[0].headers["proxy-authorization"] == "Basic YW5hOnBAc3M="
    assert not refused.value.retryable
    assert "p@ss" not in str(refused.value)
    assert "p%40ss" not in str(refused.value)


@contextlib.contextmanager
def behind_a_proxy(authority: trustme.CA, patch: pytest.MonkeyPatch) -> Iterator[tuple[Service, Client]]:
    """A service that is reached through a proxy, and its client."""
    with running(certified(authority, "service.invalid")) as service, proxying(service.port) as proxy:
        patch.setenv("HTTPS_PROXY", proxy.url)
        with calling(URL) as client:
            yield service, client


@pytest.mark.usefixtures("trusted")
def test_a_bug_after_a_request_through_a_proxy_leaves_the_outcome_unknown(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = SyncStream.read
    reads: list[bytes] = []

    def fail(stream: SyncStream, size: int, timeout: float | None = None) -> bytes:
        if reads:  # the first one is the response of the proxy
            raise ZeroDivisionError
        reads.append(read(stream, size, timeout))
        return reads[0]

    monkeypatch.setattr(SyncStream, "read", fail)
    with (
        behind_a_proxy(authority, monkeypatch) as (_, client),
        pytest.raises(OutcomeUnknownError, match=r"ZeroDivisionError in test_connections\.py, line"),
    ):
        client.send(SEND)


@pytest.mark.usefixtures("trusted")
def test_a_request_lost_behind_a_proxy_is_not_retried(authority: trustme.CA, monkeypatch: pytest.MonkeyPatch) -> None:
    with behind_a_proxy(authority, monkeypatch) as (service, client):
        service.will(drop)
        with pytest.raises(OutcomeUnknownError):
            client.send(SEND)
        assert len(service.received) == 1


def test_the_addresses_of_a_host_are_tried_in_turn_and_share_the_time_limit(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    lookup, connect = socket.getaddrinfo, socket.create_connection
    tried: list[tuple[str, float]] = []

    def look_up(host: str, *rest: Any, **more: Any) -> Any:
        addresses = ["127.0.0.2", "127.0.0.2", "127.0.0.1"] if host == "service.invalid" else [host]
        return [entry for address in addresses for entry in lookup(address, *rest, **more)]

    def try_address(address: tuple[str, int], timeout: float, **more: Any) -> socket.socket:
        tried.append((address[0], timeout))
        return connect(address, timeout, **more)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    monkeypatch.setattr(socket, "create_connection", try_address)
    service.will(respond(RECORD))
    with calling(f"http://service.invalid:{service.port}/api/v1") as client:
        client.send(SEND)
    assert [address for address, _ in tried] == ["127.0.0.2", "127.0.0.1"]
    assert tried[0][1] <= PATIENCE / 2


@pytest.mark.parametrize(("accepted", "code"), [(0, 4), (1, 5)])
def test_a_request_is_not_sent_if_the_system_accepted_none_of_its_bytes(
    accepted: int, code: int, service: Service, monkeypatch: pytest.MonkeyPatch, tool: Tool
) -> None:
    def send(_: object, data: bytes) -> int:
        pieces.append(data)
        if len(pieces) > accepted:
            raise BrokenPipeError
        return len(data)

    pieces: list[bytes] = []
    monkeypatch.setattr(socket.socket, "send", send)
    long = ("-m", "x" * 2 * transport.PIECE, "--max-segments", "1000")
    assert tool("--timeout", "0.2", "sms", "send", PHONE, *long).code == code


def test_a_connection_is_not_reused_after_half_a_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server would read the next request as the rest of that one."""
    send = socket.socket.send
    pieces: list[bytes] = []

    def written(connection: socket.socket, data: bytes) -> int:
        pieces.append(data)
        if len(pieces) == 2:
            raise BrokenPipeError
        return send(connection, data)

    monkeypatch.setattr(socket.socket, "send", written)
    long = request.build(operations.URL_STATISTIC, {"name-url": "n" * 2 * transport.PIECE, **DATES})
    with running(keeps=True, blind=True) as service, calling(service.base_url) as client:
        service.always(WHOLE)
        client.fetch(long)
        client.fetch(BALANCE)
        assert service.connections == 2


def test_each_piece_of_a_request_gets_the_remaining_time(keeper: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []
    send = socket.socket.send

    def limited(connection: socket.socket, buffer: bytes) -> int:
        timeout = connection.gettimeout()
        assert timeout is not None, "a server that takes nothing would be waited for without end"
        given.append(timeout)
        return send(connection, buffer)

    monkeypatch.setattr(socket.socket, "send", limited)
    keeper.will(WHOLE)
    long = request.build(operations.SEND_SMS, {"phone": (PHONE,), "sms": "x" * 3 * transport.PIECE})
    with calling(keeper.base_url) as client:
        client.send(long)
    assert len(given) > 1
    assert sorted(given, reverse=True) == given
    assert given[0] <= PATIENCE


@pytest.mark.usefixtures("trusted")
@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_request_that_is_too_late_is_not_sent_and_leaves_its_connection_to_the_next(
    scheme: str, authority: trustme.CA
) -> None:
    tls = certified(authority, "127.0.0.1") if scheme == "https" else None
    with running(tls, keeps=True) as service, calling(service.base_url) as client:
        service.always(respond(RECORD))
        for _ in range(2):
            with pytest.raises(TooLateError):
                client.send(SEND, may_send=lambda: False)
            assert not client.is_sent
            client.send(SEND, may_send=lambda: True)
        assert (len(service.received), service.connections) == (2, 2)


@pytest.mark.usefixtures("trusted")
def test_a_request_that_is_too_late_behind_a_proxy_is_not_sent(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    with behind_a_proxy(authority, monkeypatch) as (service, client):
        with pytest.raises(NotReachedError, match="took too long"):
            client.send(SEND, timeout=PATIENCE, may_send=lambda: False)
        assert not service.received


def test_a_send_whose_key_was_taken_over_while_it_connected_is_not_sent(
    postgres: Cluster, service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The session of the first run ends while it connects to the service, and the second run sends."""
    service.always(respond(RECORD))
    monkeypatch.setenv("MSGCTL_STORE", postgres.url())
    monkeypatch.setattr("msgctl.store.sends.INTENT_LIFE", 0)  # as if connecting takes longer
    command = ("sms", "send", PHONE, "-m", "Hola", "--once", "greeting", "--json")
    connect = socket.create_connection
    others: list[Outcome] = []

    def slowly(*address: Any, **more: Any) -> socket.socket:
        monkeypatch.setattr(socket, "create_connection", connect)
        postgres.disconnect()
        others.append(tool(*command, *options))
        return connect(*address, **more)

    options: tuple[str, ...] = ("--resend-unknown",)
    monkeypatch.setattr(socket, "create_connection", slowly)
    late = tool(*command)
    late.refused(6, '"reason":"running_elsewhere"', '"nothing_sent":true', "has taken over this key; this run sent")
    assert ([other.code for other in others], len(service.received)) == ([0], 1)
    assert tool(*command).document == others[0].document

    options, command = (), (*command[:-2], "another", "--json")  # prints the unknown outcome, and takes nothing over
    monkeypatch.setattr(socket, "create_connection", slowly)
    assert (tool(*command).code, others[-1].code, len(service.received)) == (0, 5, 2)
