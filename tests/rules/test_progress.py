"""The progress of a job on the screen."""

from __future__ import annotations

import io
import socket
import threading
import time
from pathlib import Path

import pytest

from msgctl.output.progress import NARROW, JobProgress
from support import PATIENCE
from support.commands import PHONE
from support.service import Service, respond
from support.tool import Clock, Tool


@pytest.mark.parametrize("columns", [40, 60, 100])
def test_the_last_line_is_not_filled_to_the_edge(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal shows ``^C`` at its end; on a new line it would leave a part of the display behind."""
    monkeypatch.setenv("COLUMNS", str(columns))
    job = JobProgress(io.StringIO(), color=False, monotonic=time.monotonic)
    job.show(355, 3000, [("accepted", 355), ("refused", 0), ("unknown", 0), ("credits", 355)])
    last = job.console.render_lines(job.get_renderable(), pad=False)[-1]
    assert sum(segment.cell_length for segment in last) <= columns - 2
    job.stop()


@pytest.mark.parametrize(
    ("of", "seconds", "pace"),
    [
        (30_000, 13, "7.7/s  1:03:03 left"),
        (1_000, 5, "20/s  0:05 left"),
        (1_000, 0, "1,000"),
        (36_900, 10, "10/s  1:00:00 left"),
        (36_890, 10, "10/s  59:59 left"),
    ],
)
def test_the_rate_and_the_remaining_time_are_shown(
    of: int, seconds: int, pace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(NARROW))
    now = 0.0
    job = JobProgress(io.StringIO(), color=False, monotonic=lambda: now)
    for done in range(0, 1_000, 100):
        job.show(done, of, [("accepted", done), ("credits", done)])
        now += seconds
    lines = job.console.render_lines(job.get_renderable(), pad=False)
    first, *_, last = ("".join(segment.text for segment in line).strip() for line in lines)
    assert first.endswith(pace)
    assert last.endswith(" 900 accepted   900 credits")
    job.stop()


def test_a_job_without_a_terminal_prints_its_counts_each_minute(service: Service, tool: Tool, home: Path) -> None:
    test, arrival, noted = threading.current_thread(), threading.Event(), threading.Event()

    class Minutes(Clock):
        """After the arrival of the request, it is a minute later each time that the job's progress is checked."""

        def __call__(self) -> float:
            if arrival.is_set() and threading.current_thread() is test:
                self.sleep(61)
                if len(self.slept) == 4:  # twice for each line, and the first time may be before the first line
                    noted.set()
            return self.now

    def respond_later(connection: socket.socket) -> None:
        arrival.set()
        noted.wait(PATIENCE)
        entry = {"id": "m1", "status": "queued", "credits": 1, "phone": PHONE}
        respond({"id": "d1", "status": 1, "data": [entry]})(connection)

    tool.clock = Minutes()
    service.will(respond({"status": 1000}), respond_later)
    (home / "people.csv").write_text(f"phone\n{PHONE}\n")
    done = tool("sms", "bulk", str(home / "people.csv"), "-m", "Hola", "--yes")
    assert done.code == 0, done.err
    assert "0 of 1 sent: " in done.err, done.err
