"""Balance, SMS, calls, chat-app messages: recipients, costs, delivery states, and what the phones received."""

from __future__ import annotations

import json

import pytest

from msgctl.errors import UsageError
from msgctl.sandbox.protocol import SandboxRequest

from .clocked_emulator import JSON, NOON, PHONE, World, record

OTHER = "573009876543"


def test_sending_only_to_blocked_numbers_costs_nothing(world: World) -> None:
    world.post("/block-phone", phone=PHONE)
    world.admin.credit(0)

    call = record(world.post("/call/send", phone=PHONE, message="Hola", voice="Mia"))
    chat = record(world.post_json("/chatapp/send", {"phone": PHONE, "body": []}, template="t"))

    assert world.sms()["status"] == 0
    assert (call["status"], call["data"][0]["state"]) == ("blocked", "blocked")
    assert chat["status"] == "blocked"
    assert world.admin.inbox() == []


@pytest.mark.parametrize(
    ("ending", "states"),
    [
        ("4567", ["queued", "sent", "delivered", "delivered"]),
        ("0001", ["queued", "sent", "undelivered", "undelivered"]),
        ("0002", ["queued", "rejected", "rejected", "rejected"]),
        ("0003", ["queued", "queued", "queued", "queued"]),
    ],
)
def test_the_state_of_an_sms_follows_the_clock(world: World, ending: str, states: list[str]) -> None:
    message_id = world.sms(f"57300123{ending}")["data"][0]["id"]

    assert journey(world, message_id) == states


@pytest.mark.parametrize(
    ("ending", "voicemail", "states"),
    [
        ("4567", "false", ["queued", "ringing", "answered", "answered"]),
        ("4567", "true", ["queued", "ringing", "answered", "answered"]),
        ("0001", "false", ["queued", "ringing", "not-answered", "not-answered"]),
        ("0001", "true", ["queued", "ringing", "voicemail", "voicemail"]),
        ("0002", "true", ["queued", "busy", "busy", "busy"]),
        ("0003", "true", ["queued", "ringing", "ringing", "ringing"]),
    ],
)
def test_the_state_of_a_call_follows_the_clock(world: World, ending: str, voicemail: str, states: list[str]) -> None:
    document = record(
        world.post("/call/send", phone=f"57300123{ending}", message="Hola", voice="Mia", leave_voicemail=voicemail)
    )

    assert document["status"] == "accepted"
    assert document["data"][0]["state"] == "queued"
    assert journey(world, document["data"][0]["id"]) == states


def journey(world: World, message_id: str) -> list[str]:
    """The states after 0, 1, 2 and 3,600 seconds."""
    states = []
    for seconds in (0, 1, 2, 3600):
        world.now = NOON + seconds
        states.append(world.state_of(message_id))
    return states


# --- the inbox


def test_an_sms_is_shown_whole(world: World) -> None:
    message_id = world.sms(text="Hola\n¿qué tal?")["data"][0]["id"]
    world.now += 1

    assert world.admin.inbox() == [
        {
            "time": "2026-11-21T12:00:00Z",
            "kind": "sms",
            "phone": PHONE,
            "state": "sent",
            "text": "Hola\n¿qué tal?",
            "code": None,
            "id": message_id,
            "credits": 1,
            "history": [
                {"state": "queued", "time": "2026-11-21T12:00:00Z"},
                {"state": "sent", "time": "2026-11-21T12:00:01Z"},
            ],
            "segments": 1,
        }
    ]


def test_only_a_long_number_without_plus_may_lack_its_country_code(world: World) -> None:
    world.sms(f"{PHONE},34567,3001234567")

    def phones(phone: str) -> list[str]:
        return [message["phone"] for message in world.admin.inbox(phone=phone)]

    assert phones("34567") == ["34567"]
    assert phones("300 123 4567") == [PHONE, "3001234567"]
    assert phones("+57 (300) 123-4567") == phones("0057 300 1234567") == [PHONE]
    assert phones("+3001234567") == ["3001234567"]


def test_the_inbox_has_the_messages_after_an_id_or_a_time(world: World) -> None:
    first = world.sms(PHONE)["data"][0]["id"]
    world.now += 0.5
    second = world.sms(OTHER)["data"][0]["id"]

    def after(given: str) -> list[str]:
        return [message["id"] for message in world.admin.inbox(after=given)]

    assert after("2026-11-21T11:59:59Z") == after("2026-11-21") == [first, second]
    assert after(first) == after("2026-11-21T12:00:00") == after("2026-11-21T13:00:00+01:00") == [second]
    assert after(second) == after("2026-11-21T12:00:01Z") == []
    assert world.admin.inbox(phone=PHONE, after=first) == []


@pytest.mark.parametrize("after", ["nothing", "0123456789abcdef", "1", "yesterday"])
def test_an_unknown_id_or_time_is_refused(world: World, after: str) -> None:
    with pytest.raises(UsageError, match="after must be the ID of a message or a time"):
        world.admin.inbox(after=after)


@pytest.mark.parametrize("name", ["limit", "kind", "Phone", "since"])
def test_an_unknown_parameter_of_the_inbox_gets_400_with_the_known_ones(world: World, name: str) -> None:
    refused = world.respond(SandboxRequest("GET", "/sandbox/inbox", f"{name}=1"))
    assert refused.status == 400
    assert json.loads(refused.body)["msg"] == f'unknown parameter "{name}": choose from phone, after, wait'


def test_an_unknown_field_of_a_control_changes_nothing(world: World) -> None:
    body = json.dumps({"credits": 5, "sum": 5}).encode()
    refused = world.respond(SandboxRequest("POST", "/sandbox/credit", "", JSON, body))
    assert (refused.status, world.credits) == (400, 1000)
