"""The state file: its permissions, damaged files, and that no credit is lost."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from msgctl.errors import ConfigurationError
from msgctl.sandbox.emulator import Emulator, reset
from msgctl.sandbox.protocol import SandboxRequest
from msgctl.sandbox.service import respond

from .clocked_emulator import FORM, PHONE, World, encoded

SMS = SandboxRequest(
    "POST", "/api/v1/send-sms", "", FORM, encoded({"phone": f"{PHONE},573009876543", "sms": "Hola"}).encode()
)


def write_text(path: Path) -> None:
    path.write_text("this is not a database, and it is long enough to be looked at as one: " + "x" * 200)
    path.chmod(0o600)


def break_tables(path: Path) -> None:
    Emulator(path).close()
    assert path.stat().st_mode & 0o077 == 0
    with closing(sqlite3.connect(path)) as db:
        db.execute("DROP TABLE account")


@pytest.mark.parametrize("break_it", [write_text, break_tables])
def test_a_broken_file_is_explained_and_fixed_by_a_reset(tmp_path: Path, break_it: Callable[[Path], None]) -> None:
    path = tmp_path / "state.db"
    break_it(path)

    with pytest.raises(ConfigurationError, match=r"state\.db") as caught, closing(Emulator(path)) as emulator:
        respond(emulator, SMS)
    reset(path)

    assert "msgctl sandbox reset" in str(caught.value.hint)
    world = World(path)
    assert world.credits == 1000
    world.emulator.close()


def test_a_reset_leaves_the_database_of_another_program_alone(tmp_path: Path) -> None:
    with closing(sqlite3.connect(path := tmp_path / "photos.db")) as db:
        db.execute("CREATE TABLE photos (name TEXT)")
    path.chmod(0o600)
    before = path.read_bytes()

    with pytest.raises(ConfigurationError, match="not the sandbox's state"):
        reset(path)
    assert path.read_bytes() == before


def test_a_full_disk_is_a_configuration_error_and_takes_no_credit(world: World) -> None:
    with world.emulator.reading() as db:
        (pages,) = db.execute("PRAGMA page_count").fetchone()
        db.execute(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(ConfigurationError, match="full") as caught:
        respond(
            world.emulator,
            SandboxRequest(
                "POST", "/api/v1/send-sms", "", FORM, encoded({"phone": PHONE, "sms": "a" * 50_000}).encode()
            ),
        )

    assert "space" in str(caught.value.hint)
    assert world.credits == 1000


def test_threads_on_several_states_never_overspend_and_lose_nothing(world: World) -> None:
    world.admin.credit(101)
    others = [World(world.path, seed=seed) for seed in range(3)]
    emulators = [world.emulator, *(other.emulator for other in others)] * 4

    with ThreadPoolExecutor(16) as pool:
        statuses = [
            status
            for batch in pool.map(lambda emulator: [respond(emulator, SMS).status for _ in range(5)], emulators)
            for status in batch
        ]
    for other in others:
        other.emulator.close()

    assert (statuses.count(200), statuses.count(520)) == (50, 30)
    assert world.credits == 1
    assert len(world.admin.inbox()) == 100
