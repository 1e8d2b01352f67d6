"""`msgctl history` and `state get --last`: what is noted of each dispatch, and that noting is never in the way."""

from __future__ import annotations

import json
import signal
import socket
import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from conftest import KEY
from msgctl.history import History
from support.commands import ALL, PHONE, SENDS
from support.files import table, write_config
from support.names import know_no_names
from support.sandbox import OTHER, Sandbox
from support.service import Behaviour, Service, answer, drop, reset
from support.tool import Outcome, Tool

SEND = ("sms", "send", PHONE, "-m", "Hola")
NOTED = ("sms send", "call send", "chatapp send", "chatapp order")
NOT_NOTED = tuple(name for name in ALL if name not in NOTED)


@pytest.fixture
def sandbox(tool: Tool) -> Sandbox:
    return Sandbox(tool)


@pytest.fixture
def path(home: Path) -> Path:
    return home / "state" / "msgctl" / "history.sqlite3"


def noted(tool: Tool, *arguments: str) -> Any:
    """The history as a script reads it."""
    done = tool("history", *arguments, "--json")
    assert (done.code, done.err) == (0, "")
    return done.document


def outcomes(tool: Tool) -> list[str]:
    return [entry["outcome"] for entry in noted(tool)]


def refused(done: Outcome, code: int, *parts: str) -> None:
    assert (done.code, done.out) == (code, "")
    assert done.err.startswith("Error: ")
    assert "Traceback" not in done.err
    assert all(part in done.err for part in parts), done.err


# --- what is noted


def test_a_dispatch_has_a_row_for_each_number(tool: Tool, sandbox: Sandbox) -> None:
    sent = sandbox.document("sms", "send", PHONE, OTHER, "-m", "Mañana")["data"]
    assert noted(tool) == [
        {
            "time": "2026-09-21T14:13:20Z",
            "profile": "sandbox",
            "command": "sms send",
            "phone": phone,
            "outcome": "accepted",
            "id": each["id"],
            "status": "queued",
            "credits": 1,
            "message": "Mañana",
        }
        for phone, each in zip((PHONE, OTHER), sent, strict=True)
    ]


@pytest.mark.parametrize("name", NOTED)
def test_every_dispatch_is_noted(name: str, service: Service, tool: Tool) -> None:
    service.will(answer(SENDS[name].record))
    assert tool(*SENDS[name].line).code == 0
    (entry,) = noted(tool)
    assert (entry["command"], entry["phone"], entry["outcome"]) == (name, PHONE, "accepted")
    record = SENDS[name].record
    said = record.get("data", [record])[0]
    assert (entry["id"], entry["status"]) == (said["id"], said.get("status", said.get("state")))
    assert entry["credits"] == said.get("credits")


