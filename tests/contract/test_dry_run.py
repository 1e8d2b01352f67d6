"""A dry run shows the request that the same command line sends, without its credentials, and sends nothing."""

from __future__ import annotations

from typing import Any

import pytest

from contract.interface import LINES, PHONE, PLACES, Line
from contract.wire import (
    CLIENT,
    MASKED,
    SPELLINGS,
    TRANSPORT_HEADERS,
    arrived,
    expected,
    sent,
)
from support.service import Service
from support.tool import Tool

pytestmark = pytest.mark.usefixtures("utc")

each_line = pytest.mark.parametrize("line", LINES, ids=str)


def described(tool: Tool, *command: str) -> Any:
    """Return what a dry run prints with --json; standard error must be empty."""
    outcome = tool("--json", "-n", *command)
    assert (outcome.code, outcome.err) == (0, "")
    return outcome.document


@each_line
def test_a_dry_run_shows_the_request(line: Line, tool: Tool, service: Service) -> None:
    shown = described(tool, *line.command)
    table = tool(*line.command, "--dry-run", "-v")
    assert (table.code, "***" in table.out) == (0, True)
    assert not [each for each in SPELLINGS if each in table.out + table.err]
    assert CLIENT not in (table.out + table.err).replace(PHONE, "")
    assert (service.received, service.connections) == ([], 0)
    request = sent(tool, service, line)
    assert (shown["method"], shown["url"]) == (request.method, service.base_url + line.endpoint.path)
    assert {name.lower(): value for name, value in shown["headers"].items()} == {
        name: value for name, value in request.headers.items() if name not in TRANSPORT_HEADERS
    }
    assert [sorted(shown.get(place, {}).items()) for place in PLACES] == [
        expected(line, place, MASKED) for place in PLACES
    ]
    assert shown.keys() == {"method", "url", "headers", *(place for place in PLACES if arrived(request, place))}


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
