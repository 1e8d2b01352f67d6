"""The meaning of a response: success, refusal, or unknown; and the text of its error."""

from __future__ import annotations

import json
from typing import Any

import pytest

from msgctl import operations as ops
from msgctl.errors import MsgctlError, OutcomeUnknownError, RefusedError
from msgctl.http.request import build
from msgctl.http.response import (
    CHECK_A_SEND,
    CHECK_CREDENTIALS_TOO,
    MAX_BODY,
    Response,
    credits_left,
    parse,
    read,
)
from msgctl.http.transport import finished
from msgctl.jsontext import load_json
from msgctl.operations import OPERATIONS, Effect, Operation

AWAY = "https://service.example/api/v1"
HTML = b"<!DOCTYPE html><html><head><style>p {}</style></head><body><h1>Web server is down</h1></body></html>"
VALUES = {
    field.name: "573001234567" if field.name == "phone" else field.choices[0] if field.choices else "x"
    for operation in OPERATIONS
    for field in operation.fields
}
RECORDS: dict[str, Any] = {
    "status": "1",
    "id": "d1",
    "state": "sent",
    "urlShort": "https://s.example/p",
    "data": [{"id": "m1", "status": "queued", "phone": "573001234567"}],
}
READS = [operation for operation in OPERATIONS if operation.effect is Effect.READS]
SENDS = [operation for operation in OPERATIONS if operation.effect is Effect.SENDS]


def record_of(operation: Operation) -> dict[str, Any]:
    return {each.name: RECORDS[each.name] for each in operation.record.fields if each.name in RECORDS}


def parsed(
    operation: Operation,
    body: Any,
    status: int = 200,
    *,
    base_url: str = AWAY,
    headers: dict[str, str] | None = None,
    fault: str = "",
    **more: Any,
) -> Response:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    raw = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    response = finished(status, raw, content, {"fault": fault, "lost": True} if fault else {})
    needed = {field.name: VALUES[field.name] for field in operation.fields if field.required}
    return parse(build(operation, needed), response, base_url, **more)


def error_of(operation: Operation, body: Any, status: int = 200, **more: Any) -> MsgctlError:
    with pytest.raises(MsgctlError) as error:
        parsed(operation, body, status, **more)
    return error.value


