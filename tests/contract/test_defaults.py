"""Defaults from a profile: country_code, app_name and voice."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from contract.option_values import PHONE, used
from msgctl import files
from support.files import config_file, table, write_config
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
def test_a_default_applies_only_if_the_option_is_omitted(
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


@pytest.mark.parametrize(
    ("setting", "bad", "command"),
    [("country_code", "COL", SMS), ("app_name", "a\x07b", CHATAPP_2FA), ("voice", "Unknown", CALL)],
)
def test_a_bad_default_is_a_configuration_error(
    setting: str, bad: Any, command: tuple[str, ...], store: Store, tool: Tool, service: Service
) -> None:
    store(**{**GOOD, setting: bad})
    tool("-p", "main", *command).refused(3, f"{files.shown(config_file())}: profile main: {setting} cannot be used")
    assert service.received == []


@pytest.mark.parametrize("bad", [{"country_code": "Colombia"}, {"country_code": "CO", "timezone": "Bogota"}])
def test_an_invalid_profile_is_reported_instead_of_an_invalid_number(
    bad: dict[str, Any], store: Store, tool: Tool, service: Service
) -> None:
    store(**bad)
    tool("-p", "main", "sms", "send", "300 123 4567", "-m", "Hola").refused(3, [*bad][-1], "main")
    assert service.received == []


@pytest.mark.parametrize("stored", ["Marian", "mariana"])
def test_the_voice_of_a_profile_applies_to_calls_and_verification_calls(
    stored: str, store: Store, tool: Tool, service: Service
) -> None:
    store(voice=stored)
    assert used(tool, service, "-p", "main", *CALL)["voice"] == "Marian"
    assert used(tool, service, "-p", "main", *CALL_2FA, "--app-name", "Shop")["voice"] == "Mariana"


# --- MSGCTL_COUNTRY_CODE

NATIONAL = "300 123 4567"


def test_the_country_of_the_environment_comes_after_the_option_and_before_the_profile(
    store: Store, tool: Tool, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    store(country_code="ES")
    monkeypatch.setenv("MSGCTL_COUNTRY_CODE", "co")
    for chosen in ([], ["-p", "main"]):
        form = used(tool, service, *chosen, "sms", "send", NATIONAL, "-m", "Hola")
        assert (form["phone"], form["country-code"]) == ("573001234567", "CO")
    form = used(tool, service, "sms", "send", "612 345 678", "-m", "Hola", "--country-code", "ES")
    assert (form["phone"], form["country-code"]) == ("34612345678", "ES")
    monkeypatch.setenv("MSGCTL_COUNTRY_CODE", "")
    assert used(tool, service, "-p", "main", "sms", "send", "612 345 678", "-m", "Hola")["phone"] == "34612345678"


def test_the_country_of_the_environment_needs_no_profile(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MSGCTL_COUNTRY_CODE", "CO")
    assert tool("optout", "add", NATIONAL).code == 0
    assert tool("optout", "list", "-o", "tsv", "--no-header", "--fields", "phone").out == "573001234567\n"


@pytest.mark.parametrize("command", [("optout", "add", NATIONAL), SMS, ("history", "--phone", NATIONAL)])
def test_an_invalid_country_of_the_environment_is_refused(
    command: tuple[str, ...], tool: Tool, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSGCTL_COUNTRY_CODE", "COL")
    tool(*command).refused(3, 'MSGCTL_COUNTRY_CODE cannot be used: "COL"', "--country-code")
    assert service.received == []
