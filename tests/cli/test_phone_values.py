"""Phone numbers as people write them, lists of them, and numbers given twice."""

from __future__ import annotations

import json

import pytest

from cli.typed import ANSWER, OTHER, PHONE, refused, used
from support.service import Service, answer
from support.tool import Tool

SMS = ("sms", "send", "-m", "Hola")
CALL = ("call", "send", "-m", "Hola", "--voice", "Mia")
ONE = (
    ("block", "add"),
    ("2fa", "send-sms", "--app-name", "Shop"),
    ("2fa", "send-call", "--app-name", "Shop", "--voice", "Mia"),
    ("2fa", "send-chatapp", "--app-name", "Shop"),
    ("2fa", "verify", "--app-name", "Shop", "--code", "480615"),
    ("chatapp", "send", "--template", "t"),
    ("chatapp", "order", "--template", "t"),
)

each_command = pytest.mark.parametrize("command", [SMS, CALL, *ONE], ids=lambda command: " ".join(command[:2]))
each_command_of_one = pytest.mark.parametrize("command", ONE, ids=lambda command: " ".join(command[:2]))
each_command_of_several = pytest.mark.parametrize("command", [SMS, CALL], ids=("sms", "call"))


@pytest.mark.parametrize(
    ("typed", "sent"),
    [
        ("57300", "57300"),
        ("123456789012345", "123456789012345"),
        ("+573001234567", PHONE),
        ("+57 300 123 4567", PHONE),
        ("57-300-123-4567", PHONE),
        ("57.300.123.4567", PHONE),
        ("(57) 300 1234567", PHONE),
        (" +(57) 300.123-45 67 ", PHONE),
        ("(+57)3001234567", PHONE),
        ("0057300", "0057300"),
    ],
)
def test_reading_aids_and_a_leading_plus_are_dropped(typed: str, sent: str, tool: Tool, service: Service) -> None:
    assert used(tool, service, *SMS, typed)["phone"] == sent


@each_command
def test_every_command_sends_a_phone_as_digits(command: tuple[str, ...], tool: Tool, service: Service) -> None:
    service.will(answer(ANSWER))
    assert tool(*command, "+57 300-123.(4567)").code == 0
    (request,) = service.received
    json_phone = request.headers["content-type"] == "application/json" and json.loads(request.body)["phone"]
    assert (json_phone or dict(request.form)["phone"]) == PHONE


@pytest.mark.parametrize(
    ("typed", "shown"),
    [
        ("5730", "'5730'"),
        ("1234567890123456", "'1234567890123456'"),
        ("", "''"),
        (" ", "' '"),
        ("+", "'+'"),
        ("++573001234567", "'++573001234567'"),
        ("573001234567+", "'573001234567+'"),
        ("57+3001234567", "'57+3001234567'"),
        ("Ana", "'Ana'"),
        ("57300123456x", "'57300123456x'"),
        ("0x573001", "'0x573001'"),
        ("57_300_1234567", "'57_300_1234567'"),
        ("57/300/1234567", "'57/300/1234567'"),
        ("573001234567;573007654321", "'573001234567;573007654321'"),
        ("573001234567\n", r"'573001234567\n'"),
        ("57\t3001234567", r"'57\t3001234567'"),
        ("57300123456\x1b[2J7", r"'57300123456\x1b[2J7'"),
        ("٥٧٣٠٠١٢٣٤٥٦٧", "'٥٧٣٠٠١٢٣٤٥٦٧'"),
        ("５７３００１２３４", "'５７３００１２３４'"),
        ("57300123456²", "'57300123456²'"),
        ("57300\udcff1234", r"'57300\udcff1234'"),
        ("1" * 5000, "'1111111111"),
    ],
    ids=ascii,
)
def test_anything_else_is_refused_by_its_name(typed: str, shown: str, tool: Tool, service: Service) -> None:
    refused(tool, service, *SMS, typed, names=(shown, "5 to 15 digits", "+"))


@each_command
def test_every_command_refuses_what_is_no_phone(command: tuple[str, ...], tool: Tool, service: Service) -> None:
    refused(tool, service, *command, "57300l234567", names=("'57300l234567'", "5 to 15 digits"))


def test_one_bad_number_among_good_ones_stops_all_of_them(tool: Tool, service: Service) -> None:
    refused(tool, service, *SMS, PHONE, f"{OTHER},5730", names=("'5730'",))


@each_command_of_several
def test_several_numbers_go_in_one_request_in_the_order_given(
    command: tuple[str, ...], tool: Tool, service: Service
) -> None:
    form = used(tool, service, *command, OTHER, f"{PHONE},+57 300 999 9999", "57311, 57322")
    assert form["phone"] == f"{OTHER},{PHONE},573009999999,57311,57322"


@each_command_of_one
def test_a_command_for_one_number_refuses_a_list(command: tuple[str, ...], tool: Tool, service: Service) -> None:
    refused(tool, service, *command, f"{PHONE},{OTHER}", names=(f"'{PHONE},{OTHER}'", "5 to 15 digits"))


@pytest.mark.parametrize("command", ONE[:5], ids=lambda command: " ".join(command[:2]))
def test_a_command_for_one_number_refuses_a_second(command: tuple[str, ...], tool: Tool, service: Service) -> None:
    refused(tool, service, *command, PHONE, OTHER, names=(OTHER,))


@each_command
def test_a_missing_number_is_named(command: tuple[str, ...], tool: Tool, service: Service) -> None:
    refused(tool, service, *command, names=("PHONE",))


@each_command_of_several
@pytest.mark.parametrize("typed", [f"{PHONE},", f",{PHONE}", f"{PHONE},,{OTHER}", f"{PHONE}, ,{OTHER}", ",", " , "])
def test_an_empty_part_of_a_list_is_refused(command: tuple[str, ...], typed: str, tool: Tool, service: Service) -> None:
    refused(tool, service, *command, typed, names=(f"'{typed}'", "separated by commas"))


@each_command_of_several
def test_a_repeated_number_is_sent_once_with_a_note(command: tuple[str, ...], tool: Tool, service: Service) -> None:
    service.will(answer(ANSWER))
    outcome = tool(*command, PHONE, f"{OTHER},+57 300 123 4567", "57311", "57-311")
    assert outcome.code == 0
    assert dict(service.received[0].form)["phone"] == f"{PHONE},{OTHER},57311"
    assert len(outcome.err.splitlines()) == 1
    assert PHONE in outcome.err
    assert "57311" in outcome.err
    assert OTHER not in outcome.err


def test_numbers_given_once_are_not_worth_a_note(tool: Tool, service: Service) -> None:
    service.will(answer(ANSWER))
    assert tool(*SMS, PHONE, OTHER).err == ""


@pytest.mark.parametrize("quiet", ["-q", "--quiet"])
def test_quiet_keeps_the_note_back(quiet: str, tool: Tool, service: Service) -> None:
    service.will(answer(ANSWER))
    assert tool(quiet, *SMS, PHONE, PHONE).err == ""
    assert dict(service.received[0].form)["phone"] == PHONE
