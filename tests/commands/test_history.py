"""`msgctl history` and `state get --last`: what is recorded of each send, and that recording never stops one."""

from __future__ import annotations

import json
import socket
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from msgctl.history.store import History
from support.commands import ALL, CHANGES, PHONE, SENDS
from support.names import know_no_names
from support.responses import FIRST_STATES
from support.sandbox import OTHER, Sandbox
from support.service import Behaviour, Service, drop, respond
from support.tool import Tool

SEND = ("sms", "send", PHONE, "-m", "Hola")
RECORDED = tuple({**SENDS, "block add": CHANGES["block add"]})


@pytest.fixture
def path(home: Path) -> Path:
    return home / "state" / "msgctl" / "history.sqlite3"


def recorded(tool: Tool, *arguments: str) -> Any:
    """The history as a script reads it."""
    done = tool("history", *arguments, "--json")
    assert (done.code, done.err) == (0, "")
    return done.document


def outcomes(tool: Tool) -> list[str]:
    return [entry["outcome"] for entry in recorded(tool)]


# --- what is recorded


@pytest.mark.every_set
def test_a_send_has_one_entry_for_each_number(tool: Tool, sandbox: Sandbox) -> None:
    sandbox.done("sms", "send", PHONE, OTHER, "-m", "Mañana")
    found = recorded(tool)
    for entry in found:
        (state,) = {row["state"] for row in sandbox.rows("state", "get", entry["id"]) if row["phone"] == entry["phone"]}
        assert state in FIRST_STATES
    assert found == [
        {
            "time": "2026-09-21T14:13:20Z",
            "profile": "sandbox",
            "command": "sms send",
            "job": None,
            "phone": phone,
            "outcome": "accepted",
            "id": entry["id"],
            "status": state,
            "state": None,
            "credits": 1,
            "message": "Mañana",
        }
        for phone, entry in zip((PHONE, OTHER), found, strict=True)
    ]


@pytest.mark.parametrize("credits", [b'"abc"', b'"nan"', b'"1,5"', b"true"])
def test_credits_that_are_not_a_number_leave_the_json_whole(credits: bytes, service: Service, tool: Tool) -> None:
    entry = b'{"id":"m1","status":"queued","phone":"%s","credits":%s}' % (PHONE.encode(), credits)
    service.will(respond(b'{"id":"d1","data":[%s]}' % entry))
    assert tool(*SEND).code == 0
    (found,) = recorded(tool)
    assert found["credits"] == credits.decode().strip('"')


@pytest.mark.every_set
@pytest.mark.parametrize("name", RECORDED)
def test_every_send_and_block_is_recorded(name: str, service: Service, tool: Tool) -> None:
    service.will(respond(ALL[name].record))
    assert tool(*ALL[name].line).code == 0
    (entry,) = recorded(tool)
    assert (entry["command"], entry["phone"], entry["outcome"]) == (name, PHONE, "accepted")
    record = ALL[name].record
    responded = record.get("data", [record])[0]
    assert (entry["id"], entry["status"]) == (responded["id"], responded.get("status", responded.get("state")))
    assert entry["credits"] == responded.get("credits")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (("sms", "send", PHONE, "-m", "one\ntwo"), "one\ntwo"),
        (("call", "send", PHONE, "-m", "Hello", "--voice", "Mia"), "Hello"),
        (("call", "send", PHONE, "--audio-code", "77"), "audio 77"),
        (("chatapp", "send", PHONE, "Ana", "8:00", "--template", "hello"), "hello: Ana, 8:00"),
        (("chatapp", "send", PHONE, "--template", "hello"), "hello"),
    ],
    ids=["sms", "call", "audio", "values", "template"],
)
def test_the_history_keeps_the_whole_text(line: tuple[str, ...], message: str, tool: Tool, sandbox: Sandbox) -> None:
    sandbox(*line)
    (entry,) = recorded(tool)
    assert entry["message"] == message


@pytest.mark.every_set
@pytest.mark.parametrize("command", ["2fa send-sms", "2fa send-call", "2fa send-chatapp"])
def test_a_verification_message_is_recorded_without_its_code(
    command: str, sandbox: Sandbox, tool: Tool, path: Path
) -> None:
    sandbox.done(*SENDS[command].line)
    code = sandbox.code()
    verify = ("2fa", "verify", PHONE, "--app-name", "Shop", "--code", code)
    sandbox.done(*verify)
    assert sandbox(*verify).code == 1  # it is used up
    (entry,) = recorded(tool)
    assert (entry["command"], entry["message"]) == (command, "verification code for Shop")
    assert code.encode() not in path.read_bytes()


