"""No credit is lost by a full disk, a failure or threads, and the files of other programs are left alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from msgctl.errors import ConfigurationError
from msgctl.sandbox import state
from msgctl.sandbox.emulator import Emulator, reset
from msgctl.sandbox.protocol import BASE_PATH, SandboxRequest
from msgctl.sandbox.routing import respond
from support.sandbox import Sandbox
from support.tool import Tool

from .world import PHONE, World


def write_text(path: Path) -> None:
    path.write_text("this is not a database, and it is long enough to be looked at as one: " + "x" * 200)


def break_tables(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE account")


def break_pages(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for start in range(4096, len(content), 4096):
        content[start : start + 100] = b"\xff" * 100
    path.write_bytes(content)


def make_older(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version = 1")


@pytest.mark.parametrize("break_it", [write_text, break_tables, break_pages, make_older])
def test_a_damaged_or_older_state_file_is_an_error_and_a_reset_replaces_it(
    world: World, break_it: Callable[[Path], None]
) -> None:
    world.emulator.close()
    assert world.path.stat().st_mode & 0o077 == 0
    break_it(world.path)
    with pytest.raises(ConfigurationError, match=r"state\.db") as caught, closing(Emulator(world.path)) as emulator:
        respond(emulator, SandboxRequest("GET", BASE_PATH + "/balance"))
    assert "msgctl sandbox reset" in str(caught.value.hint)
    reset(world.path)
    fixed = World(world.path)
    assert fixed.credits == 1000
    fixed.emulator.close()


@pytest.mark.parametrize(
    ("change", "why"),
    [("PRAGMA application_id = 7", "but not the sandbox's state"), ("PRAGMA user_version = 99", "a newer msgctl")],
)
def test_the_database_of_another_program_or_a_newer_msgctl_is_left_alone(world: World, change: str, why: str) -> None:
    world.emulator.close()
    with closing(sqlite3.connect(world.path)) as db:
        db.execute(change)
    before = world.path.read_bytes()
    with pytest.raises(ConfigurationError, match=why):
        reset(world.path)
    assert world.path.read_bytes() == before


def test_a_state_that_is_not_a_regular_file_is_an_error_that_says_so(tool: Tool, tmp_path: Path) -> None:
    result = tool("sandbox", "exec", "--state", str(tmp_path), "--", "true")
    result.refused(3, "is not a regular file\nChoose another file.\n")


def test_a_full_disk_is_a_configuration_error_and_takes_no_credit(world: World) -> None:
    with world.emulator.reading() as db:
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(ConfigurationError, match="full"):
        world.sms(text="a" * 50_000)
    assert world.credits == 1000


def test_a_change_that_fails_changes_nothing(world: World) -> None:
    with pytest.raises(ConfigurationError, match="CHECK"), world.emulator.writing() as db:
        db.executemany("UPDATE account SET credits = ?", [(5,), (-5,)])
    assert world.credits == 1000


def test_a_file_in_use_is_reported_after_the_wait(world: World) -> None:
    with (
        closing(sqlite3.connect(world.path, timeout=0.01)) as db,
        world.emulator.writing(),
        pytest.raises(ConfigurationError, match="locked") as caught,
        state.explained(world.path),
    ):
        db.execute("BEGIN IMMEDIATE")
    assert "when it is done" in str(caught.value.hint)


def test_threads_on_several_states_never_overspend_and_lose_nothing(world: World) -> None:
    world.credit(101)
    others = [World(world.path, seed=seed) for seed in range(3)]

    def send(each: World) -> list[int]:
        return [each.post("/send-sms", phone=f"{PHONE},573009876543", sms="Hola").status for _ in range(5)]

    with ThreadPoolExecutor(16) as pool:
        statuses = sum(pool.map(send, [world, *others] * 4), list[int]())
    for other in others:
        other.emulator.close()
    assert (statuses.count(200), statuses.count(520), world.credits) == (50, 30, 1)
    assert len(world.inbox()) == 100


def test_the_sandbox_needs_no_profile_creates_no_configuration_and_leaves_no_file_open(
    home: Path, sandbox: Sandbox
) -> None:
    sandbox.done("sms", "send", PHONE, "-m", "Hello")
    sandbox.done("profile", "list")
    assert not (home / "config").exists()
    # SQLite removes its log with the last connection.
    kept = {path.name for path in (home / "state" / "msgctl").iterdir()}
    assert kept == {"sandbox-store.sqlite3", "sandbox-store.sqlite3-owners", "sandbox.sqlite3"}
