"""A job with personal links that is killed at any line and resumed: everyone gets one message, with their own link."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from jobs.ledgers import SPEC
from msgctl.config import profiles
from msgctl.jobs.reader import Row
from msgctl.jobs.store import Store
from msgctl.storage import files
from support.jobs import write_ledger
from support.kills import in_a_process
from support.sandbox import Sandbox
from support.tool import Tool

JOB = "20261121-3f9a2c"
TRACED = {"ledger.py", "schema.py", "links.py", "pollers.py", "runner.py", "workers.py"}
PEOPLE = {2: ("573001234562", "ana"), 3: ("573001234563", "eva"), 4: ("573001234564", "luis")}
KILLS = 200
LOADED = ("cli.foreground", "commands.job", "commands.sandbox", "commands.url", "jobs.runner", "sandbox.service")
LONG_URL = "https://shop.example/?c={text}"


@pytest.mark.slow
def test_a_kill_at_any_line_sends_everyone_one_message_with_their_own_link(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "jobs.test_link_kills", str(tmp_path)]
    subprocess.run(command, cwd=Path(__file__).parents[1], timeout=560, check=True)
    assert int((tmp_path / "kills").read_text()) > KILLS * 0.95


def _kill_at_many_lines(folder: Path) -> None:
    """Kill processes that send and count clicks, each at another new line, and resume the job after each."""
    for module in LOADED:  # otherwise, each process would load them
        import_module(f"msgctl.{module}")
    new = folder / "new"
    os.environ["XDG_STATE_HOME"] = str(new)
    assert in_a_process(_create) == 0
    state = folder / "state"
    os.environ["XDG_STATE_HOME"] = str(state)
    shutil.copytree(new, state)
    assert in_a_process(_send_and_count, TRACED, 10**6, report=str(folder / "lines")) == 0
    lines = int((folder / "lines").read_text())
    kills = 0
    for number in range(1, lines, max(1, lines // KILLS)):
        shutil.rmtree(state)
        shutil.copytree(new, state)
        # The order of the threads differs, so a process may end before it comes to the last lines.
        kills += os.WIFSIGNALED(in_a_process(_send_and_count, TRACED, number))
        assert in_a_process(_resume_and_check) == 0, f"killed at line {number} of {lines}"
        (folder / "kills").write_text(f"{kills}")


def _create() -> None:
    store = Store(files.state("jobs"))
    files.make_folder(store.folder)
    spec = replace(SPEC, profile="sandbox", base_url=profiles.SANDBOX_URL, client=1, concurrency=2, link=LONG_URL)
    rows = [Row(line, phone, (name,)) for line, (phone, name) in PEOPLE.items()]
    write_ledger(store.path(JOB), rows, spec, "{text}: {link}")


def _send_and_count() -> None:
    sandbox = Sandbox(Tool())
    sandbox("job", "resume", JOB, "--yes")
    for line in PEOPLE:
        sandbox("sandbox", "click", f"{JOB}-{line}", "--count", str(line))
    sandbox("job", "clicks", JOB)


def _resume_and_check() -> None:
    sandbox = Sandbox(Tool())
    resumed = sandbox("job", "resume", JOB, "--yes")
    assert resumed.code in (0, 6), resumed.err
    counted = sandbox("job", "clicks", JOB)
    assert counted.code == 0, counted.err
    messages = sandbox.document("sandbox", "inbox")
    received = {each["phone"]: each["text"] for each in messages}
    assert len(received) == len(messages), "someone got two messages"
    for row in sandbox.document("job", "report", JOB):
        phone, name = PEOPLE[row["line"]]
        url = sandbox.document("url", "stats", f"{JOB}-{row['line']}", "--since", "today")
        assert (row["phone"], row["link"], row["clicks"]) == (phone, url["urlShort"], url["clicksNumber"])
        assert url["urlLong"] == LONG_URL.format(text=name)
        assert row["outcome"] in ("accepted", "unknown"), row
        assert received.get(phone) == f"{name}: {row['link']}" or (
            row["outcome"] == "unknown" and phone not in received
        )


if __name__ == "__main__":
    _kill_at_many_lines(Path(sys.argv[1]))
