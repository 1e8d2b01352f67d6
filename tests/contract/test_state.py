"""Times, failures and interruptions of `state get` and `state watch`. `stories/commands/states.txt` has the rest."""

from __future__ import annotations

import json
import socket
import time
from pathlib import Path

import pytest

from support.jobs import accepting, numbers, of_phones, sent
from support.service import Behaviour, Service, drop, respond, silent
from support.tool import Tool, interrupt


def state(word: str) -> Behaviour:
    return respond({"state": word, "credits": 1, "id": "m1"})


def states(text: bytes) -> list[str]:
    """Return the states in JSON documents, one document per line."""
    return [json.loads(line)["state"] for line in text.splitlines()]


@pytest.mark.parametrize("command", [("state", "get", "m1", "m2"), ("state", "watch", "m1")])
def test_ctrl_c_prints_the_states_so_far(command: tuple[str, ...], service: Service, tool: Tool) -> None:
    service.will(state("queued"))
    service.always(drop)
    outcome = tool(*command, "--json", "-q", sleep=interrupt)
    assert (outcome.code, states(outcome.stdout), outcome.error["kind"]) == (130, ["queued"], "interrupted")


def test_a_watch_checks_every_two_seconds_until_a_final_state(service: Service, tool: Tool) -> None:
    for last in ("delivered", "rejected", "BUSY"):
        tool.clock.slept.clear()
        service.will(state("queued"), state("queued"), state("sent"), state(last))
        outcome = tool("state", "watch", "m1", "--json")
        assert (outcome.code, states(outcome.stdout), tool.clock.slept) == (0, [last], [2, 2, 2])
    tool.clock.slept.clear()
    service.always(state("queued"))
    assert tool("state", "watch", "m1", "--max-wait", "5").code == 6
    assert 0 < sum(tool.clock.slept) <= 5


def test_a_service_that_does_not_respond_does_not_prolong_a_watch(service: Service, tool: Tool) -> None:
    service.always(silent)
    watch = ("--timeout", "600", "state", "watch", "m1", "m2", "m3", "--max-wait", "0.2")
    assert tool(*watch, sleep=time.sleep).code == 6
    assert len(service.received) <= 2  # one check within the time, and one after it


def test_on_a_terminal_a_wait_ends_with_the_last_states(tool: Tool) -> None:
    people, wait = ("573001230002", "573001230003"), ("--wait", "--max-wait", "4", "--no-color")
    outcome = tool("-p", "sandbox", "sms", "send", *people, "-m", "Hola", *wait, terminal=True)
    cells = [line.split() for line in outcome.err.splitlines()]
    last = cells[cells.index(["Phone", "State"]) + 2 :]
    assert last[:2] == [["573001230002", "✗", "rejected"], ["573001230003", "○", "queued"]]


def test_ctrl_c_during_a_wait_reports_the_recipients_and_how_to_see_the_result(service: Service, tool: Tool) -> None:
    sent = {"id": "d1", "status": 1, "data": [{"id": "m1", "status": "sent", "phone": "573001234567"}]}
    service.will(respond(sent))
    service.always(respond({"id": "m1", "state": "queued"}))
    command = ("sms", "send", "573001234567", "-m", "Hola", "--wait", "--json")
    for options in ((), ("--resend-unknown",)):  # the second run prints the first result
        outcome = tool(*command, "--once", "key", *options, sleep=interrupt)
        again = "To see the result, run the same command again: it sends nothing."
        assert (outcome.code, outcome.error["hint"]) == (130, again)
        recipient = {"phone": "573001234567", "outcome": "accepted", "id": "m1"}
        assert (outcome.error["nothing_sent"], outcome.error["recipients"]) == (False, [recipient])
    assert len([request for request in service.received if request.path.endswith("/send-sms")]) == 1


def test_ctrl_c_only_ends_the_reading_of_the_states_of_a_job(service: Service, tool: Tool, tmp_path: Path) -> None:
    people = tmp_path / "people.csv"
    people.write_text("phone\n573001234567\n")
    service.always(respond({"id": "m1", "status": 1, "state": "queued"}))
    assert tool("sms", "bulk", str(people), "-m", "Hola", "--yes", "--name", "today").code == 0
    outcome = tool("job", "states", "today", "--follow", sleep=interrupt)
    assert outcome.code == 130
    assert "Interrupted after checking 1 message" in outcome.err
    assert "unknown" not in outcome.err


def test_the_time_to_follow_a_job_ends_even_between_two_of_its_messages(
    service: Service, tool: Tool, tmp_path: Path
) -> None:
    def slow(connection: socket.socket) -> None:
        tool.clock.now += 60
        state("queued")(connection)

    service.always(accepting(service))
    job = sent(tool, of_phones(tmp_path, numbers(4)))
    service.received.clear()
    service.always(slow)
    outcome = tool("job", "states", job, "--follow", "--max-wait", "100", "--json")
    assert (outcome.code, outcome.error["reason"], len(service.received)) == (6, "state_not_reached", 2)
