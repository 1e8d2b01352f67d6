"""Run msgctl in this process or as a separate process."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from msgctl.cli.shell import main as cli
from msgctl.cli.shell.context import Context
from support import PATIENCE


def parsed(text: str, err: str) -> Any:
    """Return the JSON of an output. A failure shows standard error, which explains it."""
    try:
        return json.loads(text)
    except ValueError:
        raise AssertionError(f"this is not JSON: {text!r}\n{err}") from None


def error_of(err: str) -> Any:
    """Return the error of --json."""
    return parsed("".join(err.splitlines()[-1:]), err)


@dataclass(frozen=True)
class Outcome:
    """The result of a run: the exit code, both outputs, and, in this process, the unread part of standard input."""

    code: int
    stdout: bytes
    stderr: bytes
    unread: bytes = b""

    @property
    def out(self) -> str:
        return self.stdout.decode()

    @property
    def err(self) -> str:
        return self.stderr.decode()

    @property
    def document(self) -> Any:
        return parsed(self.out, self.err)

    @property
    def error(self) -> Any:
        return error_of(self.err)

    def refused(self, code: int, *parts: str) -> None:
        """Expect no result, and one error (for people or as JSON) with this exit code and these parts."""
        assert (self.code, self.out) == (code, ""), self.err
        assert self.err.count("Error: ") + self.err.count('"exit_code"') == 1, self.err
        assert "Traceback" not in self.err
        assert [part for part in parts if part not in self.err] == [], self.err


class Stream(io.TextIOWrapper):
    """A text stream over bytes in memory that can pass for a terminal."""

    def __init__(self, content: bytes = b"", *, terminal: bool = False, encoding: str = "utf-8") -> None:
        self._content = io.BytesIO(content)
        self._terminal = terminal
        buffer = io.BufferedRandom(self._content)  # type: ignore[arg-type]
        errors = "replace" if terminal else "backslashreplace"
        super().__init__(buffer, encoding=encoding, errors=errors, write_through=True)

    def isatty(self) -> bool:
        return self._terminal

    def bytes(self) -> bytes:
        self.flush()
        return self._content.getvalue()


class Clock:
    """A clock that moves only when a test sets it or code sleeps on it."""

    def __init__(self, now: float = 1_790_000_000.0) -> None:
        self.now = now
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def interrupt(_: float) -> None:
    """Press Ctrl-C while msgctl sleeps."""
    raise KeyboardInterrupt


class Tool:
    """Runs command lines in this process. They get the environment of the test."""

    def __init__(self) -> None:
        self.clock = Clock()

    def __call__(
        self,
        *arguments: str,
        stdin: bytes | str | None = None,
        terminal: bool = False,
        screen: bool = False,
        sleep: Callable[[float], None] | None = None,
    ) -> Outcome:
        """Run a command line. ``stdin`` left out is an empty pipe.

        ``terminal`` makes all three streams terminals, ``screen`` the two outputs.
        """
        content = stdin.encode() if isinstance(stdin, str) else stdin or b""
        source = Stream(content, terminal=terminal)
        out, err = Stream(terminal=terminal or screen), Stream(terminal=terminal or screen)
        app = Context(
            stdin=source,
            stdout=out,
            stderr=err,
            clock=self.clock,
            monotonic=lambda: self.clock() + time.monotonic(),  # jobs wait for real
            sleep=sleep or self.clock.sleep,
        )
        code = cli.run(arguments, app)
        return Outcome(code, out.bytes(), err.bytes(), bytes(source.buffer.read()))


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[Any]]:
    """Start a process, and wait for its end after the block. If the block fails, kill it: it may wait for the test."""
    with subprocess.Popen(command, **options) as child:
        try:
            yield child
        except BaseException:
            child.kill()
            raise


def process(*arguments: str, stdin: bytes | None = None, env: dict[str, str] | None = None) -> Outcome:
    done = subprocess.run(
        [sys.executable, "-m", "msgctl", *arguments],
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
        env={**os.environ, **(env or {})},
    )
    return Outcome(done.returncode, done.stdout, done.stderr)
