"""Accepted and refused requests: paths, credentials, and the places and rules of parameters."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from msgctl.sandbox.protocol import SandboxRequest

from .clocked_emulator import ACCOUNT, FORM, JSON, PHONE, World, encoded, refusal
from .served import serving

SMS = {"phone": PHONE, "sms": "Hola"}
CALL = {"phone": PHONE, "message": "Hola", "voice": "Mia"}
SPOKEN_CODE = {"phone": PHONE, "app-name": "Shop", "voice": "Mariana", "retries": "1"}
URL = {"name": "sale", "url-long": "https://shop.example/sale"}
STATISTIC = {"name-url": "sale", "since": "2026-11-01", "until": "2026-11-30"}
# What each operation with a form requires, and the values that the interface lists.
REQUIRED = {
    "/block-phone": {"phone": PHONE},
    "/send-sms": SMS,
    "/2fa/send-sms": {"phone": PHONE, "app-name": "Shop"},
    "/call/2fa/send-call": SPOKEN_CODE,
    "/2fa/verification-code": {"phone": PHONE, "app-name": "Shop", "code": "123456"},
    "/url/short": URL,
    "/url/short-statistic": STATISTIC,
    "/2fa/send-chatapp": {"phone": PHONE, "app-name": "Shop"},
}
VOICES = ("Marian", "Penelope", "Conchita", "Mia", "Lucia", "Enrique", "Miguel")
VOICES_OF_CODES = ("Mariana", "Penelope", "Conchita", "Mia", "Lucia", "Enrique", "Miguel")
CATEGORIES = ("date", "hour", "country", "device", "operatingSystem")
PREMIUM_CATEGORIES = ("region", "city", "brand", "model", "browser", "lang")


@pytest.fixture(params=["in process", "served"])
def world(request: pytest.FixtureRequest, world: World) -> Iterator[World]:
    """The sandbox in both of its forms, which give the same responses."""
    if request.param == "in process":
        yield world
        return
    with serving(world.emulator) as served:
        world.respond = served.send
        yield world


@pytest.mark.parametrize("path", ["", "/balance/", "/api/v2/balance", "/%1b[31m%80"])
def test_another_path_is_404(world: World, path: str) -> None:
    assert refusal(world.get(path), 404)[0] == "NOT_FOUND"


@pytest.mark.parametrize(("method", "path"), [("POST", "/balance"), ("GET", "/send-sms"), ("get", "/balance")])
def test_another_method_is_405_and_mentions_the_right_one(world: World, method: str, path: str) -> None:
    response = world.send(SandboxRequest(method, path, query=encoded({})))

    assert refusal(response, 405)[0] == "METHOD_NOT_ALLOWED"
    assert response.headers["allow"] in {"GET", "POST"} - {method}


@pytest.mark.parametrize("name", ["client", "key"])
@pytest.mark.parametrize("value", [None, ""])
def test_both_credentials_are_required(world: World, name: str, value: str | None) -> None:
    error, msg = refusal(world.get("/balance", **{name: value}))

    assert error == "MISSING_PARAMETER"
    assert name in msg


@pytest.mark.parametrize("wrong", [{"client": "2"}, {"key": "sandbox2"}, {"key": "clé"}, {"client": "-1"}])
def test_wrong_credentials_are_refused_without_revealing_which_is_wrong(world: World, wrong: dict[str, str]) -> None:
    assert refusal(world.get("/balance", **wrong)) == ("UNAUTHORIZED", "client or key is wrong")


def test_credentials_are_accepted_only_in_their_place(world: World) -> None:
    body = "phone=573001234567&sms=Hola"
    in_query = SandboxRequest("POST", "/send-sms", encoded({}), FORM, body.encode())
    in_json = SandboxRequest(
        "POST", "/chatapp/send", "template=t", JSON, json.dumps({**ACCOUNT, "phone": PHONE}).encode()
    )

    assert refusal(world.send(in_query))[0] == "MISSING_PARAMETER"
    assert refusal(world.send(in_json))[0] == "MISSING_PARAMETER"


def test_a_parameter_sent_twice_is_refused(world: World) -> None:
    body = encoded({**SMS}) + "&phone=573001234568"
    response = world.send(SandboxRequest("POST", "/send-sms", "", FORM, body.encode()))
    assert refusal(response) == ("INVALID_PARAMETER", "phone must not be sent more than once")


@pytest.mark.parametrize("body", [b"client=1&key=k&sms=%zz", b"phone=%ff", b"key=\xff"])
def test_a_form_must_be_percent_encoded_utf8(world: World, body: bytes) -> None:
    response = world.send(SandboxRequest("POST", "/send-sms", "", FORM, body))
    assert refusal(response) == ("INVALID_PARAMETER", "the body must be percent-escaped UTF-8")


@pytest.mark.parametrize("body", [b"", b"[]", b"\xff", b"[" * 200_000])
def test_a_template_send_takes_a_json_object(world: World, body: bytes) -> None:
    response = world.send(SandboxRequest("POST", "/chatapp/send", encoded({"template": "t"}), JSON, body))
    assert refusal(response) == ("INVALID_PARAMETER", "the body must be an object")


@pytest.mark.parametrize(
    ("document", "beginning"),
    [
        ({"phone": 573001234567, "body": []}, "phone must be a string"),
        ({"phone": PHONE, "body": "value"}, "body must be an array with only strings"),
        ({"phone": PHONE, "body": [1]}, "body must be an array with only strings"),
        ({"phone": PHONE, "body": {}}, "body must be an array with only strings"),
        ({"phone": PHONE, "body": ["\ud800"]}, "body must be Unicode text"),
        ({"phone": "573001234567,573001234568", "body": []}, "phone must be 5 to 15 digits"),
    ],
)
def test_the_json_fields_have_their_types(world: World, document: object, beginning: str) -> None:
    error, msg = refusal(world.post_json("/chatapp/send", document, template="t"))

    assert error == "INVALID_PARAMETER"
    assert msg.startswith(beginning)


# --- the rule of each parameter


def test_a_required_parameter_must_be_there_and_not_empty(world: World) -> None:
    forms = [(path, parameters, name) for path, parameters in REQUIRED.items() for name in parameters]
    forms += [("/call/send", CALL, name) for name in ("phone", "message", "voice")]
    for path, parameters, name in forms:
        for value in (None, ""):
            error, msg = refusal(world.post(path, **{**parameters, name: value}))
            assert (error, name in msg.split()) == ("MISSING_PARAMETER", True), (path, name, msg)


def test_the_parameters_in_a_query_are_required(world: World) -> None:
    for value in (None, ""):
        assert refusal(world.get("/messages-state", id=value))[0] == "MISSING_PARAMETER"
        for path in ("/chatapp/send", "/chatapp/store/order"):
            error, msg = refusal(world.post_json(path, {"phone": PHONE, "body": []}, template=value))
            assert (error, "template" in msg.split()) == ("MISSING_PARAMETER", True), (path, msg)


def test_every_value_that_the_api_lists_is_accepted(world: World) -> None:
    world.admin.credit(1000)
    for voice in VOICES:
        assert world.post("/call/send", **{**CALL, "voice": voice}).status == 200, voice
    for voice in VOICES_OF_CODES:
        assert world.post("/call/2fa/send-call", **{**SPOKEN_CODE, "voice": voice}).status == 200, voice
    for retries in ("1", "2", "3"):
        assert world.post("/call/send", **CALL, retries=retries).status == 200, retries
    for premium in ("true", "false"):
        name = f"premium-{premium}"
        assert world.post("/url/short", **{**URL, "name": name, "is-premium": premium}).status == 200
    for category in CATEGORIES:
        named = {**STATISTIC, "name-url": "premium-false", "category": category}
        assert world.post("/url/short-statistic", **named).status == 200, category
    for category in PREMIUM_CATEGORIES:
        named = {**STATISTIC, "name-url": "premium-true", "category": category}
        assert world.post("/url/short-statistic", **named).status == 200, category


@pytest.mark.parametrize(
    ("path", "parameters", "name", "value"),
    [
        ("/send-sms", SMS, "phone", "1234"),
        ("/send-sms", SMS, "phone", "٥٧٣٠٠١٢٣٤٥٦٧"),
        ("/send-sms", SMS, "phone", "573001234567,"),
        ("/send-sms", SMS, "country-code", "COL"),
        ("/block-phone", {}, "phone", "573001234567,573001234568"),
        ("/call/send", CALL, "voice", "Mariana"),
        ("/call/send", CALL, "retries", "0"),
        ("/call/send", CALL, "retries", "4"),
        ("/call/send", CALL, "leave-voicemail", "yes"),
        ("/call/2fa/send-call", SPOKEN_CODE, "voice", "Marian"),
        ("/call/2fa/send-call", SPOKEN_CODE, "retries", "-1"),
        ("/url/short", URL, "is-premium", "TRUE"),
        ("/url/short", URL, "expiration-time-statistics", "-1"),
        ("/url/short", URL, "alias", "a b"),
        ("/url/short", URL, "domain-name", "a..b"),
        ("/url/short", URL, "url-long", "shop.example"),
        ("/url/short", URL, "url-long", "https://shop.example/\r\nSet-Cookie: a=b"),
        ("/url/short-statistic", STATISTIC, "since", "2026-02-29"),
        ("/url/short-statistic", STATISTIC, "category", "operatingsystem"),
    ],
)
def test_the_error_for_an_invalid_value_mentions_the_parameter(
    world: World, path: str, parameters: dict[str, str], name: str, value: str
) -> None:
    error, msg = refusal(world.post(path, **{**parameters, name: value}))

    assert error == "INVALID_PARAMETER"
    assert msg.split()[0] == name
    assert world.credits == 1000


def test_an_empty_optional_parameter_counts_as_not_sent(world: World) -> None:
    assert world.post("/send-sms", **SMS, country_code="").status == 200


@pytest.mark.parametrize("extra", [{"message": "Hola"}, {"voice": "Mia"}, {"message": "Hola", "voice": "Mia"}])
def test_an_audio_excludes_message_and_voice(world: World, extra: dict[str, str]) -> None:
    error, msg = refusal(world.post("/call/send", phone=PHONE, audio_code="a1", **extra))

    assert error == "INVALID_PARAMETER"
    assert msg == f"audio-code must not be combined with {' and '.join(extra)}"
    assert world.credits == 1000
