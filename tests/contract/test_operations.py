"""The operations in the package match the API: nothing is missing, added or spelled differently."""

from __future__ import annotations

import pytest

from contract.interface import CATEGORIES, ENDPOINTS, ERROR_FIELDS, PREMIUM_CATEGORIES, RECORDS, Endpoint, Field
from msgctl import operations
from msgctl.errors import RefusedError, ResponseDetails
from msgctl.operations import OPERATIONS, Kind, ResponseField


def kinds_of(fields: tuple[Field, ...] | tuple[ResponseField, ...]) -> list[object]:
    return [
        (each.name, each.type, kinds_of(each.fields))
        if isinstance(each, Field)
        else (each.name, each.kind.value, kinds_of(each.of))
        for each in fields
    ]


def test_operations_match_the_endpoints_of_the_api_and_have_unique_names() -> None:
    assert sorted((each.method, each.path) for each in OPERATIONS) == sorted(ENDPOINTS)
    assert len({each.name for each in OPERATIONS}) == len(OPERATIONS)


@pytest.mark.parametrize("endpoint", ENDPOINTS.values(), ids=[path for _, path in ENDPOINTS])
def test_an_operation_has_the_parameters_and_the_response_of_its_endpoint(endpoint: Endpoint) -> None:
    (operation,) = (each for each in OPERATIONS if (each.method, each.path) == (endpoint.method, endpoint.path))
    places = {each.name: each.place for each in endpoint.parameters if each.name not in endpoint.own}
    assert places == dict.fromkeys(("client", "key"), operation.credentials.value)
    fields = {field.name: field for field in operation.fields}
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
    record = operation.record
    assert kinds_of(record.fields) == kinds_of(RECORDS[endpoint.record])
    assert record.name == endpoint.record or (endpoint.record == "unnamed" and not record.name.startswith("Response"))


def test_premium_categories_match_the_api() -> None:
    assert (operations.PLAIN_CATEGORIES, operations.PREMIUM_CATEGORIES) == (CATEGORIES, PREMIUM_CATEGORIES)


def test_errors_keep_every_field_of_the_error_record() -> None:
    record = {name: f"the {name}" for name in ERROR_FIELDS}
    details = ResponseDetails(520, record, "x", None)
    assert RefusedError("refused", details=details).document() == {"http_status": 520, **record, "body": "x"}
