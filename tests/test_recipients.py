"""The outcome of each recipient in a response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from msgctl import operations as ops
from msgctl.jsontext import load_json
from msgctl.recipients import is_failure, outcomes, unclaimed

A, B, C = "573001234567", "573007654321", "573009999999"


def entry(phone: object = None, status: object = "queued", id: str = "m1", **more: object) -> dict[str, object]:
    return {"id": id, "status": status, "credits": 1} | ({} if phone is None else {"phone": phone}) | more


def of(document: Mapping[str, Any], phones: Sequence[str | None] = (A, B), operation: Any = ops.SEND_SMS) -> list[str]:
    return [each.outcome for each in outcomes(operation, document, phones)]


@pytest.mark.parametrize(
    "named",
    [
        (A, B),
        (B, A),
        (f"+{A}", "+57 (300) 765-4321"),
        ("3001234567", "3007654321"),
        (f"00{A}", f"00{B}"),
        (None, None),
        ("***", ""),
        (A, None),
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
        ([entry()], ["accepted", "unknown"]),
        ([entry(C)], ["unknown", "unknown"]),
        ([entry(A), entry(C)], ["accepted", "unknown"]),
        ([entry(A), {}], ["accepted", "unknown"]),
        ([], ["unknown", "unknown"]),
        ([entry("4567")], ["unknown", "unknown"]),
    ],
)
def test_a_recipient_without_an_entry_is_unknown(data: object, expected: list[str]) -> None:
    assert of({"id": "d", "status": "1", "data": data}) == expected


def test_an_entry_that_could_be_for_two_recipients_is_for_neither() -> None:
    assert of({"data": [entry("1234567")]}, ("573001234567", "583001234567")) == ["unknown", "unknown"]


@pytest.mark.parametrize("document", [{"id": "d1"}, {"id": "d1", "status": "1"}, {"id": "d1", "data": None}])
def test_an_id_without_data_accepts_everyone(document: dict[str, Any]) -> None:
    assert of(document) == ["accepted", "accepted"]


@pytest.mark.parametrize("document", [{"status": "1"}, {"id": None, "status": "1"}, {"id": ""}])
def test_a_dispatch_without_id_and_data_leaves_everyone_unknown(document: dict[str, Any]) -> None:
    assert of(document) == ["unknown", "unknown"]


@pytest.mark.parametrize("phone", [A, None])
def test_a_record_without_entries_is_the_entry_of_its_recipient(phone: str | None) -> None:
    (found,) = outcomes(ops.CHATAPP_SEND, entry(A), [phone])
    assert (found.outcome, found.id, found.phone) == ("accepted", "m1", A)


FAILURES = (
    "rejected, REJECTED, Error, failed, blocked, invalid, INVALID_NUMBER, undelivered, expired, not-delivered, "
    "not sent, rejected by carrier, rechazado, Rechazada, fallido, bloqueado, inválido, "
    "NO ENTREGADO, no_enviado, vencido, falló"
)


@pytest.mark.parametrize("word", FAILURES.split(", "))
def test_words_for_failure(word: str) -> None:
    assert is_failure(word)


@pytest.mark.parametrize(
    "word",
    ["", "queued", "sent", "1", "0", "delivered", "no error", "sin errores", "terror", "enviado"],
)
def test_words_that_are_not_for_failure(word: str) -> None:
    assert not is_failure(word)


@pytest.mark.parametrize("field", ["status", "state"])
@pytest.mark.parametrize("operation", [ops.SEND_SMS, ops.SEND_CALL])
def test_an_entry_with_a_word_for_failure_is_refused(operation: ops.Operation, field: str) -> None:
    document = {"id": "d", "data": [{"id": "m", "phone": A, field: "Rejected"}, {"id": "n", "phone": B, field: "ok"}]}
    assert of(document, operation=operation) == ["refused", "accepted"]


def test_an_entry_with_an_error_and_no_id_is_refused() -> None:
    assert of({"data": [{"phone": A, "error": "no such number"}, entry(B)]}) == ["refused", "accepted"]
    assert of(load_json(f'{{"data": [{{"phone": {A}, "error": 0}}, {{"phone": {B}, "error": 7}}]}}'.encode())) == [
        "accepted",
        "refused",
    ]


def test_entries_without_a_recipient_are_kept() -> None:
    document = {"data": [entry(C, id="x"), entry(A), *[entry(C, id="y")] * 200]}
    found = unclaimed(ops.SEND_SMS, document, [A])
    assert (found[0].id, found[0].phone, len(found)) == ("x", C, 100)


def test_numbers_keep_their_digits() -> None:
    document = load_json(f'{{"data": [{{"id": 17, "status": 1, "credits": 1.50, "phone": {A}}}]}}'.encode())
    (found,) = outcomes(ops.SEND_SMS, document, [A])
    assert found == (A, "accepted", "17", "1", "1.50")
