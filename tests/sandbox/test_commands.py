"""`msgctl sandbox` and the profile `sandbox` in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.sandbox import OTHER, PHONE, Sandbox
from support.service import Service, respond
from support.tool import Tool


@pytest.mark.parametrize("amount", ["-1", "1.5", "+", "9" * 30])
def test_an_amount_that_is_not_a_number_of_credits_is_refused(amount: str, sandbox: Sandbox) -> None:
    done = sandbox("sandbox", "credit", "--", amount)
    assert (done.code, done.out) == (2, "")
    assert sandbox.credits() == 1000


def test_reset_asks_on_a_terminal_and_deletes_everything(tool: Tool) -> None:
    sandbox = Sandbox(tool)
    sandbox.done("sms", "send", PHONE, "-m", "Hello")
    sandbox.done("block", "add", OTHER)
    sandbox.done("url", "shorten", "https://example.com/offers", "--name", "offers")
    assert "nonsense" in tool("sandbox", "reset", "--base-url", "nonsense").err  # other mistakes come first
    assert tool("sandbox", "reset", stdin="n\n", terminal=True).code == 130
    assert sandbox.credits() == 999
    assert tool("sandbox", "reset", stdin="y\n", terminal=True).code == 0
    assert sandbox.credits() == 1000
    assert sandbox.document("sandbox", "inbox") == []
    assert sandbox("url", "stats", "offers").code == 1
    assert sandbox.document("sms", "send", OTHER, "-m", "Hello")["data"][0]["status"] == "queued"


def test_it_needs_no_profile_creates_no_configuration_and_leaves_no_file_open(home: Path, sandbox: Sandbox) -> None:
    sandbox.done("sms", "send", PHONE, "-m", "Hello")
    sandbox.done("profile", "list")
    assert not (home / "config").exists()
    # SQLite removes its log with the last connection.
    kept = {path.name for path in (home / "state" / "msgctl").iterdir()}
    assert kept == {"sandbox-store.sqlite3", "sandbox-store.sqlite3-owners", "sandbox.sqlite3"}


def test_states_and_codes_follow_the_clock(sandbox: Sandbox) -> None:
    assert sandbox.document("sandbox", "clock", "stop")["stopped"] is True
    message = sandbox.document("sms", "send", PHONE, "-m", "Hello")["data"][0]["id"]
    assert sandbox.document("state", "get", message)["state"] == "queued"
    sandbox.done("2fa", "send-sms", PHONE, "--app-name", "Shop")
    before = sandbox.document("sandbox", "clock")["time"]
    assert sandbox.document("sandbox", "clock", "+10m1s")["time"] > before
    assert sandbox.document("state", "get", message)["state"] == "delivered"
    assert sandbox("2fa", "verify", PHONE, "--app-name", "Shop", "--code", sandbox.code()).code == 1
    future = "2030-01-01T00:00:00Z"
    assert sandbox.document("sandbox", "clock", future) == {"time": future, "stopped": True}
    assert sandbox.document("sandbox", "clock", "start")["stopped"] is False


def test_the_inbox_reads_a_national_number_by_its_country(sandbox: Sandbox) -> None:
    sandbox.done("sms", "send", "573001234567", "-m", "Hello")
    found = {code: sandbox.document("sandbox", "inbox", "3001234567", "--country-code", code) for code in ("CO", "MX")}
    assert (len(found["CO"]), len(found["MX"])) == (1, 0)
    assert sandbox("sandbox", "inbox", "3001234567", "--country-code", "XX").code == 2


# --- which sandbox they reach


def test_another_server_gets_only_the_check_for_a_sandbox(service: Service, tool: Tool) -> None:
    service.will(respond({"status": 1}))
    tool("sandbox", "reset").refused(3, "No sandbox")
    assert [request.target for request in service.received] == ["/sandbox"]


@pytest.mark.parametrize("default", ["real", "sandbox"])
def test_the_default_profile_is_ignored(default: str, server: Service, tool: Tool) -> None:
    added = tool("profile", "add", "real", "--base-url", server.base_url, "--client", "1", "--key-stdin", stdin="a key")
    assert added.code == tool("profile", "use", default).code == 0
    assert tool("sandbox", "credit", "5", "--json").document == {"status": 5}
    assert Sandbox(tool).credits() == 5
    assert server.received == []
