"""The service's REST interface, version 1.0.0, transcribed by hand from its document and from nothing else.

It shares nothing with the package, so that a wrong fact there is found.

`records.txt` has the records of responses, their fields in order: ``[]`` is an array of objects, ``{}`` an object.
`endpoints.txt` has each parameter with its place, whether it is required, and its rules; of a JSON body the document
requires nothing. ``text`` may be any text on one line, ``prose`` any text; such a value is in the command line as it
arrives. Below each endpoint are command lines for it (``$``), and the parameters that must arrive (``>``), besides the
credentials; ``name+=`` is an element of an array.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

PLACES = ("query", "form", "json")

BASE_PATH = "/api/v1"
"""The end of the base URL."""
FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
ERROR_FIELDS = ("error", "msg")
"""The fields of every error record, with status 520."""

PHONE = "573001234567"

CALL_VOICES = ("Marian", "Penelope", "Conchita", "Mia", "Lucia", "Enrique", "Miguel")
CALL_2FA_VOICES = ("Mariana", "Penelope", "Conchita", "Mia", "Lucia", "Enrique", "Miguel")
CATEGORIES = ("date", "hour", "country", "device", "operatingSystem")
PREMIUM_CATEGORIES = ("region", "city", "brand", "model", "browser", "lang")
_VALUES = {
    "call-voice": CALL_VOICES,
    "code-voice": CALL_2FA_VOICES,
    "category": CATEGORIES + PREMIUM_CATEGORIES,
}


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record; ``type`` is the document's word; ``fields`` are the fields of an object or an entry."""

    name: str
    type: str
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of an endpoint, with the place and the rules of its line above."""

    name: str
    place: str
    presence: str
    rules: frozenset[str]

    def rule(self, name: str) -> str:
        """Return the value of a rule such as ``maximum=3``; empty if there is none."""
        return next((rule.partition("=")[2] for rule in self.rules if rule.startswith(f"{name}=")), "")

    @property
    def values(self) -> tuple[str, ...]:
        """All allowed values; empty if any value is allowed."""
        return _VALUES.get(self.rule("values"), ())

    @property
    def excludes(self) -> set[str]:
        return set(filter(None, self.rule("excludes").split(",")))


@dataclass(frozen=True)
class Line:
    """A command line, its endpoint, and the parameters that have to arrive there."""

    command: tuple[str, ...]
    endpoint: Endpoint
    parameters: Mapping[str, str | list[str]] = field(default_factory=dict)

    def __str__(self) -> str:
        return " ".join(self.command)

    def with_text(self, name: str, text: str) -> Line:
        """Return the same line with another text for a parameter."""
        before = self.parameters[name]
        old, after = (before, text) if isinstance(before, str) else (before[0], [text, *before[1:]])
        command = tuple(text if word == old else word for word in self.command)
        return replace(self, command=command, parameters={**self.parameters, name: after})


@dataclass(frozen=True)
class Endpoint:
    """One endpoint: its parameters, and the name and the fields of the record in its response."""

    method: str
    path: str
    record: str
    parameters: list[Parameter] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list, repr=False, compare=False)

    @property
    def content_type(self) -> str | None:
        """The type of the request's body, by the document's general rules."""
        places = {each.place for each in self.parameters}
        return JSON if "json" in places else FORM if "form" in places else None

    @property
    def own(self) -> dict[str, Parameter]:
        """The parameters besides the credentials, by name."""
        return {each.name: each for each in self.parameters if each.name not in ("client", "key")}


def _fields(words: Iterator[str]) -> tuple[Field, ...]:
    fields = []
    for name in words:
        if name in "]}":
            break
        kind = next(words)
        inner = _fields(words) if kind in "[{" else ()
        fields.append(Field(name, {"[": "array", "{": "object"}.get(kind, kind), inner))
    return tuple(fields)


def _endpoint(text: str) -> Endpoint:
    first, *lines = text.strip().splitlines()
    method, path, record = first.split()
    endpoint = Endpoint(method, path, record)
    for line in map(str.strip, lines):
        if line.startswith("$"):
            endpoint.lines.append(Line(tuple(shlex.split(line[1:])), endpoint))
        elif line.startswith(">"):
            given: dict[str, str | list[str]] = {}
            for name, _, value in (word.partition("=") for word in shlex.split(line[1:])):
                given[name.rstrip("+")] = [*given.get(name[:-1], []), value] if name.endswith("+") else value
            endpoint.lines[-1] = replace(endpoint.lines[-1], parameters=given)
        else:
            parts = line.split()
            at = next(index for index, word in enumerate(parts) if word in PLACES)
            place, presence, *rules = parts[at:]
            endpoint.parameters.extend(Parameter(name, place, presence, frozenset(rules)) for name in parts[:at])
    return endpoint


_RECORDS, _ENDPOINTS = (
    Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("records.txt", "endpoints.txt")
)
RECORDS: dict[str, tuple[Field, ...]] = {
    name: _fields(iter(re.findall(r"[\w-]+|[\[\]{}]", rest)))
    for name, rest in re.findall(r"(?m)^(\w+) +((?:.|\n )+)$", _RECORDS)
}
ENDPOINTS = {(each.method, each.path): each for each in map(_endpoint, _ENDPOINTS.split("\n\n"))}
"""Every endpoint by method and path, in the document's order."""
LINES = [line for endpoint in ENDPOINTS.values() for line in endpoint.lines]
