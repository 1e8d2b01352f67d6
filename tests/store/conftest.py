"""A store on SQLite and one on PostgreSQL: every test of this directory runs with both."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from msgctl.store.store import Store, open_store
from support import PATIENCE
from support.tool import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def passes(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """A function that lets seconds pass since the machine was booted."""
    now, passed = time.clock_gettime, [0.0]
    monkeypatch.setattr("time.clock_gettime", lambda clock: now(clock) + sum(passed))
    return passed.append


@pytest.fixture(params=["sqlite", "postgresql"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def location(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The path or URL of an empty store, which may exist."""
    if engine == "sqlite":
        return str(tmp_path / "state" / "store.sqlite3")
    cluster = request.getfixturevalue("cluster")
    cluster.clear()
    return str(cluster.url())


@pytest.fixture
def opened(location: str, clock: Clock) -> Iterator[Callable[[], Store]]:
    """Open the store again, as another process does."""
    stores: list[Store] = []

    def open_another() -> Store:
        stores.append(open_store(location, timeout=PATIENCE, clock=clock))
        return stores[-1]

    yield open_another
    for store in stores:
        store.close()


@pytest.fixture
def store(location: str, clock: Clock) -> Iterator[Store]:
    with closing(open_store(location, timeout=PATIENCE, clock=clock)) as store:
        yield store
