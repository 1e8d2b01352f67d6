"""--once, --resend-unknown and --ignore-optout: one person, one message."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading

import pytest

from msgctl.commands import sms
from msgctl.config.profiles import Profile
from msgctl.errors import ConfigurationError
from msgctl.history.once import Reservation
from msgctl.history.store import History
from msgctl.http import client, request, response
from support.commands import PHONE, SENDS, Command, each
from support.service import Behaviour, Service, drop, respond
from support.tool import Outcome, Tool, process

on_both_stores = pytest.mark.usefixtures("store")
OTHER = "573007654321"
ONE_REQUEST = {name: SENDS[name] for name in ("sms send", "call send", "chatapp send", "chatapp order")}
SEND = ("sms", "send", PHONE, "-m", "Hola", "--once", "disk")
ENTRY = SENDS["sms send"].record
ACCEPTED = respond(ENTRY)
TWO_ACCEPTED = respond({"id": "d", "data": [{"id": "a", "phone": PHONE}, {"id": "b", "phone": OTHER}]})
REFUSED = respond({"error": "NO", "msg": "no credits"}, 520)


def sends(service: Service) -> int:
    return len(service.received)


@pytest.mark.every_set
@each(ONE_REQUEST)
def test_a_key_sends_once_and_prints_the_same_result_again(command: Command, service: Service, tool: Tool) -> None:
    service.will(respond(command.record))
    first = tool(*command.line, "--once", "k", "--json")
    again = tool(*command.line, "--once", "k", "--json")
    assert (first.code, again.code) == (0, 0)
    assert again.stdout == first.stdout
    assert tool(*command.line, "--once", "k", "-o", "csv").out == tool(*command.line, "--once", "k", "-o", "csv").out
    assert sends(service) == 1


def test_a_send_encodes_its_body_once_and_parses_the_response_once(
    service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def counted(module: object, name: str) -> None:
        function = getattr(module, name)

        def call(*given: object, **options: object) -> object:
            done.append(name)
            return function(*given, **options)

        monkeypatch.setattr(module, name, call)

    counted(request, "build")
    counted(sms, "build")
    counted(client, "encoded")
    counted(response, "load_json")
    service.will(ACCEPTED)
    assert tool(*SEND).code == 0
    assert sorted(done) == ["build", "encoded", "load_json"]


@pytest.mark.every_set
@pytest.mark.parametrize(
    ("data", "code"),
    [([{"id": "m1", "status": "rejected", "phone": PHONE}], 6), ([{"id": "m9", "phone": OTHER}], 5)],
    ids=["refused", "not mentioned"],
)
def test_the_exit_code_is_repeated_with_the_record(
    data: list[dict[str, str]], code: int, service: Service, tool: Tool
) -> None:
    service.will(respond({"id": "d1", "status": "1", "data": data}))
    first, again = tool(*SEND, "--json"), tool(*SEND, "--json")
    assert (first.code, again.code, again.stdout) == (code, code, first.stdout)
    assert sends(service) == 1


@on_both_stores
def test_a_repeated_call_says_that_nothing_was_sent(service: Service, tool: Tool) -> None:
    service.will(ACCEPTED)
    assert "Nothing was sent" not in tool(*SEND).err
    assert 'This time nothing was sent. This is the result of the first attempt with --once "' in tool(*SEND).err
    assert tool(*SEND, "--quiet").err == ""


@on_both_stores
@pytest.mark.parametrize("behaviour", [REFUSED, None], ids=["refused", "not reached"])
def test_a_request_that_was_not_carried_out_frees_the_key(
    behaviour: Behaviour | None, service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        if behaviour is None:
            patch.setenv("MSGCTL_BASE_URL", "http://127.0.0.1:1/api/v1")
        else:
            service.will(behaviour)
        assert tool(*SEND).code == (4 if behaviour is None else 1)
    service.will(ACCEPTED)
    assert tool(*SEND).code == 0


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@on_both_stores
def test_ctrl_c_before_the_request_frees_the_key(service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as while the command that prints the account's key asks for a password."""
    with monkeypatch.context() as patch:
        patch.setattr(Profile, "credential", _interrupt)
        tool(*SEND).refused(130, "nothing was sent")
    service.will(ACCEPTED)
    assert tool(*SEND).code == 0


