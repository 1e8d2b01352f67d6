"""Defaults from a profile: country_code, app_name and voice."""

from __future__ import annotations

import pytest

from support.files import table, write_config
from support.service import Service, respond
from support.tool import Tool

PHONE = "573001234567"
OPTIONS = {"country-code": "ES", "app-name": "Other", "voice": "Enrique"}


@pytest.mark.parametrize(
    ("command", "defaults"),
    [
        (("sms", "send", PHONE, "-m", "Hola"), {"country-code": "CO"}),
        (("call", "send", PHONE, "-m", "Hola"), {"country-code": "CO", "voice": "Marian"}),
        (("call", "send", PHONE, "--audio-code", "A-1029"), {"country-code": "CO"}),
        (("2fa", "send-sms", PHONE), {"country-code": "CO", "app-name": "Tienda ñ"}),
        (("2fa", "send-call", PHONE), {"country-code": "CO", "app-name": "Tienda ñ", "voice": "Mariana"}),
        (("2fa", "send-chatapp", PHONE), {"country-code": "CO", "app-name": "Tienda ñ"}),
        (("2fa", "verify", PHONE, "--code", "480615"), {"country-code": "CO", "app-name": "Tienda ñ"}),
    ],
    ids=lambda value: " ".join(value[:2]) if isinstance(value, tuple) else "",
)
def test_a_default_applies_only_if_the_option_is_omitted(
    command: tuple[str, ...], defaults: dict[str, str], tool: Tool, server: Service
) -> None:
    settings = ('country_code = "co"', 'app_name = "Tienda ñ"', 'voice = "mariana"')
    write_config(f'default_profile = "main"\n{table("main", *settings, base_url=server.base_url)}')
    server.always(respond({"id": "1", "status": "1"}))
    assert tool(*command).code == 0
    form = dict(server.received[0].form)
    assert {name: form[name] for name in OPTIONS if name in form} == defaults
    given = {name: OPTIONS[name] for name in defaults}
    assert tool(*command, *(f"--{name}={value}" for name, value in given.items())).code == 0
    form = dict(server.received[1].form)
    assert {name: form[name] for name in OPTIONS if name in form} == given
