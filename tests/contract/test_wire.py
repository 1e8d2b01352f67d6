"""Requests match the API, and a dry run shows them without credentials and sends nothing.

The command lines of `contract.interface` run against a real HTTP server. The requests that arrive there are compared
with the transcription of the API.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from contract import interface
from contract.interface import ENDPOINTS, LINES, PHONE, PLACES, Line
from contract.wire import (
    AWKWARD,
    CLIENT,
    CREDENTIALS,
    MANY_LINES,
    MASKED,
    ONE_LINE,
    SPELLINGS,
    TRANSPORT_HEADERS,
    arrived,
    expected,
    sent,
)
from msgctl import __version__
from support.service import Service, respond
from support.tool import Tool


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use UTC, so that dates do not depend on the machine."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC0")
        time.tzset()
        yield
    time.tzset()


def test_every_endpoint_has_lines_with_all_its_parameters_and_with_only_the_required_ones() -> None:
    for endpoint in ENDPOINTS.values():
        required = {name for name, each in endpoint.own.items() if each.presence != "optional"}
        names = [set(line.parameters) for line in endpoint.lines]
        assert set().union(*names) == endpoint.own.keys(), endpoint
        assert required in names, endpoint


@pytest.mark.parametrize("line", LINES, ids=str)
def test_a_request_matches_the_api_and_is_shown_by_a_dry_run(line: Line, tool: Tool, service: Service) -> None:
    shown = tool("--json", "-n", *line.command).document
    table = tool(*line.command, "--dry-run", "-v")
    assert (table.code, "***" in table.out) == (0, True)
    assert not [each for each in SPELLINGS if each in table.out + table.err]
    assert CLIENT not in (table.out + table.err).replace(PHONE, "")
    assert (service.received, service.connections) == ([], 0)

    request = sent(tool, service, line)
    assert (request.method, request.path) == (line.endpoint.method, interface.BASE_PATH + line.endpoint.path)
    assert [arrived(request, place) for place in PLACES] == [expected(line, place, CREDENTIALS) for place in PLACES]
    places = {each.place for each in line.endpoint.parameters}
    assert (("?" in request.target), bool(request.body)) == ("query" in places, bool(places & {"form", "json"}))
    own = {name: value for name, value in request.headers.items() if name not in TRANSPORT_HEADERS}
    wanted = {"accept": interface.JSON, "user-agent": f"msgctl/{__version__}"}
    content_type = line.endpoint.content_type
    assert own == (wanted if content_type is None else {**wanted, "content-type": content_type})
    assert request.headers["accept-encoding"] == "identity"
    whole = request.target + request.body.decode()
    assert sum(whole.count(spelling) for spelling in SPELLINGS) == 1, "the key is sent once"
    assert not [value for value in request.headers.values() for spelling in SPELLINGS if spelling in value]

    assert (shown["method"], shown["url"]) == (request.method, service.base_url + line.endpoint.path)
    assert {name.lower(): value for name, value in shown["headers"].items()} == own
    assert [sorted(shown.get(place, {}).items()) for place in PLACES] == [
        expected(line, place, MASKED) for place in PLACES
    ]
    assert shown.keys() == {"method", "url", "headers", *(place for place in PLACES if arrived(request, place))}


@pytest.mark.parametrize(("line", "name", "text"), AWKWARD.values(), ids=map(str, AWKWARD))
def test_any_text_arrives_unchanged_and_is_shown_by_a_dry_run(
    line: Line, name: str, text: str, tool: Tool, service: Service
) -> None:
    changed = line.with_text(name, text)
    shown = tool(*changed.command, "--dry-run", "--json").document
    request = sent(tool, service, changed)
    place = line.endpoint.own[name].place
    wanted = changed.parameters[name]
    assert dict(arrived(request, place))[name] == wanted
    assert shown[place][name] == wanted
    assert text == wanted if isinstance(wanted, str) else text in wanted


@pytest.mark.parametrize("text", [ONE_LINE, MANY_LINES.strip("\r\n")], ids=["one line", "many lines"])
def test_a_piped_message_arrives_unchanged(text: str, tool: Tool, service: Service) -> None:
    service.will(respond({"status": 1}))
    assert tool("sms", "send", PHONE, stdin=text).code == 0
    assert dict(service.received[0].form)["sms"] == text


def test_a_long_url_arrives_unchanged(tool: Tool, service: Service) -> None:
    url = "HTTPS://user@Example.COM:8443/a%20b/%C3%B1/ñ/../;p?x=1&y=a+b&z=%2B#frag/é?"
    service.will(respond({"urlShort": "https://s.example/1"}))
    assert tool("url", "shorten", url, "--name", "n").code == 0
    assert dict(service.received[0].form)["url-long"] == url


def test_a_template_body_is_sent_unchanged(tool: Tool, service: Service, tmp_path: Path) -> None:
    body = b'{ "phone":"573001234567",\r\n\t"body":["\\u00f1","\xc3\xb1"], "n": 1.0e+2, "n": 12345678901234567890 }\n'
    file = tmp_path / "body.json"
    file.write_bytes(body)
    service.always(respond({"status": 1}))
    assert tool("chatapp", "send", "--template", "t", "--body", str(file)).code == 0
    assert tool("chatapp", "order", "--template", "t", "--body", "-", stdin=body).code == 0
    for request, path in zip(service.received, ("send", "store/order"), strict=True):
        assert request.path == f"{interface.BASE_PATH}/chatapp/{path}"
        assert (sorted(request.query), request.body) == ([*CREDENTIALS, ("template", "t")], body)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'{"n": %s}' % (b"9" * 6000), id="more digits than Python reads"),
        pytest.param(b'{"n": [0.10000000000000000005, 1e999, -0.0, 1E+2]}', id="numbers that no float holds"),
        pytest.param(b'{"s": "\\ud800 \\u0000 \\u202e \\u001b[31m"}', id="escapes"),
        pytest.param(b'{"a": %s1%s}' % (b"[" * 800, b"]" * 800), id="deep"),
    ],
)
def test_a_dry_run_shows_a_template_body_with_every_digit(body: bytes, tool: Tool, service: Service) -> None:
    outcome = tool("chatapp", "send", "--template", "t", "--body", "-", "-n", "--json", stdin=body)
    assert (outcome.code, outcome.err) == (0, "")
    assert body.replace(b" ", b"") in outcome.stdout.replace(b" ", b"")
