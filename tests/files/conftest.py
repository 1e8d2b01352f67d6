"""Home folders with one of the files in them, and a server that receives messages."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

import pytest

from files.stores import Change, World
from support.counting import counting
from support.tool import Tool
from support.tracing import Tracer


class NewWorld(Protocol):
    """Makes home folders that contain only the file of a change, each as new as the first."""

    def __call__(self, change: Change, below: Path | None = None) -> World: ...


@pytest.fixture
def new_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NewWorld]:
    laid: dict[str, Path] = {}
    made = iter(range(100_000))

    def enter(home: Path) -> World:
        server.dispatches.clear()
        monkeypatch.setenv("HOME", str(home))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "config"))
        monkeypatch.setenv("XDG_STATE_HOME", str(home / "state"))
        return World(home, server, Tool())

    def new(change: Change, below: Path | None = None) -> World:
        home = (below or tmp_path) / f"home-{next(made):05}"
        if change.id not in laid:
            home.mkdir()
            world = enter(home)
            change.lay(world)
            laid[change.id] = tmp_path / f"laid-{len(laid)}"
            shutil.copytree(home, laid[change.id])
        else:
            shutil.copytree(laid[change.id], home)
            world = enter(home)
        server.dispatches.clear()
        return world

    with counting() as server:
        monkeypatch.setenv("MSGCTL_BASE_URL", server.base_url)
        monkeypatch.setenv("MSGCTL_CLIENT", "12345")
        monkeypatch.setenv("MSGCTL_KEY", "key")
        yield new


@pytest.fixture
def tracer(tmp_path: Path) -> Tracer:
    return Tracer(tmp_path)
