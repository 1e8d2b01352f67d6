"""`state get` of several messages, and `state watch`: the output, the messages, and the exit code."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from msgctl.outcomes import words
from support.service import Behaviour, Service, drop, respond, silent
from support.tool import Tool, process

GONE = respond({"error": "not_found", "msg": "no such message exists"}, 520)


def state(word: str, id: str = "m1") -> Behaviour:
    return respond({"state": word, "credits": 1, "id": id})


def documents(text: bytes) -> list[tuple[str, str]]:
    """Identifier and state of the message in each JSON document, one per line."""
    found = []
    for document in map(json.loads, text.splitlines()):
        inner = document.get("data", document) if isinstance(document, dict) else document
        (message,) = inner if isinstance(inner, list) else [inner]
        found.append((message["id"], message["state"]))
    return found


# --- state get


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
    assert (outcome.code, documents(outcome.stdout)) == (0, [("m1", last)])
    assert tool.clock.slept == [2, 2, 2]


def test_each_change_is_noted_once(service: Service, tool: Tool) -> None:
    service.will(state("queued"), state("queued"), state("sent"), state("sent"), state("delivered"))
    outcome = tool("state", "watch", "m1")
    assert outcome.err.splitlines() == ["m1: queued", "m1: sent", "m1: delivered"]


def test_a_watch_ends_after_max_wait(service: Service, tool: Tool) -> None:
    service.always(state("queued"))
    outcome = tool("state", "watch", "m1", "--max-wait", "5", "--json", "-q")
    assert outcome.code == 6
    assert tool.clock.slept == pytest.approx([2, 2, 1], abs=0.5)
    assert len(service.received) == 4
    assert documents(outcome.stdout) == [("m1", "queued")]
    assert "queued" in outcome.error["message"]
    assert (outcome.error["http_status"], outcome.error["body"]) == (200, outcome.document)
    assert outcome.error["hint"].startswith("Check again later: msgctl state get m1")


def test_a_service_that_does_not_respond_does_not_prolong_a_watch(service: Service) -> None:
    service.always(silent)
    done = process("--timeout", "30", "state", "watch", "m1", "m2", "m3", "--max-wait", "0.2")
    assert done.code == 6
    assert len(service.received) <= 2  # one check within the time, and one after it


@pytest.mark.parametrize(
    "trouble", [drop, respond(b"", 503), respond(b"", 429), respond(b"", 500)], ids=["lost", "503", "429", "500"]
)
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


def test_failures_until_max_wait_exit_with_6(service: Service, tool: Tool) -> None:
    service.always(drop)
    outcome = tool("state", "watch", "m1", "--max-wait", "10", "--json", "-q")
    assert (outcome.code, outcome.stdout, outcome.error["reason"]) == (6, b"", "state_not_reached")
    assert 'The state of message "m1" could not be read' in outcome.error["message"]
    service.will(state("queued"))
    service.always(respond(b"", 500))
    outcome = tool("state", "watch", "m1", "--max-wait", "10", "--json", "-q")
    assert (outcome.code, outcome.error["reason"], outcome.error["http_status"]) == (6, "state_not_reached", 500)
    assert documents(outcome.stdout) == [("m1", "queued")]


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
    assert documents(outcome.stdout) == [("m1", "queued")]
    assert outcome.error["kind"] == "interrupted"


@pytest.mark.parametrize(("options", "program"), [((), "msgctl"), (("-p", "sandbox"), "msgctl -p sandbox")])
def test_hints_can_be_copied_unchanged(
    options: tuple[str, ...], program: str, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They contain -p if the command line did."""
    if not options:
        monkeypatch.setenv("MSGCTL_PROFILE", "sandbox")
    sent = tool(*options, "sms", "send", "573001230003", "-m", "Hello", "--no-color", terminal=True)
    assert f"→ Follow the delivery: {program} state watch --last\n" in sent.err
    waited = tool(*options, "sms", "send", "573001234567", "-m", "Hello", "--wait", terminal=True)
    assert "1 message accepted" in waited.err
    assert "state watch" not in waited.err
    code = tool(*options, "2fa", "send-sms", "573001230003", "--app-name", "Shop", "--no-color", terminal=True)
    assert f"→ Check a code: {program} 2fa verify 573001230003 " in code.err
    watched = tool(*options, "state", "watch", "--last", "--max-wait", "1")
    assert f"Check again later: {program} state get " in watched.err
    waited = tool(*options, "sms", "send", "573001230003", "-m", "Hello", "--wait", "--max-wait", "1")
    assert f"To check again: {program} state get --last\n" in waited.err


