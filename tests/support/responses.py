"""The responses that tests run with: documented, and observed in services in use.

A test marked ``every_set`` runs with both. The sandbox inside msgctl responds with them. A documented response that a
`Service` is prepared with is converted, and Spanish states in msgctl's output are read in English. Without a message ID
in its only entry, a dispatch has this ID.
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
from msgctl.sandbox.responses import DOCUMENTED, NAMES, OBSERVED, UNREACHABLE
from support import service, tool

SPANISH = {
    "answered": "Contestada",
    "blocked": "Bloqueado",
    "busy": "Ocupado",
    "delivered": "Entregado",
    "not-answered": "No contesta",
    "queued": "En cola",
    "rejected": "Rechazado",
    "ringing": "Timbrando",
    "sent": "Enviado",
    "undelivered": UNREACHABLE,
    "voicemail": "Buzón de voz",
}


def parametrize(metafunc: pytest.Metafunc) -> None:
    """Run a test marked ``every_set`` with each name, unless it is also marked ``documented``."""
    marks = {each.name for each in metafunc.definition.iter_markers()}
    if "every_set" in marks:
        metafunc.parametrize("set_of_responses", (DOCUMENTED,) if "documented" in marks else NAMES, indirect=True)


def respond_as_observed(test: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Respond like a service in use for the time of a test, with the same responses in every run of it."""
    random = Random(test)
    own = Emulator.read_settings

    def convert(received: service.Received, document: Mapping[str, Any]) -> bytes | None:
        operation = next((each for each in OPERATIONS if received.path.endswith(f"/v1{each.path}")), None)
        if operation is None or not _is_documented(operation, document):
            return None
        return _converted(operation, document, random)

    def read_settings(emulator: Emulator) -> bool:
        is_faulty = own(emulator)
        emulator.responses = OBSERVED
        return is_faulty

    monkeypatch.setattr(Emulator, "read_settings", read_settings)
    monkeypatch.setattr(service, "convert", convert)
    monkeypatch.setattr(tool, "read", in_english)


def in_english(output: bytes) -> bytes:
    """Return the output of msgctl with Spanish states in English."""
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
    if not all(isinstance(each.get("credits"), int) for each in entries):  # they are added up
        return False
    return all(whole) and bool(whole) == bool(names)


def _converted(operation: Operation, document: Mapping[str, Any], random: Random) -> bytes:
    record: Any = {**document}
    if operation is MESSAGES_STATE:
        record = [_in_spanish(document)]
    if entries := [_in_spanish(entry) for entry in document.get("data") or []]:
        record["data"] = entries
        if len(entries) == 1:
            record["id"] = entries[0]["id"]
    body = responses.observed(operation, record, 0, random).body
    if len(entries) > 1:  # the states of the messages are prepared one by one
        named = {str(place): entry for place, entry in enumerate(entries)}
        body = json.dumps({**json.loads(body), "data": named}).encode()
    return body


def _in_spanish(entry: Mapping[str, Any]) -> dict[str, Any]:
    states = {name: SPANISH.get(entry[name], entry[name]) for name in ("state", "status") if name in entry}
    return {**entry, **states}
