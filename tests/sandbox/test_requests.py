"""Accepted and refused requests: paths, credentials, and the places and rules of parameters."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest

from contract.interface import BASE_PATH, JSON, LINES, PHONE, PLACES, Endpoint
from msgctl.sandbox.protocol import SandboxRequest

from .world import ACCOUNT, FORM, Served, World, encoded, posted, refusal

SMS = {"phone": PHONE, "sms": "Hola"}
CALL = {"phone": PHONE, "message": "Hola", "voice": "Mia"}
CODE_CALL = {"phone": PHONE, "app-name": "Shop", "voice": "Mariana", "retries": "1"}
URL = {"name": "sale", "url-long": "https://shop.example/sale"}
STATISTIC = {"name-url": "sale", "since": "2026-11-01", "until": "2026-11-30"}
RULES = {"MISSING_PARAMETER", "INVALID_PARAMETER", "UNAUTHORIZED"}
"""The errors of requests that break a rule of the API."""


def request(endpoint: Endpoint, given: Mapping[str, object]) -> SandboxRequest:
    """Return a request with these parameters, each in its place."""
    places: dict[str, dict[str, object]] = {place: {} for place in PLACES}
    for parameter in endpoint.parameters:
        if parameter.name in given:
            places[parameter.place][parameter.name] = given[parameter.name]
    query, form = (encoded({**dict.fromkeys(ACCOUNT), **places[place]}) for place in ("query", "form"))  # type: ignore[dict-item]
    body = json.dumps(places["json"]) if endpoint.content_type == JSON else form
    headers = {"content-type": endpoint.content_type or ""}
    return SandboxRequest(endpoint.method, BASE_PATH + endpoint.path, query, headers, body.encode())


def test_every_request_and_value_of_the_api_is_accepted(world: World) -> None:
    world.credit(10_000)
    for line in LINES:
        given = {**ACCOUNT, **line.parameters}
        for name in given:
            for value in line.endpoint.own[name].values if name in line.endpoint.own else ():
                response = world.respond(request(line.endpoint, {**given, name: value}))
                assert response.status == 200 or refusal(response)[0] not in RULES, (line, value, response.body)
        response = world.respond(request(line.endpoint, given))
        assert response.status == 200 or refusal(response)[0] not in RULES, (line, response.body)


def test_a_required_parameter_must_be_present_and_not_empty(world: World) -> None:
    for line in LINES:
        given = {**ACCOUNT, **line.parameters}
        for name in [each.name for each in line.endpoint.parameters if each.presence == "required"]:
            for broken in ({each: given[each] for each in given if each != name}, {**given, name: ""}):
                error, msg = refusal(world.respond(request(line.endpoint, broken)))
                assert (error, name in msg.split()) == ("MISSING_PARAMETER", True), (line, msg)
    for name in CALL:
        assert refusal(world.post("/call/send", **{**CALL, name: None}))[0] == "MISSING_PARAMETER"


def test_the_refusal_of_a_malformed_request_mentions_its_part(world: World) -> None:
    for part, malformed in (
        ("the query string", SandboxRequest("GET", BASE_PATH + "/balance", "key=%zz")),
        ("the body", SandboxRequest("POST", BASE_PATH + "/send-sms", "", FORM, b"key=%zz")),
    ):
        assert refusal(world.respond(malformed))[1] == f"{part} must be percent-escaped UTF-8"
    not_an_object = SandboxRequest(
        "POST", BASE_PATH + "/chatapp/send", encoded({"template": "t"}), {"content-type": JSON}, b"1"
    )
    assert refusal(world.respond(not_an_object))[1] == "the body must be an object"


def test_a_served_sandbox_gives_the_same_responses(world: World, served: Served) -> None:
    for each in (
        posted("/send-sms", phone=PHONE),
        posted("/send-sms", phone="٥٧٣٠٠١٢٣٤٥٦٧", sms="Hola"),
        posted("/url/short", name="x", url_long="https://shop.example/\r\nSet-Cookie: a=b"),
        SandboxRequest("GET", BASE_PATH + "/balance", encoded({"key": "clé"})),
        SandboxRequest("GET", BASE_PATH + "/balance", encoded({})),
        SandboxRequest("GET", "/%1b[31m%80"),
        SandboxRequest("get", BASE_PATH + "/balance"),
        SandboxRequest("POST", BASE_PATH + "/send-sms", "", FORM, b"key=\xff"),
        SandboxRequest("POST", BASE_PATH + "/chatapp/send", encoded({"template": "t"}), FORM, b"[" * 200_000),
    ):
        over_http, in_process = served.send(each), world.respond(each)
        assert (over_http.status, over_http.body) == (in_process.status, in_process.body), each


@pytest.mark.parametrize(("method", "path"), [("POST", "/balance"), ("GET", "/send-sms")])
def test_another_method_is_405_and_mentions_the_right_one(world: World, method: str, path: str) -> None:
    response = world.respond(SandboxRequest(method, BASE_PATH + path, encoded({})))
    assert refusal(response, 405)[0] == "METHOD_NOT_ALLOWED"
    assert response.headers["allow"] in {"GET", "POST"} - {method}


@pytest.mark.parametrize("wrong", [{"client": "2"}, {"key": "sandbox2"}, {"key": "clé"}, {"client": "-1"}])
def test_wrong_credentials_are_refused_without_revealing_which_is_wrong(world: World, wrong: dict[str, str]) -> None:
    assert refusal(world.get("/balance", **wrong)) == ("UNAUTHORIZED", "client or key is wrong")


def test_credentials_are_accepted_only_in_their_place(world: World) -> None:
    in_query = SandboxRequest("POST", BASE_PATH + "/send-sms", encoded({}), FORM, f"phone={PHONE}&sms=Hola".encode())
    assert refusal(world.respond(in_query))[0] == "MISSING_PARAMETER"
    in_json = world.post_json("/chatapp/send", {**ACCOUNT, "phone": PHONE}, client=None, key=None, template="t")
    assert refusal(in_json)[0] == "MISSING_PARAMETER"


@pytest.mark.parametrize(
    "body", [encoded({**SMS}).encode() + b"&phone=573001234568", b"sms=%zz", b"phone=%ff", b"key=\xff"]
)
def test_a_form_must_have_each_parameter_once_in_percent_encoded_utf8(world: World, body: bytes) -> None:
    response = world.respond(SandboxRequest("POST", BASE_PATH + "/send-sms", "", FORM, body))
    assert refusal(response)[0] == "INVALID_PARAMETER"


@pytest.mark.parametrize(
    ("document", "named"),
    [
        ([], "body"),
        ({"phone": 573001234567, "body": []}, "phone"),
        ({"phone": PHONE, "body": "value"}, "body"),
        ({"phone": PHONE, "body": [1]}, "body"),
        ({"phone": PHONE, "body": ["\ud800"]}, "body"),
        ({"phone": "573001234567,573001234568", "body": []}, "phone"),
    ],
)
def test_the_error_for_a_json_field_of_another_type_mentions_the_field(
    world: World, document: object, named: str
) -> None:
    error, msg = refusal(world.post_json("/chatapp/send", document, template="t"))
    assert (error, named in msg.split()[:2]) == ("INVALID_PARAMETER", True)


@pytest.mark.parametrize(
    ("path", "parameters", "name", "value"),
    [
        ("/send-sms", SMS, "phone", "1234"),
        ("/send-sms", SMS, "phone", "573001234567,"),
        ("/send-sms", SMS, "country-code", "COL"),
        ("/block-phone", {}, "phone", "573001234567,573001234568"),
        ("/call/send", CALL, "voice", "Mariana"),
        ("/call/send", CALL, "retries", "0"),
        ("/call/send", CALL, "leave-voicemail", "yes"),
        ("/call/send", CALL, "audio-code", "a1"),
        ("/call/2fa/send-call", CODE_CALL, "retries", "4"),
        ("/url/short", URL, "expiration-time-statistics", "-1"),
        ("/url/short", URL, "alias", "a b"),
        ("/url/short", URL, "domain-name", "a..b"),
        ("/url/short", URL, "url-long", "shop.example"),
        ("/url/short", URL, "url-long", "https://shop.example/\r\nSet-Cookie: a=b"),
        ("/url/short-statistic", STATISTIC, "since", "2026-02-29"),
    ],
)
def test_the_error_for_an_invalid_value_mentions_the_parameter(
    world: World, path: str, parameters: dict[str, str], name: str, value: str
) -> None:
    error, msg = refusal(world.post(path, **{**parameters, name: value}))
    assert (error, msg.split()[0], world.credits) == ("INVALID_PARAMETER", name, 1000)


def test_an_empty_optional_parameter_counts_as_not_sent(world: World) -> None:
    assert world.post("/send-sms", **SMS, country_code="").status == 200
