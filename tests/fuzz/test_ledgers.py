"""Whatever became of a ledger: every command on jobs ends well, and sends to nobody what may not be sent."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzz.databases import Change, change, changes, damaged_pages, described
from fuzz.world import World, tries
from msgctl.jobs.schema import SCHEMA
from support.service import answer, drop

FILE = (
    "phone,name\n573001234567,Ana\n573007654321,Ana\n573009999999,Luis\n57300111,Eva\n57300222,Iris\nx,\n57300111,Eva\n"
)
LINES = (
    ("list",),
    ("show", "JOB"),
    ("show", "JOB", "--json"),
    ("report", "JOB"),
    ("report", "JOB", "--json"),
    ("report", "JOB", "-o", "csv", "--only", "unknown"),
    ("resume", "JOB"),
    ("resume", "JOB", "--resend-unknown", "--resend-refused", "--max-credits", "3"),
    ("resume", "JOB", "-n"),
    ("states", "JOB"),
    ("remove", "JOB"),
)


@pytest.fixture
def ledger(world: World) -> Path:
    """A job with a recipient in every state, and the delivery states of what was accepted."""
    world.renew()
    entries = [
        {"id": f"m{phone}", "status": "sent", "credits": 1, "phone": phone}
        for phone in ("573001234567", "573007654321")
    ]
    sent = answer({"id": "d", "status": 1, "data": entries})
    world.service.will(answer({"status": 9}), sent, answer({"error": "e", "msg": "m"}, 520), drop)
    (world.home / "all.csv").write_text(FILE)
    words = [
        "sms",
        "bulk",
        "all.csv",
        "-m",
        "Hola {name}",
        "--skip-invalid",
        "--yes",
        "--concurrency",
        "1",
        "--max-credits",
        "4",
    ]
    assert world.run(words).code == 6
    (path,) = [each for each in (world.home / "state/msgctl/jobs").glob("*.sqlite3") if "3f9a2c" not in each.name]
    assert world.run(["job", "states", path.stem]).code in (0, 6)
    change(path)
    world.keep()
    return path


@tries(180)
@given(wanted=st.lists(changes(described(SCHEMA)), min_size=1, max_size=3), line=st.sampled_from(LINES))
def test_any_rows_of_a_ledger_end_well(wanted: list[Change], line: tuple[str, ...], ledger: Path, world: World) -> None:
    world.renew()
    change(ledger, wanted)
    world.run([ledger.stem if word == "JOB" else word for word in ("job", *line, "--yes")])


@tries(100)
@given(data=st.data(), line=st.sampled_from(LINES))
def test_any_bytes_of_a_ledger_end_well(data: st.DataObject, line: tuple[str, ...], ledger: Path, world: World) -> None:
    world.renew()
    ledger.write_bytes(data.draw(damaged_pages(ledger.read_bytes())))
    world.run([ledger.stem if word == "JOB" else word for word in ("job", *line, "--yes")])
