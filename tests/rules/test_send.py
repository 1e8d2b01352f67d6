"""--once, --resend-unknown and --ignore-optout: no person gets a message twice."""

from __future__ import annotations

import pytest

from support.commands import PHONE, SENDS, Command, each
from support.service import Service, respond
from support.tool import Outcome, Tool

on_both_stores = pytest.mark.usefixtures("on_both_stores")
OTHER = "573007654321"
ONE_REQUEST = {name: SENDS[name] for name in ("sms send", "call send", "chatapp send", "chatapp order")}
SEND = ("sms", "send", PHONE, "-m", "Hola", "--once", "disk")
ENTRY = SENDS["sms send"].record
ACCEPTED = respond(ENTRY)
TWO_ACCEPTED = respond({"id": "d", "status": 1, "data": [{"id": "a", "phone": PHONE}, {"id": "b", "phone": OTHER}]})
REFUSED = respond({"error": "NO", "msg": "no credits"}, 520)


def sends(service: Service) -> int:
    return len(service.received)


@on_both_stores
def test_a_repeated_run_reports_that_the_result_is_from_the_first_run(service: Service, tool: Tool) -> None:
    service.will(ACCEPTED)
    assert "first run" not in tool(*SEND).err
    again = tool(*SEND).err
    assert 'This is the result of the first run with --once "' in again
    assert "nothing was sent" not in again.lower()
    assert tool(*SEND, "--quiet").err == ""


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
def test_a_dry_run_reserves_no_key(service: Service, tool: Tool) -> None:
    assert tool(*SEND, "--dry-run").code == 0
    service.will(ACCEPTED)
    assert tool(*SEND).code == 0
    assert sends(service) == 1


# --- opt-outs


def optouted(outcome: Outcome) -> bool:
    return outcome.code == 2 and "opted out" in outcome.err and "--ignore-optout" in outcome.err


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


# --- --wait


@pytest.mark.parametrize("last", ["rejected", "queued"])
def test_a_wait_lists_undelivered_recipients_and_exits_with_6(last: str, service: Service, tool: Tool) -> None:
    service.will(TWO_ACCEPTED, respond({"id": "a", "state": "delivered"}))
    service.always(respond({"id": "b", "state": last}))
    outcome = tool("sms", "send", PHONE, OTHER, "-m", "Hola", "--wait", "--max-wait", "9", "-o", "csv")
    assert outcome.code == 6
    assert f"Not delivered to {OTHER} [{last}] (1 of 2 accepted messages)" in outcome.err
    assert ("; 1 message did not reach a final state in 9 s" in outcome.err) is (last == "queued")
    assert len(outcome.out.splitlines()) == 3


@pytest.mark.parametrize(("last", "reason"), [("rejected", "not_delivered"), ("queued", "state_not_reached")])
def test_the_error_of_a_wait_lists_the_recipients(last: str, reason: str, service: Service, tool: Tool) -> None:
    service.will(TWO_ACCEPTED, respond({"id": "a", "state": "delivered"}))
    service.always(respond({"id": "b", "state": last}))
    error = tool("sms", "send", PHONE, OTHER, "-m", "Hola", "--wait", "--max-wait", "9", "--json").error
    assert (error["reason"], error["nothing_sent"]) == (reason, False)
    assert error["recipients"] == [
        {"phone": PHONE, "outcome": "accepted", "id": "a"},
        {"phone": OTHER, "outcome": "accepted", "id": "b"},
    ]


def test_a_wait_without_an_id_reports_that_the_state_cannot_be_checked(service: Service, tool: Tool) -> None:
    cannot = f"The state of {PHONE} cannot be checked: the service returned no ID"
    service.will(respond({"status": "1", "data": [{"phone": PHONE, "status": "sent"}]}))
    done = tool("sms", "send", PHONE, "-m", "Hola", "--wait", "--json")
    assert (done.code, done.error["message"], done.error["reason"]) == (6, cannot, "not_delivered")
    assert "hint" not in done.error
    entries = [{"phone": PHONE, "status": "sent"}, {"id": "b", "phone": OTHER, "status": "sent"}]
    service.will(respond({"status": "1", "data": entries}), respond({"id": "b", "state": "rejected"}))
    done = tool("sms", "send", PHONE, OTHER, "-m", "Hola", "--wait", "--json")
    assert done.error["message"] == f"Not delivered to {OTHER} [rejected] (1 of 2 accepted messages); {cannot}"


def test_a_state_that_cannot_be_read_is_not_reported_as_not_delivered(service: Service, tool: Tool) -> None:
    service.will(respond({"status": "1", "data": [{"id": "a", "phone": PHONE, "status": "sent"}]}))
    service.always(respond(b"", 500))
    done = tool("sms", "send", PHONE, "-m", "Hola", "--wait", "--max-wait", "9", "--json")
    found = (done.code, done.error["message"], done.error["reason"])
    assert found == (6, f"The state of {PHONE} could not be read (500)", "state_not_reached")
    assert "status 500" in done.error["hint"]
    assert tool.clock.slept == pytest.approx([2, 2, 2, 2, 1], abs=1)


@pytest.mark.parametrize("status", [401, 403, 404, 520])
def test_a_refusal_ends_a_wait_at_once(status: int, service: Service, tool: Tool) -> None:
    service.will(respond({"status": "1", "data": [{"id": "a", "phone": PHONE, "status": "sent"}]}))
    service.always(respond({"error": "no", "msg": "wrong credentials"}, status))
    done = tool("sms", "send", PHONE, "-m", "Hola", "--wait", "--json")
    assert (done.code, done.error["reason"], tool.clock.slept) == (6, "not_delivered", [])
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


def test_a_wait_for_a_call_ends_when_it_is_answered(service: Service, tool: Tool) -> None:
    call = ("call", "send", PHONE, OTHER, "-m", "Hola", "--voice", "Mia", "--wait")
    service.will(TWO_ACCEPTED, *[respond({"id": each, "state": "answered"}) for each in "ab"])
    assert tool(*call).err.endswith("All calls were answered.\n")
    service.will(TWO_ACCEPTED, respond({"id": "a", "state": "answered"}), respond({"id": "b", "state": "busy"}))
    assert f"Not answered by {OTHER} [busy] (1 of 2 accepted calls)" in tool(*call).err


def test_max_wait_needs_wait(service: Service, tool: Tool) -> None:
    assert tool("sms", "send", PHONE, "-m", "Hola", "--max-wait", "9").code == 2
    assert not service.received
