"""The record in a response of any shape."""

from __future__ import annotations

import json
from typing import Any

import pytest

from msgctl import operations as ops
from msgctl.http.record import convert, is_refusal
from msgctl.http.request import build
from msgctl.jsontext import ShapeError, load_json
from msgctl.operations import Operation

A, B, C = "573001234567", "573007654321", "573009999999"
MORE: dict[Operation, dict[str, Any]] = {
    ops.SEND_SMS: {"phone": [A, B], "sms": "Hola"},
    ops.SEND_CALL: {"phone": [A, B], "message": "Hola", "voice": "Mia"},
    ops.CHATAPP_SEND: {"phone": A, "body": ["Ana"], "template": "t"},
    ops.MESSAGES_STATE: {"id": "d1"},
    ops.BALANCE: {},
    ops.BLOCK_PHONE: {"phone": A},
    ops.VERIFY_2FA: {"phone": A, "app-name": "Shop", "code": "123456"},
    ops.URL_SHORT: {"name": "n", "url-long": "https://example.com"},
    ops.URL_STATISTIC: {"name-url": "n", "since": "2026-01-01", "until": "2026-01-02"},
}


def record(operation: Operation, document: Any) -> Any:
    return convert(build(operation, MORE[operation]), load_json(json.dumps(document).encode()))


def entries(document: Any, operation: Operation = ops.SEND_SMS) -> list[tuple[Any, Any, Any]]:
    return [
        (each.get("id"), each.get("status"), each.get("phone", "none")) for each in record(operation, document)["data"]
    ]


# --- dispatches


def test_entries_may_be_a_list_an_object_or_an_object_of_objects() -> None:
    a, b = {"id": "a", "status": "sent"}, {"id": "b", "status": "sent"}
    listed = [("a", "sent", A), ("b", "sent", B)]
    for document in (
        {"data": [{**a, "phone": A}, {**b, "phone": B}]},
        [{**a, "phone": A}, {**b, "phone": B}],
        {"status": 1, "data": {A: a, B: b}},
        {"status": 1, "data": {"0": a, "1": b}},
        {"status": 1, "data": {"1": b, "0": a}},
        {"status": 1, "data": {"0": {**b, "phone": B}, "1": {**a, "phone": A}}},
        {"data": {"status": 1, "data": [{**a, "phone": A}, {**b, "phone": B}]}},
        {"status": 1, "data": {"id": "d", "data": [{**a, "phone": A}, {**b, "phone": B}]}},
    ):
        assert sorted(entries(document)) == listed, document


def test_a_number_in_an_entry_has_precedence_over_the_order_of_the_entries() -> None:
    assert entries({"data": {"0": {"id": "b", "phone": B}, "1": {"id": "a"}}}) == [("b", None, B), ("a", None, "none")]


def test_data_may_contain_the_status_of_each_number() -> None:
    assert entries({"id": "d", "data": {f"+{A}": "sent", B: 0}}) == [("d", "sent", f"+{A}"), ("d", "0", B)]


def test_an_empty_entry_has_no_id() -> None:
    assert record(ops.SEND_SMS, {"id": "d", "data": [{}]})["data"] == [{}]


def test_an_object_in_place_of_a_status_is_kept_only_if_it_means_failure() -> None:
    for name, is_kept in (("PENDING", False), ("REJECTED", True), ("BLOCKED", True)):
        status = {"status": {"name": name}}
        found = record(ops.SEND_SMS, {"data": [{"id": "a", "phone": A, **status}]})
        assert found["data"] == [{"id": "a", "phone": A, **(status if is_kept else {})}]


def test_one_object_without_a_phone_applies_to_all_recipients() -> None:
    assert entries({"id": "d", "data": {"state": "Enviado"}}) == [("d", "Enviado", f"{A},{B}")]
    assert entries({"status": 1, "data": {"id": "a", "status": "sent"}}) == [("a", "sent", f"{A},{B}")]
    assert entries({"id": "d", "data": {"state": "Enviado", "phone": ["x"]}}) == [("d", "Enviado", f"{A},{B}")]
    assert entries({"id": "d", "data": {"state": "Enviado", "phone": None}}) == [("d", "Enviado", None)]
    assert entries({"id": "d", "data": [{"state": "Enviado"}]}) == [("d", "Enviado", "none")]


