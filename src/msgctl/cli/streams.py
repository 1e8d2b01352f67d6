"""Standard input, output and error that work to the end of a run, even if the other side is gone.

A closed pipe or a full disk must not stop a run between a request and its exit code.
"""

from __future__ import annotations

import io
import os
import select
import sys
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer


class Sink(io.FileIO):
    """A file descriptor to write to. An error is stored in ``fault`` instead of raised; later output is dropped."""

    fault: OSError | None = None

    def write(self, data: ReadableBuffer, /) -> int:
        while self.fault is None:
            try:
                written: int | None = super().write(data)
            except OSError as error:
                self.fault = error
            else:
                if written is not None:
                    return written
                select.select([], [self], [])  # another process made the descriptor non-blocking
        return memoryview(data).nbytes


class Source(io.FileIO):
    """A file descriptor to read from that waits for data even if it is non-blocking."""

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        while (count := super().readinto(buffer)) is None:
            select.select([self], [], [])  # another process made the descriptor non-blocking
        return count


def standard() -> tuple[TextIO, TextIO, TextIO]:
    """Return standard input, output and error of this process, and set them in ``sys``.

    A closed one (``>&-``) reads as empty and accepts everything. Its number stays in use, so that no connection or
    file opened later becomes standard output.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 (open to the end)
    sys.stdin = _waiting(sys.stdin)
    sys.stdout = _patient(sys.stdout)
    sys.stderr = _patient(sys.stderr)
    return sys.stdin, sys.stdout, sys.stderr


def _waiting(stream: TextIO) -> TextIO:
    """Return the stream over a `Source`, unless a caller has replaced the process's own."""
    if stream is not sys.__stdin__:
        return stream
    source = Source(stream.fileno(), "rb", closefd=False)
    return io.TextIOWrapper(io.BufferedReader(source), encoding=stream.encoding, errors=stream.errors)


def _patient(stream: TextIO) -> TextIO:
    """Return the stream over a `Sink`, unless a caller has replaced the process's own."""
    if stream not in (sys.__stdout__, sys.__stderr__):
        return stream
    sink = Sink(stream.fileno(), "wb", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(sink), encoding=stream.encoding, errors=stream.errors, line_buffering=stream.isatty()
    )


def fault_of(stream: TextIO) -> OSError | None:
    """Return the error of the first write that failed, if any."""
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    return raw.fault if isinstance(raw, Sink) else None


def abandon(stream: TextIO) -> None:
    """Drop unwritten output when a run is interrupted.

    A reader that does not read must not delay the end, and output in progress would be written twice.
    """
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    if isinstance(raw, Sink) and raw.fault is None:
        raw.fault = BrokenPipeError()


def has_reader(stream: TextIO) -> bool:
    """Tell whether a stream may still have a reader; false for a pipe closed at the other end."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return True
    poll = select.poll()
    poll.register(descriptor, 0)
    return not any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
