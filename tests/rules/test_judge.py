"""The rules of the judge, one by one."""

from __future__ import annotations

import time
from itertools import permutations, product
from typing import Any

import pytest

from msgctl import operations
from msgctl.credits import CREDIT
from msgctl.http.request import Request
from msgctl.http.response import Response
from msgctl.jsontext import MAX_PARTS, ShapeError, load_json
from msgctl.outcomes import judge, words
from msgctl.outcomes.delivery import Delivery, classify, reaches
from msgctl.outcomes.record import MAX_LISTED, MAX_NESTED, convert

from .judging import ITEMS, OTHER, PHONE, outcome, outcomes, parsed, request

SHORT = "12345"


OWN = words.AddedWords(
    {
        "accepted": ["EN ESTUDIO", "0"],
        "refused": ["Vuelto"],
        "delivered": ["RECEIVED 01"],
        "failed": ["Vuelto"],
        "verified": ["SI"],
    }
)
"""The words of a profile."""


def two(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    return {"data": [{**first, "phone": PHONE}, {**second, "phone": OTHER}]}


def test_a_response_has_the_outcome_of_its_line_in_the_tables() -> None:
    for item in ITEMS:
        assert outcome(item["operation"], item["http_status"], item["body"]) == item["expect"], item


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"status": 1, "data": [{"status": "Enviado", "phone": PHONE}]}, ["accepted", "unknown"]),
        ({"status": 1, "phone": PHONE}, ["accepted", "unknown"]),
        (
            {"data": [{"status": status, "phone": PHONE} for status in ("Enviado", "Rechazado")]},
            ["unknown", "unknown"],
        ),
        # Each entry is judged separately, even if another one is similar.
        (two({"status": 1.0, "id": "m100001"}, {"status": "1.0", "id": "m100002"}), ["accepted", "unknown"]),
        (two({"id": "m100001"}, {"id": "m000000"}), ["accepted", "unknown"]),
        (two({"id": "Pedido_1"}, {"id": "Pedido_0"}), ["accepted", "unknown"]),
        (two({"id": "10-abc-20"}, {"id": "10-bad-20"}), ["accepted", "unknown"]),
        (two({"id": "abc12"}, {"id": "abc12" * 20}), ["unknown", "accepted"]),
    ],
    ids=range(8),
)
def test_each_recipient_has_the_outcome_of_its_entries(body: Any, expected: list[str]) -> None:
    assert outcomes(body, phones=[PHONE, OTHER]) == expected


@pytest.mark.parametrize("recipients", [1, 2, 3])
def test_entries_without_a_readable_phone_belong_to_nobody_except_the_only_one_to_the_only_recipient(
    recipients: int,
) -> None:
    phones = [PHONE, OTHER, "573009999999"][:recipients]
    sent = {"status": "Enviado"}
    only = "accepted" if recipients == 1 else "unknown"
    assert outcomes({"status": 1, "data": sent}, phones=phones) == ["accepted"] * recipients, "one object"
    assert outcomes({"status": 1, "data": [sent]}, phones=phones) == [only] * recipients
    assert outcomes([sent], phones=phones) == [only] * recipients
    for entries in (2, 3):
        assert outcomes({"status": 1, "data": [sent] * entries}, phones=phones) == ["unknown"] * recipients
    for phone in ("573111111111", "no number", "", None):
        for data in ({**sent, "phone": phone}, [{**sent, "phone": phone}]):
            assert outcomes({"status": 1, "data": data}, phones=phones) == ["unknown"] * recipients, data
    both = {"status": 1, "data": [sent, {**sent, "phone": PHONE}]}
    assert outcomes(both, phones=phones) == ["accepted", "unknown", "unknown"][:recipients]


def test_the_credits_left_are_in_the_first_level_that_has_them() -> None:
    names = ("balance", "credits", "saldo")
    for first, nested in product(names, repeat=2):
        for data in ({nested: 7}, [{nested: 7}], {"data": {nested: 7}}):
            assert outcome("balance show", 200, {"status": 1, first: 5, "data": data}) == "credits:5", (first, data)
            assert outcome("balance show", 200, {"status": 1, first: "x", "data": data}) == "error", (first, data)
            assert outcome("balance show", 200, {"status": 1, "data": data}) == "credits:7"
    for order in permutations(names):
        level = {name: names.index(name) for name in order}
        for body in (level, {"data": level}, [{"data": [level]}]):
            assert outcome("balance show", 200, body) == "credits:0", body


def test_the_eleventh_entry_for_one_recipient_may_contradict_the_others() -> None:
    entry = {"status": "sent", "phone": PHONE}
    assert outcomes({"data": [entry] * 10}) == ["accepted"]
    too_many = {"data": [*[entry] * 10, {"status": "rejected", "phone": PHONE}]}
    assert outcomes(too_many) == ["unknown"]
    too_many["data"][:0] = [{"status": "sent", "phone": OTHER}] * 10
    assert outcomes(too_many, phones=[PHONE, OTHER]) == ["unknown", "unknown"]


