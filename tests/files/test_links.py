"""A symbolic link instead of a file, or in the path to it.

The configuration may be a link: people keep it with their other dotfiles. Records of recipients must not end up
elsewhere, so a link instead of the history or a ledger is refused; a link in the path to them is followed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from files.conftest import NewWorld
from files.holding import assert_told, assert_whole, said
from files.stores import BY_ID, CHANGES, Change, World

REFUSED = [BY_ID[each] for each in ("record a send", "resume a job")]
FOLLOWED = [BY_ID[each] for each in ("add a profile", "send in the sandbox")]


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


@pytest.mark.parametrize("change", CHANGES[:1], ids=lambda change: change.id)
def test_a_link_instead_of_the_temporary_file_is_not_followed(change: Change, new_world: NewWorld) -> None:
    world = new_world(change)
    victim = world.home / "victim"
    victim.write_text("mine")
    (change.path(world).parent / ".config.toml.new").symlink_to(victim)
    assert_whole(change, world, world.ok(*change.arguments(world), stdin=change.stdin))
    assert victim.read_text() == "mine"
