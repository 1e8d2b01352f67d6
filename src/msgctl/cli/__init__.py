"""The command tree, and one run of it in a process: its result or error is printed in one place, with one exit code.

The standard streams work to the end of a run: a closed pipe or a full disk must not stop it between a request and its
exit code. SIGINT (Ctrl-C), SIGTERM (kill) and SIGHUP (the terminal was closed) ask it to stop.
"""

from __future__ import annotations

import codecs
import io
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import typer

from msgctl.cli.context import Context
from msgctl.cli.errors import report, usage_error
from msgctl.cli.tree import Root, group
from msgctl.errors import ConfigurationError, Interrupted, MsgctlError, OutcomeUnknownError, unexpected
from msgctl.operations import Effect
from msgctl.output.result import Format, OwnResult
from msgctl.values import quote

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

    from _typeshed import ReadableBuffer, WriteableBuffer

NOT_AGAIN = {
    Effect.SENDS: "Do not send again to see the result: that would send a second message. See: msgctl history",
    Effect.CHANGES: "Do not repeat the command to see the result: that would make the request a second time.",
}


def build() -> Any:
    """Return the whole command tree."""
    root = group("SMS, calls, verification codes, short URLs and chat-app messages from the command line.", cls=Root)
    return typer.main.get_command(root)


def run(arguments: Sequence[str], context: Context) -> int:
    """Run one command line and return its exit code. Nothing else turns an error into a message or a code.

    Raises KeyboardInterrupt if even the end of the run is interrupted.
    """
    code = _run(arguments, context)
    try:
        context.stdout.flush()
    except KeyboardInterrupt:
        abandon(context.stdout)
        code = code or Interrupted.exit_code
    fault = fault_of(context.stdout)
    if fault is None or isinstance(fault, BrokenPipeError):  # the reader closed the pipe
        return code
    why = f"could not be written to standard output: {fault.strerror}"
    error: MsgctlError = ConfigurationError(f"The output {why}", "Free some space, or write elsewhere.")
    if context.carried_out:
        error = OutcomeUnknownError(f"The request was carried out, but its result {why}", _not_again(context))
    told = report(error, context)
    return code or told


def _run(arguments: Sequence[str], context: Context) -> int:
    """Run a command, print what it returns and what failed in it, and return the exit code."""
    if abs(time.localtime().tm_gmtoff) >= 86_400:  # datetime would raise ValueError, perhaps only after a send
        zone = ConfigurationError(f"TZ must be less than a day from UTC, not {quote(os.environ.get('TZ', ''))}")
        return report(zone, context, arguments)
    try:
        with context.stack, build().make_context("msgctl", list(arguments), obj=context) as ctx:
            result = ctx.command.invoke(ctx)
            if result is None:
                return 0
            context.printer.print(result)
            is_told = False
            if isinstance(result, OwnResult) and context.options.format is Format.TABLE and context.stdout.isatty():
                is_told = result.view == "doctor"
                if result.empty and not result.documents:
                    context.note(result.empty)
            codes = [failure.exit_code if is_told else report(failure, context) for failure in result.failures]
            return codes[0] if codes else 0
    except typer.Exit as exit_:
        return exit_.exit_code
    except MsgctlError as error:
        return report(error, context, arguments)
    except typer.TyperException as error:
        return report(usage_error(error), context, arguments)
    except (KeyboardInterrupt, typer.Abort, EOFError):
        abandon(context.stdout)
        interrupted = Interrupted("Interrupted")
        if context.carried_out:
            interrupted = Interrupted("Interrupted after the request was carried out", _not_again(context))
        return report(interrupted, context, arguments)
    except Exception as error:  # noqa: BLE001 (a traceback may leak request data)
        return report(unexpected(error), context, arguments)