def each(operations: list[Operation]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("operation", operations, ids=lambda operation: operation.name)


def test_a_long_error_of_the_service_is_cut() -> None:
    long = error_of(ops.SEND_SMS, {"error": {"why": ["x" * 100] * 100}, "msg": "m" * 5000}, 520)
    assert (long.record["error"][:8], long.record["msg"]) == ('{"why":[', "m" * 4000)
    assert len(long.record["error"]) == 4000
    short = {"error": {"code": "E7"}, "msg": None}
    assert error_of(ops.SEND_SMS, short, 520).record == short


# --- success


@each([each for each in OPERATIONS if each is not ops.VERIFY_2FA])
def test_any_2xx_with_the_record_is_success(operation: Operation) -> None:
    for status in (200, 201, 202, 299):
        response = parsed(operation, record_of(operation), status)
        assert (response.http_status, response.operation) == (status, operation)


def test_an_error_beside_a_balance_is_not_a_refusal_but_beside_a_status_it_is() -> None:
    assert parsed(ops.BALANCE, {"balance": 7, "error": "cached"}).document["status"] == "7"
    refusals: list[Any] = [{"status": 7, "error": "no"}, {"status": "Error"}, {"status": 0, "msg": "no"}]
    for body in [*refusals, {"status": "0", "message": "no"}]:
        assert isinstance(error_of(ops.BALANCE, body), RefusedError), body
    balances: list[Any] = [{"status": 0}, {"status": 0, "balance": 7, "msg": "no"}, {"saldo": 0}]
    for body in [*balances, {"credits": "12", "status": "error"}]:
        assert parsed(ops.BALANCE, body).operation is ops.BALANCE


# --- refused and unknown

REFUSING = (301, 307, 308, 400, 401, 402, 403, 404, 405, 413, 415, 422, 429)
IN_DOUBT = (300, 302, 303, 304, 406, 408, 409, 410, 418, 499, 500, 501, 502, 503, 504, 520, 599)


def test_a_balance_is_refused_if_the_response_reports_a_failure() -> None:
    for failed in ({"status": 401, "message": "No autorizado"}, {"status": 7, "success": False}):
        assert isinstance(error_of(ops.BALANCE, failed), RefusedError), failed
    for left in ({"status": 401, "message": "Saldo disponible"}, {"status": 0}, {"balance": 7, "success": False}):
        assert parsed(ops.BALANCE, left).http_status == 200, left


def test_an_error_text_that_means_no_error_is_not_a_refusal_of_a_send() -> None:
    assert isinstance(error_of(ops.SEND_SMS, {"error": "No error", "msg": "Mensaje enviado"}), OutcomeUnknownError)


def test_a_send_is_unknown_if_a_field_occurs_twice_with_different_values() -> None:
    assert "the same field twice" in error_of(ops.SEND_SMS, b'{"id": "x", "status": 0, "status": 1}').what
    assert parsed(ops.SEND_SMS, b'{"id": "x", "status": 1, "status": 1}').http_status == 200


@each(list(OPERATIONS))
def test_a_status_means_refused_or_unknown(operation: Operation) -> None:
    for status in REFUSING:
        error = error_of(operation, HTML, status)
        assert isinstance(error, RefusedError), status
        assert "Web server is down" in error.what
        assert operation not in SENDS or error.consequence == "nothing was sent"
    for status in IN_DOUBT:
        error = error_of(operation, HTML, status)
        reads = operation in READS
        assert (error.exit_code, error.http_status) == (1 if reads else 5, status)
        assert error.consequence == ("" if reads else "it may have been carried out")
        assert "Web server is down" in error.what


@each(list(OPERATIONS))
def test_the_error_record_is_a_refusal(operation: Operation) -> None:
    for record in ({"error": "NO"}, {"msg": "NO"}, {"error": "NO", "msg": "no"}, {"error": ["NO"]}):
        error = error_of(operation, record, 520)
        assert isinstance(error, RefusedError)
        assert "NO" in error.what
        assert error.details() == {"http_status": 520, **record, "body": record}
    for body in ({"error": "NO_CREDITS"}, {"error": "NO", "msg": "no"}, {"error": {"code": 7}}):
        assert isinstance(error_of(operation, body, 200), RefusedError)
    if operation.record.entries:
        assert isinstance(error_of(operation, {"status": "error", "error": "NO_CREDITS"}, 200), RefusedError)
        assert isinstance(error_of(operation, {"data": {"status": 0, "msg": "NO_CREDITS"}}), RefusedError)


@pytest.mark.parametrize("error", ["0", '"0"', "false", "null", '""', "[]", "{}"])
def test_an_error_number_of_0_is_not_a_refusal(error: str) -> None:
    """Services number their errors, and 0 means no error. A user who reads that nothing was sent resends."""
    assert parsed(ops.CHATAPP_SEND, f'{{"error": {error}, "status": "queued"}}'.encode()).document["status"] == "queued"
    assert error_of(ops.SEND_SMS, f'{{"error": {error}, "msg": "queued"}}'.encode()).exit_code == 5
    assert error_of(ops.SEND_SMS, f'{{"error": {error}}}'.encode(), 520).exit_code == 5
    assert parsed(ops.VERIFY_2FA, f'{{"error": {error}, "status": "ok"}}'.encode()).http_status == 200


@pytest.mark.parametrize("body", [b"", b"{}", b"null", b"[]", HTML, {"error": None, "msg": ""}, {"message": "down"}])
@each([ops.SEND_SMS, ops.BLOCK_PHONE, ops.BALANCE])
def test_a_520_without_the_error_record_may_come_from_anything_in_between(operation: Operation, body: Any) -> None:
    error = error_of(operation, body, 520)
    assert error.exit_code == (1 if operation.effect is Effect.READS else 5)


@each(list(OPERATIONS))
def test_an_incomplete_body_is_kept_and_leaves_the_outcome_unknown(operation: Operation) -> None:
    error = error_of(operation, b'{"id": "d1", "status": 1', fault="no whole response came within 3 seconds")
    assert isinstance(error, OutcomeUnknownError)
    assert error.retryable
    assert (error.http_status, error.body) == (200, '{"id": "d1", "status": 1')
    assert "3 seconds" in error.what


# --- what an error carries


def test_a_stored_body_is_read_like_a_new_response() -> None:
    body = b'[{"state": "Enviado"}]'
    assert read(build(ops.MESSAGES_STATE, {"id": "x"}), body, 201) == Response(
        ops.MESSAGES_STATE, 201, body, {"data": [{"state": "Enviado", "id": "x"}]}
    )


def test_a_success_has_the_details_that_an_error_has() -> None:
    body = {"status": 7, "msg": "m", "more": 1.5}
    assert parsed(ops.BALANCE, body, 201).attached() == {
        "http_status": 201,
        "record": {"msg": "m"},
        "body": json.dumps(body),
        "document": load_json(json.dumps(body).encode()),
    }


def test_the_body_of_a_response_is_json_if_it_is_json() -> None:
    assert error_of(ops.SEND_SMS, {"ref": "m-77"}).details()["body"] == {"ref": "m-77"}
    assert error_of(ops.SEND_SMS, b"ref: m-77").details()["body"] == "ref: m-77"
    assert error_of(ops.SEND_SMS, b"", 502).details()["body"] == ""
    assert error_of(ops.SEND_SMS, b"ref: \xff", 502).details()["body"] == "ref: \ufffd"
    for status in (200, 404, 500):
        assert error_of(ops.BALANCE, b"x", status).details() == {"http_status": status, "body": "x"}


def test_a_long_body_is_cut_to_4000_characters() -> None:
    assert error_of(ops.SEND_SMS, {"ref": "é" * 5000}).details()["body"] == json.dumps({"ref": "é" * 5000})[:4000]
    longest = {"ref": "x" * (MAX_BODY - len('{"ref": ""}'))}
    assert error_of(ops.SEND_SMS, longest).details()["body"] == longest


@pytest.mark.parametrize(
    ("body", "quoted"),
    [
        ({"error": "E1", "msg": "m2"}, "E1: m2"),
        ({"message": "not now"}, "not now"),
        ({"detail": "not now"}, "not now"),
        ({"errors": ["a", "b"]}, '["a","b"]'),
        ({"error": {"code": 7}}, '{"code":7}'),
        ({"reason": "unknown"}, '{"reason":"unknown"}'),
        (b"<html><script>alert('x')</script><p>Down for\n maintenance</p>", "Down for maintenance"),
        (b"try later", "try later"),
        (b"", "status 503 without a message"),
    ],
)
def test_the_message_quotes_the_response(body: Any, quoted: str) -> None:
    assert quoted in error_of(ops.SEND_SMS, body, 503).what


def text_of(operation: Operation, body: Any, status: int = 200) -> tuple[str, str | None]:
    """Return the whole message and the hint of the error that a response means."""
    error = error_of(operation, body, status)
    return error.message, error.hint


def test_the_error_for_a_refusal_has_the_message_of_the_service_and_a_hint() -> None:
    refused, hint = "The service refused the request", "Check the values and the base URL."
    for operation, consequence in ((ops.SEND_SMS, "nothing was sent"), (ops.BLOCK_PHONE, "nothing was changed")):
        assert text_of(operation, {"error": "E1"}, 400) == (f"{refused} (400): E1; {consequence}", hint)
    assert text_of(ops.BALANCE, {"error": "no"}) == (f"{refused} (200): no", None)
    assert text_of(ops.BALANCE, {"error": "access denied"}) == (
        f"{refused} (200): access denied",
        "Check client and key.",
    )
    assert text_of(ops.BALANCE, b"", 401) == (f"{refused} (401)", CHECK_CREDENTIALS_TOO)
    assert text_of(ops.VERIFY_2FA, {"error": "E1"}, 422) == (f"{refused} (422): E1", None)
    assert text_of(ops.VERIFY_2FA, {"status": 0}) == ('The code was not verified (200): {"status":0}', None)
    assert text_of(ops.VERIFY_2FA, b"") == ("The code was not verified (200)", None)


def test_the_error_for_a_read_without_a_record_has_the_reason_and_a_hint() -> None:
    later = "Try again a little later."
    assert text_of(ops.BALANCE, b"", 503) == ("The response is status 503 without a message", later)
    assert text_of(ops.BALANCE, HTML, 500) == ("The response is status 500: Web server is down", later)
    fields = "state, credits, phone, created, sms, dispatch_id, id"
    for operation, body, reason in (
        (ops.BALANCE, b"", "it is not JSON"),
        (ops.BALANCE, [1], 'it is JSON, but not an object. It says: "[1]"'),
        (ops.MESSAGES_STATE, [1], 'its entries are not objects. It says: "[1]"'),
        (
            ops.MESSAGES_STATE,
            {"x": 1},
            f'it has none of the fields of ResponseStatusSMS ({fields}). It says: "{{"x":1}}"',
        ),
    ):
        assert text_of(operation, body) == (
            f"The response (200) cannot be used: {reason}",
            "Check the base URL; -v shows the request.",
        )
    lost = error_of(ops.BALANCE, b"7", fault="it was lost")
    assert (lost.message, lost.hint) == ("The request was sent, but it was lost", "Try again.")


def test_the_error_for_an_unknown_outcome_has_the_reason_and_a_hint() -> None:
    look_up = "Before making it again, check if it exists: msgctl url stats NAME --since today"
    block_again = "Block the number again: that changes nothing if it is blocked already."
    unusable = "the response (200) cannot be used"
    no_record = f'{unusable}: it contains an error instead of a ResponseSecurity. It says: "No error"'
    no_url = "the response reports a failure, or contains no short URL"
    internal = "the service failed (520): Internal error"
    for operation, body, status, reason, hint in (
        (ops.SEND_SMS, b"", 502, "the response is status 502 without a message", CHECK_A_SEND),
        (ops.SEND_SMS, b"", 200, f"{unusable}: it is not JSON", CHECK_A_SEND),
        (ops.SEND_SMS, {"error": "Internal error"}, 520, internal, CHECK_A_SEND),
        (ops.URL_SHORT, {"urlShort": 0, "urlLong": "x"}, 200, no_url, look_up),
        (ops.BLOCK_PHONE, {"status": 1, "error": "No error"}, 200, no_record, block_again),
    ):
        message = f"The request was sent, but {reason}; it may have been carried out"
        assert text_of(operation, body, status) == (message, hint)


def test_a_message_quotes_300_characters() -> None:
    for sent, quoted in (("x" * 300, "x" * 300), ("x" * 301, "x" * 299 + "…")):
        for body in ({"error": sent}, sent.encode()):
            assert error_of(ops.BALANCE, body, 500).what == f"The response is status 500: {quoted}"


def test_a_page_with_many_tags_is_read_quickly() -> None:
    assert error_of(ops.SEND_SMS, b"<script>" * 100_000, 503).exit_code == 5


@pytest.mark.parametrize(
    ("status", "body", "hinted"),
    [
        (401, b"", True),
        (403, HTML, True),
        (520, {"error": "UNKNOWN"}, True),
        (520, {"error": "IP not allowed"}, True),
        (520, {"error": "INVALID_CLIENT_OR_KEY"}, True),
        (520, {"msg": "no"}, True),
        (520, {"error": "INVALID_PARAMETER", "msg": "phone"}, False),
        (520, {"error": "NOT_FOUND"}, False),
        (520, {"error": "E1", "msg": "Saldo"}, False),
        (520, {"error": "parámetro inválido"}, False),
        (520, {"error": "NO_CREDITS"}, False),
        (400, {"error": "bad"}, False),
        (404, b"", False),
        (502, HTML, False),
        (200, {"error": "denied"}, False),
        (520, {"error": "INVALID", "msg": "Parametros invalidos"}, False),
    ],
)
def test_the_hint_about_allowed_addresses(status: int, body: Any, hinted: bool) -> None:
    assert ("address" in (error_of(ops.SEND_SMS, body, status).hint or "")) is hinted
    for here in ("http://127.0.0.1:8000/api/v1", "http://localhost/api/v1"):
        assert "address" not in (error_of(ops.SEND_SMS, body, status, base_url=here).hint or "")
    assert "address" not in (error_of(ops.SEND_SMS, body, status, is_sandbox=True).hint or "")


def test_a_redirect_shows_only_its_host() -> None:
    error = error_of(ops.BALANCE, b"", 308, headers={"Location": "https://other.example:8443/?key=secret"})
    redirects = "Redirects are not followed, because they would send the key elsewhere"
    assert error.hint == f"{redirects}; this one points to https://other.example:8443. Check the base URL."
    assert error_of(ops.BALANCE, b"", 300).hint == f"{redirects}. Check the base URL."
    for status in (300, 304):
        assert error_of(ops.SEND_SMS, b"", status).hint == f"{redirects}. Check the base URL. {CHECK_A_SEND}"


@pytest.mark.parametrize("status", [301, 304])
def test_a_redirect_without_a_location_shows_no_host(status: int) -> None:
    assert "points to" not in (error_of(ops.SEND_SMS, b"", status).hint or "")


def test_a_redirect_to_an_invalid_url_is_reported() -> None:
    assert "points to a malformed URL." in (
        error_of(ops.BALANCE, b"", 308, headers={"Location": "http://[::1"}).hint or ""
    )


@pytest.mark.parametrize(
    ("status", "body", "hint"),
    [
        (429, b"", "Try again a little later."),
        (500, b"", "Try again a little later."),
        (422, {"msg": "phone"}, "Check the values and the base URL."),
        (404, b"", "Check the base URL: it ends in the version, /api/v1."),
        (405, b"", "Check the base URL: it ends in the version, /api/v1."),
        (404, {"error": "no template"}, "Check the values and the base URL."),
        (200, b"x", "Check the base URL; -v shows the request."),
    ],
)
def test_each_status_has_its_advice(status: int, body: Any, hint: str) -> None:
    assert error_of(ops.BALANCE, body, status).hint == hint


@pytest.mark.parametrize(
    ("status", "left"),
    [
        ("12.50", "12.50"),
        ("1" * 18, "1" * 18),
        ("1" * 19, None),
        ("1." + "0" * 33, "1." + "0" * 33),
        ("1." + "0" * 34, None),
        ("1e999999999", None),
        ("NaN", None),
        ("many", None),
    ],
)
def test_a_balance_is_a_number_of_a_sane_length(status: str, left: str | None) -> None:
    found = credits_left(parsed(ops.BALANCE, {"status": status}))
    assert (None if found is None else str(found)) == left


# --- any JSON for a script


@pytest.mark.parametrize("body", [b"[1, 2]", b'{"new": 1.10}', b'"x"', b"7"])
@each(READS)
def test_a_read_accepts_any_json_if_asked_to(operation: Operation, body: bytes) -> None:
    assert parsed(operation, body, any_json=True).body == body
    assert parsed(operation, body, 201, any_json=True).http_status == 201


def test_any_json_changes_nothing_for_a_send_a_refusal_and_a_page() -> None:
    assert error_of(ops.SEND_SMS, b"{}", any_json=True).exit_code == 5
    assert error_of(ops.BALANCE, {"error": "no"}, any_json=True).exit_code == 1
    assert error_of(ops.BALANCE, HTML, any_json=True).exit_code == 1


# --- codes


VERIFIED: list[Any] = [
    {"status": 1}, {"status": "1"}, {"status": True}, {"status": "true"}, {"status": 1.0}, {"status": "success"},
    {"status": "OK"}, {"verified": True}, {"valid": 1}, {"status": "Código correcto"}, {"data": {"verified": True}},
    {"status": 1, "data": {"verified": True, "msg": "Bienvenida"}}, [{"status": "verificado"}],
    {"status": 1, "msg": "Código verificado", "error": 0}, {"status": "approved", "error": "", "message": None},
    {"status": "exitosa", "error": False, "data": None}, {"status": 1, "valid": "1", "verified": "ok", "data": []},
    {"status": 1, "data": [{"verified": True}]}, {"status": 1, "app": "Never Late"},
    {"status": 1, "expired": False, "locked": 0}, {"status": 1, "failedAttempts": 1},
]  # fmt: skip
ODD_VALUES: list[Any] = [404, 7, -1, 0, 0.0, "0", "0e5", 10, 1.5, "1.0", False, None, [], {}, [True]]
NOT_VERIFIED: list[Any] = [
    # words that are not for success, or not alone
    *({"status": word} for word in (
        "Codigo ya utilizado", "already used", "locked", "too many attempts", "intentos agotados", "desconocido",
        "bad code", "no", "False", "error", "FAILED", "invalid", "Invalid code", "expired", "rejected", "denied",
        "pending", "not verified", "no verificado", "inválido", "expirado", "falso", "notVerified", "InvalidCode",
        "OTPInvalid", "Código erróneo", "verified until 10:00", "ok?", "", " ", "200", "sent", "❌ ok",
    )),
    # other values
    *({"status": value} for value in ODD_VALUES),
    # two fields, or two levels, that disagree
    {"status": 1, "verified": False}, {"status": "ok", "valid": 0}, {"verified": True, "status": "pending"},
    {"verified": True, "status": None},
    {"status": "ok", "Verified": False}, {"status": 1, "data": {"verified": False}}, {"data": {"status": "expired"}},
    {"status": "success", "data": {"status": "invalid"}}, {"status": 1, "data": "Codigo invalido"},
    {"status": 1, "data": [{"verified": True}, {"verified": False}]}, [{"status": 1}, {"status": 0}],
    # an error, or a message that contradicts it
    {"status": 1, "error": 1010}, {"status": True, "error": "no"}, {"status": 1, "error": {"code": 7}},
    {"status": 1, "data": {"error": "INVALID"}}, {"status": 1, "msg": "Codigo invalido"},
    {"status": 1, "message": "El código no es correcto"}, {"status": "ok", "msg": "sin éxito"},
    # at any depth
    {"status": 1, "msg": ["Código incorrecto"]}, {"status": 1, "msg": {"text": "no válido"}},
    {"status": 1, "msg": "nunca"}, {"status": 1, "data": [{"verified": True}, {"verified": True}]},
    {"status": 1, "data": {"0": {"valid": False}}}, {"status": 1, "errors": ["invalid code"]},
    {"status": 1, "data": {"msg": "not verified"}}, {"status": 1, "msg": "Codigo incorrecto"},
    # fields that the API does not document, and another person's number
    {"status": 1, "success": False}, {"status": 1, "ok": "false"}, {"status": 1, "state": "rechazado"},
    {"status": 1, "error": None, "result": "failed"}, {"status": 1, "error_code": 1010},
    {"status": 1, "errorCode": 0, "errorMessage": "Codigo invalido"}, {"status": 1, "phone": "573009999999"},
    {"status": 1, "msg": "Código errado"}, {"status": 1, "msg": "Código equivocado"},
    {"status": 1, "msg": "Intente de nuevo"}, {"status": 1, "data": {"success": 0}}, {"status": 1, "isValid": False},
    {"status": 1, "mensaje": "Código incorrecto"}, {"status": 1, "description": "Wrong code"},
    {"status": 1, "message": "Unauthorized"}, {"status": "success", "data": False}, {"status": "OK", "code": 400},
    {"status": 1, "authorized": False},
    {"status": 1, "statusCode": 401}, {"status": 1, "data": {"match": "no"}}, {"status": 1, "aprobado": 0},
    {"verified": True, "expired": True}, {"verified": True, "match": "false"}, {"verified": True, "reason": "expired"},
    # nothing that the API documents
    {"estado": "verificado"}, {"Verified": True}, {"ok": True}, {}, [], True, "ok", 1, {"data": {}},
    {"msg": "verified"},
]  # fmt: skip


def test_a_code_is_verified_only_if_every_field_means_success() -> None:
    for body in VERIFIED:
        assert parsed(ops.VERIFY_2FA, body).operation is ops.VERIFY_2FA, body


def test_any_other_response_does_not_verify_a_code() -> None:
    assert len(NOT_VERIFIED) >= 60
    for body in NOT_VERIFIED:
        error = error_of(ops.VERIFY_2FA, body)
        assert isinstance(error, RefusedError), body
        assert error.what.startswith("The code was not verified (200)")
        assert error.document == load_json(json.dumps(body).encode())
    twice = b'{"status": 0, "status": 1}'
    for page in (b"", HTML, b"verified", b'{"status": 1', twice):
        assert isinstance(error_of(ops.VERIFY_2FA, page), RefusedError), page


def test_a_short_url_beside_a_failure_is_not_a_success() -> None:
    assert "none of the fields of ResponseURLShort (urlShort, urlLong)" in error_of(ops.URL_SHORT, {"msg": "no"}).what
    short = {"urlShort": "https://s.example/u", "urlLong": "https://example.com"}
    for failed in ({"error": "exists"}, {"status": "error"}, {"status": 0}):
        assert isinstance(error_of(ops.URL_SHORT, {**short, **failed}), RefusedError), failed
        assert isinstance(error_of(ops.URL_SHORT, {**short, **failed, "id": "u1"}), OutcomeUnknownError), failed
    assert parsed(ops.URL_SHORT, {**short, "status": 1, "error": 0}).http_status == 200
    for hint in (
        {"success": False},
        {"errorCode": 12},
        {"result": {"error": "exists"}},
        {"urlShort": 0},
        {"urlShort": {"a": 1}},
    ):
        assert isinstance(error_of(ops.URL_SHORT, {**short, **hint}), OutcomeUnknownError), hint
    for without in ({"urlShort": "", "msg": "error interno"}, {"urlLong": "https://example.com", "msg": "Creada"}):
        assert isinstance(error_of(ops.URL_SHORT, without), OutcomeUnknownError), without


# --- failures of the service itself

INTERNAL = (
    {"error": 1000, "msg": "Error interno del sistema"},
    {"error": "Internal error"},
    {"error": "Internal", "msg": "failure"},
    {"message": "Unexpected failure", "error": 1},
    {"msg": "Fallo inesperado", "status": 0},
    {"error": "TIMEOUT"},
    {"error": "x", "msg": "gateway time-out"},
    {"error": "request timed out"},
    {"data": {"error": "InternalError"}},
)
NOT_INTERNAL = (
    {"error": "Internal parameter error"},
    {"error": 1000, "msg": "Parametros invalidos: error interno"},
    {"error": "internal"},
    {"error": "Error"},
    {"msg": "no", "error": "out of time"},
)


@pytest.mark.parametrize("operation", [ops.SEND_SMS, ops.BLOCK_PHONE, ops.VERIFY_2FA, ops.CHATAPP_SEND])
def test_a_failure_of_the_service_leaves_the_outcome_of_a_send_unknown(operation: Operation) -> None:
    for status in (200, 400, 520):
        for body in INTERNAL[: 8 if status == 520 else None]:
            error = error_of(operation, body, status)
            assert isinstance(error, OutcomeUnknownError), (status, body)
            assert error.consequence == "it may have been carried out"
            assert "Redirects" not in str(error.hint)
        for body in NOT_INTERNAL:
            assert isinstance(error_of(operation, body, status), RefusedError), (status, body)
    assert isinstance(error_of(operation, INTERNAL[0], 403), RefusedError)


def test_a_read_exits_with_1_after_a_failure_of_the_service() -> None:
    for status in (200, 400, 520):
        assert error_of(ops.BALANCE, INTERNAL[0], status).exit_code == 1
