from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .world import World


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
    world = World(tmp_path / "sandbox" / "state.db")
    yield world
    world.emulator.close()
