"""What a new user mistypes: each mistake is named, with what is allowed or may have been meant."""

from __future__ import annotations

import pytest

from support.tool import Tool

PHONE = "573001234567"

CASES = {
    ("send", "sms", PHONE): [
        "'send' is not a command of msgctl: allowed are sms, call",
        "Did you mean msgctl sms send,",
    ],
    ("SMS", "send"): ["'SMS' is not a command", "Did you mean msgctl sms?"],
    ("sms", "sned"): ["'sned' is not a command of msgctl sms: allowed are send, bulk", "Did you mean msgctl sms send?"],
    ("sms", PHONE, "-m", "x"): [f"'{PHONE}' is not a command of msgctl sms", "See: msgctl sms --help"],
    ("sms", "\x1b[2J"): ["'\\x1b[2J' is not a command"],
    ("help",): ["Did you mean msgctl --help?"],
    ("sms", "send", PHONE, "Hello"): ["'Hello' is not a phone number", "given with -m TEXT", "nothing was sent"],
    ("sms", "send", "57-x", "-m", "x"): ["'57-x' is not a phone number"],
    ("sms", "send", "12", "-m", "x"): ["'12' is not a phone number", "country code"],
    ("sms", "send", PHONE, "--msg", "x"): ["there is no option --msg", "Did you mean --message?", "nothing was sent"],
    ("sms", "send", PHONE, "-m"): ["-m needs a value", "See: msgctl sms send --help"],
    ("profile", "add", "x", "--key", "k"): ["Did you mean --key-stdin or --key-command?"],
    ("state", "--last"): ["there is no option --last", "Did you mean msgctl state get --last?"],
    ("balance", "--zzz"): ["there is no option --zzz", "See: msgctl balance --help"],
    ("balance", "--json=true"): ["--json takes no value"],
    ("balance", "check", "100"): ["--min is missing", "Give --min N."],
    ("sms", "send"): ["PHONE is missing"],
    ("block", "add", PHONE, "Ana"): ["there is no place for 'Ana'", "msgctl block add takes PHONE."],
    ("profile", "list", "main"): ["there is no place for 'main'", "takes no arguments"],
    ("sms", "segments"): ["the message is empty", "Give it as TEXT"],
    ("sms", "segments", "x", "--message-file", "y"): ["TEXT and --message-file are both given"],
    ("completion", "bash", "--fields", "x"): ["has no columns"],
}


@pytest.mark.parametrize("line", CASES, ids=" ".join)
def test_a_mistake_is_named_with_what_may_have_been_meant(line: tuple[str, ...], tool: Tool) -> None:
    done = tool("-p", "sandbox", *line)
    assert (done.code, done.out) == (2, "")
    assert [part for part in CASES[line] if part not in done.err] == [], done.err
    assert "\x1b" not in done.err


def test_under_json_a_mistake_is_one_line(tool: Tool) -> None:
    done = tool("--json", "sms", "sned")
    assert (done.error["kind"], done.error["exit_code"]) == ("usage", 2)
    assert done.error["hint"] == "Did you mean msgctl sms send? See: msgctl sms --help"
    assert len(done.err.splitlines()) == 1
