"""The progress of a job on a terminal, drawn by Rich."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TextIO

from rich.console import Console, RenderableType
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

SIGNS = {"accepted": ("✓", "green"), "refused": ("✗", "red"), "unknown": ("!", "yellow"), "failed": ("✗", "red")}


class _Rate(ProgressColumn):
    """Recipients per second."""

    def render(self, task: Task) -> Text:
        speed = task.speed or 0.0
        return Text(f"{speed:,.0f}/s" if speed >= 10 else f"{speed:.1f}/s")


class JobProgress(Progress):
    """A bar with the rate and the time left, above the counts so far. It draws only when `show` is called."""

    def __init__(self, stream: TextIO, *, color: bool, monotonic: Callable[[], float]) -> None:
        self._counts: Sequence[tuple[str, int]] = ()
        console = Console(
            file=stream, force_terminal=True, no_color=not color, markup=False, emoji=False, highlight=False
        )
        super().__init__(
            SpinnerColumn(),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f}% {task.completed:,} of {task.total:,}"),
            _Rate(),
            TimeRemainingColumn(compact=True),
            TextColumn("left"),
            console=console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            expand=True,
            get_time=monotonic,
        )
        self._task = self.add_task("", total=0)

    def show(self, done: int, of: int, counts: Sequence[tuple[str, int]]) -> None:
        """Draw how far the job is."""
        self._counts = counts
        self.update(self._task, completed=done, total=of)
        self.start()
        self.refresh()

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        line = Text("  ", no_wrap=True, overflow="ellipsis")
        for name, number in self._counts:
            sign, style = SIGNS.get(name, ("", ""))
            line.append(f"{sign} {number:,} {name}".strip() + "   ", style)
        yield line
