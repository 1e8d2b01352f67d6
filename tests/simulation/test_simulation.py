"""The simulation itself: a seed always gives the same history, and a broken tool is found out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from msgctl.history.once import Reservation
from msgctl.jobs import resends, states
from msgctl.jobs.rate_limits import Budget
from msgctl.jobs.schedule import Window
from msgctl.jobs.states import Event, State
from simulation.run import simulation, told
from simulation.service import Service

Ready = tuple[Path, Service]


@pytest.fixture(scope="module")
def ready() -> Iterator[Ready]:
    with simulation() as found:
        yield found


@pytest.fixture
def home() -> None:
    """The folder and the environment are those of the simulation."""


def test_nothing_goes_wrong(ready: Ready) -> None:
    assert {wrong for seed in range(20) if (wrong := told(seed, *ready)[1])} == set()


def test_a_seed_always_gives_the_same_history(ready: Ready) -> None:
    assert [told(seed, *ready) for seed in range(4)] == [told(seed, *ready) for seed in range(4)]


def _ignoring_others(store: Any, job: str, *states: Any, **_: Any) -> tuple[set[int], dict[int, str]]:
    return resends._read(store, job, *states)[0], {}


@pytest.mark.parametrize(
    ("owner", "name", "broken", "first"),
    [
        pytest.param(states.TRANSITIONS, (State.SENDING, Event.LOST), State.PENDING, 5, id="it loses intents"),
        pytest.param(states.TRANSITIONS, (State.SENDING, Event.LOST), State.REFUSED, 5, id="it calls unknown refused"),
        pytest.param(Reservation, "take", lambda *_, **__: None, 19, id="it loses keys"),
        pytest.param(Window, "is_open", lambda *_: True, 0, id="it ignores the window"),
        pytest.param(Budget, "allows", lambda _, cost, phones, totals: len(phones), 0, id="it ignores the budget"),
        pytest.param(resends, "_find", _ignoring_others, 3, id="it resends to the same people twice"),
        pytest.param(resends, "hand_over", lambda *_: None, 3, id="it does not record who was resent to"),
        pytest.param(resends, "take_back", lambda *_: None, 3, id="it lets two jobs resend to the same people"),
    ],
)
def test_a_broken_tool_is_found_out(
    ready: Ready, monkeypatch: pytest.MonkeyPatch, owner: Any, name: Any, broken: Any, first: int
) -> None:
    """The search begins at a seed that has found the fault before."""
    if isinstance(owner, dict):
        monkeypatch.setitem(owner, name, broken)
    else:
        monkeypatch.setattr(owner, name, broken)
    wrong = next(wrong for seed in range(first, 200) if (wrong := told(seed, *ready)[1]))
    assert "Traceback" not in wrong
