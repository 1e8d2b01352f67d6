"""Changes of config.toml and of the history: a full disk or another process causes no loss of data."""

from __future__ import annotations

import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.counting_server import CountingServer, counting
from support.disks import Disk, mounted
from support.tool import Outcome, Tool

ANA, LUIS = "573001234567", "573007654321"
ADD = ("profile", "add", "new", "--base-url", "https://service.example/api/v1", "--client", "3", "--key-stdin")
KEY = b"the-key\n"
TESTS = Path(__file__).parents[1]
ENDED = 60
"""Seconds after which every process has ended."""


class World:
    """A home folder with a profile and a sent message, and the server that received it."""

    def __init__(self, home: Path, server: CountingServer, patch: pytest.MonkeyPatch) -> None:
        home.mkdir()
        for variable, value in {"HOME": home, "XDG_CONFIG_HOME": home / "config", "XDG_STATE_HOME": home}.items():
            patch.setenv(variable, str(value))
        self.home, self.server = home, server
        assert self.run("sms", "send", ANA, "-m", "Hola").code == 0
        assert self.run("profile", "add", "main", *ADD[3:]).code == 0
        server.dispatches.clear()

    def run(self, *arguments: str, stdin: bytes = KEY) -> Outcome:
        return Tool()(*arguments, stdin=stdin)

    def profiles(self) -> list[str]:
        found = tomllib.loads((self.home / "config" / "msgctl" / "config.toml").read_text(encoding="utf-8"))
        assert {each["key"] for each in found["profiles"].values()} == {"the-key"}
        return sorted(found["profiles"])

    def history(self) -> list[tuple[str, str]]:
        found: list[dict[str, str]] = self.run("history", "--json").document
        return [(entry["phone"], entry["outcome"]) for entry in found]

    def strays(self) -> list[Path]:
        """Return files that no command will ever use again."""
        kept = {"config.toml", ".config.toml.lock", "store.sqlite3", "store.sqlite3-owners"}
        kept |= {"store.sqlite3-wal", "store.sqlite3-shm"}  # SQLite keeps them if the last checkpoint has no space
        return [path for path in self.home.rglob("*") if path.is_file() and path.name not in kept]


class Change(NamedTuple):
    """A command that changes a file; ``views`` are the only contents that the file may have, from before to after. For
    a message, the middle one is "unknown".
    """

    arguments: tuple[str, ...]
    file: str
    view: Callable[[World], Any]
    views: tuple[Any, ...]

    @property
    def sends(self) -> bool:
        return self.arguments[0] == "sms"


_SENT = (ANA, "accepted")
CHANGES = {
    "add a profile": Change((*ADD, "--force"), "config/msgctl", World.profiles, (["main"], ["main", "new"])),
    "record a send": Change(
        ("sms", "send", LUIS, "-m", "Hola"),
        "store.sqlite3",
        World.history,
        ([_SENT], [_SENT, (LUIS, "unknown")], [_SENT, (LUIS, "accepted")]),
    ),
}
each_change = pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)

NewWorld = Callable[..., World]


@pytest.fixture
def new_world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[NewWorld]:
    made = iter(range(100_000))
    with counting() as server:
        for variable, value in {"BASE_URL": server.base_url, "CLIENT": "12345", "KEY": "the-key"}.items():
            monkeypatch.setenv(f"MSGCTL_{variable}", value)
        yield lambda below=tmp_path: World(below / f"home-{next(made)}", server, monkeypatch)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with mounted(tmp_path / "disk", "4m") as disk:
        yield disk


def assert_whole(change: Change, world: World, done: Outcome) -> None:
    """Check that the file is private, and as before or as it should be; then that the next command works."""
    for path in world.home.rglob("*"):
        if "msgctl" in path.parts:
            assert not stat.S_IMODE(path.lstat().st_mode) & 0o077, path
    allowed = change.views
    if change.sends:
        allowed = change.views[-2:] if world.server.arrived() else change.views[:-1]
    if "The result is not stored" in done.err:
        allowed = change.views[:-1]
    elif done.code == 0:
        allowed = change.views[-1:]
    assert change.view(world) in allowed
    again = world.run(*change.arguments)
    assert (again.code, "Warning" in again.err) == (0, False), again.err
    assert world.strays() == []


