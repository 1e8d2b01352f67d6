"""The named sets of responses that tests run with: documented, observed and mixed.

A test marked ``every_set`` runs once with each. The sandbox inside msgctl responds with the set. A documented response
that a `Service` is prepared with is converted to the set, and Spanish words in msgctl's output are read in English.
Without a message ID in its only entry, a dispatch has this ID.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from msgctl.operations import MESSAGES_STATE, OPERATIONS, VERIFY_2FA, Operation
from msgctl.sandbox import responses
from msgctl.sandbox.emulator import Emulator
from msgctl.sandbox.responses import DOCUMENTED, NAMES, SPANISH, Dialect
from support import service, tool


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Run a test marked ``every_set`` with each set, unless it is also marked ``documented``."""
    marks = {each.name for each in metafunc.definition.iter_markers()}
    if "every_set" in marks:
        metafunc.parametrize("set_of_responses", (DOCUMENTED,) if "documented" in marks else NAMES, indirect=True)


def respond_with(name: str, test: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Respond with a set for the time of a test. ``mixed`` draws the same responses in every run of the test."""
    random = Random(test)

    def dialect() -> Dialect:
        return responses.dialect(name, random)

    def convert(received: service.Received, document: Mapping[str, Any]) -> bytes | None:
        operation = next((each for each in OPERATIONS if received.path.endswith(f"/v1{each.path}")), None)
        if operation is None or not _is_documented(operation, document):
            return None
        return _converted(dialect()._replace(words=words), operation, document)

    def chosen(emulator: Emulator) -> Dialect | None:
        return dialect() if emulator.responses == DOCUMENTED else own(emulator)

    words = dialect().words  # a test counts prepared states by their words
    own = Emulator.dialect
    monkeypatch.setattr(Emulator, "dialect", chosen)
    monkeypatch.setattr(service, "convert", convert)
    monkeypatch.setattr(tool, "read", in_english)


def in_english(output: bytes) -> bytes:
    """Return the output of msgctl with Spanish words for states in English."""
    text = output.decode(errors="surrogateescape")
    for english in sorted(SPANISH, key=lambda word: len(SPANISH[word]), reverse=True):
        text = text.replace(SPANISH[english], english).replace(json.dumps(SPANISH[english])[1:-1], english)
    return text.encode(errors="surrogateescape")


def _is_documented(operation: Operation, document: Mapping[str, Any]) -> bool:
    """Return whether a response is a documented one of an operation, which can be converted."""
    record = operation.record
    if not document or not document.keys() <= {field.name for field in record.fields}:
        return False
    if operation is VERIFY_2FA:
        return bool(document["status"] == "verified")
    names = {field.name for field in record.entries}
    entries: list[Any] = document.get("data") or []
    whole = [{"id", "phone", "credits"} <= set(each) <= names and {"state", "status"} & set(each) for each in entries]
    return all(whole) and bool(whole) == bool(names)


def _converted(dialect: Dialect, operation: Operation, document: Mapping[str, Any]) -> bytes:
    if operation is MESSAGES_STATE:
        return dialect.response(operation, [document]).body
    if entries := document.get("data"):
        if len(entries) == 1:
            document = {**document, "id": entries[0]["id"]}
        else:  # the states of the messages are prepared one by one
            dialect = dialect._replace(entry_ids="true")
    return dialect.response(operation, document).body
