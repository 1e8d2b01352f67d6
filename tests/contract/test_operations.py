"""The package's operations match the API: nothing is missing, added or spelled differently."""

from __future__ import annotations

import pytest

from contract.interface import CATEGORIES, ENDPOINTS, ERROR_FIELDS, PREMIUM_CATEGORIES, RECORDS, Endpoint, Field
from msgctl import operations
from msgctl.errors import RefusedError, ResponseDetails
from msgctl.operations import OPERATIONS, Kind, Operation, ResponseField

each_endpoint = pytest.mark.parametrize("endpoint", ENDPOINTS.values(), ids=[path for _, path in ENDPOINTS])


def operation_of(endpoint: Endpoint) -> Operation:
    (operation,) = (each for each in OPERATIONS if (each.method, each.path) == (endpoint.method, endpoint.path))
    return operation


def kinds_of(fields: tuple[Field, ...] | tuple[ResponseField, ...]) -> list[object]:
    return [
        (each.name, each.type, kinds_of(each.fields))
        if isinstance(each, Field)
        else (each.name, each.kind.value, kinds_of(each.of))
        for each in fields
    ]


# --- The operations are those of the transcription ---


def test_operations_match_the_endpoints_of_the_api() -> None:
    assert sorted((each.method, each.path) for each in OPERATIONS) == sorted(ENDPOINTS)


def test_each_operation_has_its_own_name() -> None:
    assert len({each.name for each in OPERATIONS}) == len(OPERATIONS)


@each_endpoint
def test_credentials_are_sent_where_the_api_requires(endpoint: Endpoint) -> None:
    places = {each.name: each.place for each in endpoint.parameters if each.name not in endpoint.own}
    place = operation_of(endpoint).credentials.value
    assert places == {"client": place, "key": place}


@each_endpoint
def test_fields_match_the_parameters_of_the_api(endpoint: Endpoint) -> None:
    fields = {field.name: field for field in operation_of(endpoint).fields}
    assert fields.keys() == endpoint.own.keys()
    for name, parameter in endpoint.own.items():
        field, rules = fields[name], parameter.rules
        assert field.place.value == parameter.place, name
        assert field.kind == (
            Kind.BOOLEAN if "boolean" in rules else Kind.ARRAY if "array" in rules else Kind.STRING
        ), name
        # A conditional parameter is not required by itself; if the document does not specify it, both are right.
        assert parameter.presence == "unstated" or field.required == (parameter.presence == "required"), name
        assert field.choices == parameter.values, name
        assert field.several == ("several" in rules), name
        assert field.most == (int(parameter.rule("maximum") or 0) or None), name


def test_premium_categories_match_the_api() -> None:
    assert (operations.PLAIN_CATEGORIES, operations.PREMIUM_CATEGORIES) == (CATEGORIES, PREMIUM_CATEGORIES)


@each_endpoint
def test_responses_have_the_fields_of_the_record_in_order(endpoint: Endpoint) -> None:
    record = operation_of(endpoint).record
    assert kinds_of(record.fields) == kinds_of(RECORDS[endpoint.record])
    if endpoint.record == "unnamed":
        assert not record.name.startswith("Response"), "the interface gives this record no name"
    else:
        assert record.name == endpoint.record


def test_errors_keep_every_field_of_the_error_record() -> None:
    record = {name: f"the {name}" for name in ERROR_FIELDS}
    assert RefusedError("refused", details=ResponseDetails(520, record, "x", None)).document() == {
        "http_status": 520,
        **record,
        "body": "x",
    }
