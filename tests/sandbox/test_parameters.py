"""The rules of the interface for each parameter: what is required, allowed and exclusive."""

from __future__ import annotations

import pytest

from .world import PHONE, World, refusal

SMS = {"phone": PHONE, "sms": "Hola"}
CALL = {"phone": PHONE, "message": "Hola", "voice": "Mia"}
CODE = {"phone": PHONE, "app-name": "Shop"}
SPOKEN_CODE = {**CODE, "voice": "Mariana", "retries": "1"}
URL = {"name": "sale", "url-long": "https://shop.example/sale"}
STATISTIC = {"name-url": "sale", "since": "2026-11-01", "until": "2026-11-30"}

REQUIRED = [
    ("/block-phone", {"phone": PHONE}),
    ("/send-sms", SMS),
    ("/call/send", CALL),
    ("/2fa/send-sms", CODE),
    ("/call/2fa/send-call", SPOKEN_CODE),
    ("/2fa/verification-code", {**CODE, "code": "123456"}),
    ("/url/short", URL),
    ("/url/short-statistic", STATISTIC),
    ("/2fa/send-chatapp", CODE),
]


@pytest.mark.parametrize(
    ("path", "parameters", "name"), [(path, parameters, name) for path, parameters in REQUIRED for name in parameters]
)
@pytest.mark.parametrize("value", [None, ""])
def test_a_required_parameter_must_be_there_and_not_empty(
    world: World, path: str, parameters: dict[str, str], name: str, value: str | None
) -> None:
    error, msg = refusal(world.post(path, **{**parameters, name: value}))

    assert error == "MISSING_PARAMETER"
    assert name in msg.split()


@pytest.mark.parametrize(
    ("path", "parameters", "name", "value"),
    [
        ("/send-sms", SMS, "phone", "1234"),
        ("/send-sms", SMS, "phone", "٥٧٣٠٠١٢٣٤٥٦٧"),
        ("/send-sms", SMS, "phone", "573001234567,"),
        ("/send-sms", SMS, "country-code", "COL"),
        ("/block-phone", {}, "phone", "573001234567,573001234568"),
        ("/call/send", CALL, "voice", "Mariana"),
        ("/call/send", CALL, "retries", "0"),
        ("/call/send", CALL, "retries", "4"),
        ("/call/send", CALL, "leave-voicemail", "yes"),
        ("/call/2fa/send-call", SPOKEN_CODE, "voice", "Marian"),
        ("/call/2fa/send-call", SPOKEN_CODE, "retries", "-1"),
        ("/url/short", URL, "is-premium", "TRUE"),
        ("/url/short", URL, "expiration-time-statistics", "-1"),
        ("/url/short", URL, "alias", "a b"),
        ("/url/short", URL, "domain-name", "a..b"),
        ("/url/short", URL, "url-long", "shop.example"),
        ("/url/short", URL, "url-long", "https://shop.example/\r\nSet-Cookie: a=b"),
        ("/url/short-statistic", STATISTIC, "since", "2026-02-29"),
        ("/url/short-statistic", STATISTIC, "category", "operatingsystem"),
    ],
)
def test_a_value_that_breaks_a_rule_is_refused_by_its_name(
    world: World, path: str, parameters: dict[str, str], name: str, value: str
) -> None:
    error, msg = refusal(world.post(path, **{**parameters, name: value}))

    assert error == "INVALID_PARAMETER"
    assert msg.split()[0] == name
    assert world.credits == 1000


def test_an_empty_optional_parameter_counts_as_not_sent(world: World) -> None:
    assert world.post("/send-sms", **SMS, country_code="").status == 200


@pytest.mark.parametrize("extra", [{"message": "Hola"}, {"voice": "Mia"}, {"message": "Hola", "voice": "Mia"}])
def test_an_audio_excludes_message_and_voice(world: World, extra: dict[str, str]) -> None:
    error, msg = refusal(world.post("/call/send", phone=PHONE, audio_code="a1", **extra))

    assert error == "INVALID_PARAMETER"
    assert msg == f"audio-code must not be combined with {' and '.join(extra)}"
    assert world.credits == 1000
