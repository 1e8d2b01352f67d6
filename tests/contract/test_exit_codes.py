"""The exit code and the error of each command, as text and with --json."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.commands import ALL, MADE_ONCE, SENDS, Command, each
from support.service import Service, drop, respond
from support.tool import Outcome, Tool

RECORD = {"error": "invalid_parameter", "msg": "The parameter phone is invalid"}
SMS = SENDS["sms send"].line


def only_error(outcome: Outcome) -> Any:
    """Return the only line of standard error, read as JSON; standard output must be empty."""
    assert outcome.stdout == b""
    assert outcome.stderr.count(b"\n") == 1
    return json.loads(outcome.stderr)


# --- 1: refused


@each(ALL)
def test_a_520_exits_with_1_and_quotes_the_service(command: Command, service: Service, tool: Tool) -> None:
    service.will(respond(RECORD, 520))
    outcome = tool(*command.line, "--json")
    error = only_error(outcome)
    assert outcome.code == error["exit_code"] == 1
    assert error["kind"] == "refused"
    assert error["http_status"] == 520
    assert {name: error[name] for name in RECORD} == RECORD
    assert all(part in error["message"] for part in ("520", *RECORD.values()))


@pytest.mark.parametrize(
    "value",
    [None, True, 7, 1.5, ["a", {"b": 1}], "", "\x1b[31mred\x07", "\u202eabc", "\ud800", "ñ€😀"],
)  # fmt: skip
def test_a_script_gets_the_error_record_unchanged(value: Any, service: Service, tool: Tool) -> None:
    service.will(respond({"error": value, "msg": "no"}, 520))
    outcome = tool(*SMS, "--json")
    assert only_error(outcome)["error"] == value
    assert type(only_error(outcome)["error"]) is type(value)
    assert outcome.stderr.isascii()
    assert outcome.err.strip("\n").isprintable()


# --- 2


# --- 3


@each(ALL)
def test_a_missing_profile_exits_with_3(command: Command, tool: Tool) -> None:
    outcome = tool(*command.line, "--json")
    error = only_error(outcome)
    assert (outcome.code, error["kind"], error["exit_code"]) == (3, "configuration", 3)
    assert "profile add" in error["hint"]


# --- 4 and 5


@each(MADE_ONCE)
def test_after_a_lost_response_the_error_warns_of_a_possible_send(
    command: Command, service: Service, tool: Tool
) -> None:
    service.will(drop, drop)
    outcome = tool(*command.line)
    assert (outcome.code, outcome.out) == (5, "")
    assert "may have been carried out" in outcome.err
    error = only_error(tool(*command.line, "--json"))
    assert (error["kind"], error["exit_code"]) == ("outcome_unknown", 5)
    advice = {"block add": "block the number again", "2fa verify": "send a new one", "url shorten": "url stats"}
    assert advice.get(" ".join(command.line[:2]), "check the delivery state") in outcome.err.lower()


# --- 6


@pytest.mark.parametrize(
    ("status", "minimum", "code"),
    [
        (b"500", "500", 0),
        (b"499", "500", 6),
        (b"499.99", "500", 6),
        (b'"500"', "500", 0),
        (b"9007199254740993", "9007199254740993", 0),
        (b"9007199254740992", "9007199254740993", 6),
        (b"1e3", "1000", 0),
        (b"-1", "0", 1),
        (b"1e999999999999999999999", "1", 1),
        (b'"many"', "1", 1),
        (b"true", "1", 1),
        (b'"NaN"', "1", 1),
    ],
)
def test_balance_check_compares_exactly(status: bytes, minimum: str, code: int, service: Service, tool: Tool) -> None:
    service.will(respond(b'{"status": %s}' % status))
    done = tool("balance", "check", "--min", minimum, "--json")
    assert done.code == code
    if code:
        assert (done.error["http_status"], done.error["body"]) == (200, done.document)
