"""The sandbox can respond in the documented form or in the form of services in use."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any
from uuid import UUID

import pytest

from msgctl.sandbox.protocol import SandboxResponse
from support.sandbox import OTHER

from .world import PHONE, World

BOTH = f"{PHONE},{OTHER}"
DAYS = {"since": "2026-11-21", "until": "2026-11-21"}
CODE = {"phone": PHONE, "app_name": "Shop"}


@pytest.fixture
def observed(world: World) -> World:
    world.change("responses", responses="observed")
    return world


def document(response: SandboxResponse) -> Any:
    return json.loads(response.body)


def sms(world: World, phones: str = BOTH) -> Any:
    return document(world.post("/send-sms", phone=phones, sms="Hola"))


def states(world: World, id: str) -> Any:
    return document(world.get("/messages-state", id=id))


def journey(world: World, id: str, seconds: int) -> list[str]:
    words = []
    for _ in range(seconds):
        words.append(states(world, id)[0]["state"])
        world.now += 1
    return words


def test_a_dispatch_has_a_uuid_and_one_object_without_message_ids(observed: World) -> None:
    sent = sms(observed)
    assert UUID(sent["id"]).version == 4
    entry = {"state": "Enviado", "credits": "2", "sms": "Hola", "phone": BOTH}
    assert sent == {"id": sent["id"], "status": "1", "data": entry, "created_at": "2026-11-21 12:00:00"}
    entries = states(observed, sent["id"])
    assert [(each["phone"], each["dispatch_id"]) for each in entries] == [(PHONE, sent["id"]), (OTHER, sent["id"])]
    assert states(observed, "nothing") == []


def test_recipients_with_different_states_are_an_object_of_objects(observed: World) -> None:
    observed.post("/block-phone", phone=OTHER)
    for phones in permutations((OTHER, PHONE, "573001234563")):
        expected = {str(place): "Bloqueado" if phone == OTHER else "Enviado" for place, phone in enumerate(phones)}
        data = sms(observed, ",".join(phones))["data"]
        assert {key: entry["state"] for key, entry in data.items()} == expected


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
    sent = sms(observed, phone)
    assert journey(observed, sent["id"], 5) == expected
    credits_left = "0" if phone.endswith("0001") else "1"
    assert (sent["data"]["credits"], states(observed, sent["id"])[0]["credits"]) == ("1", credits_left)
    assert len(observed.inbox()) == (phone in (PHONE, "573001234563"))


def test_a_call_has_spanish_words(observed: World) -> None:
    sent = document(observed.post("/call/send", phone="573001234563", message="x", voice="Mia"))
    assert (sent["status"], sent["data"]["state"]) == ("Aceptado", "En cola")
    assert journey(observed, sent["id"], 3) == ["En cola", "Timbrando", "Contestada"]


def test_every_number_is_a_string_and_the_balance_is_beside_status(observed: World) -> None:
    sms(observed)
    balance = document(observed.get("/balance"))
    assert balance == {"status": "1", "balance": "998", "created_at": "2026-11-21 12:00:00"}
    observed.post("/url/short", name="x", url_long="https://a.example", is_premium="true")
    observed.change("click", name="x", count=2, country="CO")
    clicks = document(observed.post("/url/short-statistic", name_url="x", category="country", **DAYS))
    assert clicks["clicksNumber"] == "2"
    assert clicks["metrics"] == [{"country": {"property": "CO", "clicks": "2"}}]


def test_a_right_code_gets_1_true_or_a_word(observed: World) -> None:
    documents = set()
    for _ in range(30):
        observed.post("/2fa/send-sms", **CODE)
        code = str(observed.inbox()[-1]["code"])
        verified = document(observed.post("/2fa/verification-code", **CODE, code=code))
        assert verified.pop("created_at") == "2026-11-21 12:00:00"
        documents.add(json.dumps(verified))
    assert documents == {'{"status": 1}', '{"verified": true}', '{"status": "exitoso"}'}


def test_a_refusal_is_a_number_with_status_400(observed: World) -> None:
    observed.post("/url/short", name="x", url_long="https://a.example")
    observed.post("/2fa/send-sms", **CODE)
    code = str(observed.inbox()[-1]["code"])
    observed.now += 3600
    observed.credit(0)
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
    assert [(each.status, document(each)["error"]) for each in refused.values()] == [(400, each) for each in refused]
    assert document(refused[1004])["msg"] == "Saldo insuficiente"
    assert (observed.post("/balance").status, observed.get("/nothing").status) == (405, 404)


# --- choosing


@pytest.mark.parametrize("name", ["real", 1])
def test_responses_have_the_documented_form_by_default_and_an_invalid_choice_changes_nothing(
    world: World, name: object
) -> None:
    assert world.change("responses", responses=name).status == 400
    assert document(world.ask("responses")) == {"responses": "documented"}
    assert world.get("/messages-state", id=sms(world)["id"]).status == 520
