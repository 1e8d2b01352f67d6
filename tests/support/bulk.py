"""A bulk send by processes that can be killed, and its report compared with what the server received."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from support.counting_server import CountingServer
from support.tool import Outcome, Tool

CONCURRENCY = 8
ENDED = 60
"""Seconds in which every process of a test has ended."""


@dataclass
class Running:
    """A process of msgctl."""

    process: subprocess.Popen[str]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(ENDED)
        for stream in (self.process.stdout, self.process.stderr):
            if stream:
                stream.close()

    def end(self) -> Outcome:
        """Wait for its end, which must be without a traceback."""
        stdout, stderr = self.process.communicate(timeout=ENDED)
        assert "Traceback" not in stderr
        return Outcome(self.process.returncode, stdout.encode(), stderr.encode())


class Bulk:
    """One job to some phones, in the environment of the test, which points to the server."""

    def __init__(self, folder: Path, number: int, *options: str) -> None:
        self.phones = [str(573000000000 + 7919 * each) for each in range(number)]
        self._hooks = folder / "hooks"
        self._options = options
        self._started: list[Running] = []
        self._file = folder / "recipients.csv"
        self._file.write_text("".join(["phone\n", *(f"{phone}\n" for phone in self.phones)]), encoding="utf-8")

    def before_start(self, code: str) -> None:
        """Have Python do something in the next processes before it starts msgctl."""
        self._hooks.mkdir(exist_ok=True)
        (self._hooks / "sitecustomize.py").write_text(code)

    def begin(self) -> Running:
        """Start the job."""
        options = ("--concurrency", str(CONCURRENCY), *self._options)
        return self._start("sms", "bulk", str(self._file), "-m", "Hola", "--yes", *options)

    def resume(self, *options: str) -> Running:
        return self._start("job", "resume", self.id, "--yes", *options)

    def states(self, *options: str) -> Running:
        return self._start("job", "states", self.id, *options)

    def _start(self, *arguments: str) -> Running:
        process = subprocess.Popen(
            [sys.executable, "-m", "msgctl", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(self._hooks), os.environ.get("PYTHONPATH", "")])},
        )
        self._started.append(Running(process))
        return self._started[-1]

    def close(self) -> None:
        """End the processes that a failed test left running."""
        for running in self._started:
            running.kill()

    @property
    def id(self) -> str:
        (job,) = Tool()("job", "list", "--json").document
        return str(job["job"])

    def shown(self) -> dict[str, Any]:
        document: dict[str, Any] = Tool()("job", "show", self.id, "--json").document
        return document

    def rows(self) -> list[dict[str, str]]:
        """The report."""
        done = Tool()("job", "report", self.id, "-o", "csv")
        assert done.code == 0, done.err
        return list(csv.DictReader(done.out.splitlines()))


class NewBulk(Protocol):
    """Creates jobs, and ends their processes after the test."""

    def __call__(self, number: int, *options: str) -> Bulk: ...


def assert_true(bulk: Bulk, server: CountingServer) -> Counter[str]:
    """Check that the report contains every recipient once, with the right outcome. Count the outcomes."""
    rows = bulk.rows()
    assert [row["phone"] for row in rows] == bulk.phones
    got = server.arrived()
    twice = [phone for phone, times in got.items() if times > 1]
    assert not twice, f"got it twice: {twice}"
    for row in rows:
        phone, outcome = row["phone"], row["outcome"]
        if outcome == "accepted":
            assert server.phone_of(row["id"]) == phone, row
        else:
            assert outcome == "unknown" or not got[phone], row
    counted = Counter(row["outcome"] for row in rows)
    shown = bulk.shown()
    assert {name: shown[name] for name in counted} == counted
    return counted