def test_objects_with_other_keys_belong_to_no_recipient() -> None:
    assert entries({"id": "d", "data": {C: {"id": "c", "status": "sent"}}}) == [("c", "sent", C)]
    assert entries({"id": "d", "data": {"sms": {"status": "sent"}}}) == [("d", "sent", "sms")]
    assert entries({"id": "d", "data": {"7": {"status": "sent"}}}) == [("d", "sent", "none")]


def test_empty_data_contains_no_recipient() -> None:
    nothing: list[Any] = [[], {}, "queued", 1, True]
    for empty in nothing:
        assert record(ops.SEND_SMS, {"status": 1, "data": empty})["data"] == []
    assert record(ops.SEND_SMS, {"status": 1, "data": None}) == {"status": "1"}
    assert record(ops.SEND_SMS, []) == {"data": []}


def test_an_entry_without_an_id_has_that_of_its_dispatch() -> None:
    absent: list[Any] = [{}, {"id": None}, {"id": ""}, {"id": {"a": 1}}, {"id": []}]
    for missing in absent:
        assert entries({"id": "d", "data": [{"phone": A, "status": "sent", **missing}]}) == [("d", "sent", A)], missing
    assert entries({"data": [{"phone": A, "status": "sent"}]}) == [(None, "sent", A)]


def test_an_object_in_place_of_an_id_counts_as_missing() -> None:
    assert record(ops.SEND_SMS, {"id": {"a": 1}, "status": 1}) == {"status": "1"}
    assert record(ops.CHATAPP_SEND, {"id": [], "status": "queued"}) == {"status": "queued"}
    assert record(ops.BLOCK_PHONE, {"id": {}, "status": "1", "phone": A}) == {"status": "1", "phone": A}


def test_status_and_state_are_one_field() -> None:
    assert entries({"data": [{"id": "a", "state": "Enviado", "phone": A}]}) == [("a", "Enviado", A)]
    (entry,) = record(ops.SEND_CALL, {"data": [{"id": "a", "status": "En cola", "phone": A}]})["data"]
    assert (entry["state"], "status" in entry) == ("En cola", False)
    (entry,) = record(ops.SEND_SMS, {"data": [{"id": "a", "status": 1, "state": "Enviado", "phone": A}]})["data"]
    assert (entry["status"], entry["state"]) == ("1", "Enviado")
    (entry,) = record(ops.SEND_SMS, {"data": [{"id": "a", "status": {}, "state": "Enviado", "phone": A}]})["data"]
    assert entry["status"] == "Enviado"


def test_entries_beyond_ten_times_the_recipients_are_not_kept() -> None:
    by_number = {str(573_001_230_000 + number): "sent" for number in range(100)}
    by_place = {str(number): {"status": "sent"} for number in range(100)}
    for data in ([{"id": "a"}] * 100, by_number, by_place, {name: {"status": "sent"} for name in by_number}):
        assert len(record(ops.SEND_SMS, {"data": data})["data"]) == 20
    without_phone = build(ops.CHATAPP_SEND, {"template": "t"}, b"{}")
    assert len(convert(without_phone, {"id": "x", "data": [{"id": "a"}] * 100})["data"]) == 10
    for document in ([{"state": "Enviado"}] * 1001, {"data": [{"state": "Enviado"}] * 1001}):
        assert len(states(document)) == 1000


def test_a_chatapp_record_is_one_entry_unless_its_data_has_entries() -> None:
    for document in (
        {"id": "x", "status": "queued"},
        [{"id": "x", "state": "queued"}],
        {"data": {"id": "x", "status": "queued"}},
    ):
        assert record(ops.CHATAPP_SEND, document) == {"id": "x", "status": "queued"}, document
    nothing: list[Any] = [[], {}, "queued"]
    for empty in nothing:
        assert record(ops.CHATAPP_SEND, {"id": "x", "status": 1, "data": empty}) == {"id": "x", "status": "1"}
    found = record(ops.CHATAPP_SEND, {"id": "x", "status": 1, "data": {"phone": A, "status": "rejected"}})
    assert found["data"] == [{"phone": A, "status": "rejected", "id": "x"}]


