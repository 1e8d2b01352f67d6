"""Balance, SMS, calls, chat-app messages: who gets what, for how much, and what becomes of it."""

from __future__ import annotations

import pytest

from msgctl.operations import OPERATIONS, Kind, Member

from .world import NOON, PHONE, World, record, refusal

OTHER = "573009876543"


def test_an_sms_is_one_entry_a_number_in_the_order_asked(world: World) -> None:
    answer = world.sms(f"{PHONE},{OTHER}")

    assert answer["status"] == 1
    assert [entry["phone"] for entry in answer["data"]] == [PHONE, OTHER]
    assert {entry["status"] for entry in answer["data"]} == {"queued"}
    assert {entry["sms"] for entry in answer["data"]} == {"Hola"}
    assert len({answer["id"], *(entry["id"] for entry in answer["data"])}) == 3


def test_a_number_given_twice_gets_one_message(world: World) -> None:
    answer = world.sms(f"{PHONE},{OTHER},+{PHONE}")

    assert [entry["phone"] for entry in answer["data"]] == [PHONE, OTHER]
    assert world.credits == 998


@pytest.mark.parametrize(("text", "segments"), [("a" * 160, 1), ("a" * 161, 2), ("í" * 70, 1), ("í" * 71, 2)])
def test_an_sms_costs_its_segments_for_each_number(world: World, text: str, segments: int) -> None:
    answer = world.sms(f"{PHONE},{OTHER}", text)

    assert [entry["credits"] for entry in answer["data"]] == [segments, segments]
    assert world.credits == 1000 - 2 * segments


def test_calls_and_chatapp_messages_cost_one_credit(world: World) -> None:
    call = record(world.post("/call/send", phone=f"{PHONE},{OTHER}", message="a" * 500, voice="Mia"))
    world.post_json("/chatapp/send", {"phone": PHONE, "body": ["a" * 500]}, template="t")

    assert [entry["credits"] for entry in call["data"]] == [1, 1]
    assert world.credits == 997


def test_a_dispatch_that_costs_more_than_is_left_is_refused_whole(world: World) -> None:
    world.admin.credit(1)

    error, msg = refusal(world.post("/send-sms", phone=f"{PHONE},{OTHER}", sms="Hola"))

    assert error == "NOT_ENOUGH_CREDITS"
    assert "costs 2 credits; 1 left" in msg
    assert world.credits == 1
    assert world.admin.inbox() == []


def test_the_last_credit_can_be_spent(world: World) -> None:
    world.admin.credit(2)

    world.sms(f"{PHONE},{OTHER}")

    assert world.credits == 0
    assert refusal(world.post("/call/send", phone=PHONE, audio_code="a"))[0] == "NOT_ENOUGH_CREDITS"
    assert refusal(world.post("/2fa/send-sms", phone=PHONE, app_name="Shop"))[0] == "NOT_ENOUGH_CREDITS"


def test_blocking_answers_with_the_number_and_its_name(world: World) -> None:
    answer = record(world.post("/block-phone", phone=f"+{PHONE}", name="Ana"))

    assert {**answer, "id": ""} == {"id": "", "status": "blocked", "phone": PHONE, "name": "Ana"}
    assert answer["id"]


def test_blocking_again_keeps_the_block_and_changes_its_name_alone(world: World) -> None:
    first = record(world.post("/block-phone", phone=PHONE))
    named = record(world.post("/block-phone", phone=PHONE, name="Ana"))
    again = record(world.post("/block-phone", phone=PHONE))

    assert first["name"] == ""
    assert named == again == {**first, "name": "Ana"}


def test_a_blocked_number_gets_no_sms_and_costs_nothing(world: World) -> None:
    world.post("/block-phone", phone=PHONE)

    answer = world.sms(f"{PHONE},{OTHER}")

    assert answer["status"] == 1
    assert [(entry["status"], entry["credits"]) for entry in answer["data"]] == [("blocked", 0), ("queued", 1)]
    assert world.credits == 999
    world.now += 60
    assert world.state_of(answer["data"][0]["id"]) == "blocked"
    assert [message["phone"] for message in world.admin.inbox()] == [OTHER]


def test_dispatches_to_blocked_numbers_alone_say_so_and_need_no_credits(world: World) -> None:
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
def test_an_sms_moves_with_time(world: World, ending: str, states: list[str]) -> None:
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
def test_a_call_moves_with_time(world: World, ending: str, voicemail: str, states: list[str]) -> None:
    answer = record(
        world.post("/call/send", phone=f"57300123{ending}", message="Hola", voice="Mia", leave_voicemail=voicemail)
    )

    assert answer["status"] == "accepted"
    assert answer["data"][0]["state"] == "queued"
    assert journey(world, answer["data"][0]["id"]) == states


def test_a_chatapp_message_moves_like_an_sms(world: World) -> None:
    answer = record(world.post_json("/chatapp/send", {"phone": PHONE, "body": []}, template="t"))

    assert journey(world, answer["id"]) == ["queued", "sent", "delivered", "delivered"]


