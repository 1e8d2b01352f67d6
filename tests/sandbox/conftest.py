from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .world import Served, World, serving


@pytest.fixture(autouse=True)
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use one time zone, so that dates do not depend on the machine."""
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
    """An HTTP server for the same sandbox."""
    with serving(world) as served:
        yield served
