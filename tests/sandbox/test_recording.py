"""Recording a service, and responding from the record."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from urllib.parse import unquote_plus

import httpx
import pytest

from msgctl.errors import ConfigurationError, NotReachedError, OutcomeUnknownError
from msgctl.http.redaction import redact_body
from msgctl.sandbox.protocol import Refusal, SandboxRequest, SandboxResponse
from msgctl.sandbox.recording import recorder, replayer

from .clocked_emulator import FORM, JSON, PHONE, encoded

BALANCE = SandboxRequest("GET", "/api/v1/balance", encoded({}))
ODD = SandboxResponse(202, b'{"queued": 1.50}', {"content-type": "application/json; charset=x"})


class Recording:
    """A recorder before a service that always responds the same."""

    def __init__(self, response: SandboxResponse | Exception = ODD) -> None:
        self.forwarded: list[SandboxRequest] = []
        self.file = io.StringIO()
        self.response = response
        respond = recorder(self._forward, redact_body, self.file)
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
    replay = replayer(recording.lines, "file", redact_body)
    assert [replay(request) for request in (BALANCE, sms("ñ & = +"))] == [ODD, ODD]
    assert replay(chat('{"body":["x"],"phone":"573001234567"}')) == ODD


def test_a_key_in_the_wrong_place_is_not_recorded() -> None:
    recording = Recording(SandboxResponse(404, b"nothing at /balance&key=the-key", {"content-type": "text/plain"}))
    misplaced = [
        SandboxRequest("GET", "/api/v1/balance&key=the-key"),
        SandboxRequest("POST", "/api/v1/chatapp/send", "template=t", JSON, b'{"phone": "1", "key": "the-key"}'),
        SandboxRequest("POST", "/api/v1/send-sms", "", JSON, b"client=1&key=the-key&sms=Hola"),
    ]
    recording.respond(misplaced[0])
    recording.response = ODD
    for request in misplaced[1:]:
        recording.respond(request)
    recording.response = SandboxResponse(200, b"the-key", {})
    recording.respond(chat('{"body": ["https://a.example/?x=1&key=another"]}')._replace(query="key=the-key"))
    assert "the-key" not in recording.file.getvalue()
    assert [replayer(recording.lines, "file", redact_body)(each).status for each in misplaced] == [404, 202, 202]


def in_form(body: str) -> SandboxRequest:
    return SandboxRequest("POST", "/api/v1/send-sms", "", FORM, body.encode())


@pytest.mark.parametrize(
    "request_",
    [
        SandboxRequest("GET", "/api/v1/balance", "Client=1&KEY=fir%2Bst%20key"),
        SandboxRequest("GET", "/api/v1/balance", "key=other-key&kEy=fir%2bst+key&%6Bey=third-key"),
        SandboxRequest("GET", "/api/v1/balance;Key=fir%2Bst%20key/fir%2Bst%20%6Bey"),
        in_form("phone=1&KEY=fir%2Bst+key&sms=It+is+fir%2Bst%20key"),
        in_form("key=other-key&key=fir%2Bst+key"),
        chat('{"phone": "1", "body": {"Key": "other-key", "more": [{"KEY": "fir+st\\u0020key"}]}}'),
        chat('{"key": "other-key", "key": "fir+st key", "body": ["fir\\u002bst key", "fir%2Bst+key"]}'),
        chat('{"phone": "1", "body": ["fir+st key"]}')._replace(query="template=fir%2Bst+key&key=fir%2Bst+key"),
        SandboxRequest("POST", "/api/v1/send-sms", "", {"content-type": "text/plain"}, b"KEY=fir%2Bst+key"),
    ],
)
def test_no_key_is_recorded_wherever_a_request_has_it(request_: SandboxRequest) -> None:
    body = b'{"msg": "fir+st key, fir%2Bst+ke%79, fir\\u002Bst key, other-key, third-key"}'
    recording = Recording(SandboxResponse(200, body, {"content-type": "text/plain; key=fir%2Bst%20key"}))
    assert recording.respond(request_).body == body
    (line,) = recording.lines
    whole = line + unquote_plus(line) + unquote_plus(str(json.loads(line)))
    assert [trace for trace in ("fir+st", "fir st", "ke%79", "st key") if trace in whole] == []
    for key in ("other-key", "third-key"):
        assert (key in line) == (key not in f"{request_.query}{request_.body.decode()}")
    assert replayer(recording.lines, "file", redact_body)(request_).status == 200


def test_a_request_with_very_many_keys_is_not_forwarded() -> None:
    recording = Recording()
    with pytest.raises(Refusal):
        recording.respond(in_form("&".join(f"key={number:09}" for number in range(9))))
    assert (recording.forwarded, recording.lines) == ([], [])


@pytest.mark.parametrize(
    "path",
    [
        "/../admin",
        "/./balance",
        "/x/%2e%2e/admin",
        "/%2E%2e%2fadmin",
        "/..%5cadmin",
        "/%252e%252e/admin",
        "/..;x/admin",
    ],
)
def test_a_path_that_could_leave_the_api_is_not_forwarded(path: str) -> None:
    recording = Recording()
    assert recording.respond(BALANCE._replace(path=f"/api/v1{path}")).status == 400
    assert (recording.forwarded, recording.lines) == ([], [])
    assert recording.respond(BALANCE._replace(path="/api/v1/a..b/...")).status == ODD.status


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
    replay = replayer(recording.lines, "file", redact_body)
    assert [replay(BALANCE).body[-2:-1] for _ in range(3)] == [b"2", b"1", b"1"]


@pytest.mark.parametrize("line", ["", "[]", "{}", "nonsense", '{"method": "GET", "path": "/x"}'])
def test_the_error_for_an_invalid_record_mentions_its_line(line: str) -> None:
    with pytest.raises(ConfigurationError, match=r"file, line 1"):
        replayer([line], "file", redact_body)