def test_a_clock_that_is_set_back_leaves_a_message_in_its_first_state(world: World) -> None:
    message_id = world.sms()["data"][0]["id"]
    world.now -= 3600

    assert world.state_of(message_id) == "queued"


def test_the_state_record_tells_the_whole_message(world: World) -> None:
    answer = world.sms(text="Hola")
    entry = answer["data"][0]

    assert record(world.get("/messages-state", id=entry["id"])) == {
        "state": "queued",
        "credits": 1,
        "phone": int(PHONE),
        "created": "2026-11-21T12:00:00Z",
        "sms": "Hola",
        "dispatch_id": answer["id"],
        "id": entry["id"],
    }


def test_an_unknown_message_is_refused(world: World) -> None:
    error, msg = refusal(world.get("/messages-state", id="nope"))

    assert error == "NOT_FOUND"
    assert msg.startswith("id:")


def test_a_call_tells_what_is_spoken_by_whom(world: World) -> None:
    spoken = record(world.post("/call/send", phone=PHONE, message="Hola", voice="Mia", retries="3"))["data"][0]
    stored = record(world.post("/call/send", phone=PHONE, audio_code="a1"))["data"][0]

    assert (spoken["message"], spoken["voice"]) == ("Hola", "Mia")
    assert (stored["message"], stored["voice"]) == ("", "")


@pytest.mark.parametrize("path", ["/chatapp/send", "/chatapp/store/order"])
def test_a_chatapp_record_names_its_template(world: World, path: str) -> None:
    answer = record(world.post_json(path, {"phone": f"+{PHONE}", "body": ["Ana", "42"]}, template="order_sent"))

    assert {**answer, "id": ""} == {"id": "", "status": "accepted", "phone": PHONE, "name": "order_sent"}
    assert world.admin.inbox()[0]["text"] == "order_sent: Ana, 42"


def test_every_answer_has_the_members_of_its_record_in_the_order_of_the_interface(world: World) -> None:
    answers = every_answer(world)

    assert set(answers) == {operation.path for operation in OPERATIONS}
    for operation in OPERATIONS:
        hold_against(answers[operation.path], operation.answer.members)


def journey(world: World, message_id: str) -> list[str]:
    """The states after 0, 1, 2 and 3,600 seconds."""
    states = []
    for seconds in (0, 1, 2, 3600):
        world.now = NOON + seconds
        states.append(world.state_of(message_id))
    return states


def every_answer(world: World) -> dict[str, object]:
    code = {"phone": PHONE, "app_name": "Shop"}
    chat = {"phone": PHONE, "body": ["a"]}
    answers = {
        "/balance": world.get("/balance"),
        "/block-phone": world.post("/block-phone", phone=OTHER),
        "/send-sms": world.post("/send-sms", phone=PHONE, sms="Hola"),
        "/call/send": world.post("/call/send", phone=PHONE, audio_code="a"),
        "/2fa/send-sms": world.post("/2fa/send-sms", **code),
        "/call/2fa/send-call": world.post("/call/2fa/send-call", **code, voice="Mariana", retries="1"),
        "/2fa/send-chatapp": world.post("/2fa/send-chatapp", **code),
        "/url/short": world.post("/url/short", name="n", url_long="https://a.example", is_premium="true"),
        "/chatapp/send": world.post_json("/chatapp/send", chat, template="t"),
        "/chatapp/store/order": world.post_json("/chatapp/store/order", chat, template="t"),
    }
    received = world.admin.inbox()
    last_code = [message["code"] for message in received if message["code"]][-1]
    world.click("n", 5)
    return {path: record(reply) for path, reply in answers.items()} | {
        "/messages-state": record(world.get("/messages-state", id=received[0]["id"])),
        "/2fa/verification-code": record(world.post("/2fa/verification-code", **code, code=last_code)),
        "/url/short-statistic": record(
            world.post("/url/short-statistic", name_url="n", since="2026-11-21", until="2026-11-21")
        ),
    }


def hold_against(value: object, members: tuple[Member, ...], *, optional: bool = False) -> None:
    assert isinstance(value, dict)
    names = [member.name for member in members]
    assert list(value) == ([name for name in names if name in value] if optional else names)
    for member in members:
        if member.name in value:
            hold_kind(value[member.name], member)


def hold_kind(value: object, member: Member) -> None:
    if member.kind is Kind.ARRAY:
        assert isinstance(value, list)
        assert value
        for element in value:
            hold_against(element, member.of, optional=member.name == "metrics")
    elif member.kind is Kind.OBJECT:
        hold_against(value, member.of)
    elif member.kind is Kind.STRING:
        assert isinstance(value, str)
    else:
        assert isinstance(value, (int, float) if member.kind is Kind.NUMBER else int)


def test_added_credits_can_be_spent(world: World) -> None:
    assert world.admin.credit(500, add=True) == 1500
    assert world.admin.credit(-1500, add=True) == 0
    assert world.credits == 0
