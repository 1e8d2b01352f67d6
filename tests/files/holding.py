"""What holds after a command, however it ended: the files are whole and private, and the next one goes on."""

from __future__ import annotations

import re
import stat

from files.stores import Change, World
from support.tool import Outcome

IN_PLACE = re.compile(
    r"config\.toml|\.config\.toml\.lock|(history|sandbox|jobs/[0-9]{8}-[0-9a-f]{6})\.sqlite3"
    r"|jobs/\.[0-9]{8}-[0-9a-f]{6}\.lock"
)
"""What there is when no command is at work."""


def assert_whole(change: Change, world: World, done: Outcome) -> None:
    """The file is as it was, or as it should be, and says of a message no more and no less than what happened."""
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
    """The next command does its work, and leaves nothing behind that is none of the files."""
    change.go_on(world)
    assert strays(world) == []


def assert_private(world: World) -> None:
    """Whatever there is, also what was left behind, is for nobody else."""
    for path in world.home.rglob("*"):
        if "msgctl" in path.parts and not path.is_symlink():
            assert not stat.S_IMODE(path.lstat().st_mode) & 0o077, path


def strays(world: World) -> list[str]:
    """Files that nobody will look at again."""
    roots = [world.home / "config" / "msgctl", world.home / "state" / "msgctl"]
    found = [str(path.relative_to(root)) for root in roots for path in root.rglob("*") if path.is_file()]
    return [each for each in found if not IN_PLACE.fullmatch(each)]


def assert_told(change: Change, world: World, done: Outcome) -> None:
    """A command that could not do its work says so once, names the file, and what to do."""
    assert "Traceback" not in done.err
    assert "mistake of its own" not in done.err
    assert done.code in ((0,) if change.is_notes else (0, 3))
    if done.code or "Warning" in done.err:
        assert change.touches in said(done)
        assert done.err.partition(said(done))[2].count("\n") == 2, "there is a hint"


def said(done: Outcome) -> str:
    """The line of what a command could not do; there must be one."""
    (line,) = [line for line in done.err.splitlines() if line.startswith(("Error:", "Warning:"))]
    return line
