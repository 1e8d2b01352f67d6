"""Exit codes of all commands that make a request. The stories contain the reasons of errors."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Any

import pytest

from support.commands import ALL, SENDS
from support.jobs import of_phones, sent, shown
from support.service import Service, respond
from support.tool import Tool

RECORD = {"error": "invalid_parameter", "msg": "The parameter phone is invalid"}


def test_every_command_exits_with_1_and_quotes_the_error_after_a_520(service: Service, tool: Tool) -> None:
    service.always(respond(RECORD, 520))
    for command in ALL.values():
        outcome = tool(*command.line, "--json")
        outcome.refused(1)
        error = outcome.error
        assert (error["exit_code"], error["kind"]) == (1, "refused"), command.line
        assert {name: error[name] for name in RECORD} == RECORD
        assert all(part in error["message"] for part in ("520", *RECORD.values()))


def test_every_command_exits_with_3_without_a_profile(tool: Tool) -> None:
    for command in ALL.values():
        outcome = tool(*command.line, "--json")
        outcome.refused(3)
        error = outcome.error
        assert (error["exit_code"], error["kind"]) == (3, "configuration"), command.line
        assert "profile add" in error["hint"]


BREAKDOWNS = ("Timeout", "Error interno del sistema", "Timeout, en cola", "Codigo?")
WITHOUT_BREAKDOWN = ("Codigo errado", "Entregado", "verified", "")
NEGATIONS = (
    "no not never sin without cannot nao sem nunca ningun ninguno none unable don doesn didn isn aren wasn couldn "
    "hasn haven"
)


@pytest.mark.parametrize("status", [400, 520])
def test_a_code_may_be_used_up_after_a_breakdown_unless_a_word_refuses_it_or_negates(
    status: int, service: Service, tool: Tool
) -> None:
    refusals = [f"Timeout, {word}" for word in ("rechazado", "saldo", "enviado", *NEGATIONS.split())]
    codes = dict.fromkeys(BREAKDOWNS, 5) | dict.fromkeys((*WITHOUT_BREAKDOWN, *refusals), 1)
    for text, code in codes.items():
        service.will(respond({"error": 1, "msg": text}, status))
        done = tool(*ALL["2fa verify"].line, "--json")
        reason = {1: "not_verified", 5: "outcome_unknown"}[code]
        assert (done.code, done.error["reason"]) == (code, reason), text


@pytest.mark.parametrize("value", [None, True, 1.5, ["a", {"b": 1}], "", "\x1b[31mred\x07", "\ud800", "ñ€😀"])
def test_a_script_gets_the_error_record_unchanged(value: Any, service: Service, tool: Tool) -> None:
    service.will(respond({"error": value, "msg": "no"}, 520))
    outcome = tool(*SENDS["sms send"].line, "--json")
    shown = outcome.error["error"]
    assert (shown, type(shown)) == (value, type(value))
    assert outcome.stderr.isascii()
    assert outcome.err.strip("\n").isprintable()


@pytest.mark.parametrize(
    ("phones", "status", "code", "job"),
    [
        (["573001234567"], 520, 6, {"state": "done", "refused": 1, "due": None}),
        (["573001234567", "573007654321"], 520, 0, {"state": "scheduled", "refused": 1, "pending": 1}),
        (["573001234567", "573007654321"], 500, 0, {"state": "scheduled", "unknown": 1, "pending": 1}),
    ],
)
def test_a_job_whose_window_closes_exits_with_0_unless_its_last_request_was_sent(
    phones: list[str], status: int, code: int, job: dict[str, Any], service: Service, tool: Tool, home: Path
) -> None:
    def close_the_window(connection: socket.socket) -> None:
        tool.clock.now += 86_400
        respond(RECORD, status)(connection)

    service.will(respond({"status": 7}), close_the_window)
    options = ("--batch-size", "1", "--window", "00:00-24:00", "--days", "mon")
    assert job.items() <= shown(tool, sent(tool, of_phones(home, phones), *options, code=code)).items()
