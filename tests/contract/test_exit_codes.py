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


@pytest.mark.parametrize("value", [None, True, 1.5, ["a", {"b": 1}], "", "\x1b[31mred\x07", "\ud800", "ñ€😀"])
def test_a_script_gets_the_error_record_unchanged(value: Any, service: Service, tool: Tool) -> None:
    service.will(respond({"error": value, "msg": "no"}, 520))
    outcome = tool(*SENDS["sms send"].line, "--json")
    shown = outcome.error["error"]
    assert (shown, type(shown)) == (value, type(value))
    assert outcome.stderr.isascii()
    assert outcome.err.strip("\n").isprintable()


def test_a_job_whose_window_closes_during_its_last_request_is_done(service: Service, tool: Tool, home: Path) -> None:
    def close_the_window(connection: socket.socket) -> None:
        tool.clock.now += 86_400
        respond(RECORD, 520)(connection)

    service.will(respond({"status": 7}), close_the_window)
    job = sent(tool, of_phones(home, ["573001234567"]), "--window", "00:00-24:00", "--days", "mon", code=6)
    assert {"state": "done", "refused": 1, "due": None}.items() <= shown(tool, job).items()


@pytest.mark.parametrize(("status", "outcome"), [(520, "refused"), (500, "unknown")])
def test_a_job_whose_window_closes_exits_with_0_although_a_recipient_was_not_accepted(
    status: int, outcome: str, service: Service, tool: Tool, home: Path
) -> None:
    def close_the_window(connection: socket.socket) -> None:
        tool.clock.now += 86_400
        respond(RECORD, status)(connection)

    service.will(respond({"status": 7}), close_the_window)
    people = of_phones(home, ["573001234567", "573007654321"])
    job = sent(tool, people, "--batch-size", "1", "--window", "00:00-24:00", "--days", "mon")
    assert {"state": "scheduled", outcome: 1, "pending": 1}.items() <= shown(tool, job).items()