def _not_again(context: Context) -> str | None:
    """Return the advice after a request whose result was lost; a job has no operation of its own."""
    return NOT_AGAIN.get(context.operation.effect if context.operation else Effect.SENDS)


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
    before = {each: signal.getsignal(each) for each in STOPPING}
    try:
        for each in STOPPING:
            if also_ignored or before[each] is not signal.SIG_IGN:
                signal.signal(each, handler)
        yield
    finally:
        for each in STOPPING:
            signal.signal(each, before[each])


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt in the block at the first stopping signal; a second one ends the process at once.

    The exception has the signal as its argument. After the block the exit code is known, so signals are ignored.
    """
    sys.unraisablehook = _unraisable
    try:
        for each in STOPPING:
            if signal.getsignal(each) is not signal.SIG_IGN:
                signal.signal(each, _interrupt)
        yield
    finally:
        for each in STOPPING:
            signal.signal(each, signal.SIG_IGN)


def _interrupt(number: int, _frame: object) -> NoReturn:
    for each in STOPPING:
        if signal.getsignal(each) is _interrupt:
            signal.signal(each, signal.SIG_DFL)
    raise KeyboardInterrupt(number)


def _unraisable(unraisable: UnraisableHookArgs) -> None:
    """Interrupt again if an interrupt came where Python cannot raise it, and print no traceback.

    Callbacks of the import system are such a place: they would print the interrupt and drop it.
    """
    if not isinstance(unraisable.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, _SOON)


# --- standard streams


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


class InputStream(io.FileIO):
    """A file descriptor to read from that waits for data even if it is non-blocking."""

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        while (count := super().readinto(buffer)) is None:
            select.select([self], [], [])  # another process made the descriptor non-blocking
        return count


def standard_streams() -> tuple[TextIO, TextIO, TextIO]:
    """Return standard input, output and error of this process, and set them in ``sys``.

    A closed one (``>&-``) reads as empty and accepts everything. Its number stays in use, so that no connection or
    file opened later becomes standard output. Characters that an encoding lacks are written as escapes, or in the same
    width on a terminal.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: PTH123, SIM115 (open to the end)
    locale = next(filter(None, map(os.environ.get, ("LC_ALL", "LC_CTYPE", "LANG"))), "")
    for name in ("stdin", "stdout", "stderr"):
        stream: TextIO = getattr(sys, name)
        if stream is not getattr(sys, f"__{name}__"):
            continue  # a caller has replaced it
        if name == "stdin":
            reader = io.BufferedReader(InputStream(stream.fileno(), "rb", closefd=False))
            sys.stdin = io.TextIOWrapper(reader, encoding=stream.encoding, errors=stream.errors)
            continue
        writer = io.BufferedWriter(Sink(stream.fileno(), "wb", closefd=False))
        is_terminal = stream.isatty()
        # Python writes UTF-8 in a C locale, which such a terminal does not show; pipes keep it.
        encoding = "ascii" if is_terminal and locale in ("C", "POSIX") else stream.encoding
        errors = "msgctl" if is_terminal else "backslashreplace"
        setattr(sys, name, io.TextIOWrapper(writer, encoding=encoding, errors=errors, line_buffering=is_terminal))
    return sys.stdin, sys.stdout, sys.stderr


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
    """Return whether a stream may still have a reader; false for a pipe closed at the other end."""
    try:
        descriptor = stream.fileno()
    except (OSError, ValueError):
        return True
    poll = select.poll()
    poll.register(descriptor, 0)
    return not any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))


_ASCII = {
    **dict(zip("✓✗○●–·→…━╸╺─│╭╮╰╯", "+xo*-,>.===-|++++", strict=True)),
    **dict.fromkeys("█▉▊▋▌▍▎▏", "#"),
    **dict.fromkeys("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", "*"),
}
"""One ASCII character for each sign, so that the layout stays the same in a locale without them."""


def _stand_in(error: UnicodeError) -> tuple[str | bytes, int]:
    """Return the ASCII for one of msgctl's signs, and question marks as wide as any other character."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    char = error.object[error.start]
    if char in _ASCII:
        return _ASCII[char], error.start + 1
    from rich.cells import cell_len

    return "?" * cell_len(char), error.start + 1


codecs.register_error("msgctl", _stand_in)
