"""What `sandbox inbox` shows: what the phones received, as they received it."""

from __future__ import annotations

from typing import Any

from .world import PHONE, World

OTHER = "573009876543"


def received(world: World, **narrowed: Any) -> list[dict[str, Any]]:
    return world.admin.inbox(**narrowed)


def call(world: World, phone: str = PHONE, **more: str) -> None:
    assert world.post("/call/send", phone=phone, **more).status == 200


def test_an_sms_is_shown_whole(world: World) -> None:
    message_id = world.sms(text="Hola\n¿qué tal?")["data"][0]["id"]
    world.now += 1

    assert received(world) == [
        {
            "number": 1,
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
        return [message["phone"] for message in received(world, phone=phone)]

    assert phones("34567") == ["34567"]
    assert phones("300 123 4567") == [PHONE, "3001234567"]
    assert phones("+3001234567") == ["3001234567"]


def test_the_inbox_is_filtered_by_phone_and_kind(world: World) -> None:
    world.sms(f"{PHONE},{OTHER}")
    call(world, message="Hola", voice="Mia")

    assert [message["kind"] for message in received(world, phone=f"+{PHONE}")] == ["sms", "call"]
    assert [message["phone"] for message in received(world, kind="sms")] == [PHONE, OTHER]
    assert received(world, phone=OTHER, kind="call") == []