@pytest.mark.every_set
def test_the_response_is_kept_if_an_outcome_is_unknown(service: Service, tool: Tool) -> None:
    service.will(respond(SENDS["sms send"].record), respond(SENDS["sms send"].record))
    tool(*SEND, OTHER)
    tool(*SEND)
    assert outcomes(tool) == ["accepted", "unknown", "accepted"]
    kept = tool("history", "-o", "tsv", "--fields", "response").out.splitlines()[1:]
    assert [PHONE in each for each in kept] == [True, True, False]
    assert "response" not in recorded(tool)[0]


# --- results


@pytest.mark.every_set
@pytest.mark.parametrize(
    ("behaviour", "code", "outcome"),
    [
        (respond({"error": "NO", "msg": "no credits"}, 520), 1, "refused"),
        (respond(b"<html>", 504), 5, "unknown"),  # a proxy's, which may have passed it on
        (drop, 5, "unknown"),
        (respond({"nothing": "known"}), 5, "unknown"),
    ],
    ids=["520", "504", "dropped", "another record"],
)
def test_the_outcome_follows_from_the_response(
    behaviour: Behaviour, code: int, outcome: str, service: Service, tool: Tool
) -> None:
    service.will(behaviour)
    assert tool(*SEND).code == code
    assert outcomes(tool) == [outcome]


