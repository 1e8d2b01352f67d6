"""Mistakes that were once made, each with what a user would have lost by it."""

from __future__ import annotations

import array
import fcntl
import os
import signal
import sqlite3
import subprocess
import sys
import termios
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

import pytest

from msgctl.errors import ConfigurationError
from msgctl.http import response
from msgctl.sandbox import state
from support.service import Service, answer
from support.tool import Tool

SMS = ("sms", "send", "573001234567", "-m", "Hola")
PATIENCE = 30.0


@pytest.mark.parametrize(
    ("command", "record", "code"),
    [
        (("url", "shorten", "https://example.com", "--name", "n"), {"error": "x", "msg": "not allowed"}, 1),
        (("url", "shorten", "https://example.com", "--name", "n"), {"msg": "not allowed"}, 5),
        (SMS, {"id": None, "status": None, "data": None}, 5),
        (("2fa", "verify", "573001234567", "--app-name", "Shop", "--code", "1"), {"status": None}, 1),
    ],
)
def test_an_answer_that_says_nothing_is_no_success(
    command: tuple[str, ...], record: dict[str, Any], code: int, tool: Tool, service: Service
) -> None:
    service.will(answer(record))
    assert tool(*command).code == code


def test_an_interrupt_while_an_answer_is_read_does_not_hide_that_it_was_sent(
    tool: Tool, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(response, "read", interrupt)
    service.will(answer({"id": "1", "status": 1, "data": []}))
    done = tool(*SMS)
    assert done.code == 130
    assert "may have been carried out" in done.err
    assert "Before sending again" in done.err


@pytest.mark.parametrize("status", [302, 303])
def test_a_redirect_after_a_send_does_not_say_that_nothing_was_sent(status: int, tool: Tool, service: Service) -> None:
    service.will(answer(b"", status, {"Location": "/done"}))
    done = tool(*SMS)
    assert done.code == 5
    assert "nothing was sent" not in done.err
    assert "may have been carried out" in done.err


@pytest.mark.parametrize("options", [["--fields", "nope"], ["--json", "--fields", "status"]])
def test_a_mistake_in_fields_is_found_before_the_sandbox_is_changed(options: list[str], tool: Tool) -> None:
    assert tool("-p", "sandbox", "url", "shorten", "https://example.com", "--name", "n").code == 0
    assert tool("sandbox", "credit", "10").code == 0
    assert tool("sandbox", "credit", "+50", *options).code == 2
    assert tool("sandbox", "click", "n", *options).code == 2
    assert tool("-p", "sandbox", "balance", "--json").document == {"status": 10}
    assert tool("-p", "sandbox", "url", "stats", "n", "--since", "2d", "--json").document["clicksNumber"] == 0


def test_a_read_whose_result_cannot_be_written_is_not_called_a_send(tool: Tool, service: Service) -> None:
    service.will(answer({"status": 1}))
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "msgctl", "balance"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, timeout=PATIENCE, check=False)
    assert done.returncode == 3
    assert b"second message" not in done.stderr


def test_one_interrupt_ends_a_run_whose_output_nobody_reads(service: Service) -> None:
    service.will(answer({"status": 1, "more": "x" * 300_000}))
    command = [sys.executable, "-m", "msgctl", "balance", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        wait_until_full(process.stdout.fileno())
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
        assert b"Traceback" not in process.stderr.read()


def wait_until_full(pipe: int) -> None:
    """Wait until the writer of a pipe cannot write any more."""
    capacity = fcntl.fcntl(pipe, fcntl.F_GETPIPE_SZ)
    held = array.array("i", [0])
    until = time.monotonic() + PATIENCE
    while held[0] < capacity:
        assert time.monotonic() < until, "the pipe was never full"
        fcntl.ioctl(pipe, termios.FIONREAD, held)
        os.sched_yield()


def test_a_reset_leaves_a_state_alone_that_is_in_use(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home / "state.sqlite3"
    state.SandboxState(path).close()
    monkeypatch.setattr(state, "STATE", replace(state.STATE, most_wait=0.05))
    other = sqlite3.connect(path, isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(ConfigurationError, match="locked"):
            state.reset(path)
        assert path.exists()
    finally:
        other.close()


def test_a_base_url_that_holds_the_key_is_not_listed(tool: Tool, home: Path) -> None:
    file = home / "config" / "msgctl" / "config.toml"
    file.parent.mkdir(parents=True)
    file.write_text(
        '[profiles.a]\nbase_url = "https://u:planted@h.example/v1?key=planted"\nclient = 1\nkey = "planted"\n'
    )
    file.chmod(0o600)
    for command in (("profile", "list"), ("profile", "show", "a"), ("profile", "list", "--json")):
        done = tool(*command)
        assert done.code == 0
        assert "planted" not in done.out + done.err
