"""What an answer says of each phone of a request, and what an error means for its recipients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from msgctl.jobs.dispatch import dispatch, entries, parameters
from msgctl.jobs.records import Entry, Intent

from jobs.making import ORDER, Service, entry, told
from msgctl import operations
from msgctl.errors import (
    ConfigurationError,
    MsgctlError,
    NotReachedError,
    OutcomeUnknownError,
    RefusedError,
    UsageError,
)
from msgctl.jobs.states import Event

A, B, C = "573001234567", "573007654321", "573009999999"


def ids(*data: Mapping[str, Any], phones: tuple[str, ...] = (A, B, C)) -> list[str | None]:
    """The message ids that the entries of an answer give to some phones."""
    found = entries(told({"id": "d1", "status": "1", "data": list(data)}), phones)
    assert len(found) == len(phones)
    return [entry and entry.id for entry in found]


def named(phone: object, id: str) -> dict[str, Any]:
    return {**entry(A), "id": id, "phone": phone}


def test_an_entry_belongs_to_the_phone_that_it_names() -> None:
    assert ids(named(C, "c"), named(A, "a"), named(B, "b")) == ["a", "b", "c"]


@pytest.mark.parametrize("spell", [lambda phone: f"+{phone}", int], ids=["plus", "number"])
def test_a_phone_may_be_spelled_otherwise(spell: Any) -> None:
    assert ids(named(spell(B), "b"), named(spell(C), "c"), named(spell(A), "a")) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "phones",
    [
        ("3001234567", "3007654321", "3009999999"),
        ("3001234567", B, "3009999999"),
        (A, B, "3009999999"),
    ],
    ids=["all", "most", "one"],
)
def test_entries_stand_in_the_order_of_phones_that_the_service_completed(phones: tuple[str, ...]) -> None:
    """With --country-code some files have numbers with and without the code."""
    assert ids(named(A, "a"), named(B, "b"), named(C, "c"), phones=phones) == ["a", "b", "c"]


def test_a_phone_without_an_entry_has_none() -> None:
    assert ids(named(C, "c"), named(A, "a")) == ["a", None, "c"]
    assert ids() == [None, None, None]
    assert ids(named("1", "x"), named("2", "y")) == [None, None, None]


def test_order_is_not_trusted_where_an_entry_names_another_phone() -> None:
    assert ids(named(B, "b"), named("1", "x"), named("2", "y")) == [None, "b", None]
    assert ids(named(A, "a"), named(A, "again"), named(C, "c")) in (["a", None, "c"], ["again", None, "c"])


def test_an_entry_with_a_country_code_is_about_the_phone_without() -> None:
    without = ("3001234567", "3007654321")
    assert ids(named("573007654321", "b"), named("573001234567", "a"), phones=without) == ["a", "b"]
    assert ids(named("34999000111", "x"), named("34999000222", "y"), phones=without) == [None, None]
    assert ids(named("573001234567", "x"), named("523001234567", "y"), phones=without) == [None, None]


def test_an_entry_that_may_be_about_two_phones_is_about_neither() -> None:
    assert ids(named("3001234567", "x"), named(B, "b"), phones=(A, "523001234567", B)) == [None, None, "b"]


def test_entries_that_name_no_phone_stand_in_order() -> None:
    assert ids({"id": "a"}, {"id": "b"}, {"id": None, "status": "rejected"}) == ["a", "b", None]


@pytest.mark.parametrize("document", [{"id": "d1", "status": 1}, {"id": "d1", "status": 1, "data": None}])
def test_an_answer_without_entries_says_nothing_of_anybody(document: dict[str, Any]) -> None:
    assert entries(told(document), (A, B)) == (None, None)


def test_the_state_of_a_call_is_its_status() -> None:
    call = {"id": "m1", "state": "queued", "credits": 2, "phone": A, "voice": "Mia"}
    answer = told({"status": "ok", "id": "d1", "data": [call]}, operations.SEND_CALL)
    assert entries(answer, (A,)) == (Entry("m1", "queued", "2"),)


@pytest.mark.parametrize("operation", [operations.CHATAPP_SEND, operations.BLOCK_PHONE], ids=lambda each: each.name)
def test_a_record_of_one_recipient_is_its_entry(operation: operations.Operation) -> None:
    answer = told({"id": "m1", "status": "sent", "phone": "otherwise", "name": "Ana"}, operation)
    assert entries(answer, (A,)) == (Entry("m1", "sent", None),)


@pytest.mark.parametrize(
    ("credits", "charged"),
    [("3", 3), ("0", 0), (None, None), ("3.5", None), ("1e3", None), ("-1", None), ("٣", None), ("9" * 5000, None)],
    ids=lambda value: str(value)[:5],
)
def test_credits_are_whole_numbers(credits: str | None, charged: int | None) -> None:
    assert Entry("m1", "sent", credits).charged == charged


# --- errors


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (RefusedError("520", http_status=520), Event.REFUSAL),
        (RefusedError("503", http_status=503, certain=False), Event.LOSS),
        (UsageError("it is too long for a URL"), Event.REFUSAL),
        (NotReachedError("no connection"), Event.NEVER_LEFT),
        (ConfigurationError("the certificates cannot be read"), Event.NEVER_LEFT),
        (OutcomeUnknownError("it broke"), Event.LOSS),
        (ValueError("a mistake"), Event.LOSS),
    ],
    ids=lambda value: value.name if isinstance(value, Event) else type(value).__name__,
)
def test_what_an_error_means(error: Exception, event: Event) -> None:
    def fail(_: object) -> Any:
        raise error

    result = dispatch(Service(fail).connect(), ORDER, Intent(7, (A, B), {"sms": "Hello"}, 2))
    assert (result.number, result.event, result.entries) == (7, event, ())
    assert isinstance(result.fault, MsgctlError)


def test_a_request_that_cannot_be_made_is_refused() -> None:
    result = dispatch(Service().connect(), ORDER, Intent(7, (A,), {"sms": ""}, 1))
    assert result.event is Event.REFUSAL


# --- requests


def test_phones_of_one_text_share_a_request() -> None:
    order = replace(ORDER, fixed={"country-code": "CO"})
    made = parameters(order, Intent(1, (A, B), {"sms": "Hello"}, 2))
    assert made == {"phone": (A, B), "sms": "Hello", "country-code": "CO"}


def test_a_template_goes_to_one_phone() -> None:
    order = replace(ORDER, operation=operations.CHATAPP_SEND.name, fixed={"template": "hello"})
    made = parameters(order, Intent(1, (A,), {"body": ["Ana", "8:00"]}, 1))
    assert made == {"phone": A, "body": ["Ana", "8:00"], "template": "hello"}