# --- dispatches without message ids


DISPATCH = {"status": 1, "id": "D1", "data": {"state": "Enviado", "credits": 2, "phone": "573001234567,573007654321"}}
SEND = ("sms", "send", "573001234567", "573007654321", "-m", "Hola")


def listed(first: str, second: str) -> Behaviour:
    """Return the delivery states of both recipients, as an array."""
    return respond(
        json.dumps([{"phone": "573007654321", "state": second}, {"phone": "3001234567", "state": first}]).encode()
    )


def test_a_dispatch_without_message_ids_is_watched_by_the_id_of_the_dispatch(service: Service, tool: Tool) -> None:
    service.will(
        respond(DISPATCH),
        listed("Enviado", "Enviado"),
        listed("Entregado", "Enviado"),
        listed("Entregado", "Rechazado"),
    )
    assert tool(*SEND).code == 0
    done = tool("state", "watch", "--last", "-o", "tsv", "--no-header", "--fields", "phone,state,id")
    assert (done.code, done.out) == (0, "573007654321\tRechazado\tD1\n3001234567\tEntregado\tD1\n")
    assert [request.query[-1] for request in service.received[1:]] == [("id", "D1")] * 3
    service.always(listed("Entregado", "Rechazado"))
    for screen in (False, True):
        assert all(word in tool("state", "get", "D1", screen=screen).out for word in ("Entregado", "Rechazado"))
    assert [(each["id"], each["state"]) for each in tool("history", "--json").document] == [
        ("D1", "Entregado"),
        ("D1", "Rechazado"),
    ]


def test_a_wait_ends_at_the_state_to_wait_for(service: Service, tool: Tool) -> None:
    service.will(respond(DISPATCH), listed("queued", "Enviado"), listed("sent", "Entregado"))
    assert tool(*SEND, "--wait", "--until", "sent").code == 0
    tool(*SEND, "--until", "sent").refused(2, "--until needs --wait")
    tool(*SEND, "--wait", "--until", "read").refused(2, "sent, delivered")


def test_a_message_without_a_state_yet_is_watched_until_the_time_is_over(service: Service, tool: Tool) -> None:
    service.always(respond(b"[]"))
    done = tool("state", "watch", "m1", "--max-wait", "5")
    assert (done.code, done.out) == (6, "")
    assert "did not reach a final state in time (now: missing)" in done.err
    service.will(respond(b"[]"), respond({"data": []}), respond({"state": "leído"}))
    assert tool("state", "watch", "m1").code == 0
    done = tool("state", "get", "m1", "--json")
    assert (done.code, done.stdout, done.error["kind"]) == (1, b"[]\n", "unreadable")


def test_a_profile_adds_words_for_states(service: Service, tool: Tool, own_words: None) -> None:
    service.will(respond({"id": "m1", "state": "en bandeja"}), respond({"id": "m1", "state": "EN_DESTINO"}))
    assert tool("state", "watch", "m1").code == 0
    service.will(respond({"id": "m1", "state": "EXTRAVIADA"}))
    assert tool("state", "watch", "m1", "--until", "delivered").code == 6
    service.will(respond({"status": "pin aceptado"}), respond({"status": "pin no aceptado"}))
    assert tool("2fa", "verify", "573001234567", "--app-name", "Shop", "--code", "1").code == 0
    assert tool("2fa", "verify", "573001234567", "--app-name", "Shop", "--code", "1").code == 1


@pytest.fixture
def own_words(service: Service, home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The default profile with words of its service."""
    file = home / "config" / "msgctl" / "config.toml"
    file.parent.mkdir(0o700, parents=True)
    file.write_text(
        'default_profile = "main"\n[profiles.main]\n'
        f'base_url = "{service.base_url}"\nclient = 12345\nkey = "secret-key"\n'
        'words = {delivered = ["en destino"], failed = ["extraviado"], verified = ["PIN aceptado"]}\n'
    )
    file.chmod(0o600)
    for variable in ("MSGCTL_BASE_URL", "MSGCTL_CLIENT", "MSGCTL_KEY"):
        monkeypatch.delenv(variable)
    yield
    words.use({})