def test_a_response_that_counts_fewer_recipients_is_in_doubt() -> None:
    phones = [PHONE, OTHER, "573009999999"]
    assert outcomes({"status": 1, "sent": 3}, phones=phones) == ["accepted"] * 3
    assert outcomes({"status": 1, "sent": 2}, phones=phones) == ["unknown"] * 3
    assert outcomes({"status": 1, "sent": 1}, phones=phones) == ["accepted"] * 3, "1 may mean yes"


def test_a_response_about_another_number_in_the_message_is_in_doubt() -> None:
    body = {"status": 1, "data": {"id": "m1", "status": "Enviado"}, "to": OTHER}
    assert outcomes(body, values=[OTHER]) == ["unknown"]


def test_a_number_may_lack_its_country_code_if_only_one_recipient_fits() -> None:
    assert outcomes({"status": 1, "phone": SHORT}, phones=[SHORT]) == ["accepted"]
    assert outcomes({"status": 1, "phone": f"+{SHORT}"}, phones=[SHORT]) == ["accepted"]
    assert outcomes({"status": 1, "phone": SHORT[1:]}, phones=[SHORT]) == ["unknown"]
    both = [PHONE, "13001234567"]
    assert outcomes({"status": 1, "data": [{"status": 1, "phone": "3001234567"}]}, phones=both) == ["unknown"] * 2


def test_the_outcome_has_the_status_and_error_of_its_entry_as_text() -> None:
    body = two({"status": True, "msg": "ok"}, {"status": "Rechazado", "msg": "Lista negra"})
    entries = judge.outcomes_of(request("sms send", [PHONE, OTHER]), 200, parsed(body)).outcomes
    assert [(each.status, each.error) for each in entries] == [("true", None), ("Rechazado", "Lista negra")]


def test_credits_of_a_shared_entry_count_once() -> None:
    body = {"status": 1, "data": {"status": "Enviado", "credits": "3", "id": "m-1", "phone": f"{PHONE},{OTHER}"}}
    entries = judge.outcomes_of(request("sms send", [PHONE, OTHER]), 200, parsed(body)).outcomes
    assert [(each.credits, each.id) for each in entries] == [(2 * CREDIT, "m-1"), (CREDIT, "m-1")]
    body = {"status": 1, "data": {"status": "Enviado", "credits": "2.500001", "phone": f"{PHONE},{OTHER}"}}
    entries = judge.outcomes_of(request("sms send", [PHONE, OTHER]), 200, parsed(body)).outcomes
    assert [each.credits for each in entries] == [1_250_001, 1_250_000]


