"""Processes that are killed at a line of the source."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Collection
from pathlib import Path
from types import FrameType
from typing import Any


def in_a_process(work: Callable[[], None], traced: Collection[str] = (), kill_at: int = 0, report: str = "") -> int:
    """Run ``work`` in a child process; return its wait status.

    The child is killed at this many different lines of the traced files, if ``kill_at`` is not 0. If it survives, it
    writes the number of its lines to the file ``report``.
    """
    if child := os.fork():
        return os.waitpid(child, 0)[1]
    lines = set[tuple[str, int]]()

    def count(frame: FrameType, event: str, _: object) -> Any:
        if Path(frame.f_code.co_filename).name not in traced:
            return None
        if event == "line":
            lines.add((frame.f_code.co_filename, frame.f_lineno))
        if len(lines) >= kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        return count

    try:
        if kill_at:
            threading.settrace(count)
            sys.settrace(count)
        work()
        sys.settrace(None)
        if report:
            Path(report).write_text(f"{len(lines)}")
    except BaseException:  # noqa: BLE001 (the process must not return to the loop of its parent)
        traceback.print_exc()
        os._exit(1)
    os._exit(0)
