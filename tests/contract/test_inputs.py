"""Input from the command line, a file, standard input or a terminal, and the values that reach the service."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from contract.interface import CALL_2FA_VOICES, CALL_VOICES, CATEGORIES, PREMIUM_CATEGORIES, Line
from contract.option_values import OTHER, PHONE, RESPONSE, refused, used
from contract.wire import AWKWARD
from support.service import Service, respond
from support.tool import Tool

SMS = ("sms", "send", PHONE)
CALL = ("call", "send", PHONE, "-m", "Hola")
CALL_2FA = ("2fa", "send-call", PHONE, "--app-name", "Shop")
AUDIO = ("call", "send", PHONE, "--audio-code", "A-1029")
STATS = ("url", "stats", "offers", "--since", "2026-01-01")
VERIFY = ("2fa", "verify", PHONE, "--app-name", "Shop")
MAX_MESSAGE_BYTES = 65536

# --- phones


@pytest.mark.parametrize(
    "command",
    [
        ("chatapp", "send", "--template", "t"),
    ],
)
def test_a_command_for_one_number_refuses_a_list(command: tuple[str, ...], tool: Tool, service: Service) -> None:
    refused(tool, service, *command, f"{PHONE},{OTHER}", names=(f'"{PHONE},{OTHER}"', "give one number"))


def test_a_national_number_is_read_with_the_country_code(tool: Tool, service: Service) -> None:
    refused(tool, service, "sms", "send", "300 123 4567", "-m", "Hola", names=("--country-code CO",))
    sent = used(tool, service, "sms", "send", "300 123 4567", "-m", "Hola", "--country-code", "co")
    assert (sent["phone"], sent["country-code"]) == ("573001234567", "CO")
    assert used(tool, service, "block", "add", "3001234567", "--country-code", "CO")["phone"] == "573001234567"


# --- choices and numbers


@pytest.mark.parametrize(
    ("command", "option", "field", "choices"),
    [
        (CALL, "--voice", "voice", CALL_VOICES),
        (CALL_2FA, "--voice", "voice", CALL_2FA_VOICES),
        (STATS, "--category", "category", CATEGORIES + PREMIUM_CATEGORIES),
    ],
)
def test_a_choice_is_sent_in_the_spelling_of_the_api(
    command: tuple[str, ...], option: str, field: str, choices: tuple[str, ...], tool: Tool, service: Service
) -> None:
    for each in choices:
        assert used(tool, service, *command, option, each.swapcase())[field] == each
    service.received.clear()
    service.connections = 0
    refused(tool, service, *command, option, "Xyzzy", names=('"Xyzzy"', ", ".join(choices)))


@pytest.mark.parametrize("command", [(*CALL, "--voice", "Mia"), (*CALL_2FA, "--voice", "Mia"), AUDIO])
def test_retries_are_one_to_three(command: tuple[str, ...], tool: Tool, service: Service) -> None:
    for typed in ("0", "4", "+1", "1.0", "", "١"):
        refused(tool, service, *command, "--retries", typed, names=(f'--retries must be from 1 to 3, not "{typed}"',))
    assert used(tool, service, *command, "--retries", "3")["retries"] == "3"


# --- short texts


@pytest.mark.parametrize(
    ("line", "name"),
    [(line, name) for line, name, _ in list(AWKWARD.values())[::4]],
    ids=lambda each: each if isinstance(each, str) else each.command[1],
)
def test_blank_undecodable_and_control_text_is_refused_before_anything_is_sent(
    line: Line, name: str, tool: Tool, service: Service
) -> None:
    refused(tool, service, *line.with_text(name, " \u2003").command, names=("empty",))
    refused(tool, service, *line.with_text(name, "a\udcffb").command, names=("UTF-8",))
    refused(tool, service, *line.with_text(name, "a\x1b[2Jb").command, names=("U+001B",))


# --- the message


def test_a_file_gives_the_message(tmp_path: Path, tool: Tool, service: Service) -> None:
    file = tmp_path / "notice.txt"
    file.write_text("  Señal\n\n de 漢字 \n", encoding="utf-8")
    service.will(respond(RESPONSE))
    outcome = tool(*SMS, "--message-file", str(file), stdin=b"for the next command\n")
    assert (dict(service.received[0].form)["sms"], outcome.unread) == (
        "  Señal\n\n de 漢字 ",
        b"for the next command\n",
    )


DAMAGED = {"cut": "Señal".encode()[:3], "Windows-1252": "Señal".encode("cp1252")}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_damaged_utf8_is_refused_with_the_position_of_the_first_wrong_byte(
    content: bytes, tmp_path: Path, tool: Tool, service: Service
) -> None:
    expected = f"is not UTF-8 text: byte {content[2]:#04x} at position 3"
    file = tmp_path / "notice.txt"
    file.write_bytes(content)
    refused(tool, service, *SMS, names=(f"Standard input {expected}",), stdin=content)
    refused(tool, service, *SMS, "--message-file", str(file), names=(expected,))
    refused(tool, service, *SMS, "-m", content.decode(errors="surrogateescape"), names=("UTF-8", "position 3"))
    body = ("chatapp", "send", "--template", "t", "--body")
    refused(tool, service, *body, "-", names=(f"Standard input {expected}",), stdin=content)
    refused(tool, service, *body, str(file), names=(expected,))


def test_a_missing_message_is_an_error_on_a_terminal(tool: Tool, service: Service) -> None:
    refused(tool, service, *SMS, names=("message is missing", "-m", "--message-file"), stdin="x", terminal=True)
    assert tool(*SMS, stdin=b"x", terminal=True).unread == b"x"
    assert used(tool, service, *SMS, "--message-file", "-", stdin="typed\n", terminal=True)["sms"] == "typed"


def test_a_message_of_64_kib_is_the_longest(tool: Tool, service: Service) -> None:
    longest = "ñ" * (MAX_MESSAGE_BYTES // 2)
    refused(tool, service, *SMS, "-m", longest + "x", names=("message", f"{MAX_MESSAGE_BYTES:,}"))
    refused(tool, service, *SMS, names=("message", f"{MAX_MESSAGE_BYTES:,}"), stdin=longest + "x")
    refused(tool, service, *SMS, "--message-file", "/dev/zero", names=("message", f"{MAX_MESSAGE_BYTES:,}"))
    assert used(tool, service, *SMS, stdin=longest)["sms"] == longest


@pytest.mark.parametrize(("path", "fault"), [("no/such", "No such file"), ("/", "directory"), ("a\x00b", "not valid")])
def test_the_error_mentions_a_file_that_cannot_be_read(path: str, fault: str, tool: Tool, service: Service) -> None:
    shown = path.replace("\x00", "\\x00")
    refused(tool, service, *SMS, "--message-file", path, names=(f'"{shown}"', fault))


def test_gsm7_leaves_out_emoji_with_a_note_that_lists_them(tool: Tool, service: Service) -> None:
    service.always(respond({"id": "d1", "status": "1", "data": []}))
    done = tool(*SMS, "-m", "¡Listo, José! 🎉 Pasa hoy 🚚🎉", "--gsm7")
    assert dict(service.received[-1].form)["sms"] == "¡Listo, José! Pasa hoy"
    assert "--gsm7 left out 🎉, 🚚\n" in done.err
    assert tool("sms", "segments", "á 🎉", "--gsm7", "--json").document["segments"] == 1


# --- codes


@pytest.mark.parametrize("typed", ["480615", " 480 615", "480\u00a0615"])
def test_a_code_is_sent_without_spaces(typed: str, tool: Tool, service: Service) -> None:
    assert used(tool, service, *VERIFY, "--code", typed)["code"] == "480615"
    assert used(tool, service, *VERIFY, "--code", "-", stdin=f"{typed}\r\n")["code"] == "480615"


def test_a_terminal_prompts_for_the_code(tool: Tool, service: Service) -> None:
    service.will(respond(RESPONSE))
    outcome = tool(*VERIFY, stdin="480 615\n", terminal=True)
    assert ("Code: " in outcome.err, "Code: " in outcome.out) == (True, False)
    assert dict(service.received[0].form)["code"] == "480615"


def test_the_prompt_for_the_code_comes_after_all_other_checks(tool: Tool, service: Service) -> None:
    for command in (("2fa", "verify", PHONE), ("2fa", "verify", "57", "--app-name", "Shop")):
        outcome = tool(*command, stdin="480615\n", terminal=True)
        assert (outcome.code, outcome.unread) == (2, b"480615\n")


def test_a_code_is_read_from_a_pipe_only_with_a_dash(tool: Tool, service: Service) -> None:
    refused(tool, service, *VERIFY, names=("--code", "missing"), stdin="480615\n")
    assert tool(*VERIFY, stdin="480615\n").unread == b"480615\n"


# --- the body of a template


@pytest.mark.parametrize("command", [("chatapp", "send"), ("chatapp", "order")])
def test_values_fill_the_template_in_order(command: tuple[str, ...], tool: Tool, service: Service) -> None:
    values = ["Ana", "8:00", "45.00 EUR", "Ana", "true", "1", "a,b", " two\nlines ", '"{}"', "-5"]
    service.will(respond(RESPONSE))
    assert tool(*command, "--template", "t", "--", "+57 300 123 4567", *values).code == 0
    assert json.loads(service.received[0].body) == {"phone": PHONE, "body": values}


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (b"", "JSON"),
        (b'{"a": 1} {"b": 2}', "JSON"),
        (b'{"a": NaN}', "NaN"),
        (b'["573001234567", "Ana"]', "object"),
        (b"{}", "object"),
        (b"[" * 200_000, "nested too deeply"),
    ],
    ids=["nothing", "two", "NaN", "an array", "empty", "too deep"],
)
def test_a_body_that_is_not_a_json_object_is_refused(body: bytes, fault: str, tool: Tool, service: Service) -> None:
    command = ("chatapp", "send", "--template", "t", "--body", "-")
    refused(tool, service, *command, names=("body", fault), stdin=body)


def test_a_body_excludes_phone_and_values_and_one_of_them_is_needed(tool: Tool, service: Service) -> None:
    command = ("chatapp", "send", "--template", "t")
    refused(tool, service, *command, PHONE, "Ana", "--body", "-", names=("--body", "PHONE"), stdin=b'{"a": 1}')
    refused(tool, service, *command, names=("PHONE", "--body"), stdin=b'{"a": 1}')
    refused(tool, service, *command, PHONE, "Ana", "", names=("VALUE", "empty"))


def test_segments_counts_the_converted_text_with_gsm7(tool: Tool) -> None:
    text = "á" * 100
    counted = tool("sms", "segments", text, "--gsm7", "--json")
    assert (counted.document["encoding"], counted.document["segments"], counted.err) == ("GSM-7", 1, "")
