"""`state get` of several messages, and `state watch`: the output, the messages, and the exit code."""

from __future__ import annotations

import json

import pytest

from support.service import Behaviour, Service, drop, respond, silent
from support.tool import Tool, process

GONE = respond({"error": "not_found", "msg": "no such message"}, 520)


def state(word: str, id: str = "m1") -> Behaviour:
    return respond({"state": word, "credits": 1, "id": id})


def documents(text: bytes) -> list[tuple[str, str]]:
    """Identifier and state of each JSON document, one per line."""
    return [(each["id"], each["state"]) for each in map(json.loads, text.splitlines())]


# --- state get


def test_several_documents_are_one_per_line_in_the_order_asked(service: Service, tool: Tool) -> None:
    service.will(state("sent", "m2"), state("delivered", "m1"))
    outcome = tool("state", "get", "m2", "m1", "--json")
    assert documents(outcome.stdout) == [("m2", "sent"), ("m1", "delivered")]
    assert [each.query[-1] for each in service.received] == [("id", "m2"), ("id", "m1")]


def test_it_ends_with_the_code_of_the_first_failure(service: Service, tool: Tool) -> None:
    service.will(state("sent"), drop, drop, drop, GONE, state("sent", "m4"))
    outcome = tool("state", "get", "m1", "m2", "m3", "m4", "--json")
    assert outcome.code == 5
    assert documents(outcome.stdout) == [("m1", "sent"), ("m4", "sent")]
    first, second = map(json.loads, outcome.err.splitlines())
    assert (first["exit_code"], second["exit_code"]) == (5, 1)
    assert '"m2"' in first["message"]
    assert '"m3"' in second["message"]


def test_an_interruption_prints_the_responses_so_far(service: Service, tool: Tool) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    service.will(state("sent", "m1"), drop)
    outcome = tool("state", "get", "m1", "m2", "--json", sleep=interrupt)
    assert outcome.code == 130
    assert documents(outcome.stdout) == [("m1", "sent")]
    assert outcome.error["kind"] == "interrupted"


# --- state watch


@pytest.mark.parametrize("last", ["delivered", "rejected", "BUSY"])
def test_a_watch_ends_at_a_final_state(last: str, service: Service, tool: Tool) -> None:
    service.will(state("queued"), state("queued"), state("sent"), state(last))
    outcome = tool("state", "watch", "m1", "--json")
    assert (outcome.code, outcome.document["state"]) == (0, last)
    assert tool.clock.slept == [2, 2, 2]


def test_each_change_is_noted_once(service: Service, tool: Tool) -> None:
    service.will(state("queued"), state("queued"), state("sent"), state("sent"), state("delivered"))
    outcome = tool("state", "watch", "m1")
    assert outcome.err.splitlines() == ["m1: queued", "m1: sent", "m1: delivered"]


@pytest.mark.parametrize("typed", ["sent", "SENT"])
def test_until_names_the_state_to_wait_for(typed: str, service: Service, tool: Tool) -> None:
    service.will(state("queued"), state("sent"))
    outcome = tool("state", "watch", "m1", "--until", typed, "--json")
    assert (outcome.code, outcome.document["state"]) == (0, "sent")


def test_another_final_state_exits_with_6_at_once(service: Service, tool: Tool) -> None:
    service.will(state("queued"), state("rejected"))
    outcome = tool("state", "watch", "m1", "--until", "delivered", "--json", "-q")
    assert outcome.code == 6
    assert outcome.document["state"] == "rejected"
    assert outcome.error["kind"] == "condition_not_met"
    assert all(word in outcome.error["message"] for word in ("m1", "delivered", "rejected"))
    assert (outcome.error["http_status"], outcome.error["body"]) == (200, outcome.document)
    assert "hint" not in outcome.error  # the state will not change any more


def test_the_time_is_bounded(service: Service, tool: Tool) -> None:
    service.always(state("queued"))
    outcome = tool("state", "watch", "m1", "--interval", "7", "--max-wait", "20", "--json", "-q")
    assert outcome.code == 6
    assert tool.clock.slept == pytest.approx([7, 7, 6], abs=1)
    assert len(service.received) == 4
    assert documents(outcome.stdout) == [("m1", "queued")]
    assert "queued" in outcome.error["message"]
    assert (outcome.error["http_status"], outcome.error["body"]["state"]) == (200, "queued")
    assert outcome.error["hint"] == "Check again later: msgctl state get m1"


