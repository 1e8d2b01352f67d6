"""The outcome of each recipient in a response."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

import pytest

from msgctl import operations as ops
from msgctl.jsontext import load_json
from msgctl.recipients import (
    RecipientOutcome,
    charge,
    charged,
    exit_code,
    is_refusal,
    is_zero,
    outcomes,
    states,
    unclaimed,
)

A, B, C = "573001234567", "573007654321", "573009999999"


def entry(phone: object = None, status: object = "queued", id: str = "m1", **more: object) -> dict[str, object]:
    return {"id": id, "status": status, "credits": 1} | ({} if phone is None else {"phone": phone}) | more


def read(document: Mapping[str, Any]) -> Any:
    """Return a document as it is read from a response: numbers keep their digits."""
    return load_json(json.dumps(document).encode())


def of(document: Mapping[str, Any], phones: Sequence[str | None] = (A, B), operation: Any = ops.SEND_SMS) -> list[str]:
    return [each.outcome for each in outcomes(operation, read(document), phones)]


@pytest.mark.parametrize(
    "named",
    [
        (A, B),
        (B, A),
        (f"+{A}", "+57 (300) 765-4321"),
        ("3001234567", "3007654321"),
        (f"00{A}", f"00{B}"),
        (None, None),
        ("5730012*****", "57300765xxxx"),
        ("*4567", "•••4321"),
        ("300#567", "3007…"),
    ],
)
def test_every_recipient_with_an_entry_is_accepted(named: tuple[str | None, str | None]) -> None:
    assert of({"id": "d", "data": [entry(phone) for phone in named]}) == ["accepted", "accepted"]


def test_an_entry_belongs_to_the_number_that_it_names() -> None:
    document = {"data": [entry("3007654321", id="b"), entry("3001234567", id="a", credits="2")]}
    found = outcomes(ops.SEND_SMS, document, (A, B))
    assert [(each.phone, each.id, each.credits) for each in found] == [(A, "a", "2"), (B, "b", None)]


def test_entries_without_a_number_belong_to_the_recipients_in_order() -> None:
    found = outcomes(ops.SEND_SMS, {"data": [entry(id="a"), entry(id="b")]}, (A, B))
    assert [each.id for each in found] == ["a", "b"]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ([entry(A)], ["accepted", "unknown"]),
        ([entry(B)], ["unknown", "accepted"]),
        ([entry()], ["unknown", "unknown"]),
        ([entry(A), entry()], ["accepted", "unknown"]),
        ([entry(None), entry(None), entry(None)], ["unknown", "unknown"]),
        ([entry("***"), entry("")], ["unknown", "unknown"]),
        ([entry("573*"), entry("573*")], ["unknown", "unknown"]),
        ([entry("unreadable"), entry()], ["unknown", "unknown"]),
        ([{**entry(), "phone": None}, {**entry(), "phone": None}], ["unknown", "unknown"]),
        ([entry(C)], ["unknown", "unknown"]),
        ([entry(A), entry(C)], ["accepted", "unknown"]),
        ([entry(A), {}], ["accepted", "unknown"]),
        ([], ["unknown", "unknown"]),
        ([entry("4567")], ["unknown", "unknown"]),
    ],
)
def test_a_recipient_without_an_entry_is_unknown(data: object, expected: list[str]) -> None:
    assert of({"id": "d", "status": "1", "data": data}) == expected


def test_a_number_may_lack_its_country_code_in_the_request_or_the_response() -> None:
    for sent, named in (("79161234567", "9161234567"), ("5712345", "12345"), ("3001234567", A), ("12345", "5712345"),
                        ("12025550123", "2025550123"), ("593991234567", "991234567")):  # fmt: skip
        assert of({"data": [entry(named)]}, [sent]) == ["accepted"], named
    assert of({"data": [entry("1234")]}, ["571234"]) == of({"data": [entry("571234")]}, ["1234"]) == ["unknown"]


def test_a_string_without_visible_digits_or_with_other_characters_is_not_a_number() -> None:
    for named in ("***", "57[", "573001234567a", "57*(|"):
        assert of({"data": [entry(named)]}, [A]) == ["unknown"], named


def test_a_masked_number_has_at_most_40_characters_and_3_runs_of_asterisks() -> None:
    for named, expected in (
        ("57300" + "*" * 34 + "7", "accepted"),
        ("57300" + "*" * 35 + "7", "unknown"),
        ("573*1*4*7", "accepted"),
        ("57*0*1*4*7", "unknown"),
    ):
        assert of({"data": [entry(named)]}) == [expected, "unknown"], named


def test_at_most_two_masked_numbers_are_looked_up_for_each_recipient() -> None:
    for others, expected in ((1, "accepted"), (2, "unknown")):
        assert of({"data": [*[entry("9*")] * others, entry("*4567")]}, [A]) == [expected]


def test_an_entry_that_could_be_for_two_recipients_is_for_neither() -> None:
    assert of({"data": [entry("1234567")]}, ("573001234567", "583001234567")) == ["unknown", "unknown"]


@pytest.mark.parametrize("document", [{"id": "d1"}, {"id": "d1", "status": "1"}, {"id": "d1", "data": None}])
def test_an_id_without_data_accepts_everyone(document: dict[str, Any]) -> None:
    found = outcomes(ops.SEND_SMS, read(document), (A, None))
    status = document.get("status")
    assert found == [RecipientOutcome(A, "accepted", "d1", status), RecipientOutcome(None, "accepted", "d1", status)]


def test_without_entries_a_word_for_success_accepts_everyone() -> None:
    accepting: list[Any] = ["1", "true", True, 1, "success", "Mensaje enviado", "queued", "Aceptada", "OK"]
    for status in accepting:
        assert of({"status": status}) == ["accepted", "accepted"], status
    others: list[Any] = ["0", False, "7", "", None, "pending", "not sent", "no aceptado", "Error"]
    for status in others:
        assert of({"status": status}) == ["unknown", "unknown"], status


def test_a_failure_of_the_whole_record_leaves_everyone_with_an_id_unknown() -> None:
    failures: list[dict[str, Any]] = [{"error": 7}]
    failures += [{"status": status} for status in (0, False, "error", "Rechazado", "blocked")]
    for failure in failures:
        assert of({"id": "d", **failure}) == ["unknown", "unknown"], failure
        assert of({"id": "d", **failure, "data": [entry(A), entry(B, "failed")]}) == ["unknown", "refused"], failure


DOUBTFUL: list[dict[str, Any]] = [
    {"success": False, "status": 1, "id": "x"},
    {"status": 1, "errors": ["no credits"], "id": "x"},
    {"status": 1, "errorCode": 1010, "id": "x"},
    {"status": 1, "msg": "Saldo insuficiente"},
    {"status": 1, "message": "no enviado"},
    {"id": "x", "msg": "El mensaje fue rechazado"},
    {"status": 1, "state": "rechazado", "id": "x"},
    {"status": 1, "id": "x", "phone": "573009999999"},
    {"id": False},
    # names of fields in another case or language
    {"id": "x", "Success": False}, {"id": "x", "exito": False}, {"id": "x", "Status": 0}, {"id": "x", "sent": 0},
    {"id": "x", "estado": "Rechazado"}, {"id": "x", "resultado": "fallido"}, {"id": "x", "result": False},
    {"id": "x", "mensaje": "Numero invalido"}, {"id": "x", "description": "Message rejected"},
    {"id": "x", "isSuccess": False}, {"id": "x", "success": "no"}, {"id": "x", "telefono_error": "Numero invalido"},
    {"id": "x", "responseMessage": "Invalid number"}, {"id": "x", "msg": ["Numero invalido"]},
    # numbers and lists of failed messages
    {"id": "x", "sent": 1, "failed": 1}, {"id": "x", "rejected": [A]}, {"id": "x", "invalidNumbers": 1},
    {"id": "x", "hasErrors": True},
    # numbers that never mean success, and an unknown status with a negation
    {"id": "x", "status": 400}, {"id": "x", "status": "500"}, {"id": "x", "status": -1}, {"id": "x", "statusCode": 401},
    {"id": "x", "status": "NO_CREDITS"}, {"id": "x", "status": "No autorizado"},
    {"id": "x", "message": "blocked"}, {"id": "x", "result": {"status": "blocked"}},
    # at any depth
    {"id": "x", "result": {"status": "failed"}}, {"id": "x", "messages": [{"phone": A, "status": "rejected"}]},
    {"id": "x", "recipients": [{"error": "no credits"}]}, {"id": "x", "status": {"name": "REJECTED"}},
]  # fmt: skip


def test_a_sign_of_failure_beside_an_acceptance_leaves_everyone_unknown() -> None:
    for document in DOUBTFUL:
        assert of(document, [A]) == ["unknown"], document
    for document in ({"success": False, "data": [entry(A)]}, {"data": [entry(A, errorCode=7)]}):
        assert of(document, [A]) == ["unknown"], document
    assert of({"status": 1, "phone": A}, [A, B]) == ["accepted", "unknown"]
    assert of({"data": [entry(A, errorCode="000", errorMessage="No error")]}, [A]) == ["accepted"]
    for document in (
        {"success": True, "status": 1, "errors": [], "errorCode": 0},
        {"id": "x", "phone": A, "msg": "ok"},
        {"id": "x", "sent": 1, "failed": 0, "rejected": [], "failedAt": None, "delivered": False},
        {"id": "x", "status": "Sin errores", "result": {"status": "sent", "pages": 0}},
        {"id": "x", "status": 202, "code": "200", "failover": "sms"},
        {"id": "x", "status": "Aún no entregado"},
        {"id": "x", "blocked": False},
        {"id": "x", "statusReport": False, "errorUrl": "https://shop.example/error", "fail_over": "sms"},
        {"id": "x", "country": {"code": 502}, "failedAttempts": 1, "msg": "Sent: 1, failed: 0"},
    ):
        assert of(document, [A]) == ["accepted"], document


def test_a_sign_of_failure_in_an_entry_leaves_its_recipient_unknown() -> None:
    signs: list[dict[str, Any]] = [
        {"estado": "Rechazado"}, {"Status": "rejected"}, {"status": None, "msg": "Numero invalido"},
        {"reason": "rejected"}, {"estado": "Bloqueado"},
        {"sent": False}, {"hasError": True}, {"result": {"status": "failed"}}, {"data": [{"status": "rejected"}]},
    ]  # fmt: skip
    for sign in signs:
        assert of({"id": "d", "data": [entry(A, **sign), entry(B)]}) == ["unknown", "accepted"], sign
    for status in (404, -3, "No credits", {"name": "REJECTED"}):
        assert of({"id": "d", "data": [entry(A, status), entry(B)]}) == ["unknown", "accepted"], status
    assert of({"id": "d", "status": 1, "msg": "Saldo insuficiente"}, [A], ops.CHATAPP_SEND) == ["unknown"]
    assert of({"data": [entry(A, blocked=False)]}, [A]) == ["accepted"]
    assert of({"status": "blocked", "data": [entry(A)]}, [A]) == ["unknown"]
    for name in ("msg", "mensaje", "sms"):
        assert of({"data": [entry(A, **{name: "Su pago fue rechazado"})]}, [A]) == ["accepted"], name
    call = {"id": "d", "data": [{"id": "c", "phone": A, "state": "No contesta", "message": "Su pago fue rechazado"}]}
    assert of(call, [A], ops.SEND_CALL) == ["accepted"]


def test_a_refused_entry_explains_the_failure_beside_it() -> None:
    refused = [entry(A), entry(B, "rejected")]
    for sign in ({"rejected": 1}, {"failed": 1}, {"errors": [{"phone": B}]}, {"msg": "1 enviado, 1 rechazado"}):
        assert of({"id": "d", **sign, "data": refused}) == ["accepted", "refused"], sign
    for flag in ("success", "isSuccess"):
        assert of({"id": "d", flag: False, "data": refused}) == ["unknown", "refused"], flag


def test_an_error_value_that_means_none_is_not_a_refusal() -> None:
    for none in ("Ninguno", "N/A", "-", "No hay errores", "No errors found", {"code": 0, "x": ""}, [None], ["none"]):
        assert of({"data": [entry(A, error=none)]}, [A]) == ["unknown"], none
    for error in ({"code": 7}, ["none", "no such number"], "X"):
        assert of({"data": [entry(A, error=error)]}, [A]) == ["refused"], error


def test_order_does_not_count_if_an_entry_contains_the_number_of_another_recipient() -> None:
    for first, second, expected in ((A, B, "accepted"), (f"+{B}", A, "unknown"), (B[2:], A[2:], "unknown")):
        document = {"data": [{"id": "a", "to": first}, {"id": "b", "to": second}]}
        assert of(document) == [expected, expected]


def test_two_entries_for_one_number_must_agree() -> None:
    assert of({"data": [entry(A), entry(A), entry(B)]}) == ["accepted", "accepted"]
    assert of({"data": [entry(A), entry(A, "rejected"), entry(B)]}) == ["unknown", "accepted"]
    assert of({"data": [entry(A), entry("3001234567", 0), entry(B)]}) == ["unknown", "accepted"]


def test_the_outcome_of_an_entry_does_not_depend_on_the_entry_before_it() -> None:
    """Most entries of a response are alike; a number, a text or an object with the same digits may not be."""
    many = {f"k{number}": "ok" for number in range(150)}
    values: list[object] = ["0.0", 0.0, "-5", -5, False, 1, "1", "failed", "queued"]
    values += [{"bad": "failed", **many}, {**many, "bad": "failed"}, ["failed"], {}]
    entries = [{field: value} for field in ("status", "state", "code", "error", "msg", "id", "sms") for value in values]
    for first, second in permutations([{}, *entries], 2):
        both = [{"phone": A, **first}, {"phone": B, **second}]
        assert of({"data": both}) == [*of({"data": both[:1]}, [A]), *of({"data": both[1:]}, [B])], both


def test_recipients_of_one_entry_share_its_credits() -> None:
    document = {"data": [entry(f"{A}, {B}", credits="3")]}
    found = outcomes(ops.SEND_SMS, document, (A, B))
    assert [(each.outcome, each.credits) for each in found] == [("accepted", "2"), ("accepted", "1")]
    for indivisible in (None, "2.5"):
        found = outcomes(ops.SEND_SMS, {"data": [entry(f"{A}, {B}", credits=indivisible)]}, (A, B))
        assert [each.credits for each in found] == [indivisible, None]
    assert of(document, (A, B, C)) == ["accepted", "accepted", "unknown"]


def test_a_record_of_a_body_that_the_user_wrote_applies_to_its_recipient() -> None:
    (found,) = outcomes(ops.CHATAPP_SEND, entry(C), [A], is_own_body=True)
    assert (found.phone, found.outcome) == (A, "accepted")
    assert of(entry(C), [A], ops.CHATAPP_SEND) == ["unknown"]


def test_two_entries_for_one_recipient_without_a_known_number_leave_the_outcome_unknown() -> None:
    assert of({"data": [entry(A)]}, [None]) == ["accepted"]
    assert of({"data": [entry(A), entry(B)]}, [None]) == ["unknown"]


@pytest.mark.parametrize("phone", [A, None])
def test_a_record_without_entries_is_the_entry_of_its_recipient(phone: str | None) -> None:
    (found,) = outcomes(ops.CHATAPP_SEND, read(entry(A)), [phone])
    assert found == RecipientOutcome(A, "accepted", "m1", "queued", "1")


@pytest.mark.parametrize("status", [0, False, "0", "false", "False"])
def test_an_entry_with_a_status_of_0_is_unknown(status: object) -> None:
    assert of({"id": "d", "data": [entry(A, status), entry(B, id="", state="sent")]}) == ["unknown", "accepted"]


@pytest.mark.parametrize("field", ["status", "state"])
@pytest.mark.parametrize("operation", [ops.SEND_SMS, ops.SEND_CALL])
def test_an_entry_with_a_word_for_failure_is_refused(operation: ops.Operation, field: str) -> None:
    document = {"id": "d", "data": [{"id": "m", "phone": A, field: "Rejected"}, {"id": "n", "phone": B, field: "ok"}]}
    assert of(document, operation=operation) == ["refused", "accepted"]


def test_an_entry_with_an_error_is_refused_even_with_an_id() -> None:
    assert of({"data": [{"phone": A, "error": "no such number"}, entry(B)]}) == ["refused", "accepted"]
    assert of({"data": [entry(A, error={"code": 7}), entry(B, error="0")]}) == ["refused", "accepted"]
    assert of(load_json(f'{{"data": [{{"phone": {A}, "error": 0}}, {{"phone": {B}, "error": 7}}]}}'.encode())) == [
        "accepted",
        "refused",
    ]


def test_entries_without_a_recipient_are_kept() -> None:
    document = {"data": [entry(C, id="x"), entry(A), *[entry(C, id="y")] * 200]}
    found = unclaimed(ops.SEND_SMS, document, [A])
    assert (found[0].id, found[0].phone, len(found)) == ("x", C, 100)
    document = {"data": [entry(A), entry(C, id="x"), entry(C, "Rejected", id="y"), entry(C, 0, id="z")]}
    assert [(each.id, each.outcome) for each in unclaimed(ops.SEND_SMS, read(document), [A])] == [
        ("x", "unknown"),
        ("y", "refused"),
        ("z", "unknown"),
    ]
    assert unclaimed(ops.BLOCK_PHONE, {"status": "1", "data": "no entries"}, [A]) == []


def test_numbers_keep_their_digits() -> None:
    for price in ("1.50", "1.0"):
        document = load_json(f'{{"data": [{{"id": 17, "status": 1, "credits": {price}, "phone": {A}}}]}}'.encode())
        assert outcomes(ops.SEND_SMS, document, [A]) == [(A, "accepted", "17", "1", price)]


def test_an_outcome_contains_only_strings_that_a_database_can_store() -> None:
    document = {"data": [entry(A, True, id="\ud800"), entry(B, False, id="ñ")]}
    found = outcomes(ops.SEND_SMS, read(document), (A, B))
    assert [(each.id, each.status) for each in found] == [("\\ud800", "true"), ("ñ", "false")]
    (call,) = outcomes(ops.SEND_CALL, read({"data": [{"id": "c", "phone": A, "state": "En cola"}]}), [A])
    assert call.status == "En cola"


def test_zero_has_no_digit_but_0_except_in_its_exponent() -> None:
    for text in ("0", "-0", "0.00", "0e5", "0E5", '"0"', '" False "', "false"):
        assert is_zero(load_json(text.encode())), text
    for text in ("1", "0.01", "1e0", "10", '"0.0"', '"no"', "true", "null", "[]"):
        assert not is_zero(load_json(text.encode())), text


# --- what a send costs, and how it ends


def test_credits_count_if_they_are_a_whole_number_of_at_most_12_digits() -> None:
    counted: dict[str | None, int | None] = {"2": 2, "1.00": 1, "9" * 12: 10**12 - 1, "0": 0}
    others: dict[str | None, int | None] = dict.fromkeys((None, "", "1.5", "1" * 13, "-1", "1e3", "many", "1."))
    assert {text: charged(text) for text in (*counted, *others)} == counted | others


def test_the_estimate_counts_until_the_service_reports_a_price() -> None:
    def of_credits(credits: str | None, outcome: str = "accepted") -> tuple[int, int]:
        return charge(RecipientOutcome(A, outcome, credits=credits), 3)

    assert of_credits("2") == of_credits("2", "refused") == (2, 0)
    assert of_credits("0", "refused") == of_credits(None, "refused") == (0, 0)
    assert of_credits("0") == of_credits(None) == of_credits("many") == of_credits("1.5") == of_credits("2.5") == (0, 3)
    assert of_credits("7.5", "unknown") == (0, 8)
    assert charge(RecipientOutcome(A, "accepted"), 0) == (0, 0)


def test_the_exit_code_of_a_send_depends_on_its_worst_outcome() -> None:
    for kinds, expected in (("", 0), ("accepted", 0), ("accepted refused", 6), ("refused unknown accepted", 5)):
        assert exit_code([RecipientOutcome(A, kind) for kind in kinds.split()]) == expected, kinds


# --- a refusal of the whole request


def test_a_failure_without_an_id_is_a_refusal() -> None:
    for record in (
        {"status": "0"},
        {"status": "Error"},
        {"error": 7, "data": []},
        {"status": 0, "data": [{"phone": A}]},
    ):
        assert is_refusal(ops.SEND_SMS, read(record)), record
    others: list[dict[str, Any]] = [
        {"status": 1},
        {"status": 0, "id": "d"},
        {"error": 7, "data": [entry(A)]},
        {"error": 7, "data": [{"phone": A, "id": "m1"}]},
        {"status": 0, "data": [{"phone": A, "status": 1}]},
        {"status": 0, "data": [{"phone": A, "state": "Enviado"}]},
        {"status": 0, "data": [{"phone": A, "status": "Enviado"}]},
        {"status": 0, "data": [{"phone": A, "state": "Rechazado"}]},
    ]
    for record in others:
        assert not is_refusal(ops.SEND_SMS, read(record)), record


def test_an_error_text_that_means_no_error_leaves_the_outcome_unknown() -> None:
    for error in ("none", "OK", "No error", "000", "Mensaje enviado"):
        assert not is_refusal(ops.SEND_SMS, read({"status": 1, "error": error})), error
        assert of({"status": 1, "error": error}, [A]) == ["unknown"], error
        assert of({"id": "d", "data": [entry(A, error=error), entry(B)]}) == ["unknown", "accepted"], error
        assert is_refusal(ops.SEND_SMS, read({"status": 0, "error": error})), error


def test_blocked_is_a_success_of_block_alone() -> None:
    for status in ("blocked", "BLOQUEADO", "1"):
        assert not is_refusal(ops.BLOCK_PHONE, {"status": status})
        assert of({"status": status}, [A], ops.BLOCK_PHONE) == ["accepted"]
    for contradiction in ({"phone": B}, {"blocked": False}, {"result": {"bloqueado": 0}}):
        assert of({"id": "b", **contradiction}, [A], ops.BLOCK_PHONE) == ["unknown"], contradiction
    for more in (
        {"phone": "3001234567", "blocked": True},
        {"message": "blocked"},
        {"result": {"status": "blocked"}},
        {"status": {"name": "Bloqueado"}},
    ):
        assert of({"id": "b", **more}, [A], ops.BLOCK_PHONE) == ["accepted"], more
    for status in ("error", "not blocked", "no bloqueado", "unblocked", "Desbloqueado"):
        assert is_refusal(ops.BLOCK_PHONE, {"status": status}), status
        assert of({"id": "b", "status": status}, [A], ops.BLOCK_PHONE) == ["unknown"], status


# --- delivery states of recipients who share an id


def test_a_message_belongs_to_the_recipient_with_its_number() -> None:
    messages = [{"phone": B, "state": "Rechazado"}, {"phone": "3001234567", "state": "Entregado"}]
    assert states(messages, (A, B)) == ["Entregado", "Rechazado"]


def test_messages_without_a_number_count_for_everyone_if_they_agree() -> None:
    assert states([{"state": "Enviado"}, {"state": "sent"}], (A, B)) == ["sent", "sent"]
    assert states([{"state": "Enviado"}, {"state": "Entregado"}], (A, B)) == [None, None]
    assert states([{"phone": C, "state": "Entregado"}], [A]) == ["Entregado"]
    assert states([{"phone": A, "state": "Entregado"}, {"state": "Fallido"}], (A, B)) == ["Entregado", "Fallido"]
    assert states([], [A]) == [None]
