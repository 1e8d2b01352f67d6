"""Signals that ask a run to stop: SIGINT (Ctrl-C), SIGTERM (kill), SIGHUP (the terminal was closed)."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_SOON = 0.01
"""Seconds after which an interrupt that Python could not raise is raised again."""


@contextmanager
def handled_by(handler: Callable[[int, Any], object], *, also_ignored: bool = False) -> Iterator[None]:
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
def heeded() -> Iterator[None]:
    """Raise KeyboardInterrupt in the block at the first stopping signal; a second one ends the process at once.

    After the block the exit code is known, so signals are ignored.
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


def _interrupt(_number: int, _frame: object) -> NoReturn:
    for each in STOPPING:
        if signal.getsignal(each) is _interrupt:
            signal.signal(each, signal.SIG_DFL)
    raise KeyboardInterrupt


def _unraisable(unraisable: UnraisableHookArgs) -> None:
    """Interrupt again if an interrupt came where Python cannot raise it, and print no traceback.

    Callbacks of the import system are such a place: they would print the interrupt and drop it.
    """
    if not isinstance(unraisable.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    signal.signal(signal.SIGALRM, _interrupt)
    signal.setitimer(signal.ITIMER_REAL, _SOON)
