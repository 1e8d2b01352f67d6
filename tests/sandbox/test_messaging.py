"""SMS, calls, chat-app messages and codes: costs, delivery states, and what the phones received."""

from __future__ import annotations

import json
from typing import Any

import pytest

from .world import NOON, PHONE, World, record, refusal

OTHER = "573009876543"
WAYS = [
    ("/2fa/send-sms", {}),
    ("/call/2fa/send-call", {"voice": "Mariana", "retries": "1"}),
    ("/2fa/send-chatapp", {}),
]
"""The operations that send a code."""


def test_an_sms_costs_a_credit_per_segment_and_number(world: World) -> None:
    world.sms(f"{PHONE},{OTHER}", "x" * 161)
    assert (world.credits, world.inbox()[0]["segments"]) == (996, 2)


def test_sending_only_to_blocked_numbers_costs_nothing(world: World) -> None:
    world.post("/block-phone", phone=PHONE)
    world.credit(0)
    call = record(world.post("/call/send", phone=PHONE, message="Hola", voice="Mia"))
    chat = record(world.post_json("/chatapp/send", {"phone": PHONE, "body": []}, template="t"))
    assert world.sms()["status"] == 0
    assert (call["status"], call["data"][0]["state"], chat["status"]) == ("blocked", "blocked", "blocked")
    for path, more in WAYS:
        assert record(world.post(path, phone=PHONE, app_name="Shop", **more))["status"] == "blocked"
    assert world.inbox() == []
    assert {message["code"] for message in record(world.ask("overview"))["messages"]} == {None}


def test_a_chat_app_message_has_one_id_which_is_the_id_of_its_dispatch_in_observed_responses(world: World) -> None:
    def sent() -> Any:
        return record(world.post_json("/chatapp/send", {"phone": PHONE, "body": ["Ana"]}, template="hello"))

    first = sent()
    assert (first["status"], world.state_of(first["id"])) == ("accepted", "queued")
    world.change("responses", responses="observed")
    second = sent()
    (state,) = record(world.get("/messages-state", id=second["id"]))
    assert state["dispatch_id"] == second["id"] != state["id"]


@pytest.mark.parametrize(
    ("ending", "message", "call"),
    [
        ("4567", ["queued", "sent", "delivered", "delivered"], ["queued", "ringing", "answered", "answered"]),
        ("0001", ["queued", "sent", "undelivered", "undelivered"], ["queued", "ringing", "voicemail", "voicemail"]),
        ("0002", ["queued", "rejected", "rejected", "rejected"], ["queued", "busy", "busy", "busy"]),
        ("0003", ["queued", "queued", "queued", "queued"], ["queued", "ringing", "ringing", "ringing"]),
    ],
)
def test_delivery_states_depend_on_the_clock_and_the_last_digits_of_the_number(
    world: World, ending: str, message: list[str], call: list[str]
) -> None:
    phone = f"57300123{ending}"
    sms = world.sms(phone)["data"][0]["id"]
    parameters = {"phone": phone, "message": "Hola", "voice": "Mia"}
    called = record(world.post("/call/send", **parameters, leave_voicemail="true"))["data"][0]["id"]
    assert (journey(world, sms), journey(world, called)) == (message, call)


def test_a_call_without_voicemail_is_not_answered(world: World) -> None:
    sent = record(world.post("/call/send", phone="573001230001", message="Hola", voice="Mia"))
    assert (sent["status"], sent["data"][0]["state"]) == ("accepted", "queued")
    assert journey(world, sent["data"][0]["id"])[2] == "not-answered"


def journey(world: World, message_id: str) -> list[str]:
    """The states after 0, 1, 2 and 3,600 seconds."""
    states = []
    for seconds in (0, 1, 2, 3600):
        world.now = NOON + seconds
        states.append(world.state_of(message_id))
    world.now = NOON
    return states


# --- codes


@pytest.mark.parametrize(("path", "more"), WAYS)
def test_a_code_is_valid_once_for_its_phone_and_app_and_only_the_inbox_shows_it(
    world: World, path: str, more: dict[str, str]
) -> None:
    sent = world.post(path, phone=PHONE, app_name="Shop", **more)
    (message,) = world.inbox()
    code = message["code"]
    state = world.get("/messages-state", id=message["id"])
    assert code.encode() not in sent.body + state.body
    assert record(state)["sms"] == message["text"].replace(code, "******")
    assert verify(world, code, phone=OTHER) == verify(world, code, app_name="shop") == "INVALID_CODE"
    assert (verify(world, code), verify(world, code)) == ("verified", "INVALID_CODE")


