from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from msgctl.commands.serve import redacting
from msgctl.sandbox.emulator import Emulator

from .clocked_emulator import NOON, World
from .served import Served, serving


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
def emulator(tmp_path: Path) -> Iterator[Emulator]:
    emulator = Emulator(tmp_path / "state.db", clock=lambda: NOON, seed=3, redact=redacting("the-key"))
    yield emulator
    emulator.close()


@pytest.fixture
def served(emulator: Emulator) -> Iterator[Served]:
    with serving(emulator) as served:
        yield served
