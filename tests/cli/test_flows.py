"""Complete tasks in the sandbox, as a person at a terminal or a script does them."""

from __future__ import annotations

import re

import pytest

from support.sandbox import PHONE, Sandbox, refused
from support.tool import Tool

SENDS = {
    "sms": ("2fa", "send-sms", PHONE, "--app-name", "Shop"),
    "call": ("2fa", "send-call", PHONE, "--app-name", "Shop", "--voice", "Mariana"),
    "chatapp": ("2fa", "send-chatapp", PHONE, "--app-name", "Shop"),
}


# --- a verification code, from sending it to using it up


@pytest.mark.parametrize(("channel", "terminal"), [("sms", False), ("call", True), ("chatapp", False)])
def test_a_code_is_sent_read_verified_and_used_up(channel: str, terminal: bool, tool: Tool) -> None:
    sandbox = Sandbox(tool, terminal=terminal)
    assert PHONE in sandbox.done(*SENDS[channel])
    code = sandbox.code()
    assert re.fullmatch("[0-9]{6}", code)
    inbox = sandbox.done("sandbox", "inbox", PHONE)
    piped = sandbox.tool("sandbox", "inbox", PHONE, "-o", "csv", "--fields", "code").out.splitlines()[-1]
    assert channel in inbox
    assert f"{code} is your Shop code." in inbox

    verify = ("2fa", "verify", PHONE, "--app-name", "Shop", "--code", "-")
    assert sandbox.done(*verify, "-o", "csv", stdin=piped) == "status\nverified\n"
    refused(sandbox(*verify, stdin=piped), "INVALID_CODE")
