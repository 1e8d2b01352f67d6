"""A new operation needs only its data in `msgctl.operations`, except in the sandbox: here, a list and a send."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Annotated

import pytest
import typer

from msgctl import operations
from msgctl.cli.runs.single import run_request
from msgctl.cli.shell.context import Context
from msgctl.cli.shell.main import build as build_tree
from msgctl.cli.shell.tree import command
from msgctl.commands import sms, url
from msgctl.http.request import build
from msgctl.operations import Effect, Field, Kind, Operation, Place, Record, ResponseField, Shape
from msgctl.outcomes.record import MAX_LISTED
from msgctl.output.result import Result
from msgctl.reference.__main__ import files
from msgctl.sandbox import emulator
from msgctl.sandbox.protocol import BASE_PATH
from support.commands import PHONE
from support.service import Service, respond
from support.tool import Tool

OTHER = "573007654321"
LIST = Operation(
    "url list",
    "GET",
    "/url/list",
    Effect.READS,
    (),
    Record(
        "ResponseURLList",
        (
            ResponseField("total", Kind.INTEGER),
            ResponseField("data", Kind.ARRAY, (ResponseField("urlShort"), ResponseField("clicksNumber", Kind.INTEGER))),
        ),
        Shape.LIST,
    ),
    Place.QUERY,
)
FLASH = Operation(
    "sms flash",
    "POST",
    "/send-flash",
    Effect.SENDS,
    (Field("phone", "PHONE...", "Phone numbers.", several=True), Field("text", "TEXT", "Text to send.")),
    Record(
        "ResponseFlash",
        (
            ResponseField("id"),
            ResponseField("data", Kind.ARRAY, (ResponseField("id"), ResponseField("status"), ResponseField("phone"))),
        ),
        Shape.DISPATCH,
    ),
)
ROWS = [{"urlShort": f"https://s.example/{number}", "clicksNumber": number} for number in range(1500)]


@pytest.fixture(autouse=True)
def new_operations(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Add the operations, and their commands."""
    build_tree.cache_clear()  # other tests built the tree without them
    added = (*operations.OPERATIONS, LIST, FLASH)
    monkeypatch.setattr(operations, "OPERATIONS", added)
    monkeypatch.setattr(emulator, "_BY_PATH", {BASE_PATH + each.path: each for each in added})
    for module in (url, sms):
        monkeypatch.setattr(module.app, "registered_commands", [*module.app.registered_commands])

    @command(url.app, "list", "msgctl url list", performs=LIST)
    def list_(context: Context) -> Result:
        """List the short URLs."""
        return run_request(context, build(LIST, {}))

    @command(sms.app, "flash", "msgctl sms flash Hola 573001234567", performs=FLASH)
    def flash(
        context: Context,
        text: Annotated[str, typer.Argument(help="Text to send.")],
        phone: Annotated[list[str], typer.Argument(help="Phone numbers.")],
    ) -> Result:
        """Send a flash SMS."""
        return run_request(context, build(FLASH, {"phone": phone, "text": text}))

    yield
    build_tree.cache_clear()


def rows(text: str) -> list[dict[str, str]]:
    return [*csv.DictReader(io.StringIO(text))]


def test_a_list_of_any_form_is_printed_whole(service: Service, tool: Tool) -> None:
    listed = [(row["urlShort"], str(row["clicksNumber"])) for row in ROWS]
    for body in (ROWS, {"total": 1500, "data": ROWS}, {"data": {str(row["clicksNumber"]): row for row in ROWS}}):
        service.always(respond(json.dumps(body).encode()))
        done = tool("url", "list", "-o", "csv")
        assert [(row["urlShort"], row["clicksNumber"]) for row in rows(done.out)] == listed, done.err
        assert tool("url", "list", "--json").document == body
    assert len(tool("url", "list", "-o", "jsonl").out.splitlines()) == len(ROWS)
    assert tool("url", "list", "-o", "table").out.count("https://s.example/") == len(ROWS)
    assert rows(tool("url", "list", "-o", "csv", "--fields", "urlShort").out)[-1] == {"urlShort": ROWS[-1]["urlShort"]}


def test_a_list_is_empty_missing_or_too_long(service: Service, tool: Tool) -> None:
    service.will(respond({"data": []}))
    assert rows(tool("url", "list", "-o", "csv").out) == []
    service.will(respond({"data": []}))
    assert tool("url", "list", "-o", "table").code == 0
    service.will(respond({"total": 1}))
    tool("url", "list").refused(1, "it has none of the expected fields (total, data)")
    service.will(respond({"data": [{"urlShort": "s"}] * (MAX_LISTED + 1)}))
    tool("url", "list").refused(1, f"it contains more than {MAX_LISTED:,} entries")
    service.will(respond({"error": 1, "msg": "No existe"}, 520))
    tool("url", "list").refused(1, "No existe")


def test_a_send_is_judged_recorded_and_shown(service: Service, tool: Tool) -> None:
    entries = [{"id": "m1", "status": "sent", "phone": PHONE}, {"id": "m2", "status": "rejected", "phone": OTHER}]
    service.will(respond({"id": "d1", "data": entries}))
    done = tool("sms", "flash", "Hola", PHONE, OTHER, "-o", "csv")
    assert done.code == 6
    assert [(row["id"], row["status"], row["dispatch.id"]) for row in rows(done.out)] == [
        ("m1", "sent", "d1"),
        ("m2", "rejected", "d1"),
    ]
    listed = {entry["phone"]: entry["outcome"] for entry in tool("history", "--json").document}
    assert listed == {PHONE: "accepted", OTHER: "refused"}
    assert service.received[-1].form[2:] == [("phone", f"{PHONE},{OTHER}"), ("text", "Hola")]


def test_a_dry_run_shows_the_requests(service: Service, tool: Tool) -> None:
    done = tool("url", "list", "--dry-run", "--json")
    assert done.code == 0, done.err
    assert done.document["url"].endswith("/url/list")
    assert tool("sms", "flash", "Hola", PHONE, "--dry-run", "--json").document["form"]["phone"] == PHONE


@pytest.mark.parametrize("responses", ["documented", "observed"])
def test_the_sandbox_refuses_what_it_does_not_emulate(responses: str, tool: Tool) -> None:
    tool("-p", "sandbox", "sandbox", "responses", responses)
    for line in (("url", "list"), ("sms", "flash", "Hola", PHONE, OTHER)):
        done = tool("-p", "sandbox", *line, "--json")
        done.refused(1, "the sandbox does not emulate /")
        assert done.error["http_status"] == 520


def test_the_manual_describes_the_commands(tool: Tool) -> None:
    description = tool("commands", "--json").document
    (command_,) = [each for each in description["commands"] if each["name"] == "url list"]
    assert command_["output"] == ["urlShort", "clicksNumber", "total"]
    assert "List the short URLs." in tool("help", "url", "list").out
    assert "msgctl url list" in files()["man/msgctl-url.1"].replace("\\", "")
