"""Input comes from the command line, a file, standard input or a terminal, and reaches the service unchanged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from contract.interface import Line
from contract.wire import AWKWARD
from support.service import Service, respond
from support.tool import Tool

PHONE = "573001234567"
SMS = ("sms", "send", PHONE)
VERIFY = ("2fa", "verify", PHONE, "--app-name", "Shop")
BODY = ("chatapp", "send", "--template", "t", "--body")


def refused(tool: Tool, service: Service, *command: str, names: tuple[str, ...], **streams: Any) -> None:
    """Check that a command line is a usage error that mentions these names, as text or JSON, and sends nothing."""
    tool(*command, **streams).refused(2, *names)
    error = tool(command[0], "--json", *command[1:], **streams).error
    assert (error["kind"], error["exit_code"]) == ("usage", 2)
    assert (service.received, service.connections) == ([], 0)


def used(tool: Tool, service: Service, *command: str, **streams: Any) -> dict[str, str]:
    """Run a command line that makes one request, and return the form in the request."""
    service.received.clear()
    service.will(respond({"urlShort": "https://s.example/1"} if command[0] == "url" else {"id": "1", "status": "1"}))
    assert tool(*command, **streams).code == 0
    (request,) = service.received
    assert len(dict(request.form)) == len(request.form)
    return dict(request.form)


# --- texts


@pytest.mark.parametrize(
    ("line", "name"),
    [(line, name) for line, name, _ in list(AWKWARD.values())[::4]],
    ids=lambda each: each if isinstance(each, str) else each.command[1],
)
def test_blank_undecodable_and_control_text_is_refused_before_anything_is_sent(
    line: Line, name: str, tool: Tool, service: Service
) -> None:
    for text, fault in ((" \u2003", "empty"), ("a\udcffb", "UTF-8"), ("a\x1b[2Jb", "U+001B")):
        refused(tool, service, *line.with_text(name, text).command, names=(fault,))


@pytest.mark.parametrize("command", ["click", "clock", "credit", "fault", "inbox"])
def test_undecodable_text_in_a_control_of_the_sandbox_is_a_usage_error(command: str, tool: Tool) -> None:
    outcome = tool("sandbox", command, "a\udcffb")
    assert outcome.code == 2
    assert "bug" not in outcome.err


def test_a_message_from_a_file_leaves_standard_input_unread(tmp_path: Path, tool: Tool, service: Service) -> None:
    file = tmp_path / "notice.txt"
    file.write_text("  Señal\n\n de 漢字 \n", encoding="utf-8")
    service.will(respond({"id": "1", "status": "1"}))
    outcome = tool(*SMS, "--message-file", str(file), stdin=b"for the next command\n")
    assert dict(service.received[0].form)["sms"] == "  Señal\n\n de 漢字 "
    assert outcome.unread == b"for the next command\n"
    assert tool(*SMS, stdin=b"x", terminal=True).unread == b"x"
    assert tool(*VERIFY, stdin="480615\n").unread == b"480615\n"


def test_a_code_that_is_too_long_is_not_cut_to_another_code(tool: Tool, service: Service) -> None:
    refused(tool, service, *VERIFY, "--code", "-", names=("too long",), stdin="480615" + " " * 20_000 + "7\n")


@pytest.mark.parametrize("content", ["Señal".encode()[:3], "Señal".encode("cp1252")], ids=["cut", "Windows-1252"])
def test_damaged_utf8_is_refused_with_the_position_of_the_first_wrong_byte(
    content: bytes, tmp_path: Path, tool: Tool, service: Service
) -> None:
    expected = f"is not UTF-8 text: byte {content[2]:#04x} at position 3"
    file = tmp_path / "notice.txt"
    file.write_bytes(content)
    refused(tool, service, *SMS, "-m", content.decode(errors="surrogateescape"), names=("UTF-8", "position 3"))
    for command in ((*SMS, "--message-file"), BODY):
        refused(tool, service, *command, "-", names=(f"Standard input {expected}",), stdin=content)
        refused(tool, service, *command, str(file), names=(expected,))


def test_a_message_of_64_kib_is_the_longest(tool: Tool, service: Service) -> None:
    longest = "ñ" * 32_768
    for options, stdin in ((("-m", f"{longest}x"), ""), ((), f"{longest}x")):
        refused(tool, service, *SMS, *options, names=("message", "65,536"), stdin=stdin)
    refused(tool, service, *SMS, "--message-file", "/dev/zero", names=("The message is too long", "65,536"))
    assert used(tool, service, *SMS, "--max-segments", "500", stdin=longest)["sms"] == longest


# --- the body of a template


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
    refused(tool, service, *BODY, "-", names=("body", fault), stdin=body)
