"""Responses as a service in use sends them, and how they are chosen."""

from __future__ import annotations

import json
import re
from typing import Any
from uuid import UUID

import pytest

from msgctl.sandbox.protocol import SandboxRequest, SandboxResponse
from msgctl.sandbox.responses import NAMES
from support.sandbox import OTHER, Sandbox
from support.tool import Tool

from .clocked_emulator import JSON, PHONE, World

BOTH = f"{PHONE},{OTHER}"
DAYS = {"since": "2026-11-21", "until": "2026-11-21"}
CODE = {"phone": PHONE, "app_name": "Shop"}


def choose(world: World, responses: object) -> Any:
    """Choose responses over the sandbox's own endpoint."""
    body = json.dumps({"responses": responses}).encode()
    return json.loads(world.respond(SandboxRequest("POST", "/sandbox/responses", "", JSON, body)).body)


@pytest.fixture
def observed(world: World) -> World:
    choose(world, "observed")
    return world


def document(response: SandboxResponse) -> Any:
    return json.loads(response.body)


def sms(world: World, phones: str = BOTH) -> Any:
    return document(world.post("/send-sms", phone=phones, sms="Hola"))


def states(world: World, id: str) -> Any:
    return document(world.get("/messages-state", id=id))


def words(world: World, id: str, *, steps: int) -> list[str]:
    """Return the states of the only message of a dispatch, one per second."""
    found = []
    for _ in range(steps):
        found.append(states(world, id)[0]["state"])
        world.now += 1
    return found


# --- what a service in use sends


def test_a_dispatch_has_a_uuid_and_one_object_without_message_ids(observed: World) -> None:
    sent = sms(observed)
    assert UUID(sent["id"]).version == 4
    entry = {"state": "Enviado", "credits": "2", "sms": "Hola", "phone": BOTH}
    assert sent == {"id": sent["id"], "status": "1", "data": entry, "created_at": "2026-11-21 12:00:00"}
    found = states(observed, sent["id"])
    assert [(each["phone"], each["dispatch_id"]) for each in found] == [(PHONE, sent["id"]), (OTHER, sent["id"])]


def test_recipients_with_different_states_are_an_object_of_objects(observed: World) -> None:
    observed.post("/block-phone", phone=OTHER)
    assert {key: entry["state"] for key, entry in sms(observed)["data"].items()} == {"0": "Enviado", "1": "Bloqueado"}
    assert observed.post("/call/send", phone=BOTH, message="x", voice="Mia").status == 200


@pytest.mark.parametrize(
    ("phone", "expected"),
    [
        (PHONE, ["Enviado", "Error temporal, reintentando", "Entregado a la operadora", "Entregado", "Entregado"]),
        ("573001230001", ["Enviado", *["Error:1081 msg: Destino inaccesible"] * 4]),
        ("573001230002", ["Enviado", *["Rechazado"] * 4]),
        ("573001230003", ["Enviado"] * 5),
        ("573001234563", ["Enviado"] * 5),
    ],
)
def test_a_message_moves_through_the_states_of_a_service_in_use(
    observed: World, phone: str, expected: list[str]
) -> None:
    assert words(observed, sms(observed, phone)["id"], steps=5) == expected


def test_a_number_that_ends_in_3_gets_its_message_but_no_delivered_state(observed: World) -> None:
    sms(observed, "573001230003,573001234563")
    assert [message["phone"] for message in observed.admin.inbox()] == ["573001234563"]


def test_the_delivery_state_of_an_unreachable_number_has_0_credits(observed: World) -> None:
    sent = sms(observed, "573001230001")
    assert (sent["data"]["credits"], states(observed, sent["id"])[0]["credits"]) == ("1", "1")
    observed.now += 1
    assert states(observed, sent["id"])[0]["credits"] == "0"


def test_a_call_has_spanish_words(observed: World) -> None:
    sent = document(observed.post("/call/send", phone=PHONE, message="x", voice="Mia"))
    assert (sent["status"], sent["data"]["state"]) == ("Aceptado", "En cola")
    assert words(observed, sent["id"], steps=3) == ["En cola", "Timbrando", "Contestada"]


def test_the_states_of_an_unknown_id_are_an_empty_list(observed: World) -> None:
    assert states(observed, "nothing") == []


def test_every_number_is_a_string_and_the_balance_is_beside_status(observed: World) -> None:
    sms(observed)
    balance = document(observed.get("/balance"))
    assert balance == {"status": "1", "balance": "998", "created_at": "2026-11-21 12:00:00"}
    observed.post("/url/short", name="x", url_long="https://a.example", is_premium="true")
    observed.click("x", 2, country="CO")
    clicks = document(observed.post("/url/short-statistic", name_url="x", category="country", **DAYS))
    assert clicks["clicksNumber"] == "2"
    assert clicks["metrics"] == [{"country": {"property": "CO", "clicks": "2"}}]


