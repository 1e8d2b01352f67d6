"""The requests that reached the server, and the expected ones, for the command lines of `contract.commands`."""

from __future__ import annotations

import json
from typing import Any

from conftest import KEY
from contract import interface
from contract.commands import FULL, Line
from contract.interface import ENDPOINTS, Endpoint, Parameter
from contract.records import Field, Record
from support.leaks import spellings_of
from support.service import Received, Service, answer
from support.tool import Tool

PLACES: tuple[interface.Place, ...] = ("query", "form", "json")
CLIENT = "12345"
CREDENTIALS = [("client", CLIENT), ("key", KEY)]
MASKED = [("client", "***"), ("key", "***")]
SPELLINGS = set(spellings_of(KEY).values())
TRANSPORT_HEADERS = {"host", "connection", "accept-encoding", "content-length"}

ONE_LINE = "ñandú á+b&c=d;e %2B%zz #? /\\ \"'<> ação 漢字 😀 👩\u200d👧 {x} [y] $HOME `ls` ´`"
"""Everything that means something in a URL, a form, JSON or a shell."""

MANY_LINES = f" {ONE_LINE}\r\nsecond line\n\n\tindented \u202e and \u0301marked\n"

Pairs = list[tuple[str, Any]]


def sample(record: Record) -> dict[str, Any]:
    """Return a response in the shape of a record."""
    return {field.name: _value(field) for field in record.fields}


def _value(field: Field) -> Any:
    if field.fields:
        members = {each.name: _value(each) for each in field.fields}
        return [members] if field.type == "array of objects" else members
    return "said" if field.type == "string" else 1


def endpoint_of(line: Line) -> Endpoint:
    return ENDPOINTS[line.endpoint]


def expected(line: Line, place: interface.Place, credentials: Pairs) -> Pairs:
    """Return the expected pairs of a place, sorted by name."""
    parameters = dict([*credentials, *line.parameters.items()])
    return sorted(
        (each.name, parameters[each.name]) for each in endpoint_of(line).placed(place) if each.name in parameters
    )


def arrived(request: Received, place: interface.Place) -> Pairs:
    """Return the received pairs of a place with repeated ones, sorted by name."""
    if place == "query":
        return sorted(request.query) if "?" in request.target else []
    content_type = request.headers.get("content-type")
    if place == "form":
        return sorted(request.form) if content_type == interface.FORM else []
    return sorted(json.loads(request.body, object_pairs_hook=list)) if content_type == interface.JSON else []


def sent(tool: Tool, service: Service, line: Line) -> Received:
    """Run a line, which must succeed with one request, and return that request."""
    record = sample(endpoint_of(line).answer)
    record.pop("data", None)  # an id alone accepts every recipient
    service.will(answer(record))
    outcome = tool(*line.command)
    assert (outcome.code, len(service.received), service.connections) == (0, 1, 1), outcome.err
    return service.received[0]


def parameters_besides_credentials(endpoint: Endpoint) -> list[Parameter]:
    return [each for each in endpoint.parameters if each.name not in {"client", "key"}]


AWKWARD = [
    *((line, name, ONE_LINE) for line in FULL for name in line.free),
    *((line, name, MANY_LINES) for line in FULL for name in line.prose),
]
"""Every parameter that may be any text, with a text that is hard to carry."""