@pytest.mark.parametrize(("seconds", "outcome"), [(599.9, "verified"), (600, "EXPIRED_CODE")])
def test_a_code_expires_after_ten_minutes(world: World, seconds: float, outcome: str) -> None:
    record(world.post("/2fa/send-sms", phone=PHONE, app_name="Shop"))
    world.now += seconds
    assert verify(world, world.inbox()[0]["code"]) == outcome


@pytest.mark.parametrize(("guesses", "outcome"), [(4, "verified"), (5, "INVALID_CODE")])
@pytest.mark.parametrize("responses", ["documented", "observed"])
def test_a_code_is_void_after_five_wrong_guesses(world: World, guesses: int, outcome: str, responses: str) -> None:
    world.post("/2fa/send-sms", phone=PHONE, app_name="Shop")
    world.post("/2fa/send-sms", phone=PHONE, app_name="Other")
    world.change("responses", responses=responses)
    for _ in range(guesses):
        world.post("/2fa/verification-code", phone=PHONE, app_name="Shop", code="none")
    world.change("responses", responses="documented")
    first, other = (message["code"] for message in world.inbox())
    assert (verify(world, first), verify(world, other, app_name="Other")) == (outcome, "verified")
    world.post("/2fa/send-sms", phone=PHONE, app_name="Shop")
    assert verify(world, world.inbox()[-1]["code"]) == "verified"


def test_a_blocked_phone_keeps_its_earlier_code(world: World) -> None:
    for _ in range(2):
        world.post("/2fa/send-sms", phone=PHONE, app_name="Shop")
        world.post("/block-phone", phone=PHONE)
    assert verify(world, world.inbox()[0]["code"]) == "verified"


def verify(world: World, code: str, **more: str) -> str:
    response = world.post("/2fa/verification-code", **{"phone": PHONE, "app_name": "Shop", "code": code, **more})
    return str(record(response)["status"]) if response.status == 200 else refusal(response)[0]


# --- the inbox


def test_a_message_in_the_inbox_has_all_its_states_with_their_times(world: World) -> None:
    world.sms()
    world.now += 1
    assert world.inbox()[0]["history"] == [
        {"state": "queued", "time": "2026-11-21T12:00:00Z"},
        {"state": "sent", "time": "2026-11-21T12:00:01Z"},
    ]


def test_only_a_long_number_without_plus_may_lack_its_country_code(world: World) -> None:
    world.sms(f"{PHONE},34567,3001234567")

    def phones(phone: str) -> list[str]:
        return [message["phone"] for message in world.inbox(phone=phone)]

    assert phones("34567") == ["34567"]
    assert phones("300 123 4567") == [PHONE, "3001234567"]
    assert phones("+57 (300) 123-4567") == phones("0057 300 1234567") == [PHONE]
    assert phones("+3001234567") == ["3001234567"]
    assert [world.ask("inbox", phone=digits).status for digits in ("1234", "1" * 15, "1" * 16)] == [400, 200, 400]


def test_the_inbox_has_the_messages_after_an_id_or_a_time(world: World) -> None:
    first = world.sms(PHONE)["data"][0]["id"]
    world.now += 0.5
    second = world.sms(OTHER)["data"][0]["id"]

    def after(given: str) -> list[str]:
        return [message["id"] for message in world.inbox(after=given)]

    assert after("2026-11-21T11:59:59Z") == after("2026-11-21") == [first, second]
    assert after(first) == after("2026-11-21T12:00:00") == after("2026-11-21T13:00:00+01:00") == [second]
    assert after(second) == after("2026-11-21T12:00:01Z") == []
    assert world.inbox(phone=PHONE, after=first) == []


@pytest.mark.parametrize(("name", "value"), [("after", "0123456789abcdef"), ("after", "yesterday"), ("limit", "1")])
def test_an_inbox_request_with_an_unknown_message_time_or_parameter_gets_400(
    world: World, name: str, value: str
) -> None:
    refused = world.ask("inbox", **{name: value})
    assert (refused.status, name in json.loads(refused.body)["msg"]) == (400, True)
    assert name == "after" or "phone, after, wait" in json.loads(refused.body)["msg"]


def test_a_control_with_wrong_fields_changes_nothing(world: World) -> None:
    for fields in ({"credits": 5, "sum": 5}, {"credits": 5, "add": 5}, {}):
        assert (world.change("credit", **fields).status, world.credits) == (400, 1000)