def test_each_record_has_an_undocumented_field(observed: World) -> None:
    responses = [
        observed.post("/send-sms", phone=PHONE, sms="Hola"),
        observed.post("/2fa/send-sms", **CODE),
        observed.post("/block-phone", phone=OTHER),
        observed.post_json("/chatapp/send", {"phone": PHONE, "body": ["Ana"]}, template="t"),
    ]
    assert {document(each)["created_at"] for each in responses} == {"2026-11-21 12:00:00"}
    assert "created_at" in states(observed, document(responses[0])["id"])[0]


def test_a_right_code_gets_1_true_or_a_word(observed: World) -> None:
    found = set()
    for _ in range(30):
        observed.post("/2fa/send-sms", **CODE)
        code = str(observed.admin.inbox()[-1]["code"])
        verified = document(observed.post("/2fa/verification-code", **CODE, code=code))
        found.add(json.dumps({name: value for name, value in verified.items() if name != "created_at"}))
    assert found == {'{"status": 1}', '{"verified": true}', '{"status": "exitoso"}'}


def test_a_refusal_is_a_number_with_status_400(observed: World) -> None:
    observed.post("/url/short", name="x", url_long="https://a.example")
    observed.post("/2fa/send-sms", **CODE)
    code = str(observed.admin.inbox()[-1]["code"])
    observed.now += 3600
    observed.admin.credit(0)
    refused = {
        1001: observed.post("/send-sms", phone=PHONE),
        1003: observed.post("/send-sms", phone=PHONE, sms="x", key="wrong"),
        1004: observed.post("/send-sms", phone=PHONE, sms="x"),
        1005: observed.post("/url/short-statistic", name_url="y", **DAYS),
        1006: observed.post("/url/short", name="x", url_long="https://a.example"),
        1010: observed.post("/2fa/verification-code", **CODE, code=code),
        1012: observed.post("/url/short-statistic", name_url="x", category="city", **DAYS),
        1040: observed.post_json("/chatapp/send", {"phone": PHONE, "body": []}, template="missing"),
    }
    assert {number: (each.status, document(each)["error"]) for number, each in refused.items()} == {
        number: (400, number) for number in refused
    }
    assert document(refused[1004])["msg"] == "Saldo insuficiente"
    assert (observed.post("/balance").status, observed.get("/nothing").status) == (405, 404)


# --- choosing


def test_documented_responses_have_no_dispatch_ids_and_are_the_default(world: World) -> None:
    shown = document(world.respond(SandboxRequest("GET", "/sandbox/responses")))
    assert shown == {"responses": "documented"}
    assert world.get("/messages-state", id=sms(world)["id"]).status == 520


@pytest.mark.parametrize("name", ["real", 1, "mixed"])
def test_a_wrong_choice_gets_400_and_changes_nothing(world: World, name: object) -> None:
    assert "responses must be documented or observed" in choose(world, name)["msg"]
    assert document(world.respond(SandboxRequest("GET", "/sandbox/responses"))) == {"responses": "documented"}


def test_a_reset_restores_the_default(observed: World) -> None:
    observed.emulator.reset()
    assert re.fullmatch("[0-9a-f]{16}", sms(observed)["id"])


def test_a_choice_by_command_stays_for_the_next_command(sandbox: Sandbox, tool: Tool) -> None:
    for name in (*NAMES, "OBSERVED"):
        assert sandbox.document("sandbox", "responses", name) == {"responses": name.lower()}
    assert sandbox.document("sandbox", "responses") == {"responses": "observed"}
    assert sandbox.document("balance")["balance"] == "1000"
    for line in (("responses", "obsrved"), ("serve", "--port", "0", "--responses", "obsrved")):
        tool("sandbox", *line).refused(2, 'Unknown kind of responses "obsrved"', "observed")


@pytest.mark.parametrize("name", NAMES)
def test_msgctl_understands_every_refusal(name: str, sandbox: Sandbox) -> None:
    sandbox.done("url", "shorten", "https://a.example", "--name", "x")
    sandbox.done("sandbox", "responses", name)
    sandbox.done("sandbox", "credit", "0")
    for line in (
        ("sms", "send", PHONE, "-m", "Hola"),
        ("chatapp", "send", PHONE, "Ana", "--template", "missing"),
        ("url", "shorten", "https://a.example", "--name", "x"),
        ("url", "stats", "y"),
        ("url", "stats", "x", "--category", "city"),
        ("state", "get", "nothing"),
        ("2fa", "verify", PHONE, "--app-name", "Shop", "--code", "123456"),
    ):
        assert sandbox(*line).code == 1, line
