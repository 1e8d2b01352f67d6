"""A file of another user, a file that others can read, and a folder without write permission."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from files import as_user
from files.conftest import NewWorld
from files.holding import assert_goes_on, assert_told, assert_whole, said
from files.stores import BY_ID, FIRST, STATE, Change
from msgctl.storage import paths
from support.disks import FULL
from support.tool import Outcome

ANA, LUIS = 54321, 54322
"""Two user ids; this machine need not know them."""

CHANGES = [*FIRST[:3], BY_ID["resume a job"]]
"""One change of each file, which exists already."""
IN_PROCESSES = CHANGES if FULL else CHANGES[:2]

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to another user")


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every user can enter, unlike the folders of tests."""
    folder = Path(tempfile.mkdtemp(prefix="msgctl-tests-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def give(folder: Path, user: int) -> None:
    """Give a folder and everything in it to a user; only root can, and needs to."""
    if os.geteuid() != 0:
        return
    for path in (folder, *folder.rglob("*")):
        os.chown(path, user, user, follow_symlinks=False)


def run_as(user: int, *arguments: str, stdin: bytes) -> Outcome:
    """Run a command line in a process of another user."""
    command = [sys.executable, as_user.__file__, str(user), *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, timeout=60, check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)


@needs_root
@pytest.mark.parametrize("change", IN_PROCESSES, ids=lambda change: change.id)
def test_a_file_of_another_user_is_refused(change: Change, public: Path, new_world: NewWorld) -> None:
    world = new_world(change, public)
    give(world.home, ANA)
    file = change.itself(world)
    os.chown(file, LUIS, LUIS)
    done = run_as(ANA, *change.arguments(world), stdin=change.stdin)
    assert_told(change, world, done)
    assert change.file == STATE or "another user" in said(done) or "Permission denied" in said(done)
    assert file.stat().st_uid == LUIS
    assert_whole(change, world, done)


@pytest.mark.parametrize("change", IN_PROCESSES, ids=lambda change: change.id)
def test_a_folder_without_write_permission_is_reported(change: Change, public: Path, new_world: NewWorld) -> None:
    world = new_world(change, public)
    give(world.home, ANA)
    folder = change.itself(world).parent
    folder.chmod(0o500)
    done = run_as(ANA, *change.arguments(world), stdin=change.stdin)
    folder.chmod(0o700)
    assert_told(change, world, done)
    assert (done.code == 0) == change.is_notes
    assert_whole(change, world, done)


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.id)
def test_a_file_that_others_can_read_is_refused(change: Change, new_world: NewWorld) -> None:
    world = new_world(change)
    file = change.itself(world)
    file.chmod(0o640)
    done = world.tool(*change.arguments(world), stdin=change.stdin)
    if change.file == STATE:  # invented data, not private
        assert done.code == 0
        return
    assert_told(change, world, done)
    assert f"chmod 600 {paths.typed(file)}" in done.err
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    file.chmod(0o600)
    assert_whole(change, world, done)
    assert_goes_on(change, world)
