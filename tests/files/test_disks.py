"""A full disk, a file that may not grow, and a read-only disk."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from files.conftest import NewWorld
from files.holding import assert_goes_on, assert_told, assert_whole
from files.stores import CHANGES, FIRST, Change
from support.disks import FULL, Disk, mounted
from support.tool import Outcome

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


@pytest.mark.parametrize("change", FIRST if FULL else FIRST[1::2], ids=lambda change: change.id)
def test_a_file_that_may_not_grow_is_reported_and_loses_nothing(change: Change, new_world: NewWorld) -> None:
    world = new_world(change)
    done = limited(*change.arguments(world), stdin=change.stdin)
    assert_told(change, world, done)
    assert (done.code == 0) == change.is_notes
    assert_whole(change, world, done)
    assert_goes_on(change, world)


def limited(*arguments: str, stdin: bytes) -> Outcome:
    """Run a process whose files may not grow, as if a quota were used up."""
    wrapped = ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", sys.executable, "-m", "msgctl", *arguments]
    done = subprocess.run(wrapped, input=stdin, capture_output=True, timeout=60, check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)
