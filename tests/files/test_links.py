"""A symbolic link instead of a file, or in the path to it.

The configuration may be a link: people keep it with their other dotfiles. Records of recipients must not end up
elsewhere, so a link instead of the history or a ledger is refused; a link in the path to them is followed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from files.conftest import NewWorld
from files.holding import assert_goes_on, assert_told, assert_whole, said
from files.stores import BY_ID, CHANGES, CONFIG, FIRST, Change, World
from msgctl.errors import ConfigurationError
from msgctl.storage import files as private

REFUSED = [BY_ID[each] for each in ("record a send", "clear the history", "resume a job")]
FOLLOWED = [BY_ID[each] for each in ("add a profile", "use a profile", "send in the sandbox", "reset the sandbox")]


def moved(path: Path, world: World) -> Path:
    """Move a file or folder, leave a link to it, and return its new path."""
    elsewhere = world.home / "elsewhere"
    elsewhere.mkdir(mode=0o700)
    target = path.rename(elsewhere / path.name)
    path.symlink_to(target)
    return target


@pytest.mark.parametrize("change", FOLLOWED, ids=lambda change: change.id)
def test_a_link_to_configuration_or_sandbox_is_followed_and_kept(change: Change, new_world: NewWorld) -> None:
    world = new_world(change)
    path = change.itself(world)
    target = moved(path, world)
    assert_whole(change, world, world.ok(*change.arguments(world), stdin=change.stdin))
    assert path.readlink() == target
    assert not target.is_symlink()


@pytest.mark.parametrize("change", REFUSED, ids=lambda change: change.id)
def test_a_link_to_records_of_recipients_is_refused_and_its_target_unchanged(
    change: Change, new_world: NewWorld
) -> None:
    world = new_world(change)
    path = change.itself(world)
    target = moved(path, world)
    before = target.read_bytes()
    done = world.tool(*change.arguments(world), stdin=change.stdin)
    assert_told(change, world, done)
    assert "symbolic link" in said(done)
    assert target.read_bytes() == before
    assert [each.name for each in target.parent.iterdir()] == [target.name]
    target.replace(path)
    assert_whole(change, world, done)


@pytest.mark.parametrize("change", REFUSED[:1], ids=lambda change: change.id)
def test_a_dangling_link_to_the_history_is_refused(change: Change, new_world: NewWorld) -> None:
    world = new_world(change)
    path = change.itself(world)
    path.unlink()
    path.symlink_to(world.home / "nowhere")
    done = world.tool(*change.arguments(world), stdin=change.stdin)
    assert_told(change, world, done)
    assert "symbolic link" in said(done)
    assert not (world.home / "nowhere").exists()


@pytest.mark.parametrize("change", FOLLOWED[::2], ids=lambda change: change.id)
def test_a_link_into_a_missing_folder_is_refused_and_named(change: Change, new_world: NewWorld) -> None:
    world = new_world(change)
    path = change.itself(world)
    path.unlink()
    path.symlink_to(world.home / "nowhere" / "file")
    done = world.tool(*change.arguments(world), stdin=change.stdin)
    assert done.code == 3
    assert "No such file or directory" in said(done)
    assert not (world.home / "nowhere").exists()
    assert path.is_symlink()


@pytest.mark.parametrize("change", FIRST, ids=lambda change: change.id)
@pytest.mark.parametrize("depth", [0, 1], ids=["its folder", "the folder above"])
def test_a_link_in_the_path_to_a_file_is_followed(depth: int, change: Change, new_world: NewWorld) -> None:
    world = new_world(change)
    way = world.home / [*Path(change.file).parents][depth]
    way.mkdir(mode=0o700, parents=True, exist_ok=True)
    moved(way, world)
    assert_whole(change, world, world.ok(*change.arguments(world), stdin=change.stdin))
    assert_goes_on(change, world)
    assert way.is_symlink()


def test_writers_through_a_link_and_without_it_share_a_lock(
    new_world: NewWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = new_world(FIRST[0])
    target = moved(world.home / CONFIG, world)
    monkeypatch.setattr(private, "MOST_WAIT", 0)
    for one, other in ((target, world.home / CONFIG), (world.home / CONFIG, target)):
        with private.locked(one), pytest.raises(ConfigurationError, match="Another program"), private.locked(other):
            pytest.fail("both have it")


def test_a_link_instead_of_the_lock_is_refused(new_world: NewWorld) -> None:
    change = BY_ID["use a profile"]
    world = new_world(change)
    lock = (world.home / CONFIG).with_name(".config.toml.lock")
    lock.rename(world.home / "another")
    lock.symlink_to(world.home / "another")
    done = world.tool(*change.arguments(world))
    assert done.code == 3
    assert_told(change, world, done)
    assert change.view(world) == change.views[0]


@pytest.mark.parametrize("change", CHANGES[:1], ids=lambda change: change.id)
def test_a_link_instead_of_the_temporary_file_is_not_followed(change: Change, new_world: NewWorld) -> None:
    world = new_world(change)
    victim = world.home / "victim"
    victim.write_text("mine")
    (change.path(world).parent / ".config.toml.new").symlink_to(victim)
    assert_whole(change, world, world.ok(*change.arguments(world), stdin=change.stdin))
    assert victim.read_text() == "mine"
