"""Responses as services send them: each setting, each named set, and how they are chosen."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from msgctl.sandbox.protocol import SandboxRequest, SandboxResponse
from msgctl.sandbox.responses import CHOICES, NAMES
from support.sandbox import OTHER, Sandbox
from support.tool import Tool

from .clocked_emulator import JSON, PHONE, World

BOTH = f"{PHONE},{OTHER}"


def choose(world: World, **settings: object) -> Any:
    """Choose responses over the sandbox's own endpoint."""
    body = json.dumps(settings).encode()
    return json.loads(world.respond(SandboxRequest("POST", "/sandbox/responses", "", JSON, body)).body)


def document(response: SandboxResponse) -> Any:
    return json.loads(response.body)


def sms(world: World, phones: str = BOTH) -> Any:
    return document(world.post("/send-sms", phone=phones, sms="Hola"))


def state(world: World, id: str) -> Any:
    return document(world.get("/messages-state", id=id))


# --- each setting


ENTRY = {"state": "queued", "credits": 1, "sms": "Hola"}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("object", {**ENTRY, "credits": 2, "phone": BOTH}),
        ("numbered", {"0": {**ENTRY, "phone": PHONE}, "1": {**ENTRY, "phone": OTHER}}),
        ("phones", {PHONE: ENTRY, OTHER: ENTRY}),
    ],
)
def test_data_contains_the_recipients_in_the_chosen_shape(world: World, data: str, expected: object) -> None:
    choose(world, data=data, entry_ids=False)
    assert {name: value for name, value in sms(world).items() if name != "id"} == {"status": 1, "data": expected}
    assert world.credits == 998


def test_data_may_be_a_bare_list_with_ids(world: World) -> None:
    choose(world, data="bare", entry_ids=False)
    first, second = sms(world)
    assert (first, second["phone"]) == ({"id": first["id"], **ENTRY, "phone": PHONE}, OTHER)
    code = document(world.post("/2fa/send-sms", phone=PHONE, app_name="Shop"))
    assert code["minutes_to_expire"] == 10
    assert [each["name"] for each in document(world.post("/block-phone", phone=OTHER, name="Ana"))] == ["Ana"]


def test_data_may_be_left_out(world: World) -> None:
    choose(world, data="none")
    sent = sms(world)
    assert sent == {"id": sent["id"], "status": 1}
    assert state(world, sent["id"])[1]["phone"] == int(OTHER)


@pytest.mark.parametrize("data", ["object", "none"])
def test_a_shape_that_hides_a_blocked_number_is_not_used(world: World, data: str) -> None:
    world.post("/block-phone", phone=OTHER)
    choose(world, data=data, entry_ids=False)
    assert [entry["state"] for entry in sms(world)["data"].values()] == ["queued", "blocked"]


def test_one_object_for_several_numbers_has_no_message_ids(world: World) -> None:
    choose(world, data="object")
    assert sms(world)["data"].keys() == {"0", "1"}
    assert sms(world, PHONE)["data"]["phone"] == PHONE


def test_entries_may_have_no_ids(world: World) -> None:
    choose(world, entry_ids=False)
    sent = sms(world)
    assert sent["data"] == [{"status": "queued", "credits": 1, "sms": "Hola", "phone": each} for each in (PHONE, OTHER)]
    assert [each["dispatch_id"] for each in state(world, sent["id"])] == [sent["id"]] * 2


@pytest.mark.parametrize(
    ("form", "found"),
    [
        ("object", lambda document: document),
        ("array", lambda document: document[0]),
        ("data-object", lambda document: document["data"]),
        ("data-array", lambda document: document["data"][0]),
    ],
)
def test_a_state_has_the_chosen_shape(world: World, form: str, found: Callable[[Any], Any]) -> None:
    choose(world, state=form, words="spanish")
    sent = sms(world)
    message = sent["data"][1]["id"]
    assert found(state(world, message))["id"] == message
    several = state(world, sent["id"])
    several = several["data"] if form.startswith("data-") else several
    assert [each["phone"] for each in several] == [int(PHONE), int(OTHER)]
    unknown = {"array": [], "data-array": {"data": []}}
    assert state(world, "nothing") == unknown.get(form, {"error": "NOT_FOUND", "msg": "No existe"})


