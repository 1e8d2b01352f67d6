"""The progress of a job on a terminal, drawn by Rich."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TextIO

from rich.console import RenderableType
from rich.padding import Padding
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.text import Text

from msgctl.output.tables import Flow, console, state_text
from msgctl.text import plural

NARROW = 70
"""Minimum columns of a terminal for a job's rate and remaining time."""


class JobProgress(Progress):
    """A bar with the rate and the remaining time, above the counts so far. It draws only when `show` is called."""

    def __init__(self, stream: TextIO, *, color: bool, monotonic: Callable[[], float]) -> None:
        self._counts: Sequence[tuple[str, int]] = ()
        out = console(stream, color=color)
        pace = [_Pace()] if out.width >= NARROW else []
        super().__init__(
            SpinnerColumn(style="busy"),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f}% {task.completed:,} of {task.total:,}"),
            *pace,
            console=out,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            expand=True,
            get_time=monotonic,
        )
        self._task = self.add_task("")

    def show(self, done: int, of: int, counts: Sequence[tuple[str, int]]) -> None:
        """Draw the progress of the job."""
        self._counts = counts
        self.update(self._task, completed=done, total=of)
        self.start()
        self.refresh()

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        counts = [
            Text(plural(number, "credit"), "dim") if name == "credits" else state_text(name, number)
            for name, number in self._counts
        ]
        # Lines are not padded to the edge, because the ^C that a terminal prints would then begin a new line.
        yield Padding(Flow(counts, "   "), (0, 0, 0, 2), expand=False)


class _Pace(ProgressColumn):
    """Recipients per second and the remaining time, once they are known."""

    def render(self, task: Task) -> Text:
        speed, remaining = task.speed or 0, task.time_remaining
        pace = ""
        if speed >= 10:
            pace = f"{speed:,.0f}/s"
        elif speed:
            pace = f"{speed:.1f}/s"
        if remaining is not None:
            minutes, seconds = divmod(round(remaining), 60)
            time = f"{minutes}:{seconds:02}" if minutes < 60 else f"{minutes // 60}:{minutes % 60:02}:{seconds:02}"
            pace += f"  {time} left"
        return Text(pace, "dim")