def test_a_failure_around_the_record_is_part_of_it() -> None:
    assert record(ops.URL_SHORT, {"success": False, "data": {"urlShort": "s"}}) == {"success": False, "urlShort": "s"}
    blocked = {"id": "x", "status": "blocked"}
    found = record(ops.BLOCK_PHONE, {"status": 0, "msg": "no", "data": blocked})
    assert found == {"id": "x", "status": "0", "msg": "no"}
    assert record(ops.BLOCK_PHONE, {"error": 7, "data": blocked}) == {**blocked, "error": "7"}
    assert record(ops.BLOCK_PHONE, {"status": "blocked", "data": {"id": "x", "status": 1}}) == {
        "id": "x",
        "status": "1",
    }
    found = record(ops.SEND_SMS, {"status": "blocked", "data": {"id": "x", "status": 1, "data": []}})
    assert found == {"id": "x", "status": "blocked", "data": []}
    found = record(ops.SEND_SMS, {"error": 7, "data": {"status": 1, "data": [{"phone": A, "status": "sent"}]}})
    assert found["error"] == "7"


# --- delivery states


def states(document: Any) -> list[tuple[Any, Any]]:
    return [(each.get("id"), each.get("state")) for each in record(ops.MESSAGES_STATE, document)["data"]]


def test_messages_may_be_one_record_or_a_list() -> None:
    for document in (
        {"id": "m1", "state": "Enviado"},
        [{"id": "m1", "state": "Enviado"}],
        {"data": {"id": "m1", "state": "Enviado"}},
        {"status": 1, "data": [{"id": "m1", "status": "Enviado"}]},
        {"status": "1", "data": {"0": {"id": "m1", "state": "Enviado"}}},
        {"data": {"data": [{"id": "m1", "state": "Enviado", "status": True}]}},
        {"id": "m1", "status": "Enviado"},
    ):
        assert states(document) == [("m1", "Enviado")], document
    assert states([{"state": "Enviado", "id": "m1"}, {"state": "Rechazado", "id": "m2"}]) == [
        ("m1", "Enviado"),
        ("m2", "Rechazado"),
    ]
    odd = {"state": "Enviado", "created": {"date": "2026-11-22"}, "id": {"a": "b"}, "phone": ["x"]}
    found = record(ops.MESSAGES_STATE, odd)["data"]
    assert found == [{"state": "Enviado", "created": {"date": "2026-11-22"}, "id": "d1"}]
    assert states({"id": "m1", "state": "", "status": "Enviado"}) == [("m1", "Enviado")]
    nested: dict[str, Any] = {"state": "Enviado"}
    for _ in range(6):
        nested = {"data": nested}
    assert states(nested) == [("d1", None)]


def test_a_status_of_0_or_1_is_not_a_state() -> None:
    for flag in (0, 1, "0", "1", True, False, "true"):
        assert states({"id": "m1", "status": flag}) == [("m1", None)], flag
        assert states({"status": flag}) == [], flag
    assert states({"id": "m1", "status": 7}) == [("m1", "7")]
    assert states([{"dispatch_id": "D", "state": 2}]) == [("D", "2")]


def test_a_status_around_the_messages_is_not_a_state() -> None:
    message = {"id": "m1", "state": "Rechazado"}
    for document in ({"status": "success", "data": message}, {"status": "OK", "msg": "ok", "data": [message]}):
        assert states(document) == [("m1", "Rechazado")], document
    assert states({"status": "Entregado", "data": {}}) == [("d1", "Entregado")]
    assert states({"id": "m1", "status": "Entregado", "data": {"state": "Rechazado"}}) == [("m1", "Entregado")]
    assert states({"state": "Entregado", "data": {"state": "Rechazado"}}) == [("d1", "Entregado")]


def test_an_error_instead_of_a_message_is_a_refusal() -> None:
    for error in (
        {"status": "error", "msg": "No existe"},
        {"status": 404, "message": "No encontrado", "data": []},
        {"status": 0, "data": []},
        {"data": [{"id": "m1"}, {"id": "m2", "status": 0}]},
    ):
        assert is_refusal(ops.MESSAGES_STATE, record(ops.MESSAGES_STATE, error)), error
    messages: list[dict[str, Any]] = [
        {"id": "m1", "status": "Error", "msg": "Destino inaccesible"},
        {"status": "error"},
        {"state": "Error", "status": "error", "msg": "Destino inaccesible"},
        {"status": "Rechazado", "msg": "Destino inaccesible"},
        {"status": "", "msg": "ok", "data": [{"state": "Enviado"}]},
        {"data": [{"id": "m1", "state": "Enviado"}, {"id": "m2", "status": 0}]},
        {"id": "m1", "status": 1},
        {"data": []},
    ]
    for message in messages:
        assert not is_refusal(ops.MESSAGES_STATE, record(ops.MESSAGES_STATE, message)), message


