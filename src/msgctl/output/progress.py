"""Live displays on a terminal, drawn by Rich: the progress of a job, and the delivery states of messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TextIO

from rich.console import Group, RenderableType
from rich.live import Live
from rich.padding import Padding
from rich.progress import BarColumn, Progress, ProgressColumn, SpinnerColumn, Task, TextColumn
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from msgctl.outcomes.words import AddedWords
from msgctl.output.tables import Flow, console, delivery, state
from msgctl.text import clean, plural

NARROW = 70
"""Minimum columns of a terminal for a job's rate and remaining time."""


class JobProgress(Progress):
    """A bar with the rate and the remaining time, above the counts so far. It draws only when `show` is called."""

    def __init__(self, stream: TextIO, *, color: bool, monotonic: Callable[[], float]) -> None:
        self._counts: Sequence[tuple[str, int]] = ()
        out = console(stream, color=color)
        super().__init__(
            SpinnerColumn(style="busy"),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f}% {task.completed:,} of {task.total:,}"),
            *([_Pace()] if out.width >= NARROW else []),
            console=out,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            expand=True,
            get_time=monotonic,
        )
        self._task = self.add_task("", total=0)

    def show(self, done: int, of: int, counts: Sequence[tuple[str, int]]) -> None:
        """Draw the progress of the job."""
        self._counts = counts
        self.update(self._task, completed=done, total=of)
        self.start()
        self.refresh()

    def get_renderables(self) -> Iterable[RenderableType]:
        yield self.make_tasks_table(self.tasks)
        counts = [
            Text(plural(number, "credit"), "dim") if name == "credits" else state(name, number)
            for name, number in self._counts
        ]
        # Lines are not padded to the edge, because the ^C that a terminal prints would then begin a new line.
        yield Padding(Flow(counts, "   "), (0, 0, 0, 2), expand=False)


class _Pace(ProgressColumn):
    """Recipients per second and the remaining time, once they are known."""

    def render(self, task: Task) -> Text:
        speed, left = task.speed or 0, task.time_remaining
        pace = ""
        if speed >= 10:
            pace = f"{speed:,.0f}/s"
        elif speed:
            pace = f"{speed:.1f}/s"
        if left is not None:
            pace += f"  {_minutes(left)} left"
        return Text(pace, "dim")


class StateProgress(Live):
    """A live list of messages with their states, until the wait is over."""

    def __init__(
        self,
        stream: TextIO,
        *,
        color: bool,
        ids: Sequence[str],
        max_wait: float,
        words: AddedWords,
        monotonic: Callable[[], float],
    ) -> None:
        self._states: dict[str, str] = dict.fromkeys(ids, "")
        self._since = dict.fromkeys(ids, monotonic())
        self._waiting = len(ids)
        self._words = words
        self._began = monotonic()
        self._max_wait = max_wait
        self._monotonic = monotonic
        self._spinner = Spinner("dots", style="busy")
        super().__init__(
            console=console(stream, color=color),
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            get_renderable=self._drawn,
        )

    def show(self, states: Mapping[str, str], waiting: int) -> None:
        """Draw the current states; ``waiting`` is the number of messages in progress."""
        for message, word in states.items():
            if self._states[message] != word:
                self._states[message], self._since[message] = word, self._monotonic()
        self._waiting = waiting
        self.refresh()

    def say(self, text: str) -> None:
        """Print a line above the states."""
        self.console.print(Text(clean(text), "dim"))

    def _drawn(self) -> RenderableType:
        now = self._monotonic()
        time = f"  {_minutes(now - self._began)} of {_minutes(self._max_wait)}"
        self._spinner.text = Text.assemble(f"Waiting for {self._waiting:,} of {len(self._states):,}", (time, "dim"))
        grid = Table.grid(padding=(0, 2, 0, 0))
        for message, word in list(self._states.items())[: max(self.console.height - 3, 1)]:
            elapsed = f"for {_minutes(now - self._since[message])}" if word else ""
            grid.add_row(Text(clean(message), "dim"), delivery(word, self._words), Text(elapsed, "dim"))
        return Group(self._spinner, Padding(grid, (0, 0, 0, 2), expand=False))


def _minutes(seconds: float) -> str:
    """Return a time as ``0:14`` or ``1:02:03``."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"
