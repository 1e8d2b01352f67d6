"""`msgctl 2fa ask`: send a code, ask for it, and check it."""

from __future__ import annotations

import subprocess
import sys

import pytest

from support.service import Behaviour, Service, drop, respond
from support.terminal import Terminal, in_a_terminal
from support.tool import Tool

PHONE = "573001234567"
ASK = ("2fa", "ask", PHONE, "--app-name", "Shop")
VERIFY = "/2fa/verification-code"

SENT = respond(
    {"id": "d1", "status": "1", "minutes_to_expire": 10, "data": [{"id": "m1", "status": "queued", "phone": PHONE}]}
)
CALLED = respond(
    {"id": "d1", "status": "1", "minutes_to_expire": 10, "data": [{"id": "m1", "state": "queued", "phone": PHONE}]}
)
RIGHT = respond({"status": "verified"})
WRONG = respond({"error": "INVALID_CODE", "msg": "code: not the last code sent"}, 520)


def paths(service: Service) -> list[str]:
    """Return the paths of all requests, without the version."""
    return [each.path.removeprefix("/api/v1") for each in service.received]


def codes(service: Service) -> list[str]:
    """Return the codes that were checked."""
    return [dict(each.form)["code"] for each in service.received if each.path.endswith(VERIFY)]


def test_the_right_code_exits_with_0_and_prints_only_the_result(tool: Tool, service: Service) -> None:
    service.will(SENT, WRONG, RIGHT)
    done = tool(*ASK, "--code", "-", "--json", stdin="111111\n222 222\n")
    assert (done.code, done.out, done.err) == (0, '{"status": "verified"}\n', "")
    assert codes(service) == ["111111", "222222"]
    assert [each["command"] for each in tool("history", "--json").document] == ["2fa send-sms"]


def test_it_asks_at_a_terminal(tool: Tool, service: Service) -> None:
    service.will(SENT, WRONG, RIGHT)
    done = tool(*ASK, "--no-color", stdin="111111\n222222\n", terminal=True)
    assert done.code == 0
    assert f"A code was sent to {PHONE} by SMS.\nCode (Enter: another by SMS): " in done.err
    assert "The code is wrong, used or expired. 2 tries left.\nCode (Enter: another by SMS): " in done.err
    assert f"{PHONE} is verified" in done.err


def test_three_wrong_codes_exit_with_1(tool: Tool, service: Service) -> None:
    service.will(SENT, *[WRONG] * 3)
    done = tool(*ASK, "--code", "-", stdin="1\n2\n3\n4\n")
    assert (done.code, done.out) == (1, "")
    assert done.err.endswith("Error: The code is wrong, used or expired\n")
    assert codes(service) == ["1", "2", "3"]


def test_enter_sends_the_code_by_the_next_way(tool: Tool, service: Service) -> None:
    service.will(SENT, CALLED, WRONG, SENT, RIGHT)
    ways = ("--via", "sms,call,chatapp", "--voice", "mia")
    done = tool(*ASK, *ways, "--code", "-", "-q", stdin="\n111111\n\n222222\n")
    assert (done.code, done.err) == (0, "")
    assert paths(service) == ["/2fa/send-sms", "/call/2fa/send-call", VERIFY, "/2fa/send-chatapp", VERIFY]
    call = dict(service.received[1].form)
    assert (call["voice"], call["retries"]) == ("Mia", "1")


@pytest.mark.parametrize("way", ["sms", "sms,chatapp"])
def test_endless_lines_without_a_code_send_three_codes(way: str, tool: Tool, service: Service) -> None:
    service.always(SENT)
    done = tool(*ASK, "--via", way, "--code", "-", stdin="\n" * 1000)
    assert (done.code, done.out, len(service.received)) == (1, "", 3)
    assert "Error: No code was given" in done.err


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ((), "Cannot ask for the code: this is not a terminal; nothing was sent"),
        (("--code", "123456"), "--code must be -"),
        (("--code", "-", "--via", "sms,pigeon"), 'Unknown way "pigeon": choose from sms, call, chatapp'),
        (("--code", "-", "--via", "call"), "--voice is missing"),
        (("--code", "-", "--via", "sms,call", "--voice", "Hal"), 'Unknown voice "Hal"'),
        (("--code", "-", "--fields", "nope"), "--fields"),
    ],
)
def test_an_error_comes_before_the_code_is_sent(
    more: tuple[str, ...], message: str, tool: Tool, service: Service
) -> None:
    done = tool(*ASK, *more, stdin="123456\n")
    assert (done.code, message in done.err) == (2, True), done.err
    assert service.connections == 0


