from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from msgctl.sandbox.service import Service

from .served import serving
from .world import World


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The calendar of the tests, wherever they run."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture(params=["in this process", "served"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """One suite for both: what the emulator answers, it answers over HTTP too."""
    world = World(tmp_path / "sandbox" / "state.db")
    with ExitStack() as stack:
        stack.callback(world.emulator.close)
        if request.param == "served":
            world.reach(stack.enter_context(serving(Service(world.emulator))).answer)
        yield world
