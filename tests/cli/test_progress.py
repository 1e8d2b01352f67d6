"""How far a job is: a line on a terminal that fits it, a line a minute elsewhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from msgctl.cli.progress import Progress, Standing
from support.jobs import numbers, of_phones
from support.terminal import Terminal, in_a_terminal

COUNTS = [("accepted", 4900), ("refused", 90), ("unknown", 10), ("credits", 9800)]


def line(width: int | None, *looks: tuple[float, int], of: int = 20_000) -> str | None:
    """The line after looks at a job that began at 0: (seconds, done)."""
    progress = Progress(0.0)
    shown = None
    for now, done in looks:
        shown = progress.line(Standing(done, of, COUNTS), now, width)
    return shown


@pytest.mark.parametrize(
    ("width", "shown"),
    [
        (120, "5,000 of 20,000  500/s  30 s left  accepted 4,900  refused 90  unknown 10  credits 9,800"),
        (80, "5,000 of 20,000  500/s  30 s left  accepted 4,900  refused 90  unknown 10"),
        (40, "5,000 of 20,000  500/s  30 s left"),
        (20, "5,000 of 20,000"),
        (1, "5,000 of 20,000"),
    ],
)
def test_what_matters_most_comes_first(width: int, shown: str) -> None:
    assert line(width, (0, 0), (10, 5000)) == shown


@given(
    width=st.integers(18, 200),
    of=st.integers(1, 99_999),
    share=st.floats(0, 1),
    seconds=st.floats(0, 1e6),
)
def test_a_line_never_fills_the_last_column(width: int, of: int, share: float, seconds: float) -> None:
    shown = line(width, (0, 0), (seconds, int(of * share)), of=of)
    assert shown is not None
    assert len(shown) < width


def test_there_is_no_rate_before_there_is_something_to_go_by() -> None:
    assert line(60, (0, 0)) == "0 of 20,000  accepted 4,900  refused 90  unknown 10"
    assert line(60, (0, 0), (5, 0)) == "0 of 20,000  accepted 4,900  refused 90  unknown 10"


def test_the_rate_is_that_of_the_last_seconds() -> None:
    slow_then_fast = [(float(second), second) for second in range(60)]
    slow_then_fast += [(60.0 + second, 59 + 100 * second) for second in range(1, 31)]
    assert line(40, *slow_then_fast) == "3,059 of 20,000  100/s  2:49 min left"


@pytest.mark.parametrize(
    ("left", "shown"),
    [
        (0, "0 s left"),
        (99, "99 s left"),
        (100, "1:40 min left"),
        (3661, "61:01 min left"),
        (7200, "2:00 h left"),
        (360_000, "100:00 h left"),
    ],
)
def test_the_time_left_in_the_words_of_people(left: int, shown: str) -> None:
    assert shown in str(line(200, (0, 0), (10, 10), of=10 + left))


def test_a_slow_rate_has_a_fraction() -> None:
    assert "  0.5/s  " in str(line(200, (0, 0), (10, 5)))


def test_elsewhere_there_is_a_line_a_minute() -> None:
    progress = Progress(1000.0)
    times = [1000.0 + second / 5 for second in range(5 * 185)]
    shown = [now - 1000 for now in times if progress.line(Standing(int(now - 1000), 20_000, COUNTS), now, None)]
    assert shown == [60.0, 120.0, 180.0]


def test_it_says_all_without_a_terminal() -> None:
    assert line(None, (0, 0), (60, 6000)) == (
        "6,000 of 20,000  100/s  2:20 min left  accepted 4,900  refused 90  unknown 10  credits 9,800"
    )


@in_a_terminal
def test_the_line_is_drawn_over_and_taken_away(home: Path) -> None:
    command = ("sms", "bulk", of_phones(home, numbers(12)), "-m", "Hello", "--rate", "10", "--batch-size", "1")
    terminal = Terminal("-p", "sandbox", "--no-color", *command, "--concurrency", "1")
    terminal.answer("Send 12 messages? [y/N] ", b"y\r")
    assert terminal.end() == 0
    *drawn, after = terminal.shown.decode().split("\r\x1b[K")
    drawing = "".join(drawn)
    assert drawing.count("\x1b[K") >= 2
    lines = [part.removesuffix("\x1b[K") for part in drawing.split("\r") if " of 12" in part]
    assert len(lines) >= 2
    assert all("\n" not in line and len(line) < 80 for line in lines)
    assert " of 12" not in after
    assert "accepted    12" in after