@pytest.mark.parametrize(
    ("behaviours", "code", "requests"),
    [
        ((SENT, drop), 5, 2),
        ((drop,), 5, 1),
        ((respond({"error": "NO", "msg": "no credits"}, 520),), 1, 1),
        ((SENT, respond({"error": "NO", "msg": "key"}, 401)), 1, 2),
    ],
    ids=["the response to a code is lost", "the response to a send is lost", "no code is sent", "the key is refused"],
)
def test_other_failures_end_it(
    behaviours: tuple[Behaviour, ...], code: int, requests: int, tool: Tool, service: Service
) -> None:
    service.will(*behaviours)
    done = tool(*ASK, "--code", "-", stdin="1\n2\n3\n")
    assert (done.code, done.out, len(service.received)) == (code, "", requests)
    assert "Traceback" not in done.err


def test_without_a_line_no_code_is_right(tool: Tool, service: Service) -> None:
    service.will(SENT)
    done = tool(*ASK, "--code", "-", stdin="")
    assert (done.code, "Standard input ended before the right code" in done.err) == (1, True)
    service.will(SENT)
    done = tool(*ASK, stdin="", terminal=True)
    assert (done.code, "no code was verified" in done.err.lower()) == (130, True)


@in_a_terminal
def test_ctrl_c_at_the_prompt_explains_how_to_check_the_code(service: Service) -> None:
    service.will(SENT)
    tty = Terminal("2fa", "ask", PHONE, "--app-name", "My shop")
    tty.answer("Code (Enter: another by SMS): ", b"\x03")
    assert tty.end() == 130
    shown = tty.shown.decode()
    assert "Interrupted; the code was sent" in shown
    assert f"msgctl 2fa verify {PHONE} --app-name 'My shop'" in shown
    assert "Do not send again" not in shown


def test_the_help_explains_when_a_voice_is_required(tool: Tool) -> None:
    assert "[required with --via call, unless in the profile]" in " ".join(tool("2fa", "ask", "--help").out.split())


def test_a_dry_run_shows_the_first_request(tool: Tool, service: Service) -> None:
    for code in (("--code", "-"), ()):
        shown = tool(*ASK, "--via", "chatapp", *code, "-n", "--json").document
        assert (shown["url"].rpartition("/api/v1")[2], service.connections) == ("/2fa/send-chatapp", 0)


def test_a_person_reads_the_code_and_types_it() -> None:
    """The whole flow in the sandbox, over pipes, in the order in which a person does it."""
    msgctl = (sys.executable, "-m", "msgctl", "-p", "sandbox")
    command = [*msgctl, *ASK, "--code", "-", "-o", "tsv", "--no-header"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as asking:
        assert asking.stderr is not None
        while b"A code was sent" not in asking.stderr.readline():
            assert asking.poll() is None
        inbox = [*msgctl, "sandbox", "inbox", PHONE, "-o", "tsv", "--no-header", "--fields", "code"]
        code = subprocess.run(inbox, capture_output=True, check=True, timeout=60).stdout
        out, _ = asking.communicate(code, timeout=60)
    assert (asking.returncode, out) == (0, b"verified\n")


def test_verify_explains_a_wrong_code_and_quotes_the_service_with_v(tool: Tool, service: Service) -> None:
    service.always(WRONG)
    verify = ("2fa", "verify", PHONE, "--app-name", "Shop", "--code", "1")
    assert tool(*verify).err == "Error: The code is wrong, used or expired\n"
    assert "INVALID_CODE: code: not the last code sent" in tool(*verify, "-v").err
    error = tool(*verify, "--json").error
    assert (error["error"], error["http_status"], error["exit_code"]) == ("INVALID_CODE", 520, 1)
    service.always(respond({"error": "NO", "msg": "client: unknown"}, 520))
    assert "client: unknown" in tool(*verify).err