def test_words_are_spanish(world: World) -> None:
    world.post("/block-phone", phone=OTHER)
    choose(world, words="spanish")
    states = [each["status"] for each in sms(world, f"{PHONE},573001230001,573001230002,{OTHER}")["data"]]
    assert states == ["En cola", "En cola", "En cola", "Bloqueado"]
    calls = document(world.post("/call/send", phone="573001230001,573001230002", message="x", voice="Mia"))
    world.now += 5
    later = [state(world, each["id"])["state"] for each in calls["data"]]
    assert (calls["status"], later) == ("Aceptado", ["No contesta", "Ocupado"])
    assert document(world.get("/balance", key="wrong")) == {"error": "UNAUTHORIZED", "msg": "Credenciales invalidas"}
    assert sms(world, PHONE)["data"][0]["sms"] == "Hola"


def test_numbers_are_strings(world: World) -> None:
    choose(world, numbers="strings")
    sent = sms(world, PHONE)
    assert (sent["status"], sent["data"][0]["credits"]) == ("1", "1")
    assert document(world.get("/balance")) == {"status": "999"}
    assert state(world, sent["data"][0]["id"])["phone"] == PHONE
    world.post("/url/short", name="x", url_long="https://a.example", is_premium="true")
    world.click("x", 2, country="CO")
    days = {"since": "2026-11-21", "until": "2026-11-21"}
    clicks = document(world.post("/url/short-statistic", name_url="x", category="country", **days))
    assert clicks["clicksNumber"] == "2"
    assert clicks["metrics"] == [{"country": {"property": "CO", "clicks": "2"}}]


@pytest.mark.parametrize("name", ["balance", "credits", "saldo"])
def test_the_balance_may_be_beside_status(world: World, name: str) -> None:
    choose(world, balance=name)
    assert document(world.get("/balance")) == {"status": 1, name: 1000}


@pytest.mark.parametrize("status", [400, 200])
def test_errors_may_be_numbers_with_another_status(world: World, status: int) -> None:
    choose(world, errors=status, words="spanish")
    refused = world.post("/send-sms", phone=PHONE)
    assert (refused.status, document(refused)) == (status, {"error": 1001, "msg": "Parametros invalidos"})
    world.admin.credit(0)
    assert document(world.post("/send-sms", phone=PHONE, sms="x"))["msg"] == "Saldo insuficiente"
    assert world.post("/balance").status == 405
    assert world.get("/nothing").status == 404


@pytest.mark.parametrize(
    ("verify", "response"),
    [("success", {"status": "success"}), (1, {"status": 1}), (True, {"verified": True})],
)
def test_a_right_code_has_the_chosen_response(world: World, verify: object, response: object) -> None:
    choose(world, verify=verify)
    code = {"phone": PHONE, "app_name": "Shop"}
    world.post("/2fa/send-sms", **code)
    right = str(world.admin.inbox()[-1]["code"])
    wrong = world.post("/2fa/verification-code", **code, code="000000" if right != "000000" else "1")
    assert (wrong.status, document(wrong)["error"]) == (520, "INVALID_CODE")
    assert document(world.post("/2fa/verification-code", **code, code=right)) == response


def test_every_refusal_has_a_number(world: World) -> None:
    choose(world, errors=400)
    world.post("/url/short", name="x", url_long="https://a.example")
    days = {"since": "2026-11-21", "until": "2026-11-21"}
    code = {"phone": PHONE, "app_name": "Shop"}
    world.post("/2fa/send-sms", **code)
    right = str(world.admin.inbox()[-1]["code"])
    world.now += 3600
    refused = [
        world.post("/url/short", name="x", url_long="https://a.example"),
        world.post("/url/short-statistic", name_url="y", **days),
        world.post("/url/short-statistic", name_url="x", category="city", **days),
        world.post("/2fa/verification-code", **code, code=right),
        world.get("/messages-state", id="nothing"),
    ]
    assert [(each.status, type(document(each)["error"])) for each in refused] == [(400, int)] * 5


# --- the named sets


def test_documented_responses_have_no_dispatch_ids_and_are_the_default(world: World) -> None:
    shown = document(world.respond(SandboxRequest("GET", "/sandbox/responses")))
    assert shown == {"responses": "documented", **{name: choices[0] for name, choices in CHOICES.items()}}
    assert world.get("/messages-state", id=sms(world)["id"]).status == 520


