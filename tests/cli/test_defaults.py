"""Values that a profile gives: country_code, app_name and voice."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from cli.typed import PHONE, used
from conftest import KEY
from support.files import table, write_config
from support.service import Service
from support.tool import Tool

Store = Callable[..., None]

SMS = ("sms", "send", PHONE, "-m", "Hola")
CALL = ("call", "send", PHONE, "-m", "Hola")
AUDIO = ("call", "send", PHONE, "--audio-code", "A-1029")
SMS_2FA = ("2fa", "send-sms", PHONE)
CALL_2FA = ("2fa", "send-call", PHONE)
CHATAPP_2FA = ("2fa", "send-chatapp", PHONE)
VERIFY = ("2fa", "verify", PHONE, "--code", "480615")

GOOD = {"country_code": "co", "app_name": "Tienda ñ", "voice": "mia"}
WIRE = {"country_code": "country-code", "app_name": "app-name", "voice": "voice"}
SENT = {"country_code": "CO", "app_name": "Tienda ñ", "voice": "Mia"}
TAKES = [
    (SMS, ("country_code",)),
    (CALL, ("country_code", "voice")),
    (AUDIO, ("country_code",)),
    (SMS_2FA, ("country_code", "app_name")),
    (CALL_2FA, ("country_code", "app_name", "voice")),
    (CHATAPP_2FA, ("country_code", "app_name")),
    (VERIFY, ("country_code", "app_name")),
]
GIVEN = {
    "country_code": ("--country-code", "ES"),
    "app_name": ("--app-name", "Other"),
    "voice": ("--voice", "Enrique"),
}

each_command = pytest.mark.parametrize(("command", "settings"), TAKES, ids=lambda each: " ".join(each)[:24])


@pytest.fixture
def store(service: Service) -> Store:
    """Puts a profile `main`, which is the default, into the configuration file."""

    def write(**settings: Any) -> None:
        lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
        write_config(f'default_profile = "main"\n{table("main", *lines, base_url=service.base_url, client=777)}')

    return write


@each_command
def test_a_default_replaces_only_an_option_that_was_left_out(
    command: tuple[str, ...], settings: tuple[str, ...], store: Store, tool: Tool, service: Service
) -> None:
    store(**GOOD)
    form = used(tool, service, "-p", "main", *command)
    assert {name: form.get(WIRE[name]) for name in GOOD} == {
        name: SENT[name] if name in settings else None for name in GOOD
    }

    options = [word for name in settings for word in GIVEN[name]]
    form = used(tool, service, *command, *options)
    assert {name: form[WIRE[name]] for name in settings} == {name: GIVEN[name][1] for name in settings}


def test_defaults_hold_if_the_environment_gives_the_account(store: Store, tool: Tool, service: Service) -> None:
    store(**GOOD)
    form = used(tool, service, *SMS_2FA)
    assert (form["client"], form["key"], form["app-name"]) == ("12345", KEY, "Tienda ñ")


@pytest.mark.parametrize(
    ("setting", "bad", "command"),
    [("country_code", "COL", SMS), ("app_name", "a\x07b", CHATAPP_2FA), ("voice", "Unknown", CALL)],
)
def test_a_bad_default_is_a_configuration_error(
    setting: str, bad: Any, command: tuple[str, ...], store: Store, tool: Tool, service: Service
) -> None:
    store(**{**GOOD, setting: bad})
    tool("-p", "main", *command).refused(3, setting, "main")
    assert service.received == []


@pytest.mark.parametrize("bad", [{"country_code": "Colombia"}, {"country_code": "CO", "keep_days": 0}])
def test_a_mistake_in_the_profile_is_not_blamed_on_a_national_number(
    bad: dict[str, Any], store: Store, tool: Tool, service: Service
) -> None:
    store(**bad)
    tool("sms", "send", "300 123 4567", "-m", "Hola").refused(3, [*bad][-1], "main")
    assert service.received == []


@pytest.mark.parametrize("stored", ["Marian", "mariana"])
def test_the_voice_of_a_profile_serves_calls_and_verification_calls(
    stored: str, store: Store, tool: Tool, service: Service
) -> None:
    store(voice=stored)
    assert used(tool, service, "-p", "main", *CALL)["voice"] == "Marian"
    assert used(tool, service, "-p", "main", *CALL_2FA, "--app-name", "Shop")["voice"] == "Mariana"
