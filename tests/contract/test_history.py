"""`msgctl history` and `state get --last`: the record of each send, and behaviour without the store."""

from __future__ import annotations

import socket
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from support.commands import ALL, CHANGES, PHONE, SENDS
from support.sandbox import OTHER, Sandbox
from support.service import Service, drop, respond
from support.tool import Tool

SEND = ("sms", "send", PHONE, "-m", "Hola")
RECORDED = tuple({**SENDS, "block add": CHANGES["block add"]})
ACCEPTED = respond(SENDS["sms send"].record)


@pytest.fixture
def path(home: Path) -> Path:
    return home / "state" / "msgctl" / "store.sqlite3"


def recorded(tool: Tool | Sandbox, *arguments: str) -> Any:
    """The history as a script reads it."""
    done = tool("history", *arguments, "--json")
    assert (done.code, done.err) == (0, "")
    return done.document


def outcomes(tool: Tool | Sandbox) -> list[str]:
    return [entry["outcome"] for entry in recorded(tool)]


# --- what is recorded


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
        (("block", "add", PHONE, "--name", "Ana"), "Ana"),
    ],
    ids=["sms", "call", "audio", "values", "template", "block"],
)
def test_the_history_keeps_the_whole_text(line: tuple[str, ...], message: str, sandbox: Sandbox) -> None:
    sandbox(*line)
    (entry,) = recorded(sandbox)
    assert entry["message"] == message


@pytest.mark.parametrize("command", ["2fa send-sms", "2fa send-call", "2fa send-chatapp"])
def test_a_verification_message_is_recorded_without_its_code(command: str, sandbox: Sandbox, path: Path) -> None:
    sandbox.done(*SENDS[command].line)
    code = sandbox.code()
    verify = ("2fa", "verify", PHONE, "--app-name", "Shop", "--code", code)
    sandbox.done(*verify)
    assert sandbox(*verify).code == 1  # it is used up
    (entry,) = recorded(sandbox)
    assert (entry["command"], entry["message"]) == (command, "verification code for Shop")
    for file in path.parent.glob("sandbox-store.sqlite3*"):
        assert code.encode() not in file.read_bytes()


def test_a_send_interrupted_before_it_was_sent_is_not_in_the_history(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    for variable, value in (("BASE_URL", f"http://127.0.0.1:{port}/api/v1"), ("CLIENT", "1"), ("KEY", "a-key")):
        monkeypatch.setenv(f"MSGCTL_{variable}", value)

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    done = tool(*SEND, sleep=interrupt)  # it waits there, before it tries again
    assert (done.code, "nothing was sent" in done.err) == (130, True)
    assert outcomes(tool) == []


# --- the list


@pytest.fixture
def three_days(tool: Tool, sandbox: Sandbox) -> None:
    """One send on each of three days, the last of them today."""
    for number in range(3):
        tool.clock.now += 86400 if number else 0
        sandbox.done("sms", "send", f"57300000000{number}", "-m", f"day {number}")


def messages(sandbox: Sandbox, *arguments: str) -> list[str]:
    return [each["message"] for each in recorded(sandbox, *arguments)]


@pytest.mark.usefixtures("three_days")
def test_the_list_is_narrowed(sandbox: Sandbox) -> None:
    assert messages(sandbox) == ["day 0", "day 1", "day 2"]
    assert messages(sandbox, "--since", "today") == ["day 2"]
    assert messages(sandbox, "--since", "yesterday") == ["day 1", "day 2"]
    assert messages(sandbox, "--since", "2026-09-22") == ["day 1", "day 2"]
    assert messages(sandbox, "--since", "0001-01-01") == ["day 0", "day 1", "day 2"]
    assert messages(sandbox, "--until", "2026-09-22") == ["day 0", "day 1"]
    assert messages(sandbox, "--limit", "2") == ["day 1", "day 2"]
    assert messages(sandbox, "--phone", "+57 300 000-0001") == ["day 1"]
    assert messages(sandbox, "--phone", "57300000000") == []


def test_a_terminal_shows_the_newest_twenty_and_programs_get_all(sandbox: Sandbox) -> None:
    phones = [f"5730000000{number}" for number in range(10, 35)]
    sandbox.done("sms", "send", *phones, "-m", "Hola")
    assert [each["phone"] for each in recorded(sandbox)] == phones
    assert [each["phone"] for each in recorded(sandbox, "--limit", "20")] == phones[-20:]
    assert sandbox("history").err == ""
    shown = sandbox.tool("-p", "sandbox", "history", terminal=True)
    assert "The newest 20 entries. To list more: msgctl -p sandbox history --limit 1000\n" in shown.err
    assert [phone for phone in phones if phone in shown.out] == phones[-20:]


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


def test_recipients_of_jobs_are_in_the_history(tool: Tool, sandbox: Sandbox, home: Path) -> None:
    file = home / "customers.csv"
    file.write_text(f"phone,name\n{PHONE},Ana\n{OTHER},Luis\n")
    sandbox.done(*SEND)
    tool.clock.now += 60
    job = sandbox.document("sms", "bulk", str(file), "-m", "Hello {name}", "--yes", "--name", "news")["job"]
    single, first, second = recorded(sandbox)
    assert (single["job"], first["job"], second["job"]) == (None, job, job)
    assert {each["phone"]: each["message"] for each in (first, second)} == {PHONE: "Hello Ana", OTHER: "Hello Luis"}
    assert (first["command"], first["outcome"], first["credits"]) == ("sms bulk", "accepted", 1)
    assert [each["job"] for each in recorded(sandbox, "--phone", OTHER)] == [job]
    assert [each["phone"] for each in recorded(sandbox, "--job", "news")] == [each["phone"] for each in (first, second)]
    assert [each["job"] for each in recorded(sandbox, "--limit", "1")] == [job]
    sandbox("history", "--job", "nothing").refused(2, "nothing")


# --- clear


# --- a store that cannot be used


def test_a_result_that_cannot_be_recorded_is_printed(service: Service, tool: Tool, path: Path) -> None:
    def break_it(connection: socket.socket) -> None:
        with closing(sqlite3.connect(path)) as db:
            db.execute("DROP TABLE result")
            db.commit()
        ACCEPTED(connection)

    service.will(break_it)
    done = tool(*SEND)
    assert (done.code, PHONE in done.out) == (0, True)
    assert "Warning: The result is not stored" in done.err


# --- state get --last


def test_last_ignores_the_sends_of_another_account(tool: Tool, sandbox: Sandbox, service: Service) -> None:
    sandbox.done(*SEND)
    tool("state", "get", "--last").refused(2, "Give the ID of each message")
    assert service.received == []


def test_last_shows_the_time_of_a_message_without_an_id(tool: Tool, service: Service) -> None:
    service.will(drop)
    assert tool(*SEND).code == 5
    (sent,) = tool("history", "--json").document
    tool("state", "get", "--last").refused(2, f"the last message (sms send, {sent['time']}) has no ID")


def test_state_get_takes_either_last_or_ids(tool: Tool) -> None:
    tool("-p", "sandbox", "state", "get").refused(2, "ID", "--last")
    tool("-p", "sandbox", "state", "get", "m1", "--last").refused(2, "ID", "--last")
    tool("-p", "sandbox", "state", "get", "--last").refused(2, "sandbox")
