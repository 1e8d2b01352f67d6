"""`block add`: a request for each number, and a question on a terminal."""

from __future__ import annotations

import pytest

from support.service import Service, respond
from support.tool import Tool

ANA, LUIS = "573001234567", "573007654321"
BLOCKED = respond({"id": "b1", "status": "blocked", "phone": ANA})


def test_each_number_is_one_request(tool: Tool, service: Service) -> None:
    service.will(BLOCKED, respond({"id": "b2", "status": "blocked", "phone": LUIS}))
    done = tool("block", "add", ANA, f"{LUIS},{ANA}", "-o", "csv", "--fields", "phone,status")
    assert (done.code, done.out) == (0, f"phone,status\n{ANA},blocked\n{LUIS},blocked\n")
    assert [dict(each.form)["phone"] for each in service.received] == [ANA, LUIS]


def test_a_refused_number_does_not_stop_the_others(tool: Tool, service: Service) -> None:
    service.will(respond({"error": "E7", "msg": "invalid phone"}, 520), BLOCKED)
    done = tool("block", "add", LUIS, ANA, "-o", "csv", "--fields", "phone", "--no-header")
    assert (done.code, done.out) == (1, f"{ANA}\n")
    assert done.err.count("Error: ") == 1
    assert f"{LUIS}: " in done.err


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 130), ("", 130)])
def test_on_a_terminal_msgctl_asks_before_a_number_is_blocked(
    answer: str, code: int, tool: Tool, service: Service
) -> None:
    service.always(BLOCKED)
    done = tool("block", "add", ANA, stdin=answer, terminal=True)
    assert (done.code, len(service.received)) == (code, int(code == 0))
    assert f"Block {ANA}? The API cannot undo it. [y/N]" in done.err


def test_a_dry_run_shows_each_request_and_asks_nothing(tool: Tool, service: Service) -> None:
    done = tool("block", "add", ANA, LUIS, "--dry-run", terminal=True)
    assert (done.code, "[y/N]" in done.err, service.received) == (0, False, [])
    assert done.out.count("POST") == 2
