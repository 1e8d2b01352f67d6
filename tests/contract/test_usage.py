"""`msgctl usage`: the sums of messages and credits."""

from __future__ import annotations

import socket
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from support.jobs import accepting, phones
from support.sandbox import Sandbox
from support.service import Service, respond
from support.tool import Tool

CO, ES = "573001234567", "34612345678"


def used(tool: Tool | Sandbox, *arguments: str) -> Any:
    done = tool("usage", *arguments, "--json")
    assert (done.code, done.err) == (0, "")
    return done.document


def test_a_day_begins_at_midnight(tool: Tool, service: Service, home: Path) -> None:
    service.always(accepting(service))
    (home / "to.csv").write_text(f"phone\n{CO}\n{ES}\n")
    for day, seconds in ((21, -1), (22, 0)):
        tool.clock.now = datetime(2026, 9, 22).timestamp() + seconds
        assert tool("sms", "send", CO, "-m", f"Hi {day}").code == 0
        assert tool("sms", "bulk", str(home / "to.csv"), "-m", f"Day {day}", "--yes").code == 0
    assert used(tool, "--until", "2026-09-21", "--by", "day") == [{"day": "2026-09-21", "messages": 3, "credits": 3}]
    assert used(tool, "--since", "2026-09-22") == [{"day": "2026-09-22", "messages": 3, "credits": 3}]


@pytest.mark.parametrize("credits", ["1e999", "-1e999", "-9223372036854775808", '"1e999"', "9" * 13])
def test_credits_that_cannot_be_right_are_not_summed(credits: str, tool: Tool, service: Service) -> None:
    """Otherwise, one wrong response would make every later sum wrong."""
    for charged in (credits, "999999999999"):
        entry = f'{{"id": "1", "phone": "{CO}", "status": "queued", "credits": {charged}}}'
        service.will(respond(f'{{"id": "d", "data": [{entry}]}}'.encode()))
        assert tool("sms", "send", CO, "-m", "Hi").code == 0
    assert used(tool, "--by", "month") == [{"month": "2026-09", "messages": 2, "credits": 10**12 - 1}]


def test_the_credits_of_an_entry_for_several_numbers_are_summed_once(tool: Tool, service: Service, home: Path) -> None:
    def together(connection: socket.socket) -> None:
        if service.received[-1].path.endswith("/balance"):
            return respond({"status": 100})(connection)
        entry = {"state": "Enviado", "credits": 5, "phone": ",".join(phones(service.received[-1]))}
        respond({"status": 1, "id": "d1", "data": [entry]})(connection)
        return None

    service.always(together)
    (home / "to.csv").write_text(f"phone\n{CO}\n{ES}\n")
    assert tool("sms", "send", CO, ES, "-m", "Hi").code == 0
    assert used(tool, "--by", "country") == [
        {"country": "CO", "messages": 1, "credits": 3},
        {"country": "ES", "messages": 1, "credits": 2},
    ]
    done = tool("sms", "bulk", str(home / "to.csv"), "-m", "Hello", "--yes", "--json")
    assert (done.code, done.document["credits"]) == (0, 5)
    assert used(tool, "--by", "command") == [
        {"command": "sms bulk", "messages": 2, "credits": 5},
        {"command": "sms send", "messages": 2, "credits": 5},
    ]
    assert sum(each["credits"] for each in tool("history", "--json").document) == 10