def assert_told(change: Change, done: Outcome) -> None:
    """Check that a failed command prints one error, with the file and a hint."""
    assert "Traceback" not in done.err
    assert "because of a bug" not in done.err
    lines = [line for line in done.err.splitlines() if line.startswith(("Error:", "Warning:"))]
    assert done.code == (3 if any(line.startswith("Error:") for line in lines) else 0)
    if lines:
        (line,) = lines
        assert change.file in line
        assert done.err.partition(line)[2].count("\n") == 2, "there is a hint"


@each_change
def test_a_full_disk_is_reported_and_loses_nothing(change: Change, disk: Disk, new_world: NewWorld) -> None:
    world = new_world(disk.path)
    disk.fill()
    done = world.run(*change.arguments)
    assert_told(change, done)
    assert "space" in done.err
    disk.clear()
    assert_whole(change, world, done)


@each_change
def test_a_read_only_disk_is_reported_and_loses_nothing(change: Change, disk: Disk, new_world: NewWorld) -> None:
    world = new_world(disk.path)
    with disk.read_only():
        done = world.run(*change.arguments)
    assert_told(change, done)
    assert done.code == 3
    assert change.view(world) == change.views[0]
    assert_whole(change, world, done)


@pytest.mark.parametrize(
    "arguments", [("-p", "sandbox", "sms", "send", LUIS), ("sms", "bulk", "-", "--yes")], ids=" ".join
)
def test_nothing_is_sent_if_its_record_cannot_be_kept(
    arguments: tuple[str, ...], disk: Disk, new_world: NewWorld
) -> None:
    world = new_world(disk.path)
    with disk.read_only():
        world.run(*arguments, "-m", "Hola", stdin=f"phone\n{LUIS}\n".encode()).refused(3, "nothing was sent")
    disk.fill()
    assert world.run(*arguments, "-m", "Hola", stdin=f"phone\n{LUIS}\n".encode()).code == 3
    assert not world.server.arrived()


# --- several processes


def at_once(lines: Sequence[Sequence[str]], meanwhile: Callable[[], None] = lambda: None) -> None:
    """Run several processes, which must succeed without a warning."""
    with ExitStack() as stack:
        processes = []
        for line in lines:
            command = [sys.executable, "-m", "msgctl", *line]
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            assert process.stdin is not None
            process.stdin.write(KEY)
            processes.append(process)
        meanwhile()
        for process in processes:
            _, printed = process.communicate(timeout=ENDED)
            assert (process.returncode, b"Warning" in printed) == (0, False), printed


THIRTY = """
import os, sys
from support.tool import Tool

Tool()("profile", "list")  # what is loaded now is loaded once
gate, opener = os.pipe()
for number in range(30):
    if not os.fork():
        os.close(opener)
        os.read(gate, 1)  # until the gate opens for all
        os._exit(Tool()("profile", "add", f"new{number}", *sys.argv[1:], stdin=b"the-key").code)
os.close(opener)
sys.exit(any(os.wait()[1] for _ in range(30)))
"""


def test_thirty_profiles_added_at_once_are_all_saved(new_world: NewWorld) -> None:
    world = new_world()
    subprocess.run([sys.executable, "-c", THIRTY, *ADD[3:]], cwd=TESTS, timeout=ENDED, check=True)
    assert world.profiles() == sorted(["main", *(f"new{number}" for number in range(30))])
    assert world.strays() == []


def test_simultaneous_sends_are_all_recorded(new_world: NewWorld) -> None:
    world = new_world()
    phones = [f"57300111110{number}" for number in range(3)]

    def respond() -> None:
        world.server.wait_for(len(phones))
        world.server.release()

    world.server.hold()
    at_once([["sms", "send", phone, "-m", "Hola"] for phone in phones], respond)
    assert sorted(world.history()) == sorted([_SENT, *((phone, "accepted") for phone in phones)])
    assert world.strays() == []  # if two close it at once, the next one deletes the log