@pytest.mark.parametrize(
    ("first", "second", "credits"),
    [
        ({"id": "m-1", "phone": PHONE}, {"id": "m-2", "phone": PHONE}, (5, None)),
        ({"id": "m-1", "phone": PHONE}, {"id": "m-2", "phone": f"+{PHONE}"}, (5, None)),
        ({"id": "m-1", "phone": PHONE}, {"id": "m-1", "phone": PHONE}, (2, None)),
        ({"id": "m-1", "phone": f"{PHONE},{OTHER}"}, {"id": "m-2", "phone": f"{PHONE},{OTHER}"}, (3, 2)),
        ({"id": "m-1", "phone": PHONE}, {"id": "m-2", "phone": PHONE, "status": "rejected"}, (None, None)),
    ],
)
def test_credits_of_entries_with_different_ids_add_up(
    first: dict[str, str], second: dict[str, str], credits: tuple[int | None, int | None]
) -> None:
    body = {"data": [{"status": "sent", "credits": 2, **first}, {"status": "sent", "credits": 3, **second}]}
    entries = judge.outcomes_of(request("sms send", [PHONE, OTHER]), 200, parsed(body)).outcomes
    assert tuple(each.credits and each.credits // CREDIT for each in entries) == credits


@pytest.mark.parametrize(
    ("body", "doubt", "missing"),
    [
        ({"status": "EN ESTUDIO"}, ("status", "EN ESTUDIO"), ["EN ESTUDIO"]),
        ({"status": 1, "data": [{"state": "EN ESTUDIO", "phone": PHONE}]}, ("state", "EN ESTUDIO"), ["EN ESTUDIO"]),
        ({"status": "0"}, ("status", "0"), ["0"]),
        ({"status": "Radicado", "msg": "Ya casi"}, ("status", "Radicado"), ["Radicado", "Ya casi"]),
        ({"status": 1, "msg": "Recargue su cuenta"}, ("msg", "Recargue su cuenta"), ["Recargue su cuenta"]),
        # A text about a failure is never offered, nor one that would not help, nor a number that is no status.
        ({"status": "Rechazado", "id": "m-1"}, ("status", "Rechazado"), []),
        ({"status": 1, "msg": "Retrasado, sin confirmar"}, ("msg", "Retrasado, sin confirmar"), []),
        ({"status": "EN ESTUDIO", "error": "E7"}, ("status", "EN ESTUDIO"), []),
        ({"status": "503"}, ("status", "503"), []),
        ({"status": 1, "recipients": []}, ("recipients", "[]"), []),
        ({"status": 1, "to": "573009999999"}, ("to", "573009999999"), []),
        ({"status": 1, "phone": OTHER}, ("phone", OTHER), []),
        ({"x": 1}, None, []),
    ],
)
def test_the_outcome_has_the_field_that_made_it_unknown_and_the_words_that_help(
    body: Any, doubt: tuple[str, str] | None, missing: list[str]
) -> None:
    parts, document = request("sms send"), parsed(body)
    (entry,) = judge.outcomes_of(parts, 200, document).outcomes
    assert (entry.outcome, entry.doubt) == ("unknown", doubt)
    assert Response(Request(operations.SEND_SMS), 200, b"", document, parts, [entry]).missing_words == missing


def test_words_of_the_profile_override_the_built_in_lists() -> None:
    assert outcomes({"status": "En estudio", "msg": "EN_ESTUDIO"}, added=OWN) == ["accepted"]
    assert outcomes({"status": "0"}, added=OWN) == ["accepted"]
    assert outcomes({"status": "vuelto"}, added=OWN) == ["refused"]
    entry = {"status": "vuelto", "id": "m-1", "phone": PHONE}
    assert outcomes({"status": 1, "data": [entry]}, added=OWN) == ["refused"]
    assert outcomes({"status": "EN ESTUDIO otra vez"}, added=OWN) == ["unknown"]
    assert outcome("2fa verify", 200, {"status": "si"}, OWN) == "verified"
    assert classify("received 01", OWN) is Delivery.DELIVERED
    assert classify("vuelto", OWN) is Delivery.FAILED


def test_a_refusal_of_the_profile_does_not_outvote_an_acceptance() -> None:
    assert outcomes({"status": "vuelto", "msg": "Mensaje enviado"}, added=OWN) == ["unknown"]
    entry = {"status": "vuelto", "sent": True, "phone": PHONE}
    assert outcomes({"status": 1, "data": [entry]}, added=OWN) == ["unknown"]


def test_sent_is_reached_by_a_word_for_sent_and_by_a_delivery() -> None:
    assert all(reaches(state, "sent", words.NO_WORDS) for state in ("Enviado", "Message sent", "Leído"))
    assert not any(reaches(state, "sent", words.NO_WORDS) for state in ("En cola", "No enviado"))
    assert reaches("En\u00advia\u200bdo\u2060", "sent", words.NO_WORDS)
    assert not reaches("Enviado", "delivered", words.NO_WORDS)


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


def test_a_text_is_read_up_to_4_000_characters() -> None:
    assert outcomes({"status": "enviado " * 500}) == ["accepted"]
    assert outcomes({"status": "enviado " * 500 + "ok"}) == ["unknown"]


def test_a_response_about_5000_recipients_is_judged() -> None:
    phones = [str(573_000_000_000 + number) for number in range(5000)]
    data = [{"id": f"{phone}-0123456789-0123456789-012", "status": "Enviado", "phone": phone} for phone in phones]
    assert {*outcomes({"status": 1, "data": data}, phones=phones)} == {"accepted"}


def test_a_long_response_to_a_read_is_judged_quickly() -> None:
    assert not judge.is_passing_fault({"msg": "invalid id"})
    began = time.process_time()
    assert judge.is_passing_fault({f"name {number}": "invalid" for number in range(300_000)})
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


def test_arrays_in_the_fields_of_a_response_are_shown_up_to_a_limit() -> None:
    fields = [[True] * (MAX_NESTED - 9), ["four"], [True], [True]]
    document = {"status": 1, "data": [{"id": "m1", "x": value} for value in fields]}
    entries = convert(operations.SEND_SMS, document, [PHONE])["data"]
    assert [entry["x"] for entry in entries] == [*fields[:-1], "…"]


def test_statistics_have_at_most_20_000_metrics() -> None:
    metrics = [{"country": {"property": "CO", "clicks": 1}}] * MAX_LISTED
    assert len(convert(operations.URL_STATISTIC, {"urlShort": "s", "metrics": metrics})["metrics"]) == MAX_LISTED
    with pytest.raises(ShapeError, match=r"more than 20,000 metrics$"):
        convert(operations.URL_STATISTIC, {"urlShort": "s", "metrics": [*metrics, *metrics[:1]]})


def test_a_document_with_too_many_values_is_not_read() -> None:
    assert len(load_json(b"[" + b"1," * (MAX_PARTS - 1) + b"1]")) == MAX_PARTS
    with pytest.raises(ShapeError, match="too many values"):
        load_json(b"[" + b"1," * MAX_PARTS + b"1]")
