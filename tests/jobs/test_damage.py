"""Ledgers that are damaged or incomplete: exit code 3 with the ledger's name, before anything is sent."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.bulk import Bulk, NewBulk
from jobs.ledgers import SPEC, opened, phone, rows, write
from msgctl.jobs.model import RequestResult
from msgctl.jobs.schema import writing
from msgctl.outcomes.judge import RecipientOutcome
from support.counting_server import CountingServer
from support.tool import Tool

NUMBER, BATCH = 300, 10
JOB = "20261121-3f9a2c"


@pytest.fixture
def killed(counter: CountingServer, new_bulk: NewBulk) -> Bulk:
    """A job whose process was killed while it was sending."""
    bulk = new_bulk(NUMBER, "--batch-size", str(BATCH))
    running = bulk.begin()
    counter.wait_for(10)
    running.kill()
    return bulk


def ledger_of(job: str) -> Path:
    return Path(os.environ["XDG_STATE_HOME"]) / "msgctl" / "jobs" / f"{job}.sqlite3"


def log_of(ledger: Path) -> Path:
    return ledger.with_name(f"{ledger.name}-wal")


def delete_log(ledger: Path) -> None:
    log_of(ledger).unlink()


def empty_log(ledger: Path) -> None:
    log_of(ledger).write_bytes(b"")


def overwrite_log(ledger: Path) -> None:
    log_of(ledger).write_bytes(b"\xff" * log_of(ledger).stat().st_size)


def cut_log(ledger: Path) -> None:
    os.truncate(log_of(ledger), log_of(ledger).stat().st_size // 2)


def flip_in_log(ledger: Path) -> None:
    content = bytearray(log_of(ledger).read_bytes())
    content[len(content) // 2] ^= 1
    log_of(ledger).write_bytes(content)


def copy_without_log(ledger: Path) -> None:
    copy = ledger.with_name("copy")
    shutil.copyfile(ledger, copy)
    for each in ledger.parent.glob(f"*{ledger.stem}*"):
        each.unlink()
    copy.chmod(0o600)
    copy.rename(ledger)


HARMS = (delete_log, empty_log, overwrite_log, cut_log, flip_in_log, copy_without_log)


def test_a_ledger_without_its_last_changes_is_refused(killed: Bulk, counter: CountingServer, tool: Tool) -> None:
    job = killed.id
    ledger, sent = ledger_of(job), len(counter.dispatches)
    files = {each: each.read_bytes() for each in ledger.parent.iterdir() if each.suffix != ".sqlite3-shm"}
    for harm in HARMS:
        for each in ledger.parent.iterdir():
            each.unlink()
        for path, content in files.items():
            path.write_bytes(content)
            path.chmod(0o600)
        harm(ledger)
        before = ledger.read_bytes()
        for line in (
            ("job", "resume", job, "--yes"),
            ("job", "resume", job, "--yes", "--resend-unknown", "--resend-refused"),
            ("job", "resend", job, "--yes"),
            ("job", "resend", job, "--only", "refused", "--yes"),
            ("job", "states", job),
            ("job", "show", job),
            ("job", "report", job),
            killed.line,
        ):
            tool(*line).refused(3, ledger.name)
        assert len(counter.dispatches) == sent, harm
        assert ledger.read_bytes() == before, harm
        assert "lacks its" in tool("history").err, harm


def test_a_due_job_without_its_log_is_refused(counter: CountingServer, new_bulk: NewBulk, tool: Tool) -> None:
    bulk = new_bulk(NUMBER, "--batch-size", str(BATCH), "--at", "2099-01-01 09:00")
    assert bulk.begin().end().code == 0
    running = bulk.resume()
    counter.wait_for(10)
    running.kill()
    sent, ledger = len(counter.dispatches), ledger_of(bulk.id)
    delete_log(ledger)
    tool.clock.now = 4_100_000_000.0
    tool("job", "run-due").refused(3, ledger.name)
    assert len(counter.dispatches) == sent


def test_a_ledger_is_complete_without_its_log_after_a_clean_end(counter: CountingServer, new_bulk: NewBulk) -> None:
    bulk = new_bulk(NUMBER, "--batch-size", str(BATCH), "--canary", "100")
    assert bulk.begin().end().code == 0
    copy_without_log(ledger_of(bulk.id))
    assert bulk.resume().end().code == 0
    assert bulk.outcomes() == {"accepted": NUMBER}


# --- damage anywhere


Files = Mapping[str, bytes]
"""The content of files, by name."""


class Damaged:
    """A job of 60 recipients, of which 30 got their message or may have got it; its files can be changed."""

    def __init__(self, counter: CountingServer, tool: Tool) -> None:
        self._counter = counter
        self._tool = tool
        self.ledger = ledger_of(JOB)
        self.ledger.parent.mkdir(parents=True, mode=0o700)
        self.ledger.parent.parent.chmod(0o700)
        spec = replace(SPEC, base_url=counter.base_url, client=12345, batch_size=5, profile="environment")
        ledger = opened(write(self.ledger, rows(60), spec))
        begun: list[str] = []
        for outcome in ("accepted", "accepted", "unknown", "refused", "accepted", None):
            with ledger.transaction():
                intent = ledger.intend(5)
            assert intent is not None
            begun += intent.phones
            if outcome:
                found = [RecipientOutcome(each, outcome, f"m{each}", "queued", "1") for each in intent.phones]
                with ledger.transaction():
                    ledger.record(RequestResult(intent, found))
        self.pending = {phone(line) for line in range(2, 62)} - {*begun}
        self.killed = self._files()
        ledger.close()
        self.closed = self._files()

    def _files(self) -> Files:
        endings = (".sqlite3", ".sqlite3-wal", ".lock")
        return {each.name: each.read_bytes() for each in self.ledger.parent.iterdir() if each.name.endswith(endings)}

    def restore(self, files: Files) -> None:
        for each in self.ledger.parent.iterdir():
            each.unlink()
        for name, content in files.items():
            (self.ledger.parent / name).write_bytes(content)
            (self.ledger.parent / name).chmod(0o600)

    def check(self, harm: object) -> bool:
        """Resume the job, and check that the error is right and only pending recipients get a message.

        Return whether the ledger was refused.
        """
        self._counter.dispatches.clear()
        for line in (("job", "show", JOB), ("history",), ("job", "report", JOB, "--json")):
            done = self._tool(*line)
            assert done.code in (0, 3), (harm, done.err)
        done = self._tool("job", "resume", JOB, "--yes")
        assert done.code in (3, 6), (harm, done.err)
        arrived = self._counter.arrived()
        if done.code == 3:
            assert JOB in done.err, (harm, done.err)
            assert not arrived, (harm, done.err)
        assert arrived.keys() <= self.pending, harm
        assert {*arrived.values()} <= {1}, harm
        return done.code == 3


@pytest.fixture
def damaged(counter: CountingServer, tool: Tool) -> Damaged:
    counter.delay = 0.0
    return Damaged(counter, tool)


@pytest.mark.slow
def test_no_changed_bytes_lead_to_a_crash_or_a_second_message(damaged: Damaged) -> None:
    dice = random.Random(1)
    refused = 0
    for trial in range(120):
        files = dict(dice.choice((damaged.killed, damaged.closed)))
        name = dice.choice([each for each in sorted(files) if not each.endswith(".lock")])
        content = bytearray(files[name])
        place, page = dice.randrange(100, len(content)), dice.randrange(100, len(content)) // 4096 * 4096
        match trial % 4:
            case 0:
                content[place] ^= 1 << dice.randrange(8)
            case 1:
                del content[place:]
            case 2:
                content[page + 100 : page + 4096] = dice.randbytes(3996)
            case 3:
                content[place : place + 200] = bytes(200)
        damaged.restore({**files, name: bytes(content)})
        refused += damaged.check((name, trial, place, page))
    assert refused > 60


VALUES = (None, -1, "x", b"\xff", 1e400, "[]", "{}", "[[", "[" * 3000, 2**63 - 1, "\0", "sending")


@pytest.mark.slow
def test_invalid_values_are_refused(damaged: Damaged) -> None:
    damaged.restore(damaged.closed)
    with closing(sqlite3.connect(damaged.ledger)) as db:
        tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        columns = [(table, row[1]) for table in tables for row in db.execute(f"PRAGMA table_info({table})")]
    refused = 0
    for number, (table, column) in enumerate(columns):
        for value in VALUES[number % 3 :: 3]:
            damaged.restore(damaged.closed)
            try:
                with closing(sqlite3.connect(damaged.ledger, isolation_level=None)) as db:
                    db.execute(f"UPDATE {table} SET {column} = ?", (value,))
            except sqlite3.IntegrityError:
                continue
            refused += damaged.check((table, column, value))
    assert refused > 40


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE job SET value = json_set(value, '$.rate', 0) WHERE name = 'spec'",
        "UPDATE job SET value = json_set(value, '$.batch_size', 'x') WHERE name = 'spec'",
        "UPDATE job SET value = json_set(value, '$.window', 'x') WHERE name = 'spec'",
        "UPDATE job SET value = json_remove(value, '$.command') WHERE name = 'spec'",
        "UPDATE job SET value = 'nan' WHERE name = 'created'",
        "UPDATE message SET parameters = CAST(x'7b22736d73223a2280227d' AS TEXT)",
        "UPDATE message SET parameters = '{}'",
        "UPDATE recipient SET zones = 'America/Bogota' WHERE line = 60",
        "UPDATE request SET ended = 1 WHERE ended IS NULL",
        "DELETE FROM result WHERE line = 2",
        "DELETE FROM message",
        "DROP TABLE handed_over",
        "DROP VIEW in_flight",
        "PRAGMA user_version = 99",
    ],
)
def test_an_impossible_ledger_is_refused(statement: str, damaged: Damaged) -> None:
    damaged.restore(damaged.closed)
    with closing(sqlite3.connect(damaged.ledger, isolation_level=None)) as db:
        db.execute(statement)
    assert damaged.check(statement)


def test_a_refused_resume_keeps_the_log_for_a_restored_ledger(killed: Bulk, tool: Tool) -> None:
    ledger = ledger_of(killed.id)
    good = ledger.read_bytes()
    ledger.write_bytes(good[:-4096])
    assert tool("job", "resume", killed.id, "--yes").code == 3
    ledger.write_bytes(good)
    assert tool("job", "resume", killed.id, "--yes").code in (0, 6)


def test_a_row_from_another_job_does_not_delete_the_log_of_a_killed_job(killed: Bulk, tool: Tool) -> None:
    ledger = ledger_of(killed.id)
    with writing(ledger) as db:
        db.execute("DELETE FROM job WHERE name = 'due'")
    assert log_of(ledger).stat().st_size > 0
    assert tool("job", "resume", killed.id, "--yes").code in (0, 6)
    assert tool("job", "show", killed.id).code == 0
