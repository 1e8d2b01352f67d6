"""Recording a service, and responding from the record."""

from __future__ import annotations

import io
from collections.abc import Callable

import httpx
import pytest

from msgctl.errors import ConfigurationError, NotReachedError, OutcomeUnknownError
from msgctl.sandbox.protocol import SandboxRequest, SandboxResponse
from msgctl.sandbox.recording import recorder, replayer

from .world import FORM, JSON, PHONE, encoded

BALANCE = SandboxRequest("GET", "/api/v1/balance", encoded({}))
ODD = SandboxResponse(202, b'{"queued": 1.50}', {"content-type": "application/json; charset=x"})


class Recording:
    """A recorder before a service that always responds the same."""

    def __init__(self, response: SandboxResponse | Exception = ODD) -> None:
        self.forwarded: list[SandboxRequest] = []
        self.file = io.StringIO()
        self.response = response
        respond = recorder(self._forward, lambda body, key: body.replace(key.encode(), b"***"), self.file)
        self.respond: Callable[[SandboxRequest], SandboxResponse] = lambda request: respond(request, "127.0.0.1")

    @property
    def lines(self) -> list[str]:
        return self.file.getvalue().splitlines()

    def _forward(self, request: SandboxRequest) -> httpx.Response:
        self.forwarded.append(request)
        if isinstance(self.response, Exception):
            raise self.response
        return httpx.Response(self.response.status, headers=dict(self.response.headers), content=self.response.body)


def sms(text: str, **more: str) -> SandboxRequest:
    parameters: dict[str, str | None] = {"phone": PHONE, "sms": text, **more}
    return SandboxRequest("POST", "/api/v1/send-sms", "", FORM, encoded(parameters).encode())


def chat(body: str) -> SandboxRequest:
    return SandboxRequest("POST", "/api/v1/chatapp/send", encoded({"template": "t"}), JSON, body.encode())


def test_a_response_passes_unchanged_and_is_replayed() -> None:
    recording = Recording()
    for request in (sms("ñ & = +"), chat('{"phone": "573001234567", "body": ["x"]}'), BALANCE):
        assert recording.respond(request) == ODD
    replay = replayer(recording.lines, "file")
    assert [replay(request) for request in (BALANCE, sms("ñ & = +"))] == [ODD, ODD]
    assert replay(chat('{"body":["x"],"phone":"573001234567"}')) == ODD


def test_a_key_in_the_wrong_place_is_not_recorded() -> None:
    recording = Recording(SandboxResponse(404, b"nothing at /balance&key=a-key", {"content-type": "text/plain"}))
    misplaced = [
        SandboxRequest("GET", "/api/v1/balance&key=a-key"),
        SandboxRequest("POST", "/api/v1/chatapp/send", "template=t", JSON, b'{"phone": "1", "key": "a-key"}'),
        SandboxRequest("POST", "/api/v1/send-sms", "", JSON, b"client=1&key=a-key&sms=Hola"),
    ]
    recording.respond(misplaced[0])
    recording.response = ODD
    for request in misplaced[1:]:
        recording.respond(request)
    recording.response = SandboxResponse(200, b"a-key", {})
    recording.respond(chat('{"body": ["https://a.example/?x=1&key=another"]}')._replace(query="key=a-key"))
    assert "a-key" not in recording.file.getvalue()
    assert [replayer(recording.lines, "file")(each).status for each in misplaced] == [404, 202, 202]


@pytest.mark.parametrize(("error", "status"), [(NotReachedError("no"), 502), (OutcomeUnknownError("lost"), 504)])
def test_a_request_without_a_response_is_not_recorded(error: Exception, status: int) -> None:
    recording = Recording(error)
    assert recording.respond(BALANCE).status == status
    assert recording.lines == []


def test_a_request_recorded_twice_gets_its_responses_in_order_and_then_the_last() -> None:
    recording = Recording()
    for credits_left in (2, 1):
        recording.response = SandboxResponse(200, b'{"status":%d}' % credits_left, {"content-type": "text/plain"})
        recording.respond(BALANCE)
    replay = replayer(recording.lines, "file")
    assert [replay(BALANCE).body[-2:-1] for _ in range(3)] == [b"2", b"1", b"1"]


@pytest.mark.parametrize("line", ["", "[]", "{}", "nonsense", '{"method": "GET", "path": "/x"}'])
def test_an_invalid_record_is_named_with_its_line(line: str) -> None:
    with pytest.raises(ConfigurationError, match=r"file, line 1"):
        replayer([line], "file")
