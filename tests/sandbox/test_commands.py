"""`msgctl sandbox` and the profile `sandbox`: credits, reset, and their messages."""

from __future__ import annotations

from pathlib import Path

import pytest

from msgctl import files
from support.sandbox import OTHER, PHONE, Sandbox, refused, shorten
from support.tool import Tool

# --- credits


@pytest.mark.parametrize("amount", ["-1", "1.5", "+", "9" * 30])
def test_an_amount_that_is_not_a_number_of_credits_is_refused(amount: str, sandbox: Sandbox) -> None:
    done = sandbox("sandbox", "credit", "--", amount)
    assert (done.code, done.out) == (2, "")
    assert sandbox.credits() == 1000


# --- the sandbox itself


def fill(sandbox: Sandbox) -> None:
    sandbox.done("sms", "send", PHONE, "-m", "Hello")
    sandbox.done("block", "add", OTHER)
    shorten(sandbox)


def assert_empty(sandbox: Sandbox) -> None:
    assert sandbox.credits() == 1000
    assert sandbox.document("sandbox", "inbox") == []
    refused(sandbox("url", "stats", "offers", "--since", "today"), "NOT_FOUND")
    assert sandbox.document("sms", "send", OTHER, "-m", "Hello")["data"][0]["status"] == "queued"


def test_an_empty_inbox_is_reported_on_a_terminal(tool: Tool) -> None:
    line = ("sandbox", "inbox", PHONE)
    done = tool(*line, screen=True)
    assert (done.code, done.out, done.err) == (0, "", f"No messages to {PHONE} yet.\n")
    assert tool(*line).err == ""


def test_reset_asks_on_a_terminal_and_elsewhere_needs_yes(tool: Tool) -> None:
    fill(Sandbox(tool))
    done = tool("sandbox", "reset")
    assert (done.code, "--yes" in done.err, "--base-url" in done.err) == (2, True, False)
    assert tool("sandbox", "reset", "--base-url", "nonsense").err.count("nonsense")  # other mistakes come first
    assert tool("sandbox", "reset", stdin="n\n", terminal=True).code == 130
    assert Sandbox(tool).credits() == 999
    done = tool("sandbox", "reset", stdin="y\n", terminal=True)
    assert (done.code, done.out) == (0, "")
    assert "?" in done.err
    assert_empty(Sandbox(tool))


def test_it_needs_no_profile_and_creates_no_configuration(home: Path, sandbox: Sandbox) -> None:
    fill(sandbox)
    sandbox.done("profile", "list")
    assert not (home / "config").exists()
    kept = {path.name for path in (home / "state" / "msgctl").iterdir()}
    assert kept == {"sandbox-store.sqlite3", "sandbox-store.sqlite3-owners", "sandbox.sqlite3"}


def test_a_finished_run_leaves_no_file_open(sandbox: Sandbox) -> None:
    sandbox.done("balance")
    path = files.state("sandbox.sqlite3")
    # SQLite removes its log with the last connection.
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


# --- controls


def test_no_message_id_is_lost_with_half_a_response(sandbox: Sandbox, tool: Tool) -> None:
    assert tool("sandbox", "fault", "truncate:next=1:/send-sms").code == 0
    done = sandbox("sms", "send", PHONE, "-m", "Hola", "--json")
    (message,) = sandbox.document("sandbox", "inbox")
    assert (done.code, done.error["http_status"]) == (5, 200)
    assert done.error["body"].startswith('{"id":')
    assert message["phone"] == PHONE


def test_states_and_codes_follow_the_clock(sandbox: Sandbox) -> None:
    assert sandbox.document("sandbox", "clock", "stop")["stopped"] is True
    message = sandbox.document("sms", "send", PHONE, "-m", "Hello")["data"][0]["id"]
    assert sandbox.document("state", "get", message)["state"] == "queued"
    sandbox.done("2fa", "send-sms", PHONE, "--app-name", "Shop")
    code = sandbox.code()
    before = sandbox.document("sandbox", "clock")["time"]
    after = sandbox.document("sandbox", "clock", "+10m1s")["time"]
    assert (before < after, sandbox.document("state", "get", message)["state"]) == (True, "delivered")
    refused(sandbox("-v", "2fa", "verify", PHONE, "--app-name", "Shop", "--code", code), "EXPIRED_CODE")
    assert sandbox.document("sandbox", "clock", "2030-01-01T00:00:00Z") == {
        "time": "2030-01-01T00:00:00Z",
        "stopped": True,
    }
    assert sandbox.document("sandbox", "clock", "start")["stopped"] is False


def test_the_inbox_reads_a_national_number_by_its_country(sandbox: Sandbox) -> None:
    sandbox.done("sms", "send", "573001234567", "-m", "Hello")
    found = {code: sandbox.document("sandbox", "inbox", "3001234567", "--country-code", code) for code in ("CO", "MX")}
    assert (len(found["CO"]), len(found["MX"])) == (1, 0)
    assert sandbox("sandbox", "inbox", "3001234567", "--country-code", "XX").code == 2
