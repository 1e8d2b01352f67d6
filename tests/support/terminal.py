"""The tool in a terminal of its own."""

from __future__ import annotations

import sys

import pexpect  # type: ignore[import-untyped]
import pytest

# Python 3.12 warns of a fork in a process with threads; those of a test's server do not matter here.
in_a_terminal = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


class Terminal:
    """A command line in a terminal of its own, and everything that the terminal showed."""

    def __init__(self, *arguments: str) -> None:
        self._child = pexpect.spawn(sys.executable, ["-m", "msgctl", *arguments], timeout=30)
        self.shown = b""

    @property
    def pid(self) -> int:
        pid: int = self._child.pid
        return pid

    def answer(self, prompt: str, line: bytes) -> None:
        self._child.expect_exact(prompt)
        self.shown += self._child.before + self._child.after
        self._child.send(line)

    def end(self) -> int | None:
        self._child.expect(pexpect.EOF)
        self.shown += self._child.before
        self._child.close()
        status: int | None = self._child.exitstatus
        return status
