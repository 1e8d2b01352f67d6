"""The final state of the progress of a job on the screen."""

from __future__ import annotations

import io
import time

import pytest

from msgctl.output.progress import JobProgress


@pytest.mark.parametrize("columns", [40, 60, 100])
def test_the_last_line_is_not_filled_to_the_edge(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal shows ``^C`` at its end; on a new line it would leave a part of the display behind."""
    monkeypatch.setenv("COLUMNS", str(columns))
    job = JobProgress(io.StringIO(), color=False, monotonic=time.monotonic)
    job.show(355, 3000, [("accepted", 355), ("refused", 0), ("unknown", 0), ("credits", 355)])
    last = job.console.render_lines(job.get_renderable(), pad=False)[-1]
    assert sum(segment.cell_length for segment in last) <= columns - 2
    job.stop()