@on_both_stores
def test_ctrl_c_after_the_request_keeps_the_key(service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    service.will(ACCEPTED)
    with monkeypatch.context() as patch:
        patch.setattr(History, "finish", _interrupt)
        tool(*SEND).refused(130, "after the request was carried out")
    assert tool(*SEND).code == 5
    assert sends(service) == 1


def test_a_refusal_is_shown_even_if_its_key_cannot_be_freed(
    service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> None:
        raise ConfigurationError("Cannot use the list of --once keys: database or disk is full")

    monkeypatch.setattr(Reservation, "release", fail)
    service.will(REFUSED)
    tool(*SEND).refused(1, "no credits", "Warning: The result is not stored under --once", "disk is full")


@pytest.mark.every_set
@pytest.mark.parametrize(
    "behaviour",
    [drop, respond(b"[]"), respond({"error": "BUSY", "msg": "later"}, 503)],
    ids=["no response", "no record", "an error record"],
)
def test_an_unknown_outcome_stays_unknown_and_is_never_repeated(
    behaviour: Behaviour, service: Service, tool: Tool
) -> None:
    service.will(behaviour)
    first = tool(*SEND, "--json")
    again = tool(*SEND, "--json")
    assert (first.code, again.code) == (5, 5)
    changed = {"message", "hint"}
    assert {name: value for name, value in again.error.items() if name not in changed} == {
        name: value for name, value in first.error.items() if name not in changed
    }
    assert first.error["message"] in f"{again.error['message']}\n{again.error['hint']}"
    assert sends(service) == 1


@on_both_stores
def test_resend_unknown_sends_again_only_if_the_outcome_is_unknown(service: Service, tool: Tool) -> None:
    service.will(drop, REFUSED, ACCEPTED)
    assert tool(*SEND).code == 5
    assert tool(*SEND, "--resend-unknown").code == 1
    assert tool(*SEND).code == 5  # the first request is as doubtful as before
    assert tool(*SEND, "--resend-unknown").code == 0
    assert tool(*SEND, "--resend-unknown").code == 0
    assert sends(service) == 3
    assert tool("sms", "send", PHONE, "-m", "Hola", "--resend-unknown").code == 2


@on_both_stores
def test_a_key_used_for_something_else_is_a_usage_error(service: Service, tool: Tool) -> None:
    service.will(ACCEPTED)
    assert tool(*SEND).code == 0
    for line in (
        ("sms", "send", PHONE, "-m", "Adios"),
        ("sms", "send", OTHER, "-m", "Hola"),
        ("sms", "send", PHONE, OTHER, "-m", "Hola"),
        ("call", "send", PHONE, "-m", "Hola", "--voice", "Mia"),
    ):
        other = tool(*line, "--once", "disk")
        assert (other.code, "another message or other recipients" in other.err) == (2, True), other.err
    assert sends(service) == 1


@on_both_stores
def test_a_key_belongs_to_an_account(service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    service.will(ACCEPTED, ACCEPTED)
    assert tool(*SEND).code == 0
    monkeypatch.setenv("MSGCTL_CLIENT", "54321")
    assert tool(*SEND).code == 0
    assert sends(service) == 2


@on_both_stores
def test_an_account_is_the_same_in_every_spelling_of_its_address(
    service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.will(ACCEPTED)
    assert tool(*SEND).code == 0
    for spelling in ("HTTP://127.0.0.1:{}/api/v1", "http://127.0.0.1:{}/api/./old/../v1/"):
        monkeypatch.setenv("MSGCTL_BASE_URL", spelling.format(service.port))
        assert tool(*SEND).code == 0
    assert sends(service) == 1
    service.will(ACCEPTED)
    monkeypatch.setenv("MSGCTL_BASE_URL", f"http://127.0.0.1:{service.port}/API/v1")
    assert tool(*SEND).code == 0


@on_both_stores
def test_a_key_outlives_the_history(service: Service, tool: Tool) -> None:
    service.will(ACCEPTED)
    assert tool(*SEND).code == 0
    assert tool("history", "clear", "--yes").code == 0
    assert tool(*SEND).code == 0
    assert sends(service) == 1


@on_both_stores
def test_a_dry_run_reserves_no_key(service: Service, tool: Tool) -> None:
    assert tool(*SEND, "--dry-run").code == 0
    service.will(ACCEPTED)
    assert tool(*SEND).code == 0
    assert sends(service) == 1


@on_both_stores
def test_of_several_callers_at_once_one_sends_and_the_others_print_its_result(service: Service) -> None:
    everyone_is_there = threading.Event()
    service.will(_after(everyone_is_there, ACCEPTED))
    line = [sys.executable, "-m", "msgctl", *SEND, "--json"]
    callers = [subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(4)]
    everyone_is_there.set()
    printed = [caller.communicate(timeout=60)[0] for caller in callers]
    assert printed == [printed[0]] * 4
    assert PHONE in str(json.loads(printed[0])["data"])
    assert [caller.returncode for caller in callers] == [0] * 4
    assert sends(service) == 1


@on_both_stores
def test_a_caller_that_is_killed_while_it_sends_leaves_the_outcome_unknown(service: Service, tool: Tool) -> None:
    is_sent = threading.Event()

    def never_respond(connection: socket.socket) -> None:
        is_sent.set()
        connection.recv(1)

    service.will(never_respond)
    killed = subprocess.Popen([sys.executable, "-m", "msgctl", *SEND], stderr=subprocess.DEVNULL)
    assert is_sent.wait(60)
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait()
    again = process(*SEND)
    assert (again.code, "may have been sent" in again.err) == (5, True), again.err
    assert [entry["outcome"] for entry in tool("history", "--json").document] == ["unknown"]
    assert sends(service) == 1


def _after(event: threading.Event, behaviour: Behaviour) -> Behaviour:
    def behave(connection: socket.socket) -> None:
        assert event.wait(60)
        behaviour(connection)

    return behave


# --- opt-outs


def optouted(outcome: Outcome) -> bool:
    return outcome.code == 2 and "opted out" in outcome.err and "--ignore-optout" in outcome.err


@each(ONE_REQUEST)
def test_an_opted_out_number_is_refused(command: Command, service: Service, tool: Tool) -> None:
    assert tool("optout", "add", PHONE).code == 0
    assert optouted(tool(*command.line))
    assert sends(service) == 0
    service.will(respond(command.record))
    assert tool(*command.line, "--ignore-optout").code == 0


@each(ONE_REQUEST)
def test_an_opt_out_of_another_channel_does_not_count(command: Command, service: Service, tool: Tool) -> None:
    channel = command.line[0]
    for other in {"sms", "call", "chatapp"} - {channel}:
        assert tool("optout", "add", PHONE, "--channel", other).code == 0
    service.will(respond(command.record))
    assert tool(*command.line).code == 0
    assert tool("optout", "add", PHONE, "--channel", channel).code == 0
    refused = tool(*command.line)
    assert optouted(refused)
    assert f"msgctl optout remove {PHONE} --channel {channel}" in refused.err
    assert sends(service) == 1


def test_one_opted_out_number_among_others_stops_the_send(service: Service, tool: Tool) -> None:
    assert tool("optout", "add", OTHER).code == 0
    refused = tool("sms", "send", PHONE, OTHER, "-m", "Hola")
    assert optouted(refused)
    assert OTHER in refused.err
    assert PHONE not in refused.err


@each({name: SENDS[name] for name in ("2fa send-sms", "2fa send-call", "2fa send-chatapp")})
def test_verification_codes_ignore_the_opt_out_list(command: Command, service: Service, tool: Tool) -> None:
    assert tool("optout", "add", PHONE).code == 0
    service.will(respond(command.record))
    assert tool(*command.line).code == 0


def test_a_part_of_a_text_is_not_a_field(service: Service, tool: Tool) -> None:
    send = ("sms", "send", PHONE, "-m", "Hola", "--fields")
    for name in ("id.foo", "data.id.foo"):
        tool(*send, name).refused(2, f'unknown field "{name}"', "Give id.")
    assert service.received == []
    service.will(TWO_ACCEPTED)
    assert tool(*send, "id,data.0.id,dispatch.id").code == 0


# --- --wait


@pytest.mark.every_set
def test_a_wait_prints_the_send_and_ends_with_0_once_everyone_has_it(service: Service, tool: Tool) -> None:
    states = [
        respond({"id": each, "state": state}) for each, state in [("a", "sent"), ("b", "delivered"), ("a", "read")]
    ]
    service.will(TWO_ACCEPTED, *states)
    outcome = tool("sms", "send", PHONE, OTHER, "-m", "Hola", "--wait", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    assert [each["id"] for each in outcome.document["data"]] == ["a", "b"]


def test_a_wait_accepts_the_fields_of_the_send(service: Service, tool: Tool) -> None:
    delivered = [respond({"id": each, "state": "delivered"}) for each in "ab"]
    service.will(TWO_ACCEPTED, *delivered)
    outcome = tool("sms", "send", PHONE, OTHER, "-m", "Hola", "--wait", "-o", "csv", "--fields", "id,status")
    assert (outcome.code, outcome.out.splitlines()[0]) == (0, "id,status")


@pytest.mark.every_set
@pytest.mark.parametrize("last", ["rejected", "queued"])
def test_a_wait_names_who_did_not_get_it_and_exits_with_6(last: str, service: Service, tool: Tool) -> None:
    service.will(TWO_ACCEPTED, respond({"id": "a", "state": "delivered"}))
    service.always(respond({"id": "b", "state": last}))
    outcome = tool("sms", "send", PHONE, OTHER, "-m", "Hola", "--wait", "--max-wait", "9", "-o", "csv")
    assert outcome.code == 6
    assert f"Not delivered to {OTHER} [{last}] (1 of 2 accepted messages)" in outcome.err
    assert ("; 1 message did not reach a final state in 9 s" in outcome.err) is (last == "queued")
    assert len(outcome.out.splitlines()) == 3


def test_a_wait_without_an_id_reports_that_the_state_cannot_be_checked(service: Service, tool: Tool) -> None:
    cannot = f"The state of {PHONE} cannot be checked: the service returned no ID"
    service.will(respond({"status": "1", "data": [{"phone": PHONE, "status": "sent"}]}))
    done = tool("sms", "send", PHONE, "-m", "Hola", "--wait", "--json")
    assert (done.code, done.error["message"], done.error["reason"]) == (6, cannot, "state_unreadable")
    assert "hint" not in done.error
    entries = [{"phone": PHONE, "status": "sent"}, {"id": "b", "phone": OTHER, "status": "sent"}]
    service.will(respond({"status": "1", "data": entries}), respond({"id": "b", "state": "rejected"}))
    done = tool("sms", "send", PHONE, OTHER, "-m", "Hola", "--wait", "--json")
    assert done.error["message"] == f"Not delivered to {OTHER} [rejected] (1 of 2 accepted messages); {cannot}"


def test_a_wait_checks_again_after_a_failed_check(service: Service, tool: Tool) -> None:
    delivered = [respond({"id": each, "state": "delivered"}) for each in "ba"]
    service.will(TWO_ACCEPTED, respond(b"", 500), *delivered)
    assert tool("sms", "send", PHONE, OTHER, "-m", "Hola", "--wait").code == 0


def test_a_state_that_cannot_be_read_is_not_reported_as_not_delivered(service: Service, tool: Tool) -> None:
    service.will(respond({"status": "1", "data": [{"id": "a", "phone": PHONE, "status": "sent"}]}))
    service.always(respond(b"", 500))
    done = tool("sms", "send", PHONE, "-m", "Hola", "--wait", "--max-wait", "9", "--json")
    found = (done.code, done.error["message"], done.error["reason"])
    assert found == (6, f"The state of {PHONE} could not be read (500)", "state_unreadable")
    assert "status 500" in done.error["hint"]
    assert tool.clock.slept == pytest.approx([2, 2, 2, 2, 1], abs=1)


@pytest.mark.parametrize("status", [401, 403, 404, 520])
def test_a_refusal_ends_a_wait_at_once(status: int, service: Service, tool: Tool) -> None:
    service.will(respond({"status": "1", "data": [{"id": "a", "phone": PHONE, "status": "sent"}]}))
    service.always(respond({"error": "no", "msg": "wrong credentials"}, status))
    done = tool("sms", "send", PHONE, "-m", "Hola", "--wait", "--json")
    assert (done.code, done.error["reason"], tool.clock.slept) == (6, "state_unreadable", [])
    assert "wrong credentials" in done.error["hint"]


def test_a_send_that_fails_keeps_its_exit_code_with_wait(service: Service, tool: Tool) -> None:
    service.will(respond({"id": "d", "status": "1", "data": [{"id": "a", "phone": PHONE}]}))
    service.always(respond({"id": "a", "state": "rejected"}))
    outcome = tool("sms", "send", PHONE, OTHER, "-m", "Hola", "--wait")
    assert outcome.code == 5
    assert f"Not delivered to {PHONE} [rejected]" in outcome.err


def test_a_wait_on_a_terminal_ends_with_the_last_states(service: Service, tool: Tool) -> None:
    service.will(TWO_ACCEPTED, respond({"id": "a", "state": "delivered"}), respond({"id": "b", "state": "rejected"}))
    done = tool("sms", "send", PHONE, OTHER, "-m", "Hola", "--wait", "--no-color", terminal=True)
    assert f"{PHONE}  ✓ delivered\n{OTHER}  ✗ rejected\n" in done.err


def test_a_wait_for_calls_is_about_answers(service: Service, tool: Tool) -> None:
    call = ("call", "send", PHONE, OTHER, "-m", "Hola", "--voice", "Mia", "--wait")
    service.will(TWO_ACCEPTED, *[respond({"id": each, "state": "answered"}) for each in "ab"])
    assert tool(*call).err.endswith("All calls were answered.\n")
    service.will(TWO_ACCEPTED, respond({"id": "a", "state": "answered"}), respond({"id": "b", "state": "busy"}))
    assert f"Not answered by {OTHER} [busy] (1 of 2 accepted calls)" in tool(*call).err


def test_max_wait_needs_wait(service: Service, tool: Tool) -> None:
    assert tool("sms", "send", PHONE, "-m", "Hola", "--max-wait", "9").code == 2
    assert not service.received
