"""A response means success, a refusal or an unknown outcome, and determines the error."""

from __future__ import annotations

import json
import re
import time
from email.utils import formatdate
from typing import Any

import pytest

from msgctl import operations as ops
from msgctl.errors import MsgctlError, TurnedAwayError
from msgctl.http.request import build
from msgctl.http.response import Response, parse
from msgctl.http.transport import RawResponse
from msgctl.operations import OPERATIONS, Effect, Operation

HTML = b"<!DOCTYPE html><html><head><style>p {}</style></head><body><h1>Web server is down</h1></body></html>"
VALUES = {
    field.name: "573001234567" if field.name == "phone" else field.choices[0] if field.choices else "x"
    for operation in OPERATIONS
    for field in operation.fields
}
READS = [operation for operation in OPERATIONS if operation.effect is Effect.READS]
MADE_ONCE = [each for each in OPERATIONS if each not in READS and each is not ops.VERIFY_2FA]


def parsed(operation: Operation, body: Any, status: int = 200, fault: str = "") -> Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    response = RawResponse(status, [], content, fault, is_lost=bool(fault))
    needed = {field.name: VALUES[field.name] for field in operation.fields if field.required}
    return parse(build(operation, needed), response, "https://service.example/api/v1")


def error_of(operation: Operation, body: Any, status: int = 200, fault: str = "") -> MsgctlError:
    with pytest.raises(MsgctlError) as error:
        parsed(operation, body, status, fault)
    return error.value


# --- what a status means

REFUSED = (301, 307, 308, 401, 402, 403, 404, 405, 413, 415, 422)
UNCERTAIN = (408, 500, 501, 502, 503, 504, 599)
STRANGE = (100, 204, 302, 304, 406, 409, 410, 418, 451)


def test_any_2xx_with_the_record_is_success() -> None:
    for status in (200, 201, 202, 299):
        assert str(parsed(ops.BALANCE, {"status": 7}, status).document["status"]) == "7"
        assert parsed(ops.SEND_SMS, {"status": 1}, status).outcomes[0].outcome == "accepted"


@pytest.mark.parametrize(("operations", "is_read"), [(READS, True), (MADE_ONCE, False)], ids=["reads", "others"])
def test_the_status_determines_the_error_for_a_response_without_a_record(
    operations: list[Operation], is_read: bool
) -> None:
    for operation in operations:
        for status in REFUSED:
            error = error_of(operation, HTML, status)
            reason = "unauthorized" if status in (401, 403) else "refused"
            assert (error.exit_code, error.reason) == (1, reason)
        for status in UNCERTAIN:
            error = error_of(operation, {"msg": "Parametros invalidos"}, status)
            assert (error.exit_code, error.reason) == ((4, "unavailable") if is_read else (5, "outcome_unknown"))
        for status in STRANGE:
            error = error_of(operation, b"", status)
            assert (error.exit_code, error.reason) == ((1, "unreadable") if is_read else (5, "outcome_unknown"))
        error = error_of(operation, b"", 429)
        assert (error.exit_code, error.reason) == (4, "rate_limited")


@pytest.mark.parametrize(("operations", "is_read"), [(READS, True), (MADE_ONCE, False)], ids=["reads", "others"])
def test_400_and_520_are_refusals_only_with_a_reason(operations: list[Operation], is_read: bool) -> None:
    for operation in operations:
        for status in (400, 520):
            assert error_of(operation, {"error": 1001, "msg": "Parametros invalidos"}, status).reason == "refused"
            for body in ({"error": 1000, "msg": "Error interno del sistema"}, HTML):
                assert error_of(operation, body, status).reason == ("unavailable" if is_read else "outcome_unknown")
            assert error_of(operation, {}, status).reason == ("refused" if is_read else "outcome_unknown")


def test_a_refusal_beside_an_acceptance_leaves_the_outcome_unknown() -> None:
    for status in (*REFUSED, 400, 429, 520):
        assert error_of(ops.SEND_SMS, {"status": "Enviado"}, status).exit_code == 5


def test_a_code_is_verified_only_if_the_response_confirms_it() -> None:
    wrong = {"error": 1010, "msg": "Codigo invalido"}
    for status in (200, 201, 301, 400, 402, 404, 422, 520):
        error = error_of(ops.VERIFY_2FA, wrong, status)
        assert (error.exit_code, error.reason) == (1, "not_verified")
        assert "Codigo invalido" in error.what
    for status, body, code, reason in (
        (401, HTML, 1, "unauthorized"),
        (403, wrong, 1, "unauthorized"),
        (429, b"", 4, "rate_limited"),
        (408, wrong, 5, "outcome_unknown"),
        (503, wrong, 5, "outcome_unknown"),
        (200, HTML, 5, "outcome_unknown"),
        (400, b"", 5, "outcome_unknown"),
        (200, b'{"status": 1, "status": 0}', 5, "outcome_unknown"),
    ):
        error = error_of(ops.VERIFY_2FA, body, status)
        assert (error.exit_code, error.reason) == (code, reason), (status, body)
    assert parsed(ops.VERIFY_2FA, {"data": {"verified": True}}).document["status"] is True


