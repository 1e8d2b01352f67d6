"""The requests that reached the server, and the expected ones, for the command lines of `contract.interface`."""

from __future__ import annotations

import json
from typing import Any

from conftest import KEY
from contract import interface
from contract.interface import LINES, Field, Line
from support.leaks import spellings_of
from support.service import Received, Service, respond
from support.tool import Tool

CLIENT = "12345"
CREDENTIALS = [("client", CLIENT), ("key", KEY)]
MASKED = [("client", "***"), ("key", "***")]
SPELLINGS = set(spellings_of(KEY).values())
TRANSPORT_HEADERS = {"host", "connection", "accept-encoding", "content-length"}

ONE_LINE = "ñandú á+b&c=d;e %2B%zz #? /\\ \"'<> ação 漢字 😀 👩\u200d👧 {x} [y] $HOME `ls` ´`"
"""All characters with a meaning in a URL, a form, JSON or a shell."""

MANY_LINES = f" {ONE_LINE}\r\nsecond line\n\n\tindented \u202e and \u0301marked\n"

Pairs = list[tuple[str, Any]]


def sample(fields: tuple[Field, ...]) -> dict[str, Any]:
    """Return a response in the shape of a record."""
    return {field.name: _value(field) for field in fields}


def _value(field: Field) -> Any:
    if field.fields:
        return [sample(field.fields)] if field.type == "array" else sample(field.fields)
    return "said" if field.type == "string" else 1


def expected(line: Line, place: str, credentials: Pairs) -> Pairs:
    """Return the expected pairs of a place, sorted by name."""
    parameters = dict([*credentials, *line.parameters.items()])
    named = {each.name for each in line.endpoint.parameters if each.place == place}
    return sorted((name, parameters[name]) for name in named & parameters.keys())


def arrived(request: Received, place: str) -> Pairs:
    """Return the received pairs of a place with repeated ones, sorted by name."""
    if place == "query":
        return sorted(request.query) if "?" in request.target else []
    content_type = request.headers.get("content-type")
    if place == "form":
        return sorted(request.form) if content_type == interface.FORM else []
    return sorted(json.loads(request.body, object_pairs_hook=list)) if content_type == interface.JSON else []


def sent(tool: Tool, service: Service, line: Line) -> Received:
    """Run a line, which must succeed with one request, and return that request."""
    record = sample(interface.RECORDS[line.endpoint.record])
    if line.endpoint.method != "GET":
        record.pop("data", None)  # the entries would be of other people
    if isinstance(record.get("status"), str):
        record["status"] = "success"
    if "urlShort" in record:
        record["urlShort"] = "https://s.example/1"
    if "state" in record:
        record["state"] = "sent"
    if "phone" in record:
        record["phone"] = line.parameters.get("phone", "573001234567")
    service.will(respond(record))
    outcome = tool(*line.command)
    assert (outcome.code, len(service.received), service.connections) == (0, 1, 1), outcome.err
    return service.received[0]


TEXTS = {"text": ONE_LINE, "prose": MANY_LINES}
AWKWARD = {
    (line.endpoint.path, name): (line, name, TEXTS[rule])
    for line in reversed(LINES)
    for name, parameter in line.endpoint.own.items()
    for rule in parameter.rules & TEXTS.keys()
    if name in line.parameters
}
"""Every parameter that may be any text, with a text that is hard to encode."""
