"""The terminal: whether there is one, whether it has colour, and how to hide a typed key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TextIO


def is_terminal(stream: TextIO | None) -> bool:
    """Tell whether a stream is a terminal; false for a closed one."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


def has_color(stream: TextIO | None, environ: Mapping[str, str], *, refused: bool) -> bool:
    """Tell whether to colour a stream, by --no-color (``refused``), NO_COLOR, FORCE_COLOR and TERM, in this order."""
    if refused or environ.get("NO_COLOR"):
        return False
    if environ.get("FORCE_COLOR"):
        return True
    return is_terminal(stream) and environ.get("TERM", "") not in ("", "dumb", "unknown")


@contextmanager
def echo_kept_off() -> Iterator[None]:
    """Keep the echo off even after Ctrl-Z and fg: the shell turns it on in between.

    The caller turns the echo off before it reads, and on afterwards.
    """
    import signal  # most commands do not need it
    import threading

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGCONT, lambda *_: _turn_echo_off())
    try:
        yield
    finally:
        signal.signal(signal.SIGCONT, before)


def _turn_echo_off() -> None:
    import os
    import termios

    with suppress(OSError, termios.error):
        descriptor = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            settings = termios.tcgetattr(descriptor)
            settings[3] &= ~termios.ECHO
            termios.tcsetattr(descriptor, termios.TCSANOW, settings)
        finally:
            os.close(descriptor)