def test_an_empty_list_has_no_state_yet() -> None:
    empty: list[Any] = [[], {"data": []}, {"data": {}}, {"status": 1, "data": None}, {"status": "success", "data": []}]
    empty += [{"data": None}, {"data": "none"}]
    for document in empty:
        assert states(document) == [], document


# --- other records


def test_the_credits_left_are_the_balance_or_else_the_status() -> None:
    for document in (
        {"status": 1, "balance": 1234},
        {"credits": 1234},
        {"saldo": 1234, "status": "ok"},
        {"status": 1234},
        {"status": 1, "data": {"balance": 1234}},
        {"data": [{"saldo": 1234}]},
        [{"status": 1234}],
        {"status": 1234, "balance": None},
    ):
        assert record(ops.BALANCE, document)["status"] == "1234", document


def test_the_result_of_a_code_check_is_its_status() -> None:
    for name in ("verified", "valid"):
        assert record(ops.VERIFY_2FA, {"data": {name: True, "status": None}}) == {name: True, "status": True}
    with pytest.raises(ShapeError, match=r"none of the fields of ResponseSucces \(status\)"):
        record(ops.VERIFY_2FA, {"msg": "ok"})


def test_metrics_may_be_keyed_by_category() -> None:
    expected = [{"country": {"property": "CO"}}, {"country": {"property": "MX"}}, {"hour": {"property": "13"}}]
    country, hour = [{"property": "CO"}, {"property": "MX"}], {"property": 13}
    for metrics in (
        {"country": country, "hour": hour},
        [{"country": country[0]}, {"country": country[1]}, {"hour": hour}],
        [{"country": country}, {"hour": [hour]}],
        [{"country": country, "hour": hour, "city": None}],
    ):
        assert record(ops.URL_STATISTIC, {"urlShort": "s", "metrics": metrics})["metrics"] == expected, metrics
    metrics = {"country": {"CO": 5, "ES": 2}, "city": {}, "browser": {"x": "many"}, "lang": {"x": True}}
    assert record(ops.URL_STATISTIC, {"metrics": metrics, "msg": "ok"}) == {
        "metrics": [
            {"country": {"property": "CO", "clicks": "5"}},
            {"country": {"property": "ES", "clicks": "2"}},
            {"city": {}},
            {"browser": {"x": "many"}},
            {"lang": {"x": True}},
        ],
        "msg": "ok",
    }
    with pytest.raises(ShapeError):
        record(ops.URL_STATISTIC, {"urlShort": {"a": 1}, "urlLong": ["x"]})
    nothing: list[Any] = [{}, [], None, [{}]]
    for empty in nothing:
        assert record(ops.URL_STATISTIC, {"urlShort": "s", "metrics": empty})["metrics"] == []


@pytest.mark.parametrize(
    ("metrics", "fault"),
    [
        ("x", "its field metrics is not an array of objects"),
        ([{}, 7], "its field metrics is not an array of objects"),
        ({"country": 7}, "its field metrics contains a category that is not an object"),
        ([{"country": [{}, {"property": "CO"}, 7]}], "its field metrics contains a category that is not an object"),
    ],
)
def test_metrics_of_another_shape_are_an_error(metrics: Any, fault: str) -> None:
    with pytest.raises(ShapeError, match=f"^{fault}$"):
        record(ops.URL_STATISTIC, {"urlShort": "s", "metrics": metrics})


def test_a_record_is_found_down_to_the_third_level() -> None:
    for operation, found in ((ops.BALANCE, {"status": "7"}), (ops.URL_SHORT, {"urlShort": "s"})):
        assert record(operation, {"data": [{"data": found}]}) == found
        with pytest.raises(ShapeError):
            record(operation, {"data": {"data": {"data": found}}})
    message = {"id": "m1", "state": "Enviado"}
    assert states({"data": {"data": message}}) == [("m1", "Enviado")]


def test_too_many_metrics_are_refused() -> None:
    metrics = [{"country": {"property": "CO"}}]
    assert len(record(ops.URL_STATISTIC, {"urlShort": "s", "metrics": metrics * 20_000})["metrics"]) == 20_000
    with pytest.raises(ShapeError, match="more than 20,000 metrics"):
        record(ops.URL_STATISTIC, {"urlShort": "s", "metrics": metrics * 20_001})


