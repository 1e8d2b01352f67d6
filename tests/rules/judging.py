"""Call the judge with plain Python values. An outcome is one word."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgctl.jsontext import ShapeError, load_json
from msgctl.outcomes import codes, delivery, judge
from msgctl.outcomes.outcome import RequestFacts
from msgctl.outcomes.record import messages_of
from msgctl.outcomes.words import NO_WORDS, AddedWords

PHONE, OTHER = "573001234567", "573007654321"
ITEMS: list[dict[str, Any]] = [
    json.loads(line)
    for name in ("rules.jsonl", "phrases.jsonl")
    for line in Path(__file__).with_name(name).read_text().splitlines()
]
"""Responses with their outcomes: examples of the rules, and responses that many services publish.

``says`` is the outcome that a person would conclude if the judge cannot be certain.
"""


def request(
    operation: str,
    phones: Sequence[str | None] = (PHONE,),
    values: Sequence[str] = (),
    added: AddedWords = NO_WORDS,
) -> RequestFacts:
    """Return the facts about a request that its response is judged by."""
    echoes = {*values, *filter(None, phones)}
    numbers = {value for value in echoes if value.isdecimal()} | {str(len(phones))}
    return RequestFacts(
        phones,
        frozenset(echoes),
        frozenset(numbers),
        is_block=operation == "block add",
        is_link=operation == "url shorten",
        is_call=operation == "call send",
        added=added,
    )


def parsed(body: Any) -> Any:
    """Return a body as msgctl reads it: with numbers as strings."""
    return load_json(json.dumps(body).encode())


def outcomes(
    body: Any,
    http_status: int = 200,
    phones: Sequence[str | None] = (PHONE,),
    values: Sequence[str] = ("hi",),
    added: AddedWords = NO_WORDS,
) -> list[str]:
    document = parsed(body)
    verdict = judge.outcomes_of(request("sms send", phones, values, added), http_status, document)
    return [each.outcome for each in verdict.outcomes]


def outcome(operation: str, http_status: int, body: Any, added: AddedWords = NO_WORDS) -> str:
    """Return the outcome of a response, in one word."""
    parts = request(operation, values=("hi", "123456", "n", "https://example.com"), added=added)
    document = parsed(body)
    is_success = 200 <= http_status < 300
    if operation == "2fa verify":
        is_verified = is_success and codes.doubt_of_code(parts, document) is None
        return "verified" if is_verified else "not_verified"
    if operation.startswith("balance"):
        try:
            return f"credits:{judge.credits_left(document)}" if is_success else "error"
        except ShapeError:
            return "error"
    if operation.startswith("state"):
        try:
            states = delivery.states(messages_of(document, "m1"), [PHONE], added)
        except ShapeError:
            states = [None]
        return delivery.classify(states[0] or "", added).replace(" ", "_")
    results = {each.outcome for each in judge.outcomes_of(parts, http_status, document).outcomes}
    return next(each for each in ("unknown", "refused", "accepted") if each in results)
