"""Run a command in a separate terminal, which it must leave unchanged."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from functools import partial
from typing import Self

import pytest

from support import PATIENCE

RUN = (sys.executable, "-m", "msgctl")

# Python 3.12 warns of a fork in a process with threads; those of a test's server do not matter here.
in_a_terminal = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


class Terminal:
    """A command in a separate terminal; ``shown`` is everything it printed. It is killed if a test fails."""

    def __init__(self, *arguments: str, columns: int = 80, stderr: int | None = None) -> None:
        self._outer, self._inner = pty.openpty()
        os.set_blocking(self._outer, False)
        fcntl.ioctl(self._inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self._settings = termios.tcgetattr(self._inner)
        self.process = subprocess.Popen(
            [*RUN, *arguments],
            stdin=self._inner,
            stdout=self._inner,
            stderr=self._inner if stderr is None else stderr,
            start_new_session=True,
            preexec_fn=partial(fcntl.ioctl, self._inner, termios.TIOCSCTTY, 0),  # noqa: PLW1509 (it takes no lock)
        )
        self._end = os.pidfd_open(self.process.pid)
        self._is_open = True
        self.shown = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        if self._is_open:
            self.hang_up()

    def read_until(self, pattern: bytes) -> bool:
        """Read until something is shown. Return whether it was, before the command ended."""
        while not re.search(pattern, self.shown):
            ready, _, _ = select.select([self._outer, self._end], [], [], PATIENCE)
            assert ready, self.shown
            with suppress(BlockingIOError):
                # A read also gets output that the system has not reported yet when the command ends.
                while output := os.read(self._outer, 65536):
                    self.shown += output
            if self._outer not in ready:
                return re.search(pattern, self.shown) is not None
        return True

    def write(self, typed: bytes) -> None:
        os.write(self._outer, typed)

    def answer(self, prompt: str, line: bytes) -> None:
        assert self.read_until(re.escape(prompt.encode())), self.shown
        self.write(line)

    def end(self) -> int:
        """Wait until the command has ended, and return its exit code; it must leave the terminal unchanged."""
        self.read_until(rb"(?!)")
        left = termios.tcgetattr(self._inner)
        self.hang_up()
        assert left == self._settings
        return self.process.wait(PATIENCE)

    def hang_up(self) -> None:
        """Close the terminal, as a window is closed."""
        self._is_open = False
        for descriptor in (self._inner, self._outer, self._end):
            os.close(descriptor)
