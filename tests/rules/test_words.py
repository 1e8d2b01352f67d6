"""An outcome that is unknown because of a word: the error contains the command that adds the word to the profile."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from support.commands import PHONE
from support.service import Service, respond
from support.tool import Tool

SEND = ("sms", "send", PHONE, "-m", "hi")
VERIFY = ("2fa", "verify", PHONE, "--app-name", "Shop", "--code", "123456")
OTHER = "573007654321"


@pytest.fixture
def profile(server: Service, home: Path) -> Path:
    """A profile "main" of the server."""
    folder = home / "config" / "msgctl"
    folder.mkdir(parents=True, mode=0o700)
    file = folder / "config.toml"
    file.touch(0o600)
    file.write_text(
        f'default_profile = "main"\n\n[profiles.main]\nbase_url = "{server.base_url}"\nclient = 1\nkey = "secret-key"\n'
    )
    return file


@pytest.mark.parametrize(
    ("line", "body", "code", "word"),
    [
        (SEND, {"status": "EN ESTUDIO"}, 5, "accepted=EN ESTUDIO"),
        (SEND, {"status": 0, "id": "abc-123"}, 5, "accepted=0"),
        (SEND, {"status": "Error 12"}, 5, "refused=Error 12"),
        (VERIFY, {"status": "Concedido"}, 1, "verified=Concedido"),
        (("state", "watch", "m1", "--max-wait", "1"), {"id": "m1", "state": "RECEIVED"}, 6, "delivered=RECEIVED"),
    ],
)
@pytest.mark.usefixtures("profile")
def test_the_error_mentions_the_word_and_the_command_that_adds_it(
    line: tuple[str, ...], body: dict[str, str], code: int, word: str, server: Service, tool: Tool
) -> None:
    server.always(respond(body))
    done = tool(*line)
    assert done.code == code
    assert word.partition("=")[2] in done.err
    assert f"msgctl profile set main --word {shlex.quote(word)}" in done.err


@pytest.mark.parametrize(
    ("line", "body", "words"),
    [
        (SEND, {"status": "EN ESTUDIO"}, 'accepted = ["en estudio"]'),
        (VERIFY, {"status": "Concedido"}, 'verified = ["Concedido"]'),
        (("state", "watch", "m1", "--until", "delivered"), {"state": "RECEIVED"}, 'delivered = ["RECEIVED"]'),
    ],
)
def test_after_the_suggested_command_the_same_response_has_a_certain_outcome(
    line: tuple[str, ...], body: dict[str, str], words: str, profile: Path, server: Service, tool: Tool
) -> None:
    server.always(respond(body))
    with profile.open("a") as file:
        file.write(f"words = {{{words}}}\n")
    assert tool(*line).code == 0


def test_an_account_from_variables_needs_a_profile_for_words(service: Service, tool: Tool) -> None:
    service.will(respond({"status": "EN ESTUDIO"}))
    assert "msgctl profile add" in (done := tool(*SEND)).err
    assert "profile set" not in done.err


@pytest.mark.usefixtures("profile")
def test_a_hostile_text_is_not_part_of_a_command(server: Service, tool: Tool) -> None:
    for text in ("x" * 100, "a\x1b[31mb", ""):
        server.will(respond({"status": text, "msg": "x"}))
        assert "--word" not in tool(*SEND).err
    server.will(respond({"status": "$(reboot)'; reboot"}))
    assert shlex.quote("accepted=$(reboot)'; reboot") in tool(*SEND).err


# --- what an error says about recipients


@pytest.mark.parametrize(
    ("body", "status", "code", "nothing_sent", "outcomes"),
    [
        ({"status": 1, "data": [{"status": "x", "id": "m1", "phone": PHONE}]}, 200, 5, False, ["unknown", "unknown"]),
        ({"msg": "Parametros invalidos"}, 400, 1, True, ["refused", "refused"]),
        ({"msg": "slow"}, 429, 4, True, ["refused", "refused"]),
        ({}, 503, 5, False, ["unknown", "unknown"]),
        (
            {"data": [{"status": "Rechazado", "phone": PHONE}, {"status": "Enviado", "phone": OTHER}]},
            200,
            6,
            False,
            ["refused", "accepted"],
        ),
        (
            {"data": [{"status": "Rechazado", "phone": PHONE}, {"status": "Bloqueado", "phone": OTHER}]},
            200,
            6,
            True,
            ["refused", "refused"],
        ),
    ],
)
def test_an_error_lists_the_outcome_of_each_recipient(
    body: object, status: int, code: int, nothing_sent: bool, outcomes: list[str], service: Service, tool: Tool
) -> None:
    service.will(respond(json.dumps(body).encode(), status))
    done = tool("sms", "send", PHONE, OTHER, "-m", "hi", "--json")
    assert done.code == code
    assert done.error["nothing_sent"] is nothing_sent
    assert [(each["phone"], each["outcome"]) for each in done.error["recipients"]] == list(
        zip((PHONE, OTHER), outcomes, strict=True)
    )


def test_reads_and_codes_send_nothing(service: Service, tool: Tool) -> None:
    service.always(respond({"error": 1000, "msg": "Error interno"}, 520))
    assert tool("balance", "--json").error["nothing_sent"] is True
    assert tool(*VERIFY, "--json").error["nothing_sent"] is True
    assert "recipients" not in tool(*VERIFY, "--json").error
    assert tool("sms", "send", "12", "-m", "x", "--json").error["nothing_sent"] is True