def test_a_send_that_did_not_reach_the_service_was_not_sent(
    service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSGCTL_BASE_URL", "https://service.example/api/v1")
    know_no_names(monkeypatch)
    assert tool(*SEND).code == 4
    assert outcomes(tool) == ["not sent"]


def test_a_send_interrupted_before_it_went_out_was_not_sent(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    for variable, value in (("BASE_URL", f"http://127.0.0.1:{port}/api/v1"), ("CLIENT", "1"), ("KEY", "a-key")):
        monkeypatch.setenv(f"MSGCTL_{variable}", value)

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    done = tool(*SEND, sleep=interrupt)  # it waits there, before it tries again
    assert (done.code, "nothing was sent" in done.err) == (130, True)
    assert outcomes(tool) == ["not sent"]


def test_an_interrupt_while_a_result_is_recorded_loses_nothing(
    service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = History.finish
    interrupts = [KeyboardInterrupt]

    def interrupt(*arguments: Any) -> None:
        if interrupts:
            raise interrupts.pop()
        finish(*arguments)

    monkeypatch.setattr(History, "finish", interrupt)
    service.will(respond(SENDS["sms send"].record))
    done = tool(*SEND)
    assert (done.code, "carried out" in done.err) == (130, True)
    assert outcomes(tool) == ["accepted"]


# --- the list


@pytest.fixture
def three_days(tool: Tool, sandbox: Sandbox) -> None:
    """A dispatch a day on three days, the last of them today."""
    for number in range(3):
        tool.clock.now += 86400 if number else 0
        sandbox.done("sms", "send", f"57300000000{number}", "-m", f"day {number}")


def messages(tool: Tool, *arguments: str) -> list[str]:
    return [each["message"] for each in recorded(tool, *arguments)]


@pytest.mark.usefixtures("three_days")
def test_the_list_is_narrowed(tool: Tool) -> None:
    assert messages(tool) == ["day 0", "day 1", "day 2"]
    assert messages(tool, "--since", "today") == ["day 2"]
    assert messages(tool, "--since", "yesterday") == ["day 1", "day 2"]
    assert messages(tool, "--since", "2026-09-22") == ["day 1", "day 2"]
    assert messages(tool, "--since", "0001-01-01") == ["day 0", "day 1", "day 2"]
    assert messages(tool, "--limit", "2") == ["day 1", "day 2"]
    assert messages(tool, "--phone", "+57 300 000-0001") == ["day 1"]
    assert messages(tool, "--phone", "57300000000") == []


def test_sends_and_jobs_of_one_second_are_listed_in_order(tool: Tool, sandbox: Sandbox, home: Path) -> None:
    file = home / "recipients.csv"
    file.write_text(f"phone\n{PHONE}\n")
    for text in ("first", "third"):
        for words in (("sms", "send", PHONE, "-m", text), ("sms", "bulk", str(file), "-m", f"after {text}", "--yes")):
            tool.clock.now += 0.2
            assert tool("-p", "sandbox", *words).code == 0
    found = recorded(tool)
    assert [entry["message"] for entry in found] == ["first", "after first", "third", "after third"]
    assert {entry["time"] for entry in found} == {"2026-09-21T14:13:20Z"}
    assert recorded(tool, "--limit", "1", "--since", "2026-09-21", "--until", "2026-09-21") == found[-1:]


def test_the_newest_twenty_are_listed_in_the_order_of_time(tool: Tool, sandbox: Sandbox) -> None:
    phones = [f"5730000000{number}" for number in range(10, 35)]
    sandbox.done("sms", "send", *phones, "-m", "Hola")
    assert [each["phone"] for each in recorded(tool)] == phones[-20:]
    assert len(recorded(tool, "--limit", "100")) == 25
    assert tool("history").err == "The newest 20 entries. To list more: msgctl history --limit 1000\n"
    assert tool("history", "--limit", "20").err == ""


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--limit", "0"), "--limit"),
        (("--phone", "nobody"), "phone number"),
        (("--since", "2026-02-30"), "date"),
        (("--since", "9999-12-31"), "is after today"),
        (("--fields", "color"), "color"),
    ],
)
def test_invalid_options_are_usage_errors(options: tuple[str, ...], named: str, tool: Tool) -> None:
    tool("history", *options).refused(2, named)


def test_the_newest_entry_is_found_even_if_an_older_job_sent_it(tool: Tool, sandbox: Sandbox, everyone: str) -> None:
    first, second = (("sms", "bulk", everyone, "-m", text, "--yes", "--canary", "1") for text in ("Hi", "Hello"))
    job = sandbox.document(*first)["job"]
    for line in (second, SEND, SEND, ("job", "resume", job)):
        tool.clock.now += 86400
        sandbox.done(*line)
    assert [(each["time"][:10], each["job"]) for each in recorded(tool, "--limit", "1")] == [("2026-09-25", job)]


def test_an_unknown_outcome_of_a_job_is_in_the_history(tool: Tool, service: Service, home: Path) -> None:
    service.will(respond({"status": 1000}), respond(b"<p>no</p>", 504))
    file = home / "customers.csv"
    file.write_text(f"phone\n{PHONE}\n")
    assert tool("sms", "bulk", str(file), "-m", "Hello", "--yes").code == 6
    assert outcomes(tool) == ["unknown"]
    assert tool("history", "-o", "tsv", "--fields", "response").out == "response\n<p>no</p>\n"


def test_a_damaged_job_does_not_hide_the_rest(tool: Tool, sandbox: Sandbox, path: Path) -> None:
    sandbox.done(*SEND)
    (path.parent / "jobs").mkdir(mode=0o700)
    ledger = path.parent / "jobs" / "20260921-aaaaaa.sqlite3"
    ledger.write_bytes(b"not a database at all\n" * 100)
    ledger.chmod(0o600)
    for command in ("history", "usage"):
        done = tool(command, "-o", "csv")
        assert (done.code, len(done.out.splitlines())) == (3, 2)
        assert "Job 20260921-aaaaaa is not included" in done.err
        assert tool(command, "--json").error["kind"] == "configuration"


def test_a_damaged_value_in_a_ledger_does_not_hide_the_other_messages(
    tool: Tool, sandbox: Sandbox, path: Path, everyone: str
) -> None:
    sandbox.done(*SEND)
    job = sandbox.document("sms", "bulk", everyone, "-m", "Hello", "--yes")["job"]
    with closing(sqlite3.connect(path.parent / "jobs" / f"{job}.sqlite3")) as db, db:
        db.execute("UPDATE result SET status = x'00' WHERE line = 3")
    done = tool("history", "--json")
    assert (done.code, [each["command"] for each in done.document]) == (3, ["sms send"])
    why = f"The ledger ~/state/msgctl/jobs/{job}.sqlite3 is damaged: a value is not text"
    assert done.error["message"] == f"Job {job} is not included: {why}"


# --- clear


def test_clear_deletes_the_entries_that_its_question_states(
    tool: Tool, sandbox: Sandbox, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.will(respond(SENDS["sms send"].record))
    assert tool(*SEND).code == 0
    sandbox.done(*SEND)
    tool.clock.now += 86400
    sandbox.done(*SEND)
    for variable in ("MSGCTL_BASE_URL", "MSGCTL_CLIENT", "MSGCTL_KEY"):
        monkeypatch.delenv(variable)
    monkeypatch.setenv("MSGCTL_PROFILE", "sandbox")
    tool("history", "clear").refused(2, "--yes", "nothing was changed")
    tool("history", "clear", "--before", "soon").refused(2, "date")
    asked = tool("history", "clear", "--before", "today", stdin="n\n", terminal=True)
    question = 'Delete 1 entry of profile "sandbox", client 1 of https://sandbox.invalid/api/v1, before 2026-09-22?'
    assert (asked.code, question in asked.err) == (130, True)
    assert len(recorded(tool)) == 3
    assert tool("history", "clear", "--before", "today", "-y").err == 'Deleted 1 entry of profile "sandbox".\n'
    assert tool("history", "clear", "-y").code == 0
    assert [entry["profile"] for entry in recorded(tool)] == ["environment"]


def test_clear_with_nothing_to_delete_says_so(tool: Tool) -> None:
    done = tool("-p", "sandbox", "history", "clear")
    assert (done.code, done.err) == (0, "There is nothing to delete.\n")


@pytest.mark.usefixtures("damaged")
def test_a_damaged_history_is_not_cleared(tool: Tool, path: Path) -> None:
    tool("-p", "sandbox", "history", "clear", "-y").refused(3, "Rename it")
    assert path.read_bytes().startswith(b"no history at all")


# --- a history that cannot be written


@pytest.fixture
def damaged(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True)
    path.write_bytes(b"no history at all\n" * 50)
    path.chmod(0o600)


@pytest.mark.usefixtures("damaged")
@pytest.mark.parametrize("flags", [(), ("--json",)], ids=str)
def test_a_send_that_cannot_be_recorded_is_sent(
    flags: tuple[str, ...], service: Service, tool: Tool, path: Path
) -> None:
    service.will(respond(SENDS["sms send"].record))
    done = tool(*SEND, *flags)
    assert (done.code, len(service.received)) == (0, 1)
    assert done.err.count("Not recorded in the history") == ("--json" not in flags)
    assert (path.name in done.err) == ("--json" not in flags)
    assert done.out


@pytest.mark.usefixtures("damaged")
@pytest.mark.parametrize("command", [("history",), ("-p", "sandbox", "state", "get", "--last")], ids=" ".join)
def test_a_history_that_cannot_be_read_is_one_error(command: tuple[str, ...], tool: Tool, path: Path) -> None:
    tool(*command).refused(3, path.name)


def test_a_result_that_cannot_be_recorded_is_printed(service: Service, tool: Tool, path: Path) -> None:
    def break_it(connection: socket.socket) -> None:
        with closing(sqlite3.connect(path)) as db:
            db.execute("DROP TABLE entries")
            db.commit()
        respond(SENDS["sms send"].record)(connection)

    service.will(break_it)
    done = tool(*SEND, "--json")
    assert (done.code, json.loads(done.out)["id"] in ("d1", "m1"), done.err) == (0, True, "")


# --- state get --last


def test_last_ignores_the_sends_of_another_profile(tool: Tool, sandbox: Sandbox, service: Service) -> None:
    sandbox.done(*SEND)
    tool("state", "get", "--last").refused(2, "Give the ID of each message")
    assert service.received == []


def test_last_shows_the_time_of_a_message_without_an_id(tool: Tool, service: Service) -> None:
    service.will(drop)
    assert tool(*SEND).code == 5
    (sent,) = tool("history", "--json").document
    tool("state", "get", "--last").refused(2, f"the last message (sms send, {sent['time']}) has no ID")


def test_state_get_takes_either_last_or_ids(tool: Tool, sandbox: Sandbox) -> None:
    tool("-p", "sandbox", "state", "get").refused(2, "ID", "--last")
    tool("-p", "sandbox", "state", "get", "m1", "--last").refused(2, "ID", "--last")
    tool("-p", "sandbox", "state", "get", "--last").refused(2, "sandbox")
