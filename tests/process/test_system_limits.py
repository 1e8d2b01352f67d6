"""Limits of the system: threads, memory and open files."""

from __future__ import annotations

import csv
import errno
import socket
import threading
from pathlib import Path
from typing import NoReturn

import pytest

from support.jobs import accepting, numbers, of_phones, sends, sent, shown
from support.service import Service
from support.tool import Tool

SEND = ("sms", "send", "573001234567", "-m", "hi")


def allow_threads(monkeypatch: pytest.MonkeyPatch, most: int, *names: str) -> None:
    """Let only this many threads with some names start."""
    begun: list[str] = []
    begin = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        if thread.name.startswith(names):
            if len(begun) >= most:
                raise RuntimeError("can't start new thread")
            begun.append(thread.name)
        begin(thread)

    monkeypatch.setattr(threading.Thread, "start", start)


@pytest.mark.parametrize("most", [0, 1])
def test_a_job_without_threads_sends_nothing_and_can_be_resumed(
    most: int, tool: Tool, service: Service, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.always(accepting(service))
    with monkeypatch.context() as patched:
        allow_threads(patched, most, "store", "sender")
        job = sent(tool, of_phones(home, numbers(3)), code=3)
        assert "ran out of threads" in tool("job", "resume", job, "--yes").err
    assert sends(service) == []
    assert shown(tool, job)["pending"] == 3
    assert tool("job", "resume", job, "--yes").code == 0
    assert shown(tool, job)["accepted"] == 3


def test_a_job_with_fewer_threads_than_it_may_have_sends_to_all(
    tool: Tool, service: Service, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.always(accepting(service))
    allow_threads(monkeypatch, 2, "store", "sender")
    job = sent(tool, of_phones(home, numbers(3)), "--batch-size", "1", "--concurrency", "3")
    assert shown(tool, job)["accepted"] == 3


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (OSError(errno.ENETUNREACH, "Network is unreachable"), 4, "Network is unreachable"),
        (OSError(errno.EMFILE, "Too many open files"), 3, "ran out of open files"),
        (OSError(errno.ENFILE, "Too many open files in system"), 3, "ran out of open files"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), 3, "ran out of open files or memory"),
        (MemoryError(), 3, "ran out of memory"),
        (RuntimeError("can't start new thread"), 3, "or threads"),
    ],
    ids=["network", "open files", "open files of all", "memory of the system", "memory", "threads"],
)
def test_a_send_that_the_system_prevents_reports_that_nothing_was_sent(
    error: Exception, code: int, reason: str, tool: Tool, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise error

    monkeypatch.setattr(socket.socket, "connect", refuse)
    done = tool(*SEND, "--json")
    assert (done.code, done.error["nothing_sent"], service.received) == (code, True, [])
    assert reason in done.err


def test_without_memory_for_its_result_a_send_reports_that_it_may_have_been_sent(
    tool: Tool, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise MemoryError

    service.always(accepting(service))
    monkeypatch.setattr(csv, "writer", refuse)
    done = tool(*SEND, "-o", "csv")
    assert (done.code, "ran out of memory" in done.err, "it may have been sent" in done.err) == (5, True, True)