def test_long_ids_and_states_are_cut() -> None:
    (entry,) = record(ops.SEND_SMS, {"data": [{"id": "x" * 257, "status": "y" * 4097, "phone": A}]})["data"]
    assert (entry["id"], entry["status"]) == ("x" * 256 + "…", "y" * 4096 + "…")
    (entry,) = record(ops.SEND_SMS, {"data": [{"id": "x" * 256, "status": "y" * 4096, "phone": A}]})["data"]
    assert (entry["id"], entry["status"]) == ("x" * 256, "y" * 4096)


def test_at_most_64_undocumented_fields_are_kept() -> None:
    others = {f"x{number}": number for number in range(65)}
    kept = {name: str(number) for name, number in others.items() if number < 64}
    entry = {"id": "a", "phone": A}
    found = record(ops.SEND_SMS, {**others, "id": "d", "data": [{**others, **entry}, entry]})
    assert found == {**kept, "id": "d", "data": [{**kept, **entry}, entry]}
    metrics = [{"city": {"property": "Cali", **others}}] * 2
    found = record(ops.URL_STATISTIC, {**others, "urlShort": "s", "metrics": metrics})
    of_metric = {"property": "Cali", **{name: value for name, value in kept.items() if name != "x63"}}
    assert found == {**kept, "urlShort": "s", "metrics": [{"city": of_metric}] * 2}


def test_at_most_10000_values_in_arrays_and_objects_are_kept() -> None:
    half: dict[str, Any] = {"y": ["v"] * 4997}  # 5,000 values with the array, the field and the object
    found = record(ops.BALANCE, {"status": 7, "metrics": half, "data": [half], "x": "v"})
    assert found == {"status": "7", "metrics": half, "data": "…", "x": "v"}
    for size, kept in ((3331, True), (3332, False)):  # three arrays in an array
        nested = [["v"] * size] * 3
        assert record(ops.BALANCE, {"status": 7, "x": nested}) == {"status": "7", "x": nested if kept else "…"}
    assert record(ops.SEND_SMS, {"data": [{"y": ["v"] * 10_000}]}) == {"data": [{"y": "…"}]}
    found = record(ops.SEND_SMS, {"id": "d", "x": half, "data": [{"id": "a", "y": half}, {"id": "b", "z": [], "x": 1}]})
    assert found == {"id": "d", "x": half, "data": [{"id": "a", "y": half}, {"id": "b", "z": "…", "x": "1"}]}


def test_the_level_with_the_fields_of_the_record_wins() -> None:
    short = {"urlShort": "s", "urlLong": "l"}
    for document in ({"status": 1, "data": short}, {**short, "data": {"name": "n"}}, {"data": [short]}, [short]):
        found = record(ops.URL_SHORT, document)
        assert (found["urlShort"], found["urlLong"]) == ("s", "l"), document


@pytest.mark.parametrize("operation", [each for each in MORE if each is not ops.MESSAGES_STATE])
def test_other_json_is_not_a_record(operation: Operation) -> None:
    others: list[Any] = [{}, {"result": "ok"}, "x", 7, None, True, [1], ["a"], {"data": {"result": 1}}]
    for document in others:
        if operation in (ops.SEND_SMS, ops.SEND_CALL) and document == {"data": {"result": 1}}:
            continue  # one entry, which applies to all
        with pytest.raises(ShapeError):
            record(operation, document)


@pytest.mark.parametrize(
    ("operation", "fields"),
    [
        (ops.BALANCE, "ResponseBalance (status)"),
        (ops.SEND_SMS, "ResponseSMS (id, status, data)"),
        (ops.URL_SHORT, "ResponseURLShort (urlShort, urlLong)"),
        (ops.MESSAGES_STATE, "ResponseStatusSMS (state, credits, phone, created, sms, dispatch_id, id)"),
    ],
)
def test_the_error_for_a_wrong_record_lists_the_expected_fields(operation: Operation, fields: str) -> None:
    for document, fault in (({"x": 1}, f"it has none of the fields of {fields}"), (7, "it is JSON, but not an object")):
        with pytest.raises(ShapeError) as error:
            record(operation, document)
        assert str(error.value) == fault
