"""A full disk, a read-only disk, and a file that others can read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from files.conftest import NewWorld
from files.holding import assert_goes_on, assert_told, assert_whole
from files.stores import CHANGES, Change
from support.disks import Disk, mounted

each_change = pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.id)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk of 4 MiB for home folders."""
    with mounted(tmp_path / "disk", "4m") as disk:
        yield disk


@each_change
def test_a_full_disk_is_reported_and_loses_nothing(change: Change, disk: Disk, new_world: NewWorld) -> None:
    world = new_world(change, disk.path)
    disk.fill()
    done = world.tool(*change.arguments(world), stdin=change.stdin)
    assert_told(change, world, done)
    if done.code or "Warning" in done.err:
        assert "space" in done.err
    disk.clear()
    assert_whole(change, world, done)
    assert_goes_on(change, world)


@each_change
def test_a_read_only_disk_is_reported_and_loses_nothing(change: Change, disk: Disk, new_world: NewWorld) -> None:
    world = new_world(change, disk.path)
    with disk.read_only():
        done = world.tool(*change.arguments(world), stdin=change.stdin)
    assert_told(change, world, done)
    assert (done.code == 0) == change.is_notes
    assert_whole(change, world, done)
    assert change.view(world) == change.views[0]
    assert_goes_on(change, world)
