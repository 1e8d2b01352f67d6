"""Run the tool under strace, which counts its system calls, kills it before one, or lets one fail."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.programs import REQUIRED, program
from support.tool import Outcome

TRACED = (
    "openat,open,creat,write,pwrite64,writev,pwritev,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,"
    "ftruncate,fallocate,link,linkat,symlink,mkdir,mkdirat,chmod,fchmod,fchown,flock,fcntl"
)
"""The system calls by which a file is opened, locked, and changed in any way."""

ENDED = 60
"""Seconds in which a traced command has ended."""


@dataclass(frozen=True)
class Call:
    """One system call of the first thread, and its place (from 1) among the calls of its name."""

    name: str
    number: int
    text: str


class Tracer:
    """Runs command lines under strace. Only the named call is affected."""

    def __init__(self, folder: Path) -> None:
        self._strace = program("strace")
        self._log = folder / "calls"

    def calls(self, arguments: Sequence[str], stdin: bytes, *, touching: str) -> list[Call]:
        """Run a command unharmed; its system calls that have to do with a file, by a part of its path."""
        done = self._run(arguments, stdin)
        if b"ptrace" in done.stderr and not REQUIRED:
            pytest.skip("this user, or this container, may not trace")
        assert done.code == 0, done.err
        lines = [line.split(maxsplit=1) for line in self._log.read_text(errors="replace").splitlines()]
        return [call for call in _counted(text for pid, text in lines if pid == lines[0][0]) if touching in call.text]

    def killed(self, arguments: Sequence[str], stdin: bytes, call: Call) -> Outcome:
        """Run a command that is killed when it is about to make a call."""
        return self._run(arguments, stdin, f"{call.name}:signal=KILL:when={call.number}")

    def failing(self, arguments: Sequence[str], stdin: bytes, call: Call, error: str) -> Outcome:
        """Run a command of which one call fails with an error such as ``ENOSPC``."""
        return self._run(arguments, stdin, f"{call.name}:error={error}:when={call.number}")

    def _run(self, arguments: Sequence[str], stdin: bytes, injected: str = "") -> Outcome:
        what = ("-e", f"inject={injected}") if injected else ()
        done = subprocess.run(
            [
                *(self._strace, "-f", "-y", "-o", str(self._log), "-e", f"trace={TRACED}", *what),
                *(sys.executable, "-m", "msgctl", *arguments),
            ],
            input=stdin,
            capture_output=True,
            timeout=ENDED,
            check=False,
            # Compiled files that are written, or not, would be system calls more or less.
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"},
        )
        return Outcome(done.returncode, done.stdout, done.stderr)


def _counted(lines: Iterable[str]) -> Iterator[Call]:
    """The calls in the lines of a log; a line that begins otherwise is about a signal, or the end of a call."""
    numbers: Counter[str] = Counter()
    for line in lines:
        name = line.partition("(")[0]
        if name.isidentifier():
            numbers[name] += 1
            yield Call(name, numbers[name], line)
