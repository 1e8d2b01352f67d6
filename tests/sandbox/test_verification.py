"""Verification codes: sent in three ways, valid once, for one phone and app name, for ten minutes."""

from __future__ import annotations

import pytest

from .clocked_emulator import NOON, PHONE, World, record, refusal

SPOKEN = {"voice": "Mariana", "retries": "1"}
WAYS = [
    ("/2fa/send-sms", {}, "sms"),
    ("/call/2fa/send-call", SPOKEN, "call"),
    ("/2fa/send-chatapp", {}, "chatapp"),
]


def send(world: World, path: str = "/2fa/send-sms", phone: str = PHONE, app: str = "Shop", **more: str) -> str:
    """Send a code and read it on the phone."""
    record(world.post(path, phone=phone, app_name=app, **more))
    code = world.admin.inbox(phone=phone)[-1]["code"]
    assert isinstance(code, str)
    return code


def verify(world: World, code: str, phone: str = PHONE, app: str = "Shop") -> str:
    response = world.post("/2fa/verification-code", phone=phone, app_name=app, code=code)
    return str(record(response)["status"]) if response.status == 200 else refusal(response)[0]


@pytest.mark.parametrize(("path", "more", "kind"), WAYS)
def test_no_response_shows_the_code(world: World, path: str, more: dict[str, str], kind: str) -> None:
    response = world.post(path, phone=PHONE, app_name="Shop", **more)
    message = world.admin.inbox()[0]
    state = world.get("/messages-state", id=message["id"])

    assert message["code"].encode() not in response.body
    assert message["code"].encode() not in state.body
    assert record(state)["sms"] == message["text"].replace(message["code"], "******")


def test_a_code_is_for_one_phone_and_one_app_name(world: World) -> None:
    code = send(world)

    assert verify(world, code, phone="573009876543") == "INVALID_CODE"
    assert verify(world, code, app="shop") == "INVALID_CODE"
    assert verify(world, code) == "verified"


@pytest.mark.parametrize(("seconds", "outcome"), [(599.9, "verified"), (600, "EXPIRED_CODE"), (86400, "EXPIRED_CODE")])
def test_a_code_expires_after_ten_minutes(world: World, seconds: float, outcome: str) -> None:
    code = send(world)
    world.now = NOON + seconds

    assert verify(world, code) == outcome


@pytest.mark.parametrize(("path", "more", "kind"), WAYS)
def test_a_blocked_phone_gets_no_code(world: World, path: str, more: dict[str, str], kind: str) -> None:
    world.post("/block-phone", phone=PHONE)

    document = record(world.post(path, phone=PHONE, app_name="Shop", **more))

    assert document["status"] == "blocked"
    for entry in document.get("data", []):
        assert entry.get("status", entry.get("state")) == "blocked"
        assert entry["credits"] == 0
    assert world.credits == 1000
    assert world.admin.inbox() == []
    with world.emulator.reading() as db:
        assert db.execute("SELECT count(*) FROM codes").fetchone()[0] == 0
        assert db.execute("SELECT code FROM messages").fetchone()[0] is None
