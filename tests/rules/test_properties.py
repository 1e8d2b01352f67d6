"""Properties of every response: an unknown outcome stays unknown."""

from __future__ import annotations

from random import Random
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from msgctl.outcomes import delivery, words
from msgctl.outcomes.delivery import Delivery

from .judging import ITEMS, OTHER, PHONE, outcome, outcomes

SENDS = [item for item in ITEMS if item["operation"] in ("sms send", "call send", "2fa send-sms", "chatapp send")]
GOOD = ["Enviado", "Message queued", "ok", "Entregado", "en cola", "Verificado", "delivered"]
LISTS = (words.GOOD, words.VERIFIED, words.FILLER, words.FAILED, words.OPEN, words.NO_ANSWER, words.NEGATION)

unknown_words = st.from_regex(r"[a-z]{2,12}", fullmatch=True).filter(
    lambda word: not any(part in each for part in words.tokenize(word).words for each in LISTS)
)
plain_values = st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(max_size=20) | st.sampled_from(GOOD)
messages = st.text(max_size=30) | st.sampled_from(
    ["Rechazado", "saldo insuficiente", "Pedido 4417", "A-4417", "en espera"]
)
names = st.sampled_from(["x", "msg", "error", "success", "code", "result", "credits", "errors"])
bodies = st.sampled_from(SENDS).map(lambda item: item["body"])


@given(st.sampled_from(GOOD), unknown_words, st.booleans())
def test_an_unknown_word_is_never_good_news(good: str, word: str, is_first: bool) -> None:
    text = f"{word} {good}" if is_first else f"{good} {word}"
    assert outcomes({"status": text, "id": "m-1"}) == ["unknown"]
    assert outcome("2fa verify", 200, {"status": text}) == "not_verified"
    assert delivery.classify(text, words.NO_WORDS) is not Delivery.DELIVERED


@given(bodies, names, plain_values)
def test_another_field_never_turns_an_unknown_outcome_into_acceptance(body: Any, name: str, value: Any) -> None:
    assume(isinstance(body, dict) and name not in body)
    if outcomes(body) != ["accepted"]:
        assert outcomes({**body, name: value}) != ["accepted"]


@given(st.sampled_from(ITEMS), messages, st.sampled_from(["sms", "texto", "x"]))
def test_a_repeated_value_of_the_request_changes_nothing(item: dict[str, Any], message: str, name: str) -> None:
    body = item["body"]
    assume(isinstance(body, dict) and name not in body)
    assert outcomes({**body, name: message}, values=[message]) == outcomes(body, values=[message])


def shuffled(value: Any, random: Random) -> Any:
    """Return a document whose fields and entries are in another order."""
    if isinstance(value, dict):
        names = random.sample([*value], len(value))
        return {name: shuffled(value[name], random) for name in names}
    if isinstance(value, list):
        return [shuffled(each, random) for each in random.sample(value, len(value))]
    return value


@given(st.sampled_from(ITEMS), st.randoms(use_true_random=False))
def test_the_order_of_fields_and_entries_changes_nothing(item: dict[str, Any], random: Random) -> None:
    assert outcome(item["operation"], item["http_status"], shuffled(item["body"], random)) == item["expect"]


@given(st.permutations([(PHONE, "Enviado"), (OTHER, "Rechazado: lista negra"), ("573009999999", "Fuera")]))
def test_entries_belong_to_their_numbers_in_any_order(entries: list[tuple[str, str]]) -> None:
    data = [{"id": f"m-{phone}", "status": status, "phone": phone} for phone, status in entries]
    assert outcomes({"status": 1, "data": data}, phones=[PHONE, OTHER]) == ["accepted", "refused"]


@given(st.from_regex(r"57300[0-9]{7}", fullmatch=True), st.sampled_from(GOOD))
def test_a_response_about_another_number_is_unknown(phone: str, status: str) -> None:
    assume(phone != PHONE)
    assert outcomes({"status": status, "phone": phone}) == ["unknown"]
    assert outcomes({"status": 1, "data": [{"id": "m-1", "status": status, "phone": phone}]}) == ["unknown"]
    assert outcomes({"status": 1, "data": {"id": "m-1", "status": status, "phone": phone}}) == ["unknown"]