def test_a_read_without_its_record_fails() -> None:
    for operation in READS:
        for body in (b"", HTML, b"[1", {"x": 1}, "text", 7):
            assert error_of(operation, body).reason == "unreadable"
        assert error_of(operation, {"error": 1, "msg": "Parametros invalidos"}).reason == "refused"


def test_an_incomplete_body_is_kept() -> None:
    for operation in OPERATIONS:
        error = error_of(operation, b'{"id": "d1", "status": 1', fault="no whole response came within 3 seconds")
        assert error.exit_code == (1 if operation in READS else 5)
        assert (error.http_status, error.body) == (200, '{"id": "d1", "status": 1')
        assert "3 seconds" in error.what


def test_a_response_with_a_field_twice_in_one_object_is_never_understood() -> None:
    for operation in OPERATIONS:
        for body in (
            b'{"status": 1, "status": 0}',
            b'{"status": 1, "status": 1}',
            b'{"a": [{"x": 1, "x": 1}], "status": 1}',
        ):
            error = error_of(operation, body)
            assert error.reason == ("unreadable" if operation in READS else "outcome_unknown")
            assert error.response.body == body  # --json prints it


def test_a_field_that_is_twice_in_a_refusal_does_not_hide_an_acceptance() -> None:
    assert error_of(ops.SEND_SMS, b'{"code": 1, "code": 2}', 422).reason == "refused"
    assert error_of(ops.SEND_SMS, b'{"success": true, "code": 1, "code": 2}', 422).reason == "outcome_unknown"
    assert error_of(ops.SEND_SMS, b'{"status": 1, "status": 0}', 401).reason == "outcome_unknown"
    for status in (400, 520):
        for body, reason in (
            (b'{"msg": "Saldo insuficiente", "msg": "Saldo insuficiente"}', "refused"),
            (b'{"error": "Numero invalido", "error": "Saldo insuficiente"}', "refused"),
            (b'{"status": "failed", "status": "failed"}', "refused"),
            (b'{"status": "enviado", "status": "rechazado"}', "outcome_unknown"),
            (b'{"msg": "Intente mas tarde", "msg": "Saldo insuficiente"}', "outcome_unknown"),
        ):
            assert error_of(ops.SEND_SMS, body, status).reason == reason, body


def test_a_short_url_is_reported_only_if_it_was_certainly_created() -> None:
    good = {"urlShort": "https://s.example/p", "urlLong": "https://example.com"}
    for created in (good, {"status": 1, "data": good}):
        assert parsed(ops.URL_SHORT, created).document["urlShort"] == "https://s.example/p"
    for body in ({"urlShort": 0}, {**good, "error": "E1"}, {"urlShort": "a b"}, {**good, "success": False}, {}):
        assert error_of(ops.URL_SHORT, body).reason == "outcome_unknown", body
    assert error_of(ops.URL_SHORT, {"error": 1, "msg": "Saldo insuficiente"}).reason == "refused"


# --- what an error carries


def test_an_error_contains_the_body_as_json_or_as_text_of_at_most_4000_characters() -> None:
    for body, shown in (
        ({"ref": "m-77"}, {"ref": "m-77"}),
        (b"ref: m-77", "ref: m-77"),
        (b"ref: \xff", "ref: \ufffd"),
        (b"", ""),
        ({"ref": "é" * 5000}, json.dumps({"ref": "é" * 5000})[:4000]),
        ({"ref": "x" * 3989}, {"ref": "x" * 3989}),
    ):
        assert error_of(ops.SEND_SMS, body, 502).document()["body"] == shown
    assert error_of(ops.BALANCE, b"x", 404).document() == {"http_status": 404, "body": "x"}


def test_a_long_error_of_the_service_is_cut() -> None:
    details = error_of(ops.SEND_SMS, {"error": {"why": ["x" * 100] * 100}, "msg": "m" * 5000}, 520).details
    assert details is not None
    assert (details.record["error"][:8], details.record["msg"]) == ('{"why":[', "m" * 4000)
    assert len(details.record["error"]) == 4000
    short = {"error": {"code": "E7"}, "msg": None}
    assert error_of(ops.SEND_SMS, short, 520).document().items() >= short.items()
    for number, end in ((300, "é"), (301, "…")):
        for body in ({"msg": "é" * number}, "é" * number):
            assert re.search(f": é{{299}}{end}", error_of(ops.SEND_SMS, body, 404).message), (number, body)


# --- how long to wait


@pytest.mark.parametrize(
    ("text", "seconds"), [("120", (120, 120)), ("tomorrow", (86_000, 86_400)), ("yesterday", (0, 0)), ("soon", None)]
)
def test_retry_after_is_a_number_of_seconds_or_a_date(text: str, seconds: tuple[float, float] | None) -> None:
    days = {"tomorrow": 1, "yesterday": -1}
    if text in days:
        text = formatdate(time.time() + days[text] * 86_400, usegmt=True)
    response = RawResponse(429, [(b"Retry-After", text.encode())], b"{}")
    with pytest.raises(TurnedAwayError) as error:
        parse(build(ops.SEND_SMS, VALUES), response, "https://service.example/api/v1")
    after = error.value.retry_after
    assert (after is None) == (seconds is None)
    assert after is None or seconds is None or seconds[0] <= after <= seconds[1]
