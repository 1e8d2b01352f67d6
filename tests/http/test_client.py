"""The requests that a client makes, their time limits, and its log."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import httpx
import pytest

from msgctl import operations
from msgctl.config.profiles import Credential
from msgctl.errors import MsgctlError, NotReachedError, OutcomeUnknownError
from msgctl.http.client import Client
from msgctl.http.request import USER_AGENT, build
from msgctl.http.response import CHECK_A_SEND
from msgctl.http.transport import finished
from support.tool import Clock

SEND = build(operations.SEND_SMS, {"phone": ("573001234567",), "sms": "Hola"})
BALANCE = build(operations.BALANCE, {})


class Recorder(httpx.BaseTransport):
    """Stores the requests, and responds to all of them in the same way."""

    def __init__(self, behave: Callable[[], httpx.Response]) -> None:
        self._behave = behave
        self.requests: list[httpx.Request] = []

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return self._behave()


def balance() -> httpx.Response:
    return finished(200, [], b'{"status": 7}', {})


def recorded(behave: Callable[[], httpx.Response] = balance, **more: Any) -> tuple[Client, Recorder]:
    recorder = Recorder(behave)
    base_url = more.pop("base_url", "https://service.example/api/v1")
    return Client(base_url, Credential(12, "a-long-key"), transport=lambda: recorder, **more), recorder


def test_a_request_has_the_credentials_the_headers_and_the_time_limit() -> None:
    client, recorder = recorded()
    client.fetch(SEND)
    (sent,) = recorder.requests
    body = "client=12&key=a-long-key&phone=573001234567&sms=Hola"
    assert (sent.method, str(sent.url), sent.content) == (
        "POST",
        "https://service.example/api/v1/send-sms",
        body.encode(),
    )
    assert sent.headers.raw == [
        (b"Host", b"service.example"),
        (b"Accept", b"application/json"),
        (b"User-Agent", USER_AGENT.encode()),
        (b"Content-Type", b"application/x-www-form-urlencoded"),
        (b"Accept-Encoding", b"identity"),
        (b"Content-Length", str(len(body)).encode()),
    ]
    wanted = {"timeout": {"read": 30.0}, "sent": False, "max_response": SEND.max_response}
    assert {name: sent.extensions[name] for name in wanted} == wanted


def test_a_client_makes_requests_to_several_urls() -> None:
    client, recorder = recorded()
    states = [build(operations.MESSAGES_STATE, {"id": each}) for each in ("m1", "m2")]
    for made in (SEND, BALANCE, *states, SEND):
        client.fetch(made)
    assert [each.url.raw_path.decode().replace("client=12&key=a-long-key", "*") for each in recorder.requests] == [
        "/api/v1/send-sms",
        "/api/v1/balance?*",
        "/api/v1/messages-state?*&id=m1",
        "/api/v1/messages-state?*&id=m2",
        "/api/v1/send-sms",
    ]
    assert "Content-Length" not in recorder.requests[1].headers


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://Service.example:8443/api/v1", "https://service.example:8443/api/v1/send-sms"),
        ("https://ñandú.example/a b", "https://xn--and-6ma2c.example/a%20b/send-sms"),
        ("http://[::1]:8000", "http://[::1]:8000/send-sms"),
    ],
)
def test_the_base_url_may_have_a_port_an_ip_address_or_letters_beyond_ascii(base_url: str, url: str) -> None:
    client, recorder = recorded(base_url=base_url)
    client.fetch(SEND)
    (sent,) = recorder.requests
    assert str(sent.url).replace("ñandú", "xn--and-6ma2c") == url
    assert sent.headers["Host"] == url.split("/")[2]


class Slow(Clock):
    """A clock that advances with each request. The requests fail."""

    def __init__(self, seconds: float = 1.0) -> None:
        super().__init__(0.0)
        self.seconds = seconds

    def lose(self) -> httpx.Response:
        self.now += self.seconds
        raise httpx.ReadError("lost")

    def be_busy(self) -> httpx.Response:
        self.now += self.seconds
        return finished(503, [], b"", {})


def limits(
    behave: Callable[[Slow], httpx.Response], timeout: float, *, seconds: float = 1.0
) -> tuple[list[float], list[float]]:
    """Return the time limit of each attempt to read the balance, and the pauses between them."""
    clock = Slow(seconds)
    client, recorder = recorded(partial(behave, clock), timeout=timeout, clock=clock, sleep=clock.sleep)
    with pytest.raises(MsgctlError):
        client.send(BALANCE)
    return [each.extensions["timeout"]["read"] for each in recorder.requests], clock.slept


@pytest.mark.parametrize("behave", [Slow.lose, Slow.be_busy])
def test_all_attempts_and_pauses_share_the_time_limit(behave: Callable[[Slow], httpx.Response]) -> None:
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
    assert [each.extensions["timeout"]["read"] for each in recorder.requests] == [2.0, 5.0]


def test_a_request_that_was_not_sent_is_retried_unless_it_would_fail_again() -> None:
    for retryable, tries in ((True, 3), (False, 1)):

        def fail(retryable: bool = retryable) -> httpx.Response:
            raise NotReachedError("no", retryable=retryable)

        logged: list[str] = []
        client, recorder = recorded(fail, sleep=lambda _: None, log=logged.append, clock=lambda: 0.0)
        with pytest.raises(NotReachedError):
            client.fetch(SEND)
        assert len(recorder.requests) == tries
        assert logged[:2] == ["> POST /api/v1/send-sms", "< not sent POST /api/v1/send-sms 0 ms"]


def test_the_key_is_masked_in_every_part_of_a_response() -> None:
    name, encoding = (b"X-a-long-key", b"a-long-key"), (b"Content-Encoding", b"gzip")
    reason = {"reason_phrase": b"No a-long-key", "http_version": b"HTTP/1.1"}
    client, _ = recorded(lambda: finished(400, [name, encoding], b"a-long-key.", reason))
    response = client.fetch(SEND)
    assert (response.status_code, response.content) == (400, b"***.")
    assert response.headers.raw[0] == (b"X-***", b"***")
    assert response.extensions == {
        "headers": [(b"X-***", b"***"), (b"Content-Encoding", b"gzip")],
        "reason_phrase": b"No ***",
        "http_version": b"HTTP/1.1",
    }


def test_the_beginning_of_the_key_is_masked_at_the_end_of_an_incomplete_response() -> None:
    extensions: dict[str, Any] = {}
    client, _ = recorded(lambda: finished(400, [], b"the key is a-lon", extensions))
    assert client.fetch(SEND).content == b"the key is a-lon"
    extensions["fault"] = "it is over 9 bytes"
    assert client.fetch(SEND).content == b"the key is ***"


@pytest.mark.parametrize(
    ("raised", "why"),
    [
        (httpx.ReadError, "the connection was lost while waiting for the response"),
        (
            httpx.RemoteProtocolError,
            "the connection was closed before the end of the response, or the response is not HTTP",
        ),
        (httpx.ReadTimeout, "no whole response came within 1 second"),
    ],
)
def test_the_error_for_a_lost_response_gives_the_reason(raised: type[httpx.TransportError], why: str) -> None:
    def fail() -> httpx.Response:
        raise raised("the text may quote the request")

    client, _ = recorded(fail, timeout=1.0)
    with pytest.raises(OutcomeUnknownError) as error:
        client.send(SEND)
    assert error.value.message == f"The request was sent, but {why}; it may have been carried out"
    assert error.value.hint == CHECK_A_SEND


def test_the_log_shows_each_attempt() -> None:
    clock, logged = Slow(2.5), list[str]()
    client, _ = recorded(clock.lose, log=logged.append, clock=clock, sleep=clock.sleep)
    with pytest.raises(MsgctlError):
        client.fetch(BALANCE)
    attempt = ["> GET /api/v1/balance", "< no response GET /api/v1/balance 2500 ms"]
    assert logged == [*attempt, "* trying again in 0.3 s", *attempt, "* trying again in 0.9 s", *attempt]


def test_the_log_shows_a_query_without_the_key_and_no_empty_body() -> None:
    logged: list[str] = []
    client, _ = recorded(log=logged.append, verbosity=2)
    client.fetch(BALANCE)
    assert logged[0] == "> GET /api/v1/balance"
    assert logged[4:6] == ["> Accept-Encoding: identity", "> ?client=***&key=***"]
    assert logged[6].startswith("< 200 GET /api/v1/balance ")
    assert logged[7:] == ['< {"status": 7}']


def test_the_log_shows_more_at_a_higher_verbosity() -> None:
    def respond() -> httpx.Response:
        return finished(200, [(b"X-A", b"\xe9"), (b"X-Key", b"a-long-key")], b"{\r\n 7}\n", {})

    sent, received = "> POST /api/v1/send-sms", "< 200 POST /api/v1/send-sms 0 ms"
    details = [
        "> Host: service.example",
        "> Accept: application/json",
        f"> User-Agent: {USER_AGENT}",
        "> Content-Type: application/x-www-form-urlencoded",
        "> Accept-Encoding: identity",
        "> Content-Length: 52",
        "> client=***&key=***&phone=573001234567&sms=Hola",
    ]
    whole = [sent, *details, received, "< X-A: é", "< X-Key: ***", "< {", "<  7}"]
    for verbosity, lines in ((0, []), (1, [sent, received]), (2, whole)):
        logged: list[str] = []
        client, _ = recorded(respond, log=logged.append, verbosity=verbosity, clock=lambda: 1.0)
        client.fetch(SEND)
        assert logged == lines
