"""Which requests are accepted: paths, credentials, and where and how parameters are sent."""

from __future__ import annotations

import json

import pytest

from msgctl.sandbox.protocol import SandboxRequest

from .world import ACCOUNT, FORM, JSON, PHONE, World, encoded, refusal

SMS = {"phone": PHONE, "sms": "Hola"}


def form(world: World, path: str, body: str | bytes, content_type: str = FORM["content-type"]) -> tuple[str, str]:
    raw = body if isinstance(body, bytes) else body.encode()
    return refusal(world.answer(SandboxRequest("POST", path, "", {"content-type": content_type}, raw)))


@pytest.mark.parametrize("path", ["", "/balance/", "/api/v2/balance", "/\x1b[31m\udc80"])
def test_another_path_is_404(world: World, path: str) -> None:
    assert refusal(world.get(path), 404)[0] == "NOT_FOUND"


@pytest.mark.parametrize(("method", "path"), [("POST", "/balance"), ("GET", "/send-sms"), ("get", "/balance")])
def test_another_method_is_405_and_names_the_right_one(world: World, method: str, path: str) -> None:
    reply = world.answer(SandboxRequest(method, path, query=encoded({})))

    assert refusal(reply, 405)[0] == "METHOD_NOT_ALLOWED"
    assert reply.headers["allow"] in {"GET", "POST"} - {method}


@pytest.mark.parametrize("name", ["client", "key"])
@pytest.mark.parametrize("value", [None, ""])
def test_both_credentials_are_required(world: World, name: str, value: str | None) -> None:
    error, msg = refusal(world.get("/balance", **{name: value}))

    assert error == "MISSING_PARAMETER"
    assert name in msg


@pytest.mark.parametrize("wrong", [{"client": "2"}, {"key": "sandbox2"}, {"key": "clé"}, {"client": "-1"}])
def test_other_credentials_are_refused_without_telling_which_is_wrong(world: World, wrong: dict[str, str]) -> None:
    assert refusal(world.get("/balance", **wrong)) == ("UNAUTHORIZED", "client or key is wrong")


def test_credentials_belong_to_the_place_that_the_interface_has_for_them(world: World) -> None:
    body = "phone=573001234567&sms=Hola"
    in_query = SandboxRequest("POST", "/send-sms", encoded({}), FORM, body.encode())
    in_json = SandboxRequest(
        "POST", "/chatapp/send", "template=t", JSON, json.dumps({**ACCOUNT, "phone": PHONE}).encode()
    )

    assert refusal(world.answer(in_query))[0] == "MISSING_PARAMETER"
    assert refusal(world.answer(in_json))[0] == "MISSING_PARAMETER"


def test_a_parameter_sent_twice_is_refused(world: World) -> None:
    body = encoded({**SMS}) + "&phone=573001234568"

    assert form(world, "/send-sms", body) == ("INVALID_PARAMETER", "phone must not be sent more than once")


@pytest.mark.parametrize(
    "body",
    [
        "client=1&key=k&sms=%zz",
        b"phone=%ff",
        b"key=\xff",
    ],
)
def test_a_form_must_be_percent_encoded_utf8(world: World, body: str | bytes) -> None:
    error, msg = form(world, "/send-sms", body)

    assert error == "INVALID_PARAMETER"
    assert msg.startswith("the body ")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"\xff",
        b"[" * 100_000,
    ],
)
def test_a_template_send_takes_a_json_object(world: World, body: bytes) -> None:
    reply = world.answer(SandboxRequest("POST", "/chatapp/send", encoded({"template": "t"}), JSON, body))

    error, msg = refusal(reply)
    assert error == "INVALID_PARAMETER"
    assert msg.startswith("the body")


@pytest.mark.parametrize(
    ("document", "name"),
    [
        ({"phone": 573001234567, "body": []}, "phone"),
        ({"phone": PHONE, "body": "value"}, "body"),
        ({"phone": PHONE, "body": [1]}, "body"),
        ({"phone": PHONE, "body": {}}, "body"),
        ({"phone": PHONE, "body": ["\ud800"]}, "body"),
        ({"phone": "573001234567,573001234568", "body": []}, "phone"),
    ],
)
def test_the_json_fields_have_their_types(world: World, document: object, name: str) -> None:
    error, msg = refusal(world.post_json("/chatapp/send", document, template="t"))

    assert error == "INVALID_PARAMETER"
    assert msg.startswith(f"{name} ")
