"""Interrupts while a response is read, and while the output cannot be written."""

from __future__ import annotations

import array
import fcntl
import os
import signal
import subprocess
import sys
import termios
import time
from typing import NoReturn

import pytest

from support.service import Service, answer
from support.tool import Tool

SMS = ("sms", "send", "573001234567", "-m", "Hola")
PATIENCE = 30.0


def test_an_interrupt_while_a_response_is_read_says_that_the_request_was_sent(
    tool: Tool, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr("msgctl.http.client.parse", interrupt)
    service.will(answer({"id": "1", "status": 1, "data": []}))
    done = tool(*SMS)
    assert done.code == 130
    assert "may have been carried out" in done.err
    assert "Before sending again" in done.err


def test_one_interrupt_ends_a_run_whose_output_is_not_read(service: Service) -> None:
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
