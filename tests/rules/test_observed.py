"""Every response in responses.jsonl, which services in use send, has the right output and exit code.

Each line contains the response, its meaning, and the exit code. ``shown`` are the rows of the result, and ``history``
the entries of the history.
"""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from support.commands import PHONE, SENDS, Command, each
from support.service import Service, respond
from support.tool import Tool

OTHER = "573007654321"
LINES = {
    "sms send": ("sms", "send", PHONE, "-m", "hi"),
    "sms send 2": ("sms", "send", PHONE, OTHER, "-m", "hi"),
    "call send": ("call", "send", PHONE, "-m", "hi", "--voice", "Mia"),
    "chatapp send": ("chatapp", "send", PHONE, "Ana", "--template", "t"),
    "block add": ("block", "add", PHONE),
    "state get": ("state", "get", "m1"),
    "state watch": ("state", "watch", "m1", "--max-wait", "1"),
    "state watch --until enviado": ("state", "watch", "m1", "--until", "enviado"),
    "balance show": ("balance",),
    "balance check --min 100": ("balance", "check", "--min", "100"),
    "2fa send-sms": ("2fa", "send-sms", PHONE, "--app-name", "Shop"),
    "2fa verify": ("2fa", "verify", PHONE, "--app-name", "Shop", "--code", "123456"),
    "url stats": ("url", "stats", "n", "--since", "7d"),
    "url shorten": ("url", "shorten", "https://example.com", "--name", "n"),
}
OBSERVED = [json.loads(line) for line in Path(__file__).with_name("responses.jsonl").read_text().splitlines()]
HISTORY = ("phone", "outcome", "id", "status", "credits")
BULK = {"sms send": ("sms", "bulk", "people.csv", "-m", "hi"), "sms send 2": ("sms", "bulk", "people.csv", "-m", "hi")}


def body_of(line: dict[str, Any]) -> bytes:
    return line["body"].encode() if isinstance(line["body"], str) else json.dumps(line["body"]).encode()


def rows(text: str) -> list[dict[str, str]]:
    """Return the filled cells of each row of csv."""
    return [{name: value for name, value in row.items() if value} for row in csv.DictReader(io.StringIO(text))]


@pytest.mark.parametrize("line", OBSERVED, ids=range(len(OBSERVED)))
def test_a_response_is_shown_stored_and_judged(line: dict[str, Any], service: Service, tool: Tool) -> None:
    service.always(respond(body_of(line), line["http_status"]))
    command = LINES[line["operation"]]
    done = tool(*command, "-o", "csv")
    assert (done.code, rows(done.out)) == (line["exit"], line["shown"]), done.err
    if "history" in line:
        assert [{name: entry[name] for name in HISTORY} for entry in tool("history", "--json").document] == line[
            "history"
        ]
    whole = tool(*command, "--json")
    assert whole.code == line["exit"]
    is_printed = line["http_status"] == 200 and isinstance(line["body"], (dict, list))
    assert whole.stdout == (body_of(line) + b"\n" if is_printed else b"")
    on_terminal = tool(*command, screen=True)
    assert on_terminal.code == line["exit"]
    known = [row[name] for row in line["shown"] for name in ("id", "state", "property", "urlShort") if name in row]
    assert [value for value in known if value not in on_terminal.out] == []
    assert done.err.count("Error: ") == (line["exit"] != 0), done.err


@pytest.mark.parametrize(
    "line", [line for line in OBSERVED if line["operation"] in BULK], ids=lambda line: line["meaning"]
)
def test_a_job_has_the_outcome_of_a_single_send(
    line: dict[str, Any], service: Service, tool: Tool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    phones = [PHONE] if line["operation"] == "sms send" else [PHONE, OTHER]
    Path("people.csv").write_text("\n".join(["phone", *phones]))
    service.always(respond(body_of(line), line["http_status"]))
    done = tool(*BULK[line["operation"]], "--yes", "-o", "json")
    assert done.code == (0 if line["exit"] == 0 else 6)
    report = tool("job", "report", "--last", "--json").document
    outcomes = {each["phone"]: (each["outcome"], each["id"]) for each in report}
    single = {each["phone"]: (each["outcome"], each["id"]) for each in line["history"] if each["phone"]}
    assert outcomes == single


def test_a_response_may_repeat_a_long_message_with_every_character_escaped(service: Service, tool: Tool) -> None:
    phones = [str(573_001_000_000 + number) for number in range(100)]
    message = "😀" * 550
    entries = [{"id": f"message-{phone}", "status": "sent", "phone": phone, "sms": message} for phone in phones]
    record = {"id": "d1", "status": 1, "data": entries}
    service.will(respond(json.dumps(record, ensure_ascii=True, indent=8).encode()))
    done = tool("sms", "send", *phones, "-m", message, "--max-segments", "50", "--json")
    assert (done.code, done.err) == (0, "")
    assert done.document == record


@each(SENDS)
def test_every_send_is_judged(command: Command, service: Service, tool: Tool) -> None:
    record = json.loads(json.dumps(command.record))
    judged = record["data"][0] if "data" in record else record
    judged["state" if "state" in judged else "status"] = "rejected"
    service.will(respond(record))
    assert tool(*command.line).code == (6 if "data" in record else 5), "a record with an id may have been sent"