def test_a_silent_service_does_not_prolong_a_watch(service: Service) -> None:
    service.always(silent)
    done = process("--timeout", "30", "state", "watch", "m1", "m2", "m3", "--max-wait", "0.2")
    assert done.code == 6
    assert len(service.received) <= 2  # one check within the time, and one after it


def test_several_are_watched_until_the_last_is_done(service: Service, tool: Tool) -> None:
    service.will(
        state("sent", "m1"), state("delivered", "m2"), state("sent", "m1"), state("delivered", "m1")
    )  # m2 is not checked again
    outcome = tool("state", "watch", "m1", "m2", "--json", "-q")
    assert outcome.code == 0
    assert documents(outcome.stdout) == [("m1", "delivered"), ("m2", "delivered")]


@pytest.mark.parametrize("trouble", [drop, respond(b"", 503), respond(b"", 429)], ids=["lost", "503", "429"])
def test_a_retryable_failure_does_not_end_a_watch(trouble: Behaviour, service: Service, tool: Tool) -> None:
    service.will(state("sent"), *[trouble] * 3, state("delivered"))
    outcome = tool("state", "watch", "m1")
    assert (outcome.code, "delivered" in outcome.out) == (0, True)
    assert "trying again" in outcome.err


def test_on_a_terminal_the_states_are_drawn_while_it_waits(service: Service, tool: Tool) -> None:
    service.will(state("queued"), drop, state("delivered"))
    outcome = tool("state", "watch", "m1", "--no-color", terminal=True)
    assert (outcome.code, "✓ delivered" in outcome.out) == (0, True)
    assert all(part in outcome.err for part in ("Waiting for 1 of 1", "0:02 of 5:00", "○ queued", "trying again"))


def test_failures_to_the_end_exit_with_6(service: Service, tool: Tool) -> None:
    service.always(drop)
    outcome = tool("state", "watch", "m1", "--max-wait", "10", "--json", "-q")
    assert (outcome.code, outcome.stdout) == (6, b"")
    assert "unknown" in outcome.error["message"]


def test_a_refusal_ends_only_the_watch_of_that_message(service: Service, tool: Tool) -> None:
    service.will(GONE, state("sent", "m2"), state("delivered", "m2"))
    outcome = tool("state", "watch", "m1", "m2", "--json", "-q")
    assert outcome.code == 1
    assert documents(outcome.stdout) == [("m2", "delivered")]
    assert '"m1"' in outcome.error["message"]


def test_ctrl_c_prints_the_last_known_state(service: Service, tool: Tool) -> None:
    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    service.will(state("queued"))
    outcome = tool("state", "watch", "m1", "--json", "-q", sleep=interrupt)
    assert outcome.code == 130
    assert outcome.document["state"] == "queued"
    assert outcome.error["kind"] == "interrupted"


@pytest.mark.parametrize(("options", "program"), [((), "msgctl"), (("-p", "sandbox"), "msgctl -p sandbox")])
def test_hints_can_be_typed_as_they_are(
    options: tuple[str, ...], program: str, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They name the profile if the command line named it."""
    if not options:
        monkeypatch.setenv("MSGCTL_PROFILE", "sandbox")
    sent = tool(*options, "sms", "send", "573001230003", "-m", "Hello", "--no-color", terminal=True)
    assert f"→ Follow the delivery: {program} state watch --last\n" in sent.err
    code = tool(*options, "2fa", "send-sms", "573001230003", "--app-name", "Shop", "--no-color", terminal=True)
    assert f"→ Check a code: {program} 2fa verify 573001230003 " in code.err
    watched = tool(*options, "state", "watch", "--last", "--max-wait", "1")
    assert f"Check again later: {program} state get " in watched.err
    waited = tool(*options, "sms", "send", "573001230003", "-m", "Hello", "--wait", "--max-wait", "1")
    assert f"To check again: {program} state get --last\n" in waited.err
