"""`msgctl history` lists every send but no code, and a send that cannot be recorded is still printed."""

from __future__ import annotations

import socket
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path

import pytest

from support.commands import PHONE, SENDS
from support.sandbox import Sandbox
from support.service import Service, respond
from support.tool import Tool, interrupt

SEND = ("sms", "send", PHONE, "-m", "Hola")


@pytest.mark.parametrize("command", ["2fa send-sms", "2fa send-call", "2fa send-chatapp"])
def test_a_verification_message_is_recorded_without_its_code(command: str, sandbox: Sandbox, home: Path) -> None:
    sandbox.done(*SENDS[command].line)
    code = sandbox.code()
    verify = ("2fa", "verify", PHONE, "--app-name", "Shop", "--code", code)
    sandbox.done(*verify)
    assert sandbox(*verify).code == 1  # it is used up
    (entry,) = sandbox.document("history")
    assert (entry["command"], entry["message"]) == (command, "verification code for Shop")
    stored = [*(home / "state" / "msgctl").glob("sandbox-store.sqlite3*")]
    assert stored
    assert not [file for file in stored if code.encode() in file.read_bytes()]


@pytest.mark.parametrize("status", [200, 400, 502, 520])
@pytest.mark.parametrize("command", ["2fa send-sms", "2fa send-call", "2fa send-chatapp"])
def test_a_code_in_a_response_in_doubt_is_in_no_file(
    command: str, status: int, service: Service, tool: Tool, home: Path
) -> None:
    text = "184830 is your Shop code"
    entry = {"phone": "573001234567", "status": "someday", "sms": text, "msg": text, "id": "m-1"}
    service.will(respond({"id": "d-1", "status": "someday", "msg": text, "code": "184830", "data": [entry]}, status))
    assert tool(*SENDS[command].line).code == 5
    assert not [path for path in home.rglob("*") if path.is_file() and b"184830" in path.read_bytes()]
    assert "184830" not in tool("history", "--json").out


@pytest.mark.parametrize("code", ["483 921", "G-4K7P2Q", "4K7P2Q", "code_4839210", "4 8 3 9 2 1", "483.921"])
def test_a_code_of_any_form_is_not_stored_but_an_id_is(code: str, service: Service, tool: Tool, home: Path) -> None:
    message_id = "1b4e28ba-2fa1-41d2-883f-0016d3cca427"
    service.will(respond({"status": f"Your code is {code}", "msg": f"{code} for message {message_id}"}))
    assert tool(*SENDS["2fa send-sms"].line).code == 5
    with closing(sqlite3.connect(home / "state" / "msgctl" / "store.sqlite3")) as db:
        ((status, error),) = db.execute("SELECT status, error FROM result").fetchall()
    parts = [part for part in code.replace(".", " ").split() if part in f"{status} {error.replace(message_id, '')}"]
    assert (parts, message_id in error) == ([], True)


def test_a_status_of_more_than_4096_characters_is_cut(service: Service, tool: Tool) -> None:
    for length, end in ((4096, "x"), (4097, "…")):
        service.will(respond({"data": {"id": "m1", "status": "x" * length}}))
        assert tool(*SEND).code == 5
        assert tool("history", "--json").document[-1]["status"] == "x" * 4096 + end.strip("x")


def test_a_send_that_is_interrupted_before_its_request_is_not_in_the_history(
    tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    for variable, value in (("BASE_URL", f"http://127.0.0.1:{port}/api/v1"), ("CLIENT", "1"), ("KEY", "a-key")):
        monkeypatch.setenv(f"MSGCTL_{variable}", value)

    done = tool(*SEND, sleep=interrupt)  # it waits there, before it tries again
    assert (done.code, "nothing was sent" in done.err) == (130, True)
    assert tool("history", "--json").document == []


def test_a_terminal_shows_the_newest_twenty_and_programs_get_all(sandbox: Sandbox, home: Path) -> None:
    phones = [f"5730000000{number}" for number in range(10, 35)]
    sandbox.done("sms", "send", *phones, "-m", "Hola")
    assert [each["phone"] for each in sandbox.document("history")] == phones
    assert [each["phone"] for each in sandbox.document("history", "--limit", "20")] == phones[-20:]
    shown = sandbox.tool("-p", "sandbox", "history", terminal=True)
    assert "msgctl -p sandbox history --limit 1000\n" in shown.err
    assert [phone for phone in phones if phone in shown.out] == phones[-20:]
    piped = sandbox.tool("-p", "sandbox", "history", "-o", "table").out
    assert [phone for phone in phones if phone in piped] == phones
    saved = sandbox.tool("-p", "sandbox", "history", "--save", str(home / "all.csv"), terminal=True)
    assert (saved.out, (home / "all.csv").read_text().count("\n")) == ("", 1 + len(phones))


def test_a_result_is_stored_although_old_keys_cannot_be_deleted(service: Service, tool: Tool, home: Path) -> None:
    for key in ("old", "new"):
        service.will(respond(SENDS["sms send"].record))
        done = tool(*SEND, "--once", key)
        assert (done.code, "is not stored" in done.err) == (0, False)
        with closing(sqlite3.connect(home / "state" / "msgctl" / "store.sqlite3")) as db, db:
            db.execute("UPDATE once SET time = 0 WHERE key = 'old'")
            db.execute("CREATE TRIGGER IF NOT EXISTS kept BEFORE DELETE ON once BEGIN SELECT RAISE(ABORT, 'kept'); END")
    assert tool(*SEND, "--once", "new", "--json").code == 0
    assert len(service.received) == 2


def test_a_key_that_0_3_0_stored_repeats_its_result(service: Service, tool: Tool, home: Path) -> None:
    service.will(respond(SENDS["sms send"].record))
    assert tool("sms", "send", PHONE, "-m", "v1", "--once", "key", "--country-code", "CO").code == 0
    message = b'["sms send", {"country-code": null, "phone": ["%s"], "sms": "v1"}]' % PHONE.encode()  # as 0.3.0 did
    with closing(sqlite3.connect(home / "state" / "msgctl" / "store.sqlite3")) as db:
        assert db.execute("SELECT digest FROM once").fetchall() == [(sha256(message).digest(),)]


def test_a_result_that_cannot_be_recorded_is_printed(service: Service, tool: Tool, home: Path) -> None:
    def break_it(connection: socket.socket) -> None:
        with closing(sqlite3.connect(home / "state" / "msgctl" / "store.sqlite3")) as db, db:
            db.execute("DROP TABLE result")
        respond(SENDS["sms send"].record)(connection)

    service.will(break_it)
    done = tool(*SEND)
    assert (done.code, PHONE in done.out) == (0, True)
    assert "Warning: The result is not stored" in done.err
