"""Ctrl-C at any line: what is reported and stored is true, a key is freed only if nothing left, a new job is named."""

from __future__ import annotations

import io
import json
import os
import signal
import sys
from functools import cache
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import pytest

from msgctl.cli.shell import main as cli
from msgctl.cli.shell.context import Context
from support import PATIENCE
from support.service import Service, respond
from support.tool import Stream, Tool

SEND = ("sms", "send", "573001234567", "-m", "Hola", "--json", "--once")
MODULES = (
    *("cli/runs/single.py", "store/sends.py", "store/database.py", "http/client.py", "http/transport.py"),
    "store/jobs.py",
)
"""The modules that make a request and store its intent and outcome, and create a job."""
START, STEP = int(os.environ.get("FIRST_LINE", "2")), int(os.environ.get("EACH_LINE", "31"))
"""Every thirty-first line is interrupted, because all of them take a minute; EACH_LINE=1 tests all."""
COUNTING = "_counted"
"""The function of the client that counts what is sent: each of its lines is interrupted."""


@cache
def is_interrupted(file: str) -> bool:
    return file.endswith(MODULES)


class Interruption:
    """Raises KeyboardInterrupt before a line, counted from the first line of a run in `MODULES`.

    If ``function`` is given, only its lines count.
    """

    def __init__(self, line: int, function: str) -> None:
        self._left = line
        self._function = function
        self.place = ""

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if not is_interrupted(frame.f_code.co_filename):
            return None
        if event == "line" and not self.place and self._function in ("", frame.f_code.co_name):
            self._left -= 1
            if self._left < 0:
                self.place = f"{frame.f_code.co_filename}:{frame.f_lineno}"
                raise KeyboardInterrupt
        return self


def interrupted(tool: Tool, line: int, function: str, *command: str) -> tuple[str, int, str]:
    """Run a command in a child process, and interrupt it. Return the place, the exit code and standard error."""
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        signal.alarm(int(PATIENCE))  # a lock whose release was interrupted
        interruption = Interruption(line, function)
        sys.settrace(interruption)
        done = tool(*command)
        sys.settrace(None)
        os.write(writing, json.dumps([interruption.place, done.code, done.err]).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        place, code, error = json.loads(pipe.read())
    os.waitpid(pid, 0)
    return place, code, error


@pytest.mark.parametrize(("function", "start", "step"), [("", START, STEP), (COUNTING, 0, 1)], ids=["all", "counting"])
def test_ctrl_c_at_any_line_of_a_send_is_reported_and_stored_as_it_was(
    function: str, start: int, step: int, service: Service, tool: Tool
) -> None:
    service.always(
        respond({"id": "d1", "status": 1, "data": [{"id": "m1", "status": "sent", "phone": "573001234567"}]})
    )
    for line in count(start, step):
        before = len(service.received)
        place, code, error = interrupted(tool, line, function, *SEND, f"key-{line}")
        if not place:
            break
        arrived = len(service.received) - before
        assert code in (0, 130), (place, error)
        if code:
            assert json.loads(error)["nothing_sent"] is (arrived == 0), (place, error)
        again = tool(*SEND, f"key-{line}")
        assert again.code == 0 or (again.code == 5 and arrived), (place, again.err)
        assert len(service.received) - before == 1, place
    assert line > (3 if function else 200)


@pytest.mark.parametrize("is_running", [False, True])
def test_ctrl_c_while_an_earlier_result_is_printed_never_reports_that_nothing_was_sent(
    is_running: bool, service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.always(respond({"id": "d1", "status": 1}))
    assert tool(*SEND, "key").code == 0
    if is_running:  # as if the first run ends while the second one waits for it
        monkeypatch.setattr("msgctl.store.sends.SendRecord.earlier", lambda _: None)
    for line in count(1):
        place, _, error = interrupted(tool, line, "_replayed", *SEND, "key")
        if not place:
            break
        assert json.loads(error)["nothing_sent"] is False, (place, error)
    assert line > 5


def test_ctrl_c_after_a_job_was_created_names_the_job(service: Service, tool: Tool, tmp_path: Path) -> None:
    service.always(respond({"status": 10}))
    (tmp_path / "people.csv").write_text("phone\n573001234567\n", encoding="utf-8")
    command = "sms", "bulk", str(tmp_path / "people.csv"), "-m", "Hola", "--yes", "--json"
    for function in ("get", "_job"):  # read it after the commit
        place, _, error = interrupted(tool, 0, function, *command)
        jobs = tool("job", "list", "--json").document
        job = jobs[-1]["job"]
        assert (json.loads(error)["job"], json.loads(error)["hint"]) == (job, f"See: msgctl job show {job}"), place


class InterruptedBytes(io.BytesIO):
    """Output during which a user presses Ctrl-C."""

    def write(self, _: Any) -> NoReturn:
        raise KeyboardInterrupt


class InterruptedOutput(Stream):
    """Standard output over `InterruptedBytes`."""

    buffer = InterruptedBytes()


@pytest.mark.parametrize("has_job", [True, False], ids=["job", "send"])
def test_ctrl_c_while_a_result_is_printed_is_an_alarm_only_if_it_is_not_stored(
    has_job: bool, service: Service, tmp_path: Path
) -> None:
    service.always(respond({"id": "d1", "status": 1}))
    (tmp_path / "people.csv").write_text("phone\n573001234567\n", encoding="utf-8")
    command: tuple[str, ...] = SEND[:-1]
    if has_job:
        command = "sms", "bulk", str(tmp_path / "people.csv"), "-m", "Hola", "--yes", "--json"
    stderr = Stream()
    assert cli.run(command, Context(stdin=Stream(), stdout=InterruptedOutput(), stderr=stderr)) == 130
    error = json.loads(stderr.bytes().splitlines()[-1])
    assert error["nothing_sent"] is False
    expected = "Interrupted after the request was sent"
    if has_job:
        expected = "Interrupted"
        assert error["hint"].startswith("See: msgctl job show ")
    assert error["message"] == expected
