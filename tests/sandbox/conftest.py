from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .world import Served, World, serving


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use one calendar, wherever the tests run."""
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """The sandbox in this process."""
    world = World(tmp_path / "sandbox" / "state.db")
    yield world
    world.emulator.close()


@pytest.fixture
def served(world: World) -> Iterator[Served]:
    """The same sandbox behind a server."""
    with serving(world) as served:
        yield served
