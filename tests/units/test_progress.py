"""The final state of live displays on the screen."""

from __future__ import annotations

import io
import time

import pytest

from msgctl.outcomes.words import NO_WORDS
from msgctl.output.progress import JobProgress, StateProgress


@pytest.mark.parametrize("columns", [40, 60, 100])
def test_the_last_line_is_not_filled_to_the_edge(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal shows ``^C`` at its end; on a new line it would leave a part of the display behind."""
    monkeypatch.setenv("COLUMNS", str(columns))
    job = JobProgress(io.StringIO(), color=False, monotonic=time.monotonic)
    job.show(355, 3000, [("accepted", 355), ("refused", 0), ("unknown", 0), ("credits", 355)])
    states = StateProgress(
        io.StringIO(), color=False, ids=["m1"], max_wait=300, words=NO_WORDS, monotonic=time.monotonic
    )
    for live in (job, states):
        last = live.console.render_lines(live.get_renderable(), pad=False)[-1]
        assert sum(segment.cell_length for segment in last) <= columns - 2
    job.stop()
