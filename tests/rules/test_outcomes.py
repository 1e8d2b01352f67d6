"""The exit code of a single send follows from the outcome of each recipient, and of `2fa verify` from the status."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.commands import PHONE, SENDS
from support.service import Service, respond
from support.tool import Tool

OTHER = "573007654321"
SEND = ("sms", "send", PHONE, OTHER, "-m", "Hola")


def entry(phone: str, status: str = "sent") -> dict[str, Any]:
    return {"id": f"m{phone[-1]}", "status": status, "credits": 1, "phone": phone}


@pytest.mark.parametrize(
    ("data", "code", "expected"),
    [
        ([entry(PHONE), entry(OTHER)], 0, ""),
        ([entry(PHONE)], 5, f"does not show whether {OTHER} was accepted"),
        ([], 5, f"does not show whether {PHONE}, {OTHER} were accepted"),
        ([entry(PHONE), entry(OTHER, "rejected")], 6, f"refused {OTHER} [rejected] (1 of 2 recipients)"),
        ([entry(PHONE, "Rechazado")], 5, f"whether {OTHER} was accepted"),
        (
            [entry(PHONE, "no entregado"), entry(OTHER, "FAILED")],
            6,
            f"refused {PHONE} [no entregado], {OTHER} [FAILED]",
        ),
    ],
    ids=range(6),
)
def test_each_recipient_counts(data: list[Any], code: int, expected: str, service: Service, tool: Tool) -> None:
    service.will(respond({"id": "d1", "status": 1, "data": data}), respond({"id": "d1", "status": 1, "data": data}))
    done = tool(*SEND)
    assert done.code == code
    assert all(each["id"] in done.out for each in data)
    assert expected in done.err
    done = tool(*SEND, "--json")
    assert done.code == code
    assert done.document["data"] == data
    errors = [json.loads(line) for line in done.err.splitlines()]
    assert [(each["exit_code"], each["http_status"], each["body"]) for each in errors] == (
        [(code, 200, done.document)] if code else []
    )


def test_a_response_may_repeat_a_long_message_with_every_character_escaped(service: Service, tool: Tool) -> None:
    phones = [str(573_001_000_000 + number) for number in range(100)]
    message = "😀" * 550
    entries = [{**entry(phone), "id": f"message-{phone}", "sms": message} for phone in phones]
    record = {"id": "d1", "status": 1, "data": entries}
    service.will(respond(json.dumps(record, ensure_ascii=True, indent=8).encode()))
    done = tool("sms", "send", *phones, "-m", message, "--json")
    assert (done.code, done.err) == (0, "")
    assert done.document == record


@pytest.mark.parametrize("name", list(SENDS))
def test_every_send_is_judged(name: str, service: Service, tool: Tool) -> None:
    record = json.loads(json.dumps(SENDS[name].record))
    judged = record["data"][0] if "data" in record else record
    judged["state" if "state" in judged else "status"] = "rejected"
    service.will(respond(record))
    assert tool(*SENDS[name].line).code == (6 if "data" in record else 5), "a record with an id may have been sent"


def test_a_code_that_was_not_sent_is_not_reported_as_sent(service: Service, tool: Tool) -> None:
    service.will(respond({"id": "d1", "status": "accepted", "data": [entry(PHONE, "blocked")]}))
    done = tool(*SENDS["2fa send-sms"].line, screen=True)
    assert done.code == 6
    assert "Code sent" not in done.err
