"""The package's operations are those of the interface: nothing missing, nothing more, nothing spelled differently."""

from __future__ import annotations

import pytest

from contract import interface, records
from contract.interface import ENDPOINTS, Endpoint, Parameter
from msgctl import operations
from msgctl.errors import RefusedError
from msgctl.operations import OPERATIONS, Kind, Member, Operation

CREDENTIALS = ("client", "key")

KINDS = {
    "string": Kind.STRING,
    "integer": Kind.INTEGER,
    "integer (int64)": Kind.INTEGER,
    "number": Kind.NUMBER,
    "numeric": Kind.NUMBER,
    "boolean": Kind.BOOLEAN,
    "object": Kind.OBJECT,
    "array of objects": Kind.ARRAY,
    "array of strings": Kind.ARRAY,
}

each_endpoint = pytest.mark.parametrize("endpoint", ENDPOINTS.values(), ids=[path for _, path in ENDPOINTS])


def operation_of(endpoint: Endpoint) -> Operation:
    (operation,) = (each for each in OPERATIONS if (each.method, each.path) == (endpoint.method, endpoint.path))
    return operation


def own(endpoint: Endpoint) -> dict[str, Parameter]:
    """The parameters that are not the credentials, by name."""
    return {each.name: each for each in endpoint.parameters if each.name not in CREDENTIALS}


def fields_as_kinds(fields: tuple[records.Field, ...]) -> list[object]:
    return [(field.name, KINDS[field.type], fields_as_kinds(field.fields)) for field in fields]


def members_as_kinds(members: tuple[Member, ...]) -> list[object]:
    return [(member.name, member.kind, members_as_kinds(member.of)) for member in members]


# --- The transcription keeps the document's general rules ---


@each_endpoint
def test_credentials_are_required_by_every_endpoint_in_one_place(endpoint: Endpoint) -> None:
    credentials = [each for each in endpoint.parameters if each.name in CREDENTIALS]
    assert [each.name for each in credentials] == ["client", "key"]
    assert {each.presence for each in credentials} == {"required"}
    assert len({each.place for each in credentials}) == 1


@each_endpoint
def test_parameters_are_sent_where_the_general_rules_say(endpoint: Endpoint) -> None:
    places = {each.place for each in endpoint.parameters}
    if endpoint.method == "GET":
        assert (places, endpoint.content_type) == ({"query"}, None)
    elif endpoint.path in {"/chatapp/send", "/chatapp/store/order"}:
        assert (places, endpoint.content_type) == ({"query", "json"}, "application/json")
    else:
        assert (places, endpoint.content_type) == ({"form"}, "application/x-www-form-urlencoded")
        assert endpoint.accept == "application/json"


@each_endpoint
def test_rules_across_parameters_name_parameters_of_the_endpoint(endpoint: Endpoint) -> None:
    for each in endpoint.parameters:
        assert (each.presence == "conditional") == (each.unless is not None)
        for name in (each.unless, *each.excludes):
            assert name is None or endpoint.parameter(name) is not each


# --- The operations are those of the transcription ---


def test_operations_are_the_endpoints() -> None:
    assert sorted((each.method, each.path) for each in OPERATIONS) == sorted(ENDPOINTS)


def test_operations_have_names_of_their_own() -> None:
    assert len({each.name for each in OPERATIONS}) == len(OPERATIONS)


@each_endpoint
def test_credentials_are_sent_where_the_interface_says(endpoint: Endpoint) -> None:
    assert operation_of(endpoint).credentials.value == endpoint.parameter("client").place


@each_endpoint
def test_fields_are_the_parameters(endpoint: Endpoint) -> None:
    assert sorted(field.name for field in operation_of(endpoint).fields) == sorted(own(endpoint))


@each_endpoint
def test_fields_are_sent_where_the_interface_says(endpoint: Endpoint) -> None:
    assert {field.name: field.place.value for field in operation_of(endpoint).fields} == {
        name: parameter.place for name, parameter in own(endpoint).items()
    }


@each_endpoint
def test_fields_have_the_types_of_the_parameters(endpoint: Endpoint) -> None:
    assert {field.name: field.kind for field in operation_of(endpoint).fields} == {
        name: KINDS[parameter.type] for name, parameter in own(endpoint).items()
    }


@each_endpoint
def test_fields_are_required_where_the_interface_says(endpoint: Endpoint) -> None:
    """A conditional parameter is not required by itself; if the document says nothing, both are right."""
    required = {field.name: field.required for field in operation_of(endpoint).fields}
    for name, parameter in own(endpoint).items():
        if parameter.presence != "unstated":
            assert required[name] == (parameter.presence == "required"), name


@each_endpoint
def test_fields_allow_what_the_interface_allows(endpoint: Endpoint) -> None:
    assert {field.name: (field.choices, field.several, field.most) for field in operation_of(endpoint).fields} == {
        name: (parameter.values, parameter.several, parameter.maximum) for name, parameter in own(endpoint).items()
    }


def test_premium_categories_are_those_of_the_interface() -> None:
    category = ENDPOINTS["POST", "/url/short-statistic"].parameter("category")
    assert category.premium_values == operations.PREMIUM_CATEGORIES
    assert category.values == operations.PLAIN_CATEGORIES + operations.PREMIUM_CATEGORIES


@each_endpoint
def test_responses_have_the_fields_of_the_record_in_order(endpoint: Endpoint) -> None:
    assert members_as_kinds(operation_of(endpoint).answer.members) == fields_as_kinds(endpoint.answer.fields)


@each_endpoint
def test_responses_have_the_name_of_the_record(endpoint: Endpoint) -> None:
    if endpoint.answer.name is None:
        assert not operation_of(endpoint).answer.name.startswith("Response"), "the interface gives this record no name"
    else:
        assert operation_of(endpoint).answer.name == endpoint.answer.name


@each_endpoint
def test_errors_keep_every_field_of_the_error_record(endpoint: Endpoint) -> None:
    record = {field.name: f"the {field.name}" for field in endpoint.error.fields}
    refused = RefusedError("refused", http_status=interface.FAILURE, record=record)
    assert refused.details() == {"http_status": 520, **record}
