"""The process of a run: its signals and standard streams.

A closed pipe or a full disk must not stop a run between a request and its exit code, so the standard streams work to
the end. SIGINT (Ctrl-C), SIGTERM (kill) and SIGHUP (the terminal was closed) ask it to stop.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

    from _typeshed import ReadableBuffer

# --- signals

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SOON = 0.01
"""Seconds after which an interrupt that Python could not raise is raised again."""


@contextmanager
def signals_handled_by(handler: Callable[[int, Any], object], *, also_ignored: bool = False) -> Iterator[None]:
    """Handle the stopping signals with ``handler`` in the block.

    A signal that was ignored before (by nohup, or by a shell for a background command) stays ignored, unless
    ``also_ignored``. Outside the main thread, where Python cannot set handlers, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in STOPPING}
    try:
        for number in STOPPING:
            if also_ignored or before[number] is not signal.SIG_IGN:
                signal.signal(number, handler)
        yield
    finally:
        for number in STOPPING:
            signal.signal(number, before[number])


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt in the block at the first stopping signal; a second one ends the process at once.

    The exception has the signal as its argument. After the block the exit code is known, so signals are ignored.
    """
    sys.unraisablehook = _unraisable
    try:
        for number in STOPPING:
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _interrupt)
        yield
    finally:
        for number in STOPPING:
            signal.signal(number, signal.SIG_IGN)


def _interrupt(number: int, _frame: object) -> NoReturn:
    for stopping in STOPPING:
        if signal.getsignal(stopping) is _interrupt:
            signal.signal(stopping, signal.SIG_DFL)
    raise KeyboardInterrupt(number)


def _unraisable(unraisable: UnraisableHookArgs) -> None:
    """Repeat an interrupt that Python could not raise, without a traceback.

    Callbacks of the import system, for example, print the interrupt and drop it.
    """
    if not isinstance(unraisable.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, _SOON)


# --- standard streams


class Sink(io.FileIO):
    """A file descriptor to write to. An error is stored in ``error`` instead of raised; later output is dropped."""

    error: OSError | None = None

    def write(self, data: ReadableBuffer, /) -> int:
        if self.error is None:
            try:
                return super().write(data) or 0
            except OSError as error:
                self.error = error
        return memoryview(data).nbytes


def standard_streams() -> tuple[TextIO, TextIO, TextIO]:
    """Return standard input, output and error of this process, and set them in ``sys``.

    A closed stream (``>&-``) becomes empty input, or output that is discarded. Its descriptor stays in use, so that no
    connection or file opened later becomes standard output. Characters that an encoding lacks are written as escapes,
    or on a terminal, where a table must fit, as question marks.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream: TextIO | None = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 (open to the end)
            continue
        os.set_blocking(stream.fileno(), True)  # otherwise, a slow pipe would end a message early
        if name != "stdin":
            writer = io.BufferedWriter(Sink(stream.fileno(), "wb", closefd=False))
            encoding, is_terminal = stream.encoding, stream.isatty()
            errors = "replace" if is_terminal else "backslashreplace"
            text = io.TextIOWrapper(writer, encoding, errors=errors, line_buffering=is_terminal)
            setattr(sys, name, text)
    return sys.stdin, sys.stdout, sys.stderr


def write_error_of(stream: TextIO) -> OSError | None:
    """Return the error of the first write that failed, if any."""
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    return raw.error if isinstance(raw, Sink) else None


def abandon(stream: TextIO) -> None:
    """Drop unwritten output when a run is interrupted.

    A blocked reader must not delay the end, and output in progress would be written twice.
    """
    raw = getattr(getattr(stream, "buffer", None), "raw", None)
    if isinstance(raw, Sink) and raw.error is None:
        raw.error = BrokenPipeError()
