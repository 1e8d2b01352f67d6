"""Requests match the API: each parameter in its place, under its name, and nothing else.

The command lines of `contract.interface` run against a real HTTP server, and what reached it is compared with
the transcription of the interface.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from contract import interface
from contract.interface import ENDPOINTS, LINES, PHONE, PLACES, Endpoint, Line
from contract.wire import (
    AWKWARD,
    CREDENTIALS,
    MANY_LINES,
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

pytestmark = pytest.mark.usefixtures("utc")

each_line = pytest.mark.parametrize("line", LINES, ids=str)
each_endpoint = pytest.mark.parametrize("endpoint", ENDPOINTS.values(), ids=[path for _, path in ENDPOINTS])


# --- The table of command lines leaves nothing of the interface out ---


@each_endpoint
def test_the_lines_have_all_parameters_of_an_endpoint_or_only_the_required_ones(endpoint: Endpoint) -> None:
    required = {name for name, each in endpoint.own.items() if each.presence != "optional"}
    given = [set(line.parameters) for line in endpoint.lines]
    assert set().union(*given) == endpoint.own.keys()
    assert required in given


@each_line
def test_the_lines_follow_the_rules_of_the_api(line: Line) -> None:
    for parameter in line.endpoint.own.values():
        value = line.parameters.get(parameter.name)
        if value is None:
            assert parameter.presence != "required"
            assert parameter.rule("unless") in {"", *line.parameters}
        else:
            assert not parameter.values or value in parameter.values
            assert not line.parameters.keys() & parameter.excludes


# --- Requests ---


@each_line
def test_a_request_matches_the_api_and_contains_nothing_more(line: Line, tool: Tool, service: Service) -> None:
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


def test_a_url_to_shorten_arrives_as_it_was_typed(tool: Tool, service: Service) -> None:
    url = "HTTPS://user@Example.COM:8443/a%20b/%C3%B1/ñ/../;p?x=1&y=a+b&z=%2B#frag/é?"
    service.will(respond({"urlShort": "https://s.example/1"}))
    assert tool("url", "shorten", url, "--name", "n").code == 0
    assert dict(service.received[0].form)["url-long"] == url


@pytest.mark.parametrize("path", ["send", "store/order"])
def test_a_template_body_is_sent_unchanged(path: str, tool: Tool, service: Service, tmp_path: Path) -> None:
    body = b'{ "phone":"573001234567",\r\n\t"body":["\\u00f1","\xc3\xb1"], "n": 1.0e+2, "n": 12345678901234567890 }\n'
    file = tmp_path / "body.json"
    file.write_bytes(body)
    command = "send" if path == "send" else "order"
    service.will(respond({"status": 1}), respond({"status": 1}))
    assert tool("chatapp", command, "--template", "t", "--body", str(file)).code == 0
    assert tool("chatapp", command, "--template", "t", "--body", "-", stdin=body).code == 0
    for request in service.received:
        assert request.path == f"{interface.BASE_PATH}/chatapp/{path}"
        assert (sorted(request.query), request.body) == ([*CREDENTIALS, ("template", "t")], body)