def test_observed_responses(world: World) -> None:
    choose(world, responses="observed")
    sent = sms(world)
    entry = {"state": "En cola", "credits": "2", "sms": "Hola", "phone": BOTH}
    assert sent == {"id": sent["id"], "status": "1", "data": entry}
    world.now += 5
    states = state(world, sent["id"])
    assert [(each["state"], each["phone"]) for each in states] == [("Entregado", PHONE), ("Entregado", OTHER)]
    assert document(world.get("/balance")) == {"status": "1", "balance": "998"}
    refused = world.post("/send-sms", phone="x", sms="x")
    assert (refused.status, document(refused)) == (400, {"error": 1001, "msg": "Parametros invalidos"})


def test_mixed_responses_vary_from_request_to_request_and_repeat_with_the_seed(world: World, tmp_path: Path) -> None:
    other = World(tmp_path / "other.db")
    for each in (world, other):
        choose(each, responses="mixed")
    forms = [json.dumps(sms(world)) for _ in range(40)]
    assert forms == [json.dumps(sms(other)) for _ in range(40)]
    assert len({type(json.loads(each)) for each in forms}) == 2
    words = {"queued", "En cola"}
    assert {word for word in words for each in forms if word in each} == words
    other.emulator.close()


def test_a_message_can_be_tracked_by_its_dispatch_in_any_mixed_response(world: World) -> None:
    choose(world, responses="mixed")
    dispatches = [each["id"] for _ in range(20) if isinstance(each := sms(world), dict)]
    found = [state(world, each) for each in dispatches]
    several = [each["data"] if isinstance(each, dict) else each for each in found]
    assert [len(each) for each in several] == [2] * len(dispatches)


# --- choosing


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"data": "list"}, 'data must be one of array, object, numbered, phones, bare, none, not "list"'),
        ({"responses": "real"}, "responses must be one of documented, observed, mixed"),
        ({"responses": "mixed", "data": "object"}, "cannot be combined"),
        ({"errors": 404}, "errors must be one of"),
        ({"data": ["object"]}, "data must be a string"),
    ],
)
def test_a_wrong_choice_gets_400_and_changes_nothing(world: World, settings: dict[str, object], message: str) -> None:
    assert message in choose(world, **settings)["msg"]
    assert choose(world)["responses"] == "documented"


def test_settings_that_equal_a_named_set_have_its_name(world: World) -> None:
    observed = {name: value for name, value in choose(world, responses="observed").items() if name != "responses"}
    assert choose(world, **observed)["responses"] == "observed"
    assert choose(world, data="bare")["responses"] == "custom"
    world.emulator.reset()
    assert choose(world)["responses"] == "documented"


def test_a_choice_by_command_stays_for_the_next_command(sandbox: Sandbox) -> None:
    assert [sandbox.document("sandbox", "responses", name)["responses"] for name in reversed(NAMES)] == [
        *reversed(NAMES)
    ]
    assert sandbox.document("sandbox", "responses", "observed")["words"] == "spanish"
    assert sandbox.document("sandbox", "responses")["responses"] == "observed"
    assert sandbox.document("balance") == {"status": "1", "balance": "1000"}


OBSERVED_FILE = """\
data = "object"
entry_ids = false
state = "array"
words = "spanish"
numbers = "strings"
balance = "saldo"
errors = 400
verify = true
"""


def test_a_file_sets_each_key(home: Path, sandbox: Sandbox) -> None:
    (home / "own.toml").write_text(OBSERVED_FILE)
    chosen = sandbox.document("sandbox", "responses", str(home / "own.toml"))
    assert (chosen["responses"], chosen["errors"], chosen["verify"]) == ("custom", "400", "true")
    assert sandbox.document("balance") == {"status": "1", "saldo": "1000"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('data = "list"', 'data must be array, object, numbered, phones, bare or none, not "list"'),
        ("dta = 1", 'unknown key "dta"'),
        ("errors = 404", 'errors must be 520, 400 or 200, not "404"'),
        ("data = [1]", "data must be array"),
        ("data = ", "is not TOML"),
        ('data = "\xff"', "is not TOML"),
        ("", "has no settings"),
        ('responses = "real"', "responses must be documented, observed or mixed"),
        (None, 'NAME must be documented, observed, mixed or a TOML file, not "'),
    ],
)
def test_a_wrong_file_is_a_usage_error(content: str | None, message: str, home: Path, tool: Tool) -> None:
    path = home / "own.toml"
    if content is not None:
        path.write_bytes(content.encode("latin-1"))
    refused = tool("sandbox", "responses", str(path))
    refused.refused(2, message)
    refused = tool("sandbox", "serve", "--port", "0", "--responses", str(path))
    refused.refused(2, message.replace("NAME", "--responses"))
