"""The sandbox in the process of the tool: what a request says arrives, and what it is answered comes back."""

from __future__ import annotations

import pytest

from msgctl.storage import paths
from support.sandbox import PHONE, Sandbox, refused
from support.tool import Tool

AWKWARD = "¿Qué? & = + % ñ"


@pytest.fixture
def sandbox(tool: Tool) -> Sandbox:
    return Sandbox(tool)


def test_a_form_a_query_and_a_json_body_arrive(sandbox: Sandbox) -> None:
    sms = sandbox.document("sms", "send", PHONE, "-m", AWKWARD)
    state = sandbox.document("state", "get", sms["data"][0]["id"])
    chat = sandbox.document("chatapp", "send", PHONE, AWKWARD, "--template", AWKWARD)
    assert state["sms"] == AWKWARD
    assert chat["name"] == AWKWARD
    assert AWKWARD in sandbox.document("sandbox", "inbox", PHONE)[-1]["text"]


def test_a_refusal_keeps_its_status(sandbox: Sandbox) -> None:
    assert "520" in refused(sandbox("state", "get", "unknown"), "NOT_FOUND")


def test_a_run_that_is_over_leaves_no_file_open(sandbox: Sandbox) -> None:
    sandbox.done("balance")
    path = paths.sandbox_file()
    # SQLite removes its log with the last connection.
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
