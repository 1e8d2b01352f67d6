"""Complete tasks in the sandbox, as a person at a terminal or a script does them."""

from __future__ import annotations

import re

import pytest

from support.sandbox import OTHER, PHONE, Sandbox, refused, shorten
from support.tool import Tool

SENDS = {
    "sms": ("2fa", "send-sms", PHONE, "--app-name", "Shop"),
    "call": ("2fa", "send-call", PHONE, "--app-name", "Shop", "--voice", "Mariana"),
    "chatapp": ("2fa", "send-chatapp", PHONE, "--app-name", "Shop"),
}
each_stream = pytest.mark.parametrize("terminal", [False, True], ids=["pipe", "terminal"])


@pytest.fixture
def sandbox(tool: Tool) -> Sandbox:
    return Sandbox(tool)


# --- a verification code, from sending it to using it up


@pytest.mark.parametrize(("channel", "terminal"), [("sms", False), ("call", True), ("chatapp", False)])
def test_a_code_is_sent_read_verified_and_used_up(channel: str, terminal: bool, tool: Tool) -> None:
    sandbox = Sandbox(tool, terminal=terminal)
    assert PHONE in sandbox.done(*SENDS[channel])
    code = sandbox.code()
    assert re.fullmatch("[0-9]{6}", code)
    inbox = sandbox.done("sandbox", "inbox", PHONE)
    assert channel in inbox
    assert f"{code} is your Shop code." in inbox

    verify = ("2fa", "verify", PHONE, "--app-name", "Shop", "--code", code)
    assert sandbox.done(*verify, "-o", "csv") == "status\nverified\n"
    refused(sandbox(*verify), "INVALID_CODE")


def test_a_code_goes_from_the_inbox_to_verification_through_pipes(sandbox: Sandbox) -> None:
    sandbox.done(*SENDS["call"])
    inbox = sandbox.done("sandbox", "inbox", PHONE, "-o", "csv", "--fields", "code")
    assert sandbox.done("2fa", "verify", PHONE, "--app-name", "Shop", "--code", "-", stdin=inbox.splitlines()[-1])


# --- messages


@each_stream
def test_a_blocked_number_gets_nothing_and_costs_nothing(terminal: bool, tool: Tool) -> None:
    sandbox = Sandbox(tool, terminal=terminal)
    sandbox.done("block", "add", "+57 300 765 4321", "--name", "Ana")
    done = sandbox("sms", "send", PHONE, OTHER, "-m", "Hello")
    shown = re.sub(r"\x1b\[[0-9;]*m", "", done.out)
    assert (done.code, f"refused {OTHER} [blocked] (1 of 2 recipients)" in done.err) == (6, True)
    sign = {"queued": "○ ", "blocked": "– "} if terminal else {"queued": "", "blocked": ""}
    for phone, status, charged in ((PHONE, "queued", 1), (OTHER, "blocked", 0)):
        assert re.search(rf"^{phone} .*\b{charged}\b", shown, re.MULTILINE)
        assert f"{sign[status]}{status}" in shown
    assert sandbox.credits() == 999
    assert [message["phone"] for message in sandbox.document("sandbox", "inbox")] == [PHONE]


def test_piped_text_is_sent_unchanged(sandbox: Sandbox) -> None:
    printed = "Filesystem      Size  Used Avail Use% Mounted on\n/dev/sda1       100G   22G   78G  22% /\n"
    shown = sandbox.done("sms", "send", PHONE, stdin=printed)
    assert r"Mounted on\n/dev/sda1" in shown, "a table has a row a line"
    (message,) = sandbox.document("sandbox", "inbox", PHONE)
    assert message["text"] == printed.rstrip("\n")


def sent(sandbox: Sandbox, *arguments: str) -> str:
    return str(sandbox.document(*arguments)["data"][0]["id"])


@pytest.mark.parametrize(
    ("phone", "options", "code"),
    [
        ("573001230001", [], 0),
        ("573001230001", ["--until", "delivered"], 6),
        ("573001230002", ["--until", "delivered", "--until", "rejected"], 0),
        ("573001230003", ["--max-wait", "30"], 6),
    ],
)
def test_a_watch_of_a_message_that_is_not_delivered(
    phone: str, options: list[str], code: int, sandbox: Sandbox
) -> None:
    message = sent(sandbox, "sms", "send", phone, "-m", "Hello")
    done = sandbox("state", "watch", message, *options)
    assert done.code == code, done.err
    assert ("did not reach" in done.err or "not delivered" in done.err) == (code == 6)


# --- short URLs


def test_a_terminal_draws_forty_clicks(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    sandbox = Sandbox(tool, terminal=True)
    short = shorten(sandbox)
    sandbox.done("sandbox", "click", "offers", "--count", "40", "--days", "5")
    shown = re.sub(r"\x1b\[[0-9;]*m", "", sandbox.done("url", "stats", "offers", "--since", "7d"))
    lines = [line.rstrip() for line in shown.splitlines()]
    assert max(len(line) for line in lines) <= 80
    assert lines[0] == short
    assert any(line.startswith("40 clicks") for line in lines)
    for title in ("Days", "Hours  of all 5 days", "Country", "Device", "Operating system"):
        start = lines.index(title) + 1
        end = lines.index("", start) if "" in lines[start:] else len(lines)
        clicks = [re.search(r" ([0-9]+) +<?[0-9]+%", line) for line in lines[start:end]]
        assert sum(int(found[1]) for found in clicks if found) == 40
