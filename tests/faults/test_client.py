"""The requests that a client makes, their time limits, and its log."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import httpcore
import pytest

from msgctl import operations
from msgctl.config.profiles import Credential
from msgctl.errors import MsgctlError, NotReachedError
from msgctl.http.client import Client
from msgctl.http.request import build
from msgctl.http.transport import NoResponseError, RawResponse, Transport
from support.tool import Clock

SEND = build(operations.SEND_SMS, {"phone": ("573001234567",), "sms": "Hola"})
BALANCE = build(operations.BALANCE, {})


class Recorder(Transport):
    """Stores the requests, and responds to all of them in the same way."""

    def __init__(self, base_url: str, behave: Callable[[], RawResponse]) -> None:
        super().__init__(base_url, httpcore.MockBackend([]))
        self._behave = behave
        self.requests: list[httpcore.Request] = []
        self.limits: list[float] = []

    def send(self, request: httpcore.Request, seconds: float, max_response: int = 0) -> RawResponse:
        assert max_response > 0
        self.requests.append(request)
        self.limits.append(seconds)
        return self._behave()


def balance() -> RawResponse:
    return RawResponse(200, [], b'{"status": 7}')


def recorded(behave: Callable[[], RawResponse] = balance, **more: Any) -> tuple[Client, Recorder]:
    base_url = more.pop("base_url", "https://service.example/api/v1")
    recorder = Recorder(base_url, behave)
    return Client(base_url, Credential(12, "a-long-key"), transport=lambda: recorder, **more), recorder


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://Service.example:8443/api/v1", "service.example:8443/api/v1/send-sms"),
        ("https://ñandú.example/a b", "xn--and-6ma2c.example/a%20b/send-sms"),
        ("http://[::1]:8000", "[::1]:8000/send-sms"),
    ],
)
def test_the_base_url_may_have_a_port_an_ip_address_or_letters_beyond_ascii(base_url: str, url: str) -> None:
    client, recorder = recorded(base_url=base_url)
    client.fetch(SEND)
    (sent,) = recorder.requests
    host = dict(sent.headers)[b"Host"].decode()
    assert f"{host}{sent.url.target.decode()}" == url


class Slow(Clock):
    """A clock that advances with each request. The requests fail."""

    def __init__(self, seconds: float = 1.0) -> None:
        super().__init__(0.0)
        self.seconds = seconds

    def lose(self) -> RawResponse:
        self.now += self.seconds
        raise NoResponseError("lost")

    def be_busy(self) -> RawResponse:
        self.now += self.seconds
        return RawResponse(503, [], b"")


def limits(
    behave: Callable[[Slow], RawResponse], timeout: float, *, seconds: float = 1.0
) -> tuple[list[float], list[float]]:
    """Return the time limit of each attempt to read the balance, and the pauses between them."""
    clock = Slow(seconds)
    client, recorder = recorded(partial(behave, clock), timeout=timeout, clock=clock, sleep=clock.sleep)
    with pytest.raises(MsgctlError):
        client.send(BALANCE)
    return recorder.limits, clock.slept


@pytest.mark.parametrize("behave", [Slow.lose, Slow.be_busy])
def test_all_attempts_and_pauses_share_the_time_limit(behave: Callable[[Slow], RawResponse]) -> None:
    given, slept = limits(behave, 10.0)
    assert (given, slept) == ([10.0, pytest.approx(8.7), pytest.approx(6.8)], [0.3, 0.9])
    assert limits(behave, 2.0) == ([2.0, pytest.approx(0.7)], [0.3])
    assert limits(behave, 0.4, seconds=0)[1] == [0.3]
    for too_short in (0.3, 0.2):
        assert limits(behave, too_short, seconds=0) == ([too_short], [])


def test_the_limit_of_one_request_does_not_raise_the_limit_of_the_client() -> None:
    client, recorder = recorded(timeout=5.0)
    client.fetch(SEND, timeout=2.0)
    client.send(BALANCE, timeout=9.0)
    assert recorder.limits == [2.0, 5.0]


def test_a_request_that_was_not_sent_is_retried_unless_it_would_fail_again() -> None:
    for retryable, tries in ((True, 3), (False, 1)):

        def fail(retryable: bool = retryable) -> RawResponse:
            raise NotReachedError("no", retryable=retryable)

        logged: list[str] = []
        client, recorder = recorded(fail, sleep=lambda _: None, log=logged.append, clock=lambda: 0.0)
        with pytest.raises(NotReachedError):
            client.fetch(SEND)
        assert len(recorder.requests) == tries
        assert logged[:2] == ["> POST /api/v1/send-sms", "< not sent POST /api/v1/send-sms 0 ms"]


def test_the_beginning_of_the_key_is_masked_at_the_end_of_an_incomplete_response() -> None:
    whole = RawResponse(400, [], b"the key is a-lon")
    client, _ = recorded(lambda: whole)
    assert client.fetch(SEND).body == b"the key is a-lon"
    client, _ = recorded(lambda: whole._replace(fault="it is over 9 bytes"))
    assert client.fetch(SEND).body == b"the key is ***"
