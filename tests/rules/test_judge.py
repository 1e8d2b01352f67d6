"""The rules of the judge, one by one."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from msgctl.jsontext import MAX_PARTS, ShapeError, load_json
from msgctl.outcomes import judge, words
from msgctl.outcomes.judge import Delivery, classify, reaches

from .judging import OTHER, PHONE, outcome, outcomes, parsed, request

SHORT = "12345"


@pytest.fixture
def own_words() -> Iterator[None]:
    words.use(
        {"accepted": ["EN ESTUDIO", "0"], "refused": ["Vuelto"], "delivered": ["RECEIVED 01"], "verified": ["SI"]}
    )
    yield
    words.use({})


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"status": 1}, "accepted"),
        ({"status": "1", "error": "000"}, "accepted"),
        ({"id": "abc-123"}, "accepted"),
        ({"id": "abc12"}, "unknown"),
        ({"id": "abcdef"}, "unknown"),
        ({"id": PHONE}, "unknown"),
        ({"status": 0, "id": "abc-123"}, "unknown"),
        ({"status": "EN ESTUDIO"}, "unknown"),
        ({"status": 1, "success": False}, "unknown"),
        ({"status": 1, "result": {"error_code": 7}}, "unknown"),
        ({"status": 1, "errors": {"sent": False}}, "unknown"),
        ({"status": 1, "sent_errors": 0}, "accepted"),
        ({"status": 1, "error": "null"}, "accepted"),
        ({"status": 1, "result": [[["rejected"]]]}, "unknown"),
        ({"status": 1, "code": 503}, "unknown"),
        ({"status": 1, "code": 200}, "accepted"),
        ({"status": 1, "msg": f"Rechazado {PHONE}"}, "unknown"),
        ({"status": 1, "state": "Rechazado"}, "unknown"),
        ({"status": 1, "data": "none"}, "unknown"),
        ({"status": 1, "data": []}, "unknown"),
        ({"status": 1, "err": "E7"}, "unknown"),
        ({"status": 1, "error": "0 0"}, "accepted"),
        ({"status": 1, "error": True}, "unknown"),
        ({"status": 1, "error": "aceptado"}, "accepted"),
        ({"status": 1, "name": "Rechazado"}, "accepted"),
        ({"status": 1, "result": {"status": 0}}, "unknown"),
        ({"status": 1, "result": {"state": False}}, "unknown"),
        ({"status": 1, "result": {"status": 503}}, "unknown"),
        ({"status": 1, "codigo": 400}, "unknown"),
        ({"status": 1, "code": -1}, "unknown"),
        ({"status": 1, "code": 399}, "accepted"),
        ({"status": 1, "code": 600}, "accepted"),
        ({"status": 1, "msg": "no"}, "accepted"),
        ({"status": 1, "msg": "no lo se"}, "unknown"),
        ({"error": 1, "msg": "Saldo insuficiente"}, "refused"),
        ({"error": 1, "msg": "Saldo insuficiente", "sms": "espera 1"}, "refused"),
        ({"error": 1, "msg": "Saldo insuficiente", "destino": "+57-300-123-4567"}, "refused"),
        ({"error": 1, "msg": "Saldo insuficiente", "codigo": "E45"}, "refused"),
        ({"error": "E45", "errno": "E45", "msg": "Saldo insuficiente"}, "refused"),
        ({"error": 1, "msg": "Saldo insuficiente", "ref": "E45"}, "unknown"),
        ({"error": 1, "msg": "Saldo insuficiente", "ref": "E00"}, "refused"),
        ({"error": 1, "msg": "Falta el campo sms"}, "refused"),
        ({"error": 1, "msg": "Faltan campos"}, "refused"),
        ({"error": 1, "msg": "Saldo insuficiente, espera"}, "unknown"),
        ({"error": 1, "msg": "Falta el campo sms, en espera"}, "unknown"),
        ({"error": 1, "msg": "Saldo insuficiente", "id": "m-1"}, "unknown"),
        ({"error": 1, "msg": "Falló"}, "unknown"),
        ({"status": "Fallido"}, "refused"),
        ({"status": "Lista negra"}, "refused"),
        ({"status": "Rejected, try again after 5 minutes"}, "unknown"),
        ({"status": 1, "data": [{"status": "Bloqueado", "phone": PHONE}]}, "refused"),
        ({"status": 1, "data": ["Rechazado"]}, "unknown"),
        ({"status": 1, "data": ["Enviado"]}, "unknown"),
        ({"status": 1, "data": [{"status": 1, "phone": PHONE}, "Rechazado"]}, "accepted"),
        ({"status": 1, "data": [{"status": 1}, "Rechazado"]}, "unknown"),
        ([], "unknown"),
        ({}, "unknown"),
        ("Enviado", "unknown"),
    ],
)
def test_a_response_is_judged(body: Any, expected: str) -> None:
    assert outcomes(body) == [expected]


@pytest.mark.parametrize(
    ("http_status", "body", "expected"),
    [
        (401, {"error": "x"}, "refused"),
        (401, {"data": {"status": "Enviado"}}, "unknown"),
        (404, None, "refused"),
        (429, None, "refused"),
        (429, {"status": 1}, "unknown"),
        (400, {"msg": "Parametros invalidos"}, "refused"),
        (400, {"msg": "x"}, "unknown"),
        (400, {"status": 1}, "unknown"),
        (520, {"error": 1000, "msg": "Error interno del sistema"}, "unknown"),
        (520, None, "unknown"),
        (503, {"msg": "Parametros invalidos"}, "unknown"),
        (408, None, "unknown"),
        (302, {"status": 1}, "unknown"),
    ],
)
def test_a_status_is_judged(http_status: int, body: Any, expected: str) -> None:
    assert outcomes(body, http_status) == [expected]


def test_a_link_is_created_only_if_the_response_has_its_short_url() -> None:
    assert outcome("url shorten", 200, {"status": 1, "urlShort": "https://s.example/1"}) == "accepted"
    for body in ({"status": 1}, {"id": "abc-123"}, {"status": 1, "urlShort": "a b"}, {"status": 1, "urlShort": "none"}):
        assert outcome("url shorten", 200, body) == "unknown"


def test_entries_that_disagree_leave_their_recipient_unknown() -> None:
    data = [{"status": "Enviado", "phone": PHONE}, {"status": "Rechazado", "phone": PHONE}]
    assert outcomes({"status": 1, "data": data}) == ["unknown"]


@pytest.mark.parametrize(
    ("first", "second"),
    [({"status": 1.0, "id": "m100001"}, {"status": "1.0", "id": "m100002"}), ({"id": "m100001"}, {"id": "m000000"})],
    ids=["number and text", "id of zeros"],
)
def test_an_entry_is_judged_by_itself_although_it_resembles_another(first: Any, second: Any) -> None:
    data = [{**first, "phone": PHONE}, {**second, "phone": OTHER}]
    assert outcomes({"data": data}, phones=(PHONE, OTHER)) == ["accepted", "unknown"]


def test_a_recipient_without_an_entry_is_unknown() -> None:
    data = [{"status": "Enviado", "phone": PHONE}]
    assert outcomes({"status": 1, "data": data}, phones=[PHONE, OTHER]) == ["accepted", "unknown"]
    assert outcomes({"status": 1, "phone": PHONE}, phones=[PHONE, OTHER]) == ["accepted", "unknown"]


def test_a_number_may_lack_its_country_code_if_only_one_recipient_fits() -> None:
    assert outcomes({"status": 1, "phone": "300 123 4567"}) == ["accepted"]
    assert outcomes({"status": 1, "phone": "123-4567"}) == ["accepted"]
    assert outcomes({"status": 1, "phone": "234567"}) == ["unknown"]
    assert outcomes({"status": 1, "phone": SHORT}, phones=[SHORT]) == ["accepted"]
    assert outcomes({"status": 1, "phone": f"+{SHORT}"}, phones=[SHORT]) == ["accepted"]
    assert outcomes({"status": 1, "phone": SHORT[1:]}, phones=[SHORT]) == ["unknown"]
    both = [PHONE, "13001234567"]
    assert outcomes({"status": 1, "data": [{"status": 1, "phone": "3001234567"}]}, phones=both) == ["unknown"] * 2


def test_credits_of_a_shared_entry_count_once() -> None:
    body = {"status": 1, "data": {"status": "Enviado", "credits": "3", "id": "m-1", "phone": f"{PHONE},{OTHER}"}}
    found = judge.sent(request("sms send", [PHONE, OTHER]), 200, parsed(body)).outcomes
    assert [(each.credits, each.id) for each in found] == [("2", "m-1"), ("1", "m-1")]
    body = {"status": 1, "data": {"status": "Enviado", "credits": "2.5", "phone": f"{PHONE},{OTHER}"}}
    found = judge.sent(request("sms send", [PHONE, OTHER]), 200, parsed(body)).outcomes
    assert [each.credits for each in found] == ["2.5", None]


def test_an_entry_of_another_number_is_kept_for_its_id() -> None:
    body = {"status": 1, "data": [{"id": "m-9", "status": "Enviado", "phone": "573009999999"}]}
    found = judge.sent(request("sms send"), 200, parsed(body))
    assert [each.outcome for each in found.outcomes] == ["unknown"]
    assert [(each.id, each.outcome) for each in found.unclaimed] == [("m-9", "unknown")]


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ({"status": "EN ESTUDIO"}, "EN ESTUDIO"),
        ({"status": 1, "data": [{"state": "EN ESTUDIO", "phone": PHONE}]}, "EN ESTUDIO"),
        ({"status": "0"}, "0"),
        ({"status": 1, "msg": "Retrasado, sin confirmar"}, "Retrasado, sin confirmar"),
        ({"status": 1, "error": "E7"}, None),
        ({"x": 1}, None),
    ],
)
def test_the_outcome_has_the_text_that_made_it_unknown(body: Any, word: str | None) -> None:
    (found,) = judge.sent(request("sms send"), 200, parsed(body)).outcomes
    assert (found.outcome, found.word) == ("unknown", word)


@pytest.mark.usefixtures("own_words")
def test_texts_of_the_profile_come_before_the_lists() -> None:
    assert outcomes({"status": "En estudio", "msg": "EN_ESTUDIO"}) == ["accepted"]
    assert outcomes({"status": "0"}) == ["accepted"]
    assert outcomes({"status": "vuelto"}) == ["refused"]
    assert outcomes({"status": 1, "data": [{"status": "vuelto", "id": "m-1", "phone": PHONE}]}) == ["refused"]
    assert outcomes({"status": "EN ESTUDIO otra vez"}) == ["unknown"]
    assert outcome("2fa verify", 200, {"status": "si"}) == "verified"
    assert classify("received 01") is Delivery.DELIVERED


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("Entregado", Delivery.DELIVERED),
        ("Entregado correctamente", Delivery.DELIVERED),
        ("Entregado a la operadora", Delivery.ON_ITS_WAY),
        ("Entregado?", Delivery.ON_ITS_WAY),
        ("No entregado", Delivery.FAILED),
        ("No contesta", Delivery.NOT_ANSWERED),
        ("Buzón de voz", Delivery.NOT_ANSWERED),
        ("Error:1081 msg: Destino inaccesible", Delivery.FAILED),
        ("Error temporal, reintentando", Delivery.ON_ITS_WAY),
        ("Enviado", Delivery.ON_ITS_WAY),
        ("1", Delivery.ON_ITS_WAY),
        ("", Delivery.ON_ITS_WAY),
    ],
)
def test_a_delivery_state_has_a_class(state: str, kind: Delivery) -> None:
    assert classify(state) is kind


def test_sent_is_reached_by_a_word_for_sent_and_by_a_delivery() -> None:
    assert [reaches(state, "sent") for state in ("Enviado", "Message sent", "Leído", "En cola", "No enviado")] == [
        True,
        True,
        True,
        False,
        False,
    ]
    assert not reaches("Enviado", "delivered")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"status": 1, "balance": "1234.5"}, "credits:1234.5"),
        ({"data": [{"credits": 7}]}, "credits:7"),
        ({"saldo": "7"}, "credits:7"),
        ({"saldo": 3, "credits": 2, "balance": 1}, "credits:1"),
        ({"status": 500}, "credits:500"),
        ({"status": 500, "msg": "x"}, "error"),
        ({"status": -1}, "error"),
        ({"status": "abc"}, "error"),
        ({"balance": "1,234"}, "error"),
        ({"balance": "1e9"}, "error"),
        ({"balance": 5, "error": "x"}, "error"),
        ({"balance": 5, "error": 0}, "credits:5"),
        ({"balance": True}, "error"),
    ],
)
def test_credits_are_read_only_as_a_number_in_a_known_field(body: Any, expected: str) -> None:
    assert outcome("balance", 200, body) == expected


@pytest.mark.parametrize(
    "body",
    [
        {"status": []},
        {"status": None, "verified": True},
        {"verified": True, "status": {"code": 7}},
        {"status": 1, "error": "E7"},
        {"status": 1, "phone": OTHER},
        {"status": 1, "error": [False]},
        {"status": 1, "data": ["123456"]},
        {"status": 1, "expired": True},
        {"status": 1, "result": "pending"},
        {"status": 1, "data": [{"status": "invalid"}]},
        [{"status": 1}, "invalid"],
        {"status": 1, "x": 1},
        {"status": 1, "x": True},
        {"status": 1, "x": False},
        {"result": "ok"},
        "ok",
        1,
    ],
)
def test_a_code_is_not_verified_beside_a_doubt(body: Any) -> None:
    assert outcome("2fa verify", 200, body) == "not_verified"


def test_a_code_is_verified_beside_harmless_fields() -> None:
    body = {
        "status": "Código 123456 verificado",
        "error": 0,
        "phone": PHONE,
        "id": "v-1",
        "attempts": 1,
        "expires_at": "2026-11-24 10:00:00",
        "channel": "sms",
        "data": {"message": "", "is_valid": True},
    }
    assert outcome("2fa verify", 200, body) == "verified"


@pytest.mark.parametrize(
    "body",
    [
        {"status": 1, "x": ["rejected " * 60_000]},
        {"status": 1, "x": [0] * 200_000},
        {"status": "a" + "\N{COMBINING ACUTE ACCENT}\N{COMBINING CEDILLA}" * 60_000},
        {"status": "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}" * 60_000},
        {"error" * 20_000: 1, "status": 1},
        {"status": 1, "data": [{"status": 1, "phone": str(number)} for number in range(20_000)]},
    ],
    ids=["text", "values", "marks", "ligatures", "name", "entries"],
)
def test_a_hostile_response_is_judged_quickly(body: Any) -> None:
    began = time.process_time()
    assert outcomes(body) == ["unknown"]
    assert time.process_time() - began < 1


def test_a_response_about_5000_recipients_is_judged() -> None:
    phones = [str(573_000_000_000 + number) for number in range(5000)]
    data = [{"id": f"{phone}-0123456789-0123456789-012", "status": "Enviado", "phone": phone} for phone in phones]
    assert {*outcomes({"status": 1, "data": data}, phones=phones)} == {"accepted"}


def test_a_long_response_to_a_read_is_judged_quickly() -> None:
    assert judge.fail({"msg": "invalid id"})
    began = time.process_time()
    assert not judge.fail({f"name {number}": "invalid" for number in range(300_000)})
    assert time.process_time() - began < 1


def test_all_recipients_in_every_entry_are_judged_quickly() -> None:
    phones = [str(573_000_000_000 + number) for number in range(1000)]
    everyone = ",".join(phones)
    data = [{"status": "ok", "phone": everyone}] * 900
    began = time.process_time()
    assert {*outcomes({"status": 1, "data": data}, phones=phones, values=[everyone])} == {"accepted"}
    data.append({"status": "?", "phone": everyone})
    assert {*outcomes({"status": 1, "data": data}, phones=phones, values=[everyone])} == {"unknown"}
    assert time.process_time() - began < 5


def test_a_document_with_too_many_values_is_not_read() -> None:
    assert len(load_json(b"[" + b"1," * (MAX_PARTS - 1) + b"1]")) == MAX_PARTS
    with pytest.raises(ShapeError, match="too many values"):
        load_json(b"[" + b"1," * MAX_PARTS + b"1]")
