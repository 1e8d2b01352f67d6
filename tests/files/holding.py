"""Checks after every command, however it ended: its files are whole and private, and the next one works."""

from __future__ import annotations

import re
import stat

from files.stores import Change, World
from support.tool import Outcome

IN_PLACE = re.compile(
    r"config\.toml|\.config\.toml\.lock|(history|sandbox|jobs/[0-9]{8}-[0-9a-f]{6})\.sqlite3"
    r"|jobs/\.[0-9]{8}-[0-9a-f]{6}\.lock"
)
"""The files that exist while no command runs."""


def assert_whole(change: Change, world: World, done: Outcome) -> None:
    """Check that the file is as before or as it should be, and records exactly what happened to a message."""
    assert_private(world)
    allowed = change.views
    if change.sends:
        allowed = change.views[-2:] if world.server.arrived() else change.views[:-1]
    if "Not recorded in the history" in done.err:
        allowed = change.views[:-1]
    elif done.code == 0:
        allowed = change.views[-1:]
    assert change.view(world) in allowed


def assert_goes_on(change: Change, world: World) -> None:
    """Check that the next command works and leaves no stray files."""
    change.go_on(world)
    assert strays(world) == []


def assert_private(world: World) -> None:
    """Check that other users cannot read anything, leftovers included."""
    for path in world.home.rglob("*"):
        if "msgctl" in path.parts and not path.is_symlink():
            assert not stat.S_IMODE(path.lstat().st_mode) & 0o077, path


def strays(world: World) -> list[str]:
    """Return files that no command will ever use again."""
    roots = [world.home / "config" / "msgctl", world.home / "state" / "msgctl"]
    found = [str(path.relative_to(root)) for root in roots for path in root.rglob("*") if path.is_file()]
    return [each for each in found if not IN_PLACE.fullmatch(each)]


def assert_told(change: Change, world: World, done: Outcome) -> None:
    """Check that a command that failed says so once, with the file and a hint."""
    assert "Traceback" not in done.err
    assert "because of a bug" not in done.err
    assert done.code in ((0,) if change.is_notes else (0, 3))
    if done.code or "Warning" in done.err:
        assert change.touches in said(done)
        assert done.err.partition(said(done))[2].count("\n") == 2, "there is a hint"


def said(done: Outcome) -> str:
    """Return the error or warning of a command; there must be exactly one."""
    (line,) = [line for line in done.err.splitlines() if line.startswith(("Error:", "Warning:"))]
    return line
