"""Standard input, output and error that serve to the end of a context, whatever becomes of the other side.

What a request did does not depend on whether its result can be shown: a reader that has gone or a full disk must not
break off a run between a request and its exit code.
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
    """A file descriptor to write to. A fault is kept in ``fault`` instead of raised; what follows it is dropped."""

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
                select.select([], [self], [])  # somebody else has made the descriptor non-blocking
        return memoryview(data).nbytes


class Source(io.FileIO):
    """A file descriptor to read from, that ends where its writer ends and not where nothing is there yet."""

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        while (count := super().readinto(buffer)) is None:
            select.select([self], [], [])  # somebody else has made the descriptor non-blocking
        return count


def standard() -> tuple[TextIO, TextIO, TextIO]:
    """Standard input, output and error of this process; also from now on those of ``sys``.

    One that was closed (``>&-``) reads as empty and takes everything. Its number is taken, too, so that no connection
    or file opened later becomes standard output.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 (open to the end)
    sys.stdin = _waiting(sys.stdin)
    sys.stdout = _patient(sys.stdout)
    sys.stderr = _patient(sys.stderr)
    return sys.stdin, sys.stdout, sys.stderr


def _waiting(stream: TextIO) -> TextIO:
    """The stream over a `Source`, where it is the process's own and has not been replaced."""
    if stream is not sys.__stdin__:
        return stream
    source = Source(stream.fileno(), "rb", closefd=False)
    return io.TextIOWrapper(io.BufferedReader(source), encoding=stream.encoding, errors=stream.errors)


def _patient(stream: TextIO) -> TextIO:
    """The stream over a `Sink`, where it is the process's own and has not been replaced."""
    if stream not in (sys.__stdout__, sys.__stderr__):
        return stream
    sink = Sink(stream.fileno(), "wb", closefd=False)
    return io.TextIOWrapper(
        io.BufferedWriter(sink), encoding=stream.encoding, errors=stream.errors, line_buffering=stream.isatty()
    )


def fault_of(stream: TextIO) -> OSError | None:
    """Why what was written to a stream is not all where it should be, or None where it is."""
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    return raw.fault if isinstance(raw, Sink) else None


def abandon(stream: TextIO) -> None:
    """Drop what is still to be written when a run is interrupted.

    A reader that takes nothing must not hold it up, and what was being written at that moment would come twice.
    """
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    if isinstance(raw, Sink) and raw.fault is None:
        raw.fault = BrokenPipeError()


def has_reader(stream: TextIO) -> bool:
    """Whether anybody may still read what is written to a stream; false for a pipe whose reader has gone."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return True
    poll = select.poll()
    poll.register(descriptor, 0)
    return not any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
