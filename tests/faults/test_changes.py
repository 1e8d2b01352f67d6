"""A full disk, a read-only disk or simultaneous processes lose no profile and no record of a send."""

from __future__ import annotations

import contextlib
import stat
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support import PATIENCE
from support.disks import Disk, mounted
from support.forks import Process
from support.server import Server
from support.tool import Tool

ANA, LUIS = "573001234567", "573007654321"
ACCOUNT = ("--base-url", "https://service.example/api/v1", "--client", "3", "--key-stdin")
ADD = ("profile", "add", "new", *ACCOUNT)
SEND = ("sms", "send", LUIS, "-m", "Hola")
TESTS = Path(__file__).parents[1]
Fault = Callable[[Disk], contextlib.AbstractContextManager[None]]


@pytest.fixture
def counter(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server, and the environment that points to it."""
    with Server() as server:
        for name, value in {"BASE_URL": server.base_url, "CLIENT": "12345", "KEY": "the-key"}.items():
            monkeypatch.setenv(f"MSGCTL_{name}", value)
        yield server


@pytest.fixture
def disk(home: Path, counter: Server, tool: Tool, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """A small disk with a configuration file with one profile, and a store with one sent message."""
    with mounted(home / "disk", "4m") as disk:
        monkeypatch.setenv("XDG_CONFIG_HOME", str(disk.path))
        monkeypatch.setenv("XDG_STATE_HOME", str(disk.path))
        assert tool("sms", "send", ANA, "-m", "Hola").code == 0
        assert tool("profile", "add", "main", *ACCOUNT, stdin=b"the-key").code == 0
        counter.received.clear()
        yield disk


def contents(directory: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the stored profiles and the history. Check that all files are private, and that no other file remains."""
    names = {"config.toml", ".config.toml.lock", "store.sqlite3", "store.sqlite3-owners"}
    names |= {"store.sqlite3-wal", "store.sqlite3-shm"}  # SQLite keeps them if the last checkpoint has no space
    for path in (directory / "msgctl").rglob("*"):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path
        assert path.is_dir() or path.name in names
    profiles = tomllib.loads((directory / "msgctl" / "config.toml").read_text(encoding="utf-8"))["profiles"]
    assert {profile["key"] for profile in profiles.values()} == {"the-key"}
    history = [(entry["phone"], entry["outcome"]) for entry in Tool()("history", "--json").document]
    return sorted(profiles), sorted(history)


@contextlib.contextmanager
def full(disk: Disk) -> Iterator[None]:
    disk.fill()
    yield
    disk.clear()


@pytest.mark.parametrize("fault", [full, Disk.read_only])
@pytest.mark.parametrize("command", [ADD, SEND], ids=["add a profile", "send"])
def test_a_disk_that_cannot_be_written_is_reported_and_loses_nothing(
    command: tuple[str, ...], fault: Fault, disk: Disk, counter: Server, tool: Tool
) -> None:
    with fault(disk):
        done = tool(*command, stdin=b"the-key")
    done.refused(3, "config" if command == ADD else "store.sqlite3", "space" if fault is full else "read-only")
    assert counter.requests(None) == []
    assert contents(disk.path) == (["main"], [(ANA, "accepted")])
    again = tool(*command, stdin=b"the-key")
    assert (again.code, "Warning" in again.err) == (0, False), again.err
    profiles, history = contents(disk.path)
    assert profiles == (["main", "new"] if command == ADD else ["main"])
    assert history == [(ANA, "accepted"), *([(LUIS, "accepted")] if command == SEND else [])]


@pytest.mark.parametrize(
    "arguments", [("-p", "sandbox", *SEND), ("sms", "bulk", "-", "--yes", "-m", "Hola")], ids=["sandbox", "job"]
)
@pytest.mark.parametrize("fault", [full, Disk.read_only])
def test_nothing_is_sent_if_its_record_cannot_be_kept(
    arguments: tuple[str, ...], fault: Fault, disk: Disk, counter: Server, tool: Tool
) -> None:
    with fault(disk):
        error = tool(*arguments, "--json", stdin=f"phone\n{LUIS}\n").error
    assert (error["exit_code"], error["nothing_sent"]) == (3, True)
    assert counter.requests(None) == []


# --- several processes

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


def test_thirty_profiles_added_at_once_are_all_saved(disk: Disk) -> None:
    subprocess.run([sys.executable, "-c", THIRTY, *ACCOUNT], cwd=TESTS, timeout=PATIENCE, check=True)
    assert contents(disk.path)[0] == sorted(["main", *(f"new{number}" for number in range(30))])


def test_simultaneous_sends_are_all_recorded(disk: Disk, counter: Server) -> None:
    phones = [f"57300111110{number}" for number in range(3)]
    counter.script("waits", 200, "", "to everything", "")
    processes = [Process(("sms", "send", phone, "-m", "Hola")) for phone in phones]
    arrived = counter.wait_for(len(phones), "/send-sms", PATIENCE)
    counter.released.set()
    for code, _, printed in [process.end() for process in processes]:
        assert (code, "Warning" in printed) == (0, False), printed
    assert arrived
    assert contents(disk.path)[1] == sorted((phone, "accepted") for phone in (ANA, *phones))
