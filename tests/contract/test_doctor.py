"""Faults of the store that `doctor` finds. `stories/commands/doctor.txt` has the others."""

from __future__ import annotations

import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from support.service import Service, respond, then
from support.tool import Tool


def test_the_time_of_a_response_is_in_milliseconds(tool: Tool, service: Service) -> None:
    service.will(then(lambda _: time.sleep(0.02), respond({"status": 7})))
    (milliseconds,) = re.findall("responded with status 200 in ([0-9]+) ms", tool("doctor", "-o", "csv").out)
    assert int(milliseconds) >= 20


def test_a_store_that_another_program_uses_is_reported(tool: Tool, service: Service, home: Path) -> None:
    service.always(respond({"status": 7}))
    tool("history")
    with closing(sqlite3.connect(home / "state" / "msgctl" / "store.sqlite3", isolation_level=None)) as db:
        db.execute("BEGIN IMMEDIATE")
        done = tool("doctor", "--timeout", "0.5", "--json")
    (line,) = (line for line in done.document if line["check"] == "store")
    assert (done.code, line["status"]) == (1, "failed")
    assert "Another program is using" in line["found"]
    assert "Try again later" in line["fix"]


@pytest.mark.usefixtures("service")
@pytest.mark.parametrize("mode", ["0640", "0604", "0620"])
def test_a_store_that_is_not_private_is_a_warning_with_the_command_that_fixes_it(
    mode: str, tool: Tool, home: Path
) -> None:
    tool("history")
    file = home / "state" / "msgctl" / "store.sqlite3"
    file.chmod(int(mode, 8))
    (line,) = (line for line in tool("doctor", "-n", "--json").document if line["check"] == "store")
    assert (line["status"], f"the file is not private (mode {mode})" in line["found"]) == ("warning", True)
    assert line["fix"].startswith("chmod 600 ")
    assert line["fix"].endswith("store.sqlite3*")
