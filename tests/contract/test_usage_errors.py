"""Mistakes of new users: each error describes the mistake, with the allowed values or a suggestion."""

from __future__ import annotations

import pytest

from support.tool import Tool

PHONE = "573001234567"

CASES = {
    ("blance",): ["Did you mean msgctl balance? Commands: sms, call"],
    ("zzz",): ["Commands: sms, call"],
    ("SMS", "send"): ['Unknown command "SMS"', "Did you mean msgctl sms?"],
    ("sms", "sned"): ['Unknown command "sned"', "Did you mean msgctl sms send? Commands: send, bulk"],
    ("sms", "\x1b[2J"): ['Unknown command "\\x1b[2J"'],
    ("sms", "send", PHONE, "Hello"): ['"Hello" is not a phone number', "with -m TEXT, in quotes", "nothing was sent"],
    ("sms", "send", "57-x", "-m", "x"): ['"57-x" is not a valid phone number'],
    ("sms", "send", PHONE, "-m"): ["-m needs a value", "See: msgctl sms send --help"],
    ("sms", "send", PHONE, "-m", "--dry-run"): ["-m needs a value; --dry-run is an option", "--message=--dry-run"],
    ("sms", "send", PHONE, "-m=Hello"): ["-m takes its value after a space", "Write -m TEXT or --message=TEXT."],
    ("state", "get", "m1", "-o=json"): ["-o takes its value after a space", "Write -o FORMAT or --output=FORMAT."],
    ("sms", "send", PHONE, "-m", "--once=a b"): ["-m needs a value; --once is an option", "'--message=--once=a b'"],
    ("sms", "send", PHONE, "-m", "--once=\x1b[2J"): ["-m needs a value", "'--message=--once=\\x1b[2J'"],
    ("profile", "add", "x", "--key", "k"): ["Did you mean --key-stdin"],
    ("balance", "--zzz"): ["Unknown option --zzz", "See: msgctl balance --help"],
    ("balance", "--json=true"): ["--json takes no value"],
    ("balance", "check", "100"): ["--min N is missing"],
    ("sms", "send"): ["PHONE is missing", "nothing was sent", "See: msgctl sms send --help"],
    ("url", "shorten"): ["LONG_URL and --name NAME are missing"],
    ("2fa", "send-call", PHONE): ["--app-name and --voice are missing"],
    ("call", "bulk", "customers.csv"): ["--voice is missing"],
    ("block", "add", PHONE, "Ana"): ['"Ana" is not a phone number'],
    ("profile", "list", "main"): ['Unexpected argument "main"', "takes no arguments"],
    ("sms", "segments"): ["The message is empty", "Give it with TEXT"],
    ("sms", "segments", "x", "--message-file", "y"): ["Use either TEXT or --message-file"],
    ("help", "nope"): ['Unknown command "nope"'],
    ("2fa", "send-sms", PHONE, "--once", "k"): ["Unknown option --once; nothing was sent\nSee: "],
    ("sms", "send", PHONE, "-m", "x", "--Dryrun"): ["Did you mean --dry-run?"],
}


@pytest.mark.parametrize("line", CASES, ids=lambda line: ascii(" ".join(line)).replace("\\", "/"))
def test_an_error_suggests_the_nearest_word(line: tuple[str, ...], tool: Tool) -> None:
    done = tool("-p", "sandbox", *line)
    assert (done.code, done.out) == (2, "")
    assert [part for part in CASES[line] if part not in done.err] == [], done.err
    assert "\x1b" not in done.err


def test_an_option_may_be_given_as_a_value_on_purpose(tool: Tool) -> None:
    dry = ("-p", "sandbox", "-n", "--json")
    assert tool("sms", "send", PHONE, "--message=--json", *dry).document["form"]["sms"] == "--json"
    for text in ("--loud", "phone", "message", "-p=5", "=5"):
        assert tool("sms", "send", PHONE, "-m", text, *dry).document["form"]["sms"] == text
    assert tool("sms", "send", "phone", "phone", "-m", "x").code == 2
    values = tool("chatapp", "send", PHONE, "--template", "t", *dry, "--", "-m", "--json").document
    assert values["json"]["body"] == ["-m", "--json"]


def test_under_json_an_error_is_one_line(tool: Tool) -> None:
    done = tool("--json", "sms", "sned")
    assert (done.error["kind"], done.error["exit_code"]) == ("usage", 2)
    assert done.error["hint"] == "Did you mean msgctl sms send? Commands: send, bulk, segments"
    assert len(done.err.splitlines()) == 1
    assert tool("--json", "sms", "send", "12", "-m", "x").error["reason"] == "invalid_phone"


def test_on_a_terminal_an_error_has_a_sign_and_its_hint_an_arrow(tool: Tool) -> None:
    done = tool("--no-color", "sms", "sned", screen=True)
    assert done.err == ('✗ Unknown command "sned"\n  → Did you mean msgctl sms send? Commands: send, bulk, segments\n')