@pytest.mark.parametrize("name", NOT_NOTED)
def test_nothing_else_is_noted_least_of_all_codes(name: str, service: Service, tool: Tool, path: Path) -> None:
    service.will(answer(ALL[name].record))
    assert tool(*ALL[name].line).code == 0
    assert not path.exists()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (("sms", "send", PHONE, "-m", "one\ntwo"), "one\ntwo"),
        (("call", "send", PHONE, "-m", "Hello", "--voice", "Mia"), "Hello"),
        (("call", "send", PHONE, "--audio-code", "77"), "audio-code 77"),
        (("chatapp", "send", PHONE, "Ana", "8:00", "--template", "hello"), "hello: Ana, 8:00"),
        (("chatapp", "send", PHONE, "--template", "hello"), "hello"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_text_is_kept_whole(line: tuple[str, ...], message: str, tool: Tool, sandbox: Sandbox) -> None:
    sandbox(*line)
    (entry,) = noted(tool)
    assert entry["message"] == message


@pytest.mark.parametrize(
    ("body", "phone", "message"),
    [
        ('{"phone": "573001234567", "body": ["Ana"]}', PHONE, "hello: Ana"),
        ('{"phone": 573001234567, "body": [1]}', PHONE, "hello: 1"),
        ('{"to": ["1"]}', None, 'hello: {"to": ["1"]}'),
        ('{"phone": ["1"], "body": "x"}', None, 'hello: {"phone": ["1"], "body": "x"}'),
        ('{"phone": "\\ud800", "body": ["\\ud800"]}', "\\ud800", "hello: \\ud800"),
    ],
)
def test_a_body_of_the_users_own(
    body: str, phone: str | None, message: str, service: Service, tool: Tool, home: Path
) -> None:
    service.will(answer({"id": "d1", "status": "sent"}))
    assert tool("chatapp", "send", "--template", "hello", "--body", "-", stdin=body).code == 0
    (entry,) = noted(tool)
    assert (entry["phone"], entry["message"]) == (phone, message)


@pytest.mark.parametrize("command", ["2fa send-sms", "2fa send-call", "2fa send-chatapp"])
def test_no_code_is_in_any_file_but_the_sandboxs(command: str, sandbox: Sandbox, path: Path) -> None:
    sandbox.done(*SENDS[command].line)
    sandbox.done("2fa", "verify", PHONE, "--app-name", "Shop", "--code", sandbox.code())
    assert not path.exists()


def test_a_dry_run_and_what_is_found_wrong_before_it_leave_no_note(sandbox: Sandbox, path: Path) -> None:
    sandbox.done("-n", *SEND)
    assert sandbox("sms", "send", "nobody", "-m", "Hola").code == 2
    assert not path.exists()


def test_the_file_is_the_users_alone(sandbox: Sandbox, path: Path) -> None:
    sandbox.done(*SEND)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_no_key_is_noted(service: Service, tool: Tool, path: Path) -> None:
    service.will(answer(SENDS["sms send"].record))
    assert tool(*SEND).code == 0
    assert KEY.encode() not in path.read_bytes()
    assert outcomes(tool) == ["accepted"]


# --- what came of it


@pytest.mark.parametrize(
    ("behaviour", "code", "outcome"),
    [
        (answer({"error": "NO", "msg": "no"}, 520), 1, "refused"),
        (answer(b"", 404), 1, "refused"),
        (answer(b"<html>", 504), 1, "unknown"),  # a proxy's, which may have passed it on
        (answer(b"<html>", 520), 1, "unknown"),
        (drop, 5, "unknown"),
        (reset, 5, "unknown"),
        (answer(b"<html>"), 5, "unknown"),
        (answer({"nothing": "known"}), 5, "unknown"),
    ],
    ids=["520", "404", "504", "a page with 520", "dropped", "reset", "a page", "another record"],
)
def test_an_outcome_that_is_none(behaviour: Behaviour, code: int, outcome: str, service: Service, tool: Tool) -> None:
    service.will(behaviour)
    assert tool(*SEND).code == code
    assert outcomes(tool) == [outcome]


def test_what_did_not_reach_the_service_was_not_sent(
    service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MSGCTL_BASE_URL", "https://service.example/api/v1")
    know_no_names(monkeypatch)
    assert tool(*SEND).code == 4
    assert outcomes(tool) == ["not-sent"]


def test_what_was_interrupted_before_it_left_was_not_sent(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    for variable, value in (("BASE_URL", f"http://127.0.0.1:{port}/api/v1"), ("CLIENT", "1"), ("KEY", "a-key")):
        monkeypatch.setenv(f"MSGCTL_{variable}", value)

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    done = tool(*SEND, sleep=interrupt)  # it waits there, before it tries again
    assert (done.code, "nothing was sent" in done.err) == (130, True)
    assert outcomes(tool) == ["not-sent"]


def test_what_is_interrupted_while_it_is_noted_does_not_leave(
    service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    intend = History.intend

    def interrupt(*arguments: Any) -> int:
        intend(*arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(History, "intend", interrupt)
    assert tool(*SEND).code == 130
    assert service.received == []


@pytest.mark.parametrize("by", [signal.SIGINT, signal.SIGKILL], ids=["interrupted", "killed"])
def test_what_ends_while_it_waits_for_an_answer_is_unknown(by: signal.Signals, service: Service, tool: Tool) -> None:
    children: list[subprocess.Popen[bytes]] = []
    noted_before: list[str] = []

    def end(connection: socket.socket) -> None:
        noted_before.extend(outcomes(tool))  # the intent is there before the request is answered
        children[0].send_signal(by)
        while connection.recv(65536):
            pass

    service.will(end)
    with subprocess.Popen([sys.executable, "-m", "msgctl", *SEND], stderr=subprocess.PIPE) as child:
        children.append(child)
        child.communicate(timeout=60)
    assert child.returncode == (130 if by is signal.SIGINT else -signal.SIGKILL)
    assert noted_before == ["unknown"]
    assert outcomes(tool) == ["unknown"]


def test_an_interrupt_while_the_answer_is_noted_hides_neither_it_nor_the_request(
    service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    settle = History.settle
    interrupts = [KeyboardInterrupt]

    def interrupt(*arguments: Any) -> None:
        if interrupts:
            raise interrupts.pop()
        settle(*arguments)

    monkeypatch.setattr(History, "settle", interrupt)
    service.will(answer(SENDS["sms send"].record))
    done = tool(*SEND)
    assert (done.code, "carried out" in done.err) == (130, True)
    assert outcomes(tool) == ["accepted"]


def test_an_interrupt_while_a_loss_is_noted_does_not_hide_it(
    service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(History, "settle", interrupt)
    service.will(drop)
    done = tool(*SEND)
    assert (done.code, "may have been carried out" in done.err) == (5, True)
    assert outcomes(tool) == ["unknown"]


# --- answers that are not as they should be


def entry(phone: Any, id: str = "m1") -> dict[str, Any]:
    return {"id": id, "status": "sent", "credits": 1, "phone": phone}


@pytest.mark.parametrize(
    ("data", "rows"),
    [
        ([entry("2" * 9, "b"), entry("1" * 9, "a")], [("1" * 9, "accepted", "a"), ("2" * 9, "accepted", "b")]),
        ([entry("1" * 9, "a")], [("1" * 9, "accepted", "a"), ("2" * 9, "unknown", None)]),
        (
            [entry("57" + "1" * 9, "a"), entry("57" + "2" * 9, "b")],
            [("1" * 9, "accepted", "a"), ("2" * 9, "accepted", "b")],
        ),
        (
            [entry("1" * 9, "a"), entry("3" * 9, "c")],
            [("1" * 9, "accepted", "a"), ("2" * 9, "unknown", None), ("3" * 9, "accepted", "c")],
        ),
        ([entry(None, "a"), entry(None, "b")], [("1" * 9, "accepted", "a"), ("2" * 9, "accepted", "b")]),
        ([entry(111111111, "a"), entry(222222222, "b")], [("1" * 9, "accepted", "a"), ("2" * 9, "accepted", "b")]),
        ([], [("1" * 9, "accepted", None), ("2" * 9, "accepted", None)]),
        (None, [("1" * 9, "accepted", None), ("2" * 9, "accepted", None)]),
    ],
    ids=["another order", "one is missing", "with country code", "a stranger", "no numbers", "numbers", "none", "null"],
)
def test_entries_belong_to_the_numbers_they_name(
    data: Any, rows: list[tuple[str, str, str | None]], service: Service, tool: Tool
) -> None:
    service.will(answer({"id": "d1", "status": 1, "data": data}))
    assert tool("sms", "send", "1" * 9, "2" * 9, "-m", "Hola").code == 0
    assert [(each["phone"], each["outcome"], each["id"]) for each in noted(tool)] == rows


def test_odd_values_are_noted_as_far_as_they_can_be(service: Service, tool: Tool) -> None:
    odd = '{"id": "d", "data": [{"id": 12345678901234567890, "status": true, "credits": 1.10, "phone": "\\ud800"}, {}]}'
    service.will(answer(odd.encode()))
    assert tool(*SEND, "--json").code == 0
    done = tool("history", "--json")
    assert '"id":"12345678901234567890","status":"true","credits":1.10' in done.out
    assert noted(tool)[-1]["outcome"] == "accepted"


def test_a_million_entries_are_not_kept(service: Service, tool: Tool) -> None:
    service.will(answer({"id": "d1", "data": [entry(str(number)) for number in range(10_000)]}))
    assert tool(*SEND, "--json").code == 0
    assert len(noted(tool, "--limit", "1000000")) < 200


def test_what_a_service_says_cannot_act_on_the_terminal(service: Service, tool: Tool) -> None:
    service.will(answer({"id": "d1", "data": [entry(PHONE, "\x1b]0;mine\x07")]}))
    assert tool(*SEND).code == 0
    assert "\x1b" not in tool("history").out


# --- the list


@pytest.fixture
def three_days(tool: Tool, sandbox: Sandbox) -> None:
    """A dispatch a day on three days, the last of them today."""
    for number in range(3):
        tool.clock.now += 86400 if number else 0
        sandbox.done("sms", "send", f"57300000000{number}", "-m", f"day {number}")


def messages(tool: Tool, *arguments: str) -> list[str]:
    return [each["message"] for each in noted(tool, *arguments)]


@pytest.mark.usefixtures("three_days")
@pytest.mark.parametrize("words", [(), ("list",)], ids=["alone", "list"])
def test_the_list_is_narrowed(words: tuple[str, ...], tool: Tool) -> None:
    assert messages(tool, *words) == ["day 0", "day 1", "day 2"]
    assert messages(tool, *words, "--since", "today") == ["day 2"]
    assert messages(tool, *words, "--since", "yesterday") == ["day 1", "day 2"]
    assert messages(tool, *words, "--since", "2026-09-22") == ["day 1", "day 2"]
    assert messages(tool, *words, "--since", "0001-01-01") == ["day 0", "day 1", "day 2"]
    assert messages(tool, *words, "--since", "9999-12-31") == []
    assert messages(tool, *words, "--limit", "2") == ["day 1", "day 2"]
    assert messages(tool, *words, "--phone", "+57 300 000-0001") == ["day 1"]
    assert messages(tool, *words, "--phone", "57300000000") == []


@pytest.mark.usefixtures("three_days")
def test_a_day_begins_where_the_user_is(tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    try:
        monkeypatch.setenv("TZ", "XXX-14")  # 14:13 UTC is after midnight there
        time.tzset()
        assert messages(tool, "--since", "2026-09-22") == ["day 0", "day 1", "day 2"]
        assert messages(tool, "--since", "2026-09-23") == ["day 1", "day 2"]
    finally:
        monkeypatch.delenv("TZ")
        time.tzset()


def test_the_newest_twenty_are_listed_in_the_order_of_time(tool: Tool, sandbox: Sandbox) -> None:
    phones = [f"5730000000{number}" for number in range(10, 35)]
    sandbox.done("sms", "send", *phones, "-m", "Hola")
    assert [each["phone"] for each in noted(tool)] == phones[-20:]
    assert len(noted(tool, "--limit", "100")) == 25


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--limit", "0"), "--limit"),
        (("--limit", "many"), "--limit"),
        (("--limit", "9" * 19), "--limit"),
        (("--phone", "nobody"), "phone number"),
        (("--since", "2026-02-30"), "date"),
        (("--since", "tomorrow"), "date"),
        (("--fields", "color"), "color"),
    ],
)
def test_options_that_cannot_be_used(options: tuple[str, ...], named: str, tool: Tool) -> None:
    refused(tool("history", *options), 2, named)
    refused(tool("history", "list", *options), 2, named)


@pytest.mark.parametrize("options", [("--since", "7d"), ("--phone", PHONE), ("--limit", "5")])
def test_options_of_the_list_clear_nothing(options: tuple[str, str], tool: Tool, sandbox: Sandbox) -> None:
    sandbox.done(*SEND)
    refused(tool("history", *options, "clear"), 2, options[0])
    refused(tool("history", "clear", *options), 2, options[0])
    assert len(noted(tool)) == 1


def test_a_profile_that_is_named_narrows_the_list(tool: Tool, sandbox: Sandbox, service: Service) -> None:
    sandbox.done(*SEND)
    service.will(answer(SENDS["sms send"].record))
    assert tool(*SEND).code == 0
    assert [each["profile"] for each in noted(tool)] == ["sandbox", "environment"]
    assert [each["profile"] for each in noted(tool, "-p", "sandbox")] == ["sandbox"]
    assert noted(tool, "-p", "gone") == []


def test_the_list_as_a_table_and_as_csv(tool: Tool, sandbox: Sandbox) -> None:
    sandbox.done("sms", "send", PHONE, "-m", "one\ntwo")
    head, row = tool("history").out.splitlines()
    assert head.split() == "time profile command phone outcome id status credits message".split()
    assert row.endswith(r"1        one\ntwo")
    done = tool("history", "-o", "csv", "--fields", "phone,outcome,message")
    assert done.out == "phone,outcome,message\n573001234567,accepted,one\\ntwo\n"


def shown(tool: Tool, monkeypatch: pytest.MonkeyPatch, columns: int, *options: str) -> str:
    """The history in a terminal so many columns wide."""
    monkeypatch.setenv("COLUMNS", str(columns))
    return tool("history", *options, screen=True).out


def test_at_80_columns_a_row_has_what_matters(tool: Tool, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    sent = sandbox.document("chatapp", "order", PHONE, "Ana", "--template", "order_ready")
    head, under_head, row, text = shown(tool, monkeypatch, 80, "--no-color").splitlines()
    assert [head.split(), under_head.split()] == [["time", "profile", "phone", "outcome", "id"], ["message"]]
    assert row.split() == ["2026-09-21T14:13:20Z", "sandbox", PHONE, "accepted", sent["id"]]
    assert text == "  order_ready: Ana"


@pytest.mark.parametrize(
    ("columns", "left_out"),
    [(120, set()), (92, {"credits"}), (85, {"credits", "status"}), (40, {"credits", "status", "command", "profile"})],
)
def test_what_a_narrower_terminal_leaves_out(
    columns: int, left_out: set[str], tool: Tool, sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox.done(*SEND)
    known = "time profile command phone outcome id status credits message".split()
    words = shown(tool, monkeypatch, columns, "--no-color").split()
    assert set(known) - set(words) == left_out
    assert "credits" in shown(tool, monkeypatch, columns, "--fields", "phone,credits")
    assert shown(tool, monkeypatch, columns, "-o", "csv").splitlines()[0] == ",".join(known)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "the history is empty"),
        (("--since", "today"), "the history has no such entry"),
        (("-p", "gone"), "the history has no entry of profile 'gone'"),
        (("--phone", PHONE, "-p", "gone"), "the history has no such entry of profile 'gone'"),
    ],
    ids=str,
)
def test_who_looks_at_nothing_is_told_so(options: tuple[str, ...], told: str, tool: Tool) -> None:
    done = tool("history", *options, screen=True)
    assert (done.code, done.out, done.err) == (0, "", f"{told}\n")


@pytest.mark.parametrize("options", [("-q",), ("--json",), ("-o", "csv")], ids=str)
def test_a_script_is_not(options: tuple[str, ...], tool: Tool) -> None:
    assert tool("history", *options, screen=True).err == ""
    assert tool("history").err == ""


def test_a_history_that_is_not_there_is_empty_and_stays_away(tool: Tool, path: Path) -> None:
    assert (tool("history").out, noted(tool)) == ("", [])
    assert not path.parent.exists()


# --- clear


def test_clearing_empties_it(tool: Tool, sandbox: Sandbox) -> None:
    sandbox.done("sms", "send", PHONE, OTHER, "-m", "Hola")
    done = tool("history", "clear")
    assert (done.code, done.out, done.err) == (0, "", "forgot 2 entries\n")
    assert noted(tool) == []
    assert tool("history", "clear").err == "there was nothing to forget: the history has no entry\n"


@pytest.mark.parametrize(("said", "code", "left"), [("y\n", 0, 0), ("n\n", 130, 1), ("", 130, 1)])
def test_clearing_asks_on_a_terminal(said: str, code: int, left: int, tool: Tool, sandbox: Sandbox) -> None:
    sandbox.done(*SEND)
    assert tool("history", "clear", stdin=said, terminal=True).code == code
    assert len(noted(tool)) == left


def test_clearing_for_a_profile_leaves_the_others(tool: Tool, sandbox: Sandbox, service: Service) -> None:
    sandbox.done(*SEND)
    service.will(answer(SENDS["sms send"].record))
    assert tool(*SEND).code == 0
    assert "nothing to forget" in tool("history", "clear", "-p", "gone").err
    assert tool("history", "clear", "-p", "sandbox").err == "forgot 1 entry of profile 'sandbox'\n"
    assert [each["profile"] for each in noted(tool)] == ["environment"]


def test_clearing_has_no_dry_run(tool: Tool, sandbox: Sandbox) -> None:
    sandbox.done(*SEND)
    refused(tool("history", "clear", "-n"), 2, "--dry-run")
    assert len(noted(tool)) == 1


# --- a profile without a history


def test_a_profile_may_keep_none(service: Service, tool: Tool, path: Path) -> None:
    url = service.base_url
    write_config(table("main", "history = false", base_url=url) + table("other", base_url=url))
    service.will(*[answer(SENDS["sms send"].record)] * 2)
    assert tool("-p", "main", *SEND).code == 0
    assert not path.exists()
    refused(tool("-p", "main", "state", "get", "--last"), 2, "history = false")
    assert tool("-p", "other", *SEND).code == 0
    assert [each["profile"] for each in noted(tool)] == ["other"]
    assert tool("profile", "show", "main", "--json").document["history"] is False


def test_storing_a_profile_again_does_not_switch_it_on(tool: Tool) -> None:
    write_config(table("main", "history = false"))
    again = ("profile", "add", "main", "--base-url", "https://other.example/api/v1", "--client", "2", "--force")
    assert tool(*again, "--key-stdin", stdin="a-key").code == 0
    assert tool("profile", "show", "main", "--json").document["history"] is False


# --- a history that cannot be written


def no_history(path: Path) -> None:
    path.write_bytes(b"no history at all\n" * 50)
    path.chmod(0o600)


def open_to_others(path: Path) -> None:
    path.write_bytes(b"")
    path.chmod(0o644)


def a_link(path: Path) -> None:
    path.symlink_to("/dev/null")


def held(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("maker", [no_history, open_to_others, a_link, held], ids=lambda maker: maker.__name__)
@pytest.mark.parametrize("flags", [(), ("-q",), ("--json",)], ids=str)
def test_what_cannot_be_noted_is_sent_all_the_same(
    maker: Any, flags: tuple[str, ...], service: Service, tool: Tool, path: Path
) -> None:
    path.parent.mkdir(mode=0o700, parents=True)
    maker(path)
    service.will(answer(SENDS["sms send"].record))
    done = tool(*SEND, *flags)
    assert (done.code, len(service.received)) == (0, 1)
    assert done.err.count("not noted in the history") == 1
    assert str(path) in done.err
    assert done.out


@pytest.mark.parametrize("maker", [no_history, open_to_others, a_link, held], ids=lambda maker: maker.__name__)
@pytest.mark.parametrize("command", [("history",), ("-p", "sandbox", "state", "get", "--last")], ids=" ".join)
def test_what_cannot_be_read_is_one_clear_message(maker: Any, command: tuple[str, ...], tool: Tool, path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True)
    maker(path)
    refused(tool(*command), 3, str(path))


def test_a_refusal_is_a_refusal_where_it_cannot_be_noted(service: Service, tool: Tool, path: Path) -> None:
    path.mkdir(parents=True)
    service.will(answer({"error": "NO", "msg": "no"}, 520))
    done = tool(*SEND, "--json")
    assert (done.code, done.error["error"]) == (1, "NO")


def test_an_answer_that_cannot_be_noted_is_printed_all_the_same(service: Service, tool: Tool, path: Path) -> None:
    def break_it(connection: socket.socket) -> None:
        with closing(sqlite3.connect(path)) as db:
            db.execute("DROP TABLE entries")
            db.commit()
        answer(SENDS["sms send"].record)(connection)

    service.will(break_it)
    done = tool(*SEND, "--json")
    assert (done.code, json.loads(done.out)["id"]) == (0, "d1")
    assert done.err.count("not noted in the history") == 1


# --- state get --last


def test_the_states_of_what_was_sent_last(tool: Tool, sandbox: Sandbox) -> None:
    sandbox.done(*SEND)
    sent = sandbox.document("sms", "send", PHONE, OTHER, "-m", "two")["data"]
    assert [each["id"] for each in sandbox.rows("state", "get", "--last")] == [each["id"] for each in sent]


def test_the_last_of_another_profile_or_service_is_not_meant(
    tool: Tool, sandbox: Sandbox, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine = sandbox.document(*SEND)["data"][0]["id"]
    service.will(answer(SENDS["sms send"].record))
    assert tool(*SEND).code == 0
    assert sandbox.document("state", "get", "--last")["id"] == mine
    monkeypatch.setenv("MSGCTL_BASE_URL", service.base_url.replace("127.0.0.1", "localhost"))
    refused(tool("state", "get", "--last"), 2, "--last", "environment")


def test_the_last_of_another_profile_is_one_option_away(tool: Tool, sandbox: Sandbox, service: Service) -> None:
    refused(tool("state", "get", "--last"), 2, "Give the ID of each message.")
    sandbox.done(*SEND)
    refused(tool("state", "get", "--last"), 2, "msgctl -p sandbox state get --last")
    assert service.received == []


@pytest.mark.parametrize(
    ("behaviour", "outcome"),
    [(drop, "unknown"), (answer({"error": "NO", "msg": ""}, 520), "refused")],
    ids=["lost", "520"],
)
def test_the_last_may_have_no_identifiers(behaviour: Behaviour, outcome: str, service: Service, tool: Tool) -> None:
    service.will(answer(SENDS["sms send"].record), behaviour)
    tool(*SEND)
    tool(*SEND)
    refused(tool("state", "get", "--last"), 2, "newest dispatch", outcome)
    assert len(service.received) == 2


def test_last_and_identifiers_exclude_each_other_and_one_is_needed(tool: Tool, sandbox: Sandbox) -> None:
    refused(tool("-p", "sandbox", "state", "get"), 2, "ID", "--last")
    refused(tool("-p", "sandbox", "state", "get", "m1", "--last"), 2, "ID", "--last")
    refused(tool("-p", "sandbox", "state", "get", "--last"), 2, "history", "sandbox")
