"""The OpenAPI document: valid, complete, and true of what the sandbox responds."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

import jsonschema
import pytest

from msgctl.operations import OPERATIONS, Place
from msgctl.sandbox import openapi
from msgctl.sandbox.endpoints import ENDPOINTS
from msgctl.sandbox.protocol import BASE_PATH, SandboxRequest
from msgctl.sandbox.service import respond

from .clocked_emulator import PHONE, World, record

DOCUMENT: Any = json.loads(openapi.response().body)


def test_it_is_a_valid_openapi_3_1_document() -> None:
    import_module("openapi_spec_validator").validate(DOCUMENT)
    assert DOCUMENT["openapi"].startswith("3.1")


def test_it_describes_every_operation_and_endpoint(world: World) -> None:
    described = {(method.upper(), path) for path, item in DOCUMENT["paths"].items() for method in item}
    operations = {(operation.method, BASE_PATH + operation.path) for operation in OPERATIONS}
    assert described == operations | {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}
    listed = json.loads(respond(world.emulator, SandboxRequest("GET", "/sandbox")).body)["endpoints"]
    assert {(each["method"], each["path"]) for each in listed} == described - operations
    ids = [each["operationId"] for item in DOCUMENT["paths"].values() for each in item.values()]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_parameters_are_where_the_api_has_them(operation: Any) -> None:
    described = DOCUMENT["paths"][BASE_PATH + operation.path][operation.method.lower()]
    query = {each["name"] for each in described.get("parameters", [])}
    contents = described.get("requestBody", {}).get("content", {})
    body = {name for content in contents.values() for name in content["schema"]["properties"]}
    assert query | body == {"client", "key", *(field.name for field in operation.fields)}
    assert {"client", "key"} <= (body if operation.credentials is Place.FORM else query)
    form, document = "application/x-www-form-urlencoded", "application/json"
    assert set(contents) == ({form} if operation.credentials is Place.FORM else {document} if body else set())


def test_the_version_to_wait_for_is_not_a_date() -> None:
    since, _wait = DOCUMENT["paths"]["/sandbox/overview"]["get"]["parameters"]
    assert since["schema"] == {"type": "string", "minLength": 1}


def test_responses_match_their_description(world: World) -> None:
    def check(path: str, response: Any) -> None:
        (described,) = DOCUMENT["paths"][BASE_PATH + path].values()
        schema = described["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema.validate(response, {**schema, "components": DOCUMENT["components"]})

    check("/balance", record(world.get("/balance")))
    check("/block-phone", record(world.post("/block-phone", phone="573009999999", name="Ana")))
    sms = record(world.post("/send-sms", phone=PHONE, sms="Hola"))
    check("/send-sms", sms)
    check("/messages-state", record(world.get("/messages-state", id=sms["data"][0]["id"])))
    check("/call/send", record(world.post("/call/send", phone=PHONE, message="Hola", voice="Mia")))
    code = {"phone": PHONE, "app_name": "Shop"}
    check("/2fa/send-sms", record(world.post("/2fa/send-sms", **code)))
    check("/2fa/send-chatapp", record(world.post("/2fa/send-chatapp", **code)))
    check("/call/2fa/send-call", record(world.post("/call/2fa/send-call", **code, voice="Mariana", retries="1")))
    digits = str(world.admin.inbox()[-1]["code"])
    check("/2fa/verification-code", record(world.post("/2fa/verification-code", **code, code=digits)))
    check("/url/short", record(world.post("/url/short", name="sale", url_long="https://a.example", is_premium="true")))
    world.click("sale", 3)
    days = {"since": "2026-11-21", "until": "2026-11-21"}
    check("/url/short-statistic", record(world.post("/url/short-statistic", name_url="sale", **days)))
    for path in ("/chatapp/send", "/chatapp/store/order"):
        check(path, record(world.post_json(path, {"phone": PHONE, "body": ["x"]}, template="t")))
