"""Read Excel workbooks in a child process with limited memory, because a small file can need hundreds of gigabytes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager, suppress
from importlib.util import find_spec
from itertools import chain, takewhile
from typing import IO, Any, BinaryIO, NamedTuple, cast

from msgctl.errors import install_hint
from msgctl.lists import workbook_process
from msgctl.lists.formats import FileError, RawRow, unreadable
from msgctl.lists.workbook_process import OUT_OF_MEMORY, OUT_OF_TIME, UNREADABLE

MAX_SIZE = 2**26
"""The largest workbook, in bytes."""
_CHUNK = 2**20


class Sheet(NamedTuple):
    """A visible sheet: its name, the numbers of its hidden rows that have content, and all its rows.

    ``formulas`` counts its formulas without a result; ``first_formula`` is the cell of the first one.
    """

    name: str
    hidden: frozenset[int]
    formulas: int
    first_formula: str
    rows: Iterator[RawRow]


@contextmanager
def sheets(source: BinaryIO, name: str) -> Iterator[Iterator[Sheet]]:
    """Start the child process, and yield the visible sheets. Raises UsageError, even while the rows are read.

    Continuing with the next sheet skips the rest of the rows.
    """
    if find_spec("python_calamine") is None:
        raise FileError(
            f"{name} is an Excel workbook, and the package python-calamine, which reads them, is not installed",
            install_hint("python-calamine>=0.8.3"),
        )
    with _reader(name) as reader:
        try:
            _copy(source, cast(IO[bytes], reader.stdin), name)
            with closing(_messages(reader, name)) as messages:
                yield _sheets(messages)
        finally:
            reader.kill()
            reader.wait()


def _messages(reader: subprocess.Popen[bytes], name: str) -> Generator[Any]:
    """Yield the lines of the child process. Raises UsageError if it refuses the workbook or fails."""
    for line in cast(IO[bytes], reader.stdout):
        message = json.loads(line) if line.endswith(b"\n") else {"error": _ended(reader.wait())}
        if isinstance(message, dict) and "error" in message:
            raise _refused(name, message["error"], message.get("hint", ""))
        yield message
    if code := reader.wait():
        raise _refused(name, _ended(code))


def _sheets(messages: Iterator[Any]) -> Iterator[Sheet]:
    for head in messages:
        rows = enumerate(chain.from_iterable(takewhile(lambda message: message is not None, messages)), 1)
        yield Sheet(head["sheet"], frozenset(head["hidden"]), head["formulas"], head["first_formula"], rows)
        deque(rows, maxlen=0)


def _ended(code: int) -> str:
    """Return why the child process failed."""
    if code >= 0:
        return UNREADABLE
    reasons = {-signal.SIGABRT: OUT_OF_MEMORY, -signal.SIGXCPU: OUT_OF_TIME}
    return reasons.get(code, f"cannot be read: signal {-code} ended the process that reads it")


def _refused(name: str, reason: str, hint: str = "") -> FileError:
    if not hint:
        hint = "Copy the recipients to a new workbook."
        if reason == UNREADABLE:
            hint = "Open it in Excel or LibreOffice and save it as .xlsx again."
    return FileError(f"{name} {reason}", hint)


def _reader(name: str) -> subprocess.Popen[bytes]:
    """Start the child process. It finds modules in the same places as this process. Raises UsageError."""
    try:
        return subprocess.Popen(  # noqa: S603 (a module of msgctl)
            [sys.executable, "-P", "-c", f"from {workbook_process.__name__} import main; main()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
    except OSError as error:
        what = f"Cannot read {name}: the process that reads workbooks does not start: {error.strerror}"
        raise FileError(what, "Try again when the machine has more memory and fewer processes.") from None


def _copy(source: BinaryIO, to: IO[bytes], name: str) -> None:
    """Copy a workbook to the child process. Raises UsageError."""
    size = 0
    try:
        while chunk := source.read(_CHUNK):
            size += len(chunk)
            if size > MAX_SIZE:
                raise FileError(
                    f"{name} is larger than the limit of {MAX_SIZE // 2**20} MiB for workbooks",
                    "Copy the recipients to a new workbook.",
                )
            to.write(chunk)
    except BrokenPipeError:
        pass  # it ended early; its exit code shows why
    except OSError as error:
        raise unreadable(name, error) from None
    finally:
        with suppress(BrokenPipeError):
            to.close()
