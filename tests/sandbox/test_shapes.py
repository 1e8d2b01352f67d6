"""`msgctl sandbox shapes`: which recorded responses msgctl does not understand."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import httpx
import pytest

from msgctl import delivery
from msgctl.sandbox.protocol import SandboxRequest
from msgctl.sandbox.recording import recorder
from support.sandbox import OTHER
from support.tool import Outcome, Tool

from .clocked_emulator import FORM, JSON, PHONE, encoded

ENTRY = {"id": "m1", "status": "sent", "credits": 1, "sms": "Hola", "phone": PHONE}
CODE = {"phone": PHONE, "app-name": "Shop", "code": "123456"}


def get(path: str, **query: str | None) -> SandboxRequest:
    return SandboxRequest("GET", f"/api/v1{path}", encoded(query))


def post(path: str, form: dict[str, str | None]) -> SandboxRequest:
    return SandboxRequest("POST", f"/api/v1{path}", "", FORM, encoded(form).encode())


def shapes(
    home: Path, *recorded: tuple[SandboxRequest, object, int], options: tuple[str, ...] = ("--json",)
) -> Outcome:
    """Record responses, and list those that are not understood."""
    file = io.StringIO()
    for request, document, status in recorded:
        content = document if isinstance(document, bytes) else json.dumps(document).encode()
        response = httpx.Response(status, content=content)
        recorder(lambda _, response=response: response, lambda body, _: body, file)(request, "127.0.0.1")  # type: ignore[misc]
    path = home / "exchanges.jsonl"
    path.write_text(file.getvalue())
    return Tool()("sandbox", "shapes", str(path), *options)


def listed(home: Path, *recorded: tuple[SandboxRequest, object, int]) -> list[tuple[int, str]]:
    done = shapes(home, *recorded)
    assert done.code == 0, done.err
    return [(each["line"], each["operation"]) for each in done.document]


SMS = post("/send-sms", {"phone": f"{PHONE},{OTHER}", "sms": "Hola"})
CHAT = SandboxRequest("POST", "/api/v1/chatapp/send", encoded({"template": "t"}), JSON, b'{"phone": "573001234567"}')


def test_responses_that_msgctl_understands_are_not_listed(home: Path) -> None:
    understood: list[tuple[SandboxRequest, object, int]] = [
        (get("/balance"), {"status": 7}, 200),
        (SMS, {"id": "d1", "status": 1, "data": [ENTRY, {**ENTRY, "phone": OTHER}]}, 200),
        (SMS, {"error": 1001, "msg": "Parametros invalidos"}, 400),
        (SMS, b"<html>", 503),
        (CHAT, {"id": "d1", "status": "sent", "phone": PHONE, "name": "t"}, 200),
        (get("/messages-state", id="m1"), {"id": "m1", "state": "delivered"}, 200),
        (post("/2fa/verification-code", {**CODE}), {"status": "verified"}, 200),
        (post("/2fa/verification-code", {**CODE}), {"error": 1010, "msg": "Codigo invalido"}, 200),
        *[
            (post("/2fa/verification-code", {**CODE}), {"status": status}, 200)
            for status in (0, "invalid", "ya utilizado")
        ],
        (get("/another-path"), b"anything", 200),
    ]
    assert listed(home, *understood) == []


@pytest.mark.parametrize(
    ("request_", "document", "operation", "reason"),
    [
        (get("/balance"), {"status": "many"}, "balance show", "credits"),
        (SMS, {"id": "d1", "status": 1, "data": [ENTRY]}, "sms send", OTHER),
        (SMS, b"<html>", "sms send", "cannot be used"),
        (CHAT, {"result": "sent"}, "chatapp send", "cannot be used"),
        (get("/messages-state", id="m1"), {"id": "m1"}, "state get", "no delivery state"),
        (post("/2fa/verification-code", {**CODE}), {"estado": "verificado"}, "2fa verify", "not a known success"),
        (post("/url/short", {"name": "x", "url-long": "https://a.example"}), {"url": "s"}, "url shorten", "cannot be"),
    ],
)
def test_a_response_that_msgctl_does_not_understand_is_listed_with_the_reason(
    request_: SandboxRequest, document: Any, operation: str, reason: str, home: Path
) -> None:
    done = shapes(home, (get("/balance"), {"status": 7}, 200), (request_, document, 200))
    (found,) = done.document
    assert (done.code, done.err, found["line"], found["operation"], found["http_status"]) == (0, "", 2, operation, 200)
    assert reason in found["reason"]
    assert found["body"] == (document.decode() if isinstance(document, bytes) else json.dumps(document))
    assert (
        "2 responses" in shapes(home, (get("/balance"), {"status": 7}, 200), (request_, document, 200), options=()).err
    )


def test_a_profile_may_explain_words(home: Path) -> None:
    recorded = (post("/2fa/verification-code", {**CODE}), {"status": "LISTO"}, 200)
    config = home / "config" / "msgctl" / "config.toml"
    config.parent.mkdir(mode=0o700, parents=True)
    config.touch(0o600)
    config.write_text(
        '[profiles.main]\nbase_url = "https://a.example/api/v1"\nclient = 1\nwords = {verified = ["LISTO"]}\n'
    )
    assert len(listed(home, recorded)) == 1
    assert shapes(home, recorded, options=("-p", "main", "--json")).document == []
    delivery.use_words({})


@pytest.mark.parametrize(("content", "named"), [("nonsense\n", "line 1"), (None, "exchanges.jsonl")])
def test_a_file_that_is_not_a_record_is_a_configuration_error(content: str | None, named: str, home: Path) -> None:
    path = home / "exchanges.jsonl"
    if content is not None:
        path.write_text(content)
    Tool()("sandbox", "shapes", str(path)).refused(3, named)
