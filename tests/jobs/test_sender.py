"""The outcome of each phone by the response to a request, and by an error."""

from __future__ import annotations

from typing import Any

import pytest

from jobs.making import SPEC, Service, entry
from msgctl.errors import (
    ConfigurationError,
    MsgctlError,
    NotReachedError,
    OutcomeUnknownError,
    RefusedError,
    UsageError,
)
from msgctl.jobs import spec
from msgctl.jobs.runner import send
from msgctl.jobs.spec import Intent
from msgctl.jobs.states import Event, State
from msgctl.recipients import RecipientOutcome

A, B, C = "573001234567", "573007654321", "573009999999"


def intent(*phones: str, **parameters: Any) -> Intent:
    return Intent(7, State.PENDING, range(2, len(phones) + 2), phones, parameters or {"sms": "Hello"}, 1)


@pytest.mark.parametrize(
    ("credits", "charged"),
    [("3", 3), ("0", 0), (None, None), ("3.5", None), ("1e3", None), ("-1", None), ("٣", None), ("9" * 5000, None)],
    ids=["many", "none", "missing", "a fraction", "an exponent", "negative", "of another script", "too many"],
)
def test_credits_are_whole_numbers(credits: str | None, charged: int | None) -> None:
    assert spec.charged(credits) == charged


# --- errors


@pytest.mark.parametrize(
    ("error", "event"),
    [
        (RefusedError("520", http_status=520), Event.REFUSED),
        (OutcomeUnknownError("503", http_status=503), Event.LOST),
        (UsageError("it is too long for a URL"), Event.REFUSED),
        (NotReachedError("no connection"), Event.NOT_SENT),
        (ConfigurationError("the certificates cannot be read"), Event.NOT_SENT),
        (OutcomeUnknownError("it broke"), Event.LOST),
        (ValueError("a mistake"), Event.LOST),
    ],
    ids=lambda value: value.name if isinstance(value, Event) else type(value).__name__,
)
def test_what_an_error_means(error: Exception, event: Event) -> None:
    def fail(_: object) -> Any:
        raise error

    result = send(Service(fail).connect(), SPEC, intent(A, B))
    assert [each.outcome for each in result.outcomes] == ["refused" if event is Event.REFUSED else "unknown"] * 2
    assert result.was_sent == (event is not Event.NOT_SENT)
    assert isinstance(result.error, MsgctlError)


def test_a_request_that_cannot_be_made_is_refused() -> None:
    result = send(Service().connect(), SPEC, intent(A, sms=""))
    assert result.outcomes == [RecipientOutcome(A, "refused")]


# --- requests


def test_the_response_is_kept_if_an_outcome_is_in_doubt() -> None:
    assert send(Service().connect(), SPEC, intent(A, B)).body is None
    incomplete = Service(lambda phones: [entry(phones[0])])
    body = send(incomplete.connect(), SPEC, intent(A, B)).body
    assert body is not None
    assert f"m{A}" in body
