"""The index of jobs: it gives what the ledgers say, and is built again whenever it may be wrong."""

from __future__ import annotations

import os
import random
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from jobs.ledgers import SPEC, opened, phone, rows, write
from msgctl.jobs import index as module
from msgctl.jobs.index import FORMAT, NAME
from msgctl.jobs.ledger import JobFacts, Ledger, facts
from msgctl.jobs.model import RequestResult
from msgctl.jobs.store import Store
from msgctl.outcomes.judge import RecipientOutcome
from support.disks import mounted
from support.jobs import NOW
from support.tool import Tool

JOB = "20261121-3f9a2c"
OTHER = "20261122-000000"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two jobs that have not changed for a while, and their index."""
    (tmp_path / "jobs").mkdir(mode=0o700)
    store = Store(tmp_path / "jobs")
    for job in (JOB, OTHER):
        write(store.path(job), rows(2), replace(SPEC, name=f"name of {job}"))
    age(store)
    every(store)
    assert (store.folder / NAME).exists()
    return store


def age(store: Store) -> None:
    """Make the ledgers look as if they had been changed a minute ago."""
    for path in store.folder.glob("*.sqlite3*"):
        status = path.stat()
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns - 60 * 10**9))


def every(store: Store) -> list[tuple[JobFacts, bool, Any]]:
    with store.index() as index:
        return [(index.facts(job), index.is_open(job), index.sums(job)) for job in index.jobs]


def send(ledger: Ledger, *, at: float = NOW, credits: str = "2") -> None:
    """Send to the first recipient who is pending."""
    ledger.clock = lambda: at
    with ledger.transaction():
        intent = ledger.intend(1)
    assert intent is not None
    with ledger.transaction():
        sent = [RecipientOutcome(each, "accepted", f"m{each}", "queued", credits) for each in intent.phones]
        ledger.record(RequestResult(intent, sent))


def is_read(store: Store, monkeypatch: pytest.MonkeyPatch, job: str = JOB) -> bool:
    """Return whether the ledger of a job is read, instead of the index."""
    read: list[Path] = []

    def counted(path: Path) -> JobFacts:
        read.append(path)
        return facts(path)

    with monkeypatch.context() as patch, store.index() as index:
        patch.setattr(module, "facts", counted)
        index.facts(job)
    return bool(read)


def test_a_ledger_that_has_not_changed_is_not_read_again(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_read(store, monkeypatch)


def leave_a_log(store: Store) -> None:
    """A change that is only in the write-ahead log, as after a kill."""
    ledger = opened(store.path(JOB))
    send(ledger)
    kept = {path: path.read_bytes() for path in store.folder.glob(f"{JOB}.sqlite3*")}
    ledger.close()
    for path, content in kept.items():
        path.write_bytes(content)


def replace_it(store: Store) -> None:
    """Another file with the same size and time."""
    status = store.path(JOB).stat()
    new = store.folder / "new"
    new.write_bytes(store.path(JOB).read_bytes())
    new.chmod(0o600)
    new.replace(store.path(JOB))
    os.utime(store.path(JOB), ns=(status.st_atime_ns, status.st_mtime_ns))


def let_others_read_it(store: Store) -> None:
    store.path(JOB).chmod(0o640)
    store.path(JOB).chmod(0o600)


def send_one(store: Store) -> None:
    with closing(opened(store.path(JOB))) as ledger:
        send(ledger)


@pytest.mark.parametrize("change", [send_one, leave_a_log, replace_it, let_others_read_it])
def test_a_ledger_that_has_changed_is_read_again(
    change: Callable[[Store], None], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(store)
    assert is_read(store, monkeypatch)
    assert not is_read(store, monkeypatch, OTHER)


def test_the_index_contains_the_facts_of_the_ledger(store: Store) -> None:
    with closing(opened(store.path(JOB))) as ledger:
        send(ledger, at=NOW, credits="2")
        send(ledger, at=NOW + 90, credits="3")
    age(store)
    from_the_ledger = every(store)
    assert every(store) == from_the_ledger
    known, is_open, sums = from_the_ledger[0]
    assert (known.spec.name, known.first, known.last) == (f"name of {JOB}", NOW, NOW + 90)
    assert (is_open, [(each.messages, each.credits, each.country) for each in sums]) == (
        False, [(1, 2, "CO"), (1, 3, "CO")],
    )  # fmt: skip
    assert from_the_ledger[1][1:] == (True, [])


def test_a_ledger_that_has_just_changed_is_not_in_the_index(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another change within a tick of the file system's clock might not change its time."""
    send_one(store)
    for _ in range(2):
        assert is_read(store, monkeypatch)


def overwrite(path: Path) -> None:
    path.write_bytes(b"not an index" * 1000)


def damage_a_page(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[-4096:] = b"\xff" * 4096
    path.write_bytes(content)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def of_an_older_version(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {FORMAT.version - 1}")


def with_other_values(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        for query, value in (("facts", "[]"), ("sums", "[1]"), ("open", "{")):
            db.execute("UPDATE entry SET value = ? WHERE query = ?", (value, query))
        db.commit()


@pytest.mark.parametrize(
    "harm",
    [overwrite, damage_a_page, empty, of_an_older_version, with_other_values, Path.unlink],
    ids=lambda each: each.__name__,
)
def test_a_damaged_index_is_built_again(
    harm: Callable[[Path], None], store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = every(store)
    harm(store.folder / NAME)
    assert every(store) == before
    assert every(store) == before
    assert not is_read(store, monkeypatch)


def test_jobs_are_listed_without_a_usable_index(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = every(store)
    with closing(sqlite3.connect(store.folder / NAME)) as other:
        monkeypatch.setattr(module, "FORMAT", replace(FORMAT, max_wait=0.0))
        other.execute("BEGIN EXCLUSIVE")
        assert every(store) == before
    with mounted(tmp_path / "disk", "1m") as disk:
        copy = Store(disk.path)
        for each in store.folder.iterdir():
            (disk.path / each.name).write_bytes(each.read_bytes())
            (disk.path / each.name).chmod(0o600)
        for content in (b"not an index", (store.folder / NAME).read_bytes()):
            (disk.path / NAME).write_bytes(content)
            age(copy)
            with disk.read_only():
                assert every(copy) == before


def test_a_deleted_job_is_removed_from_the_index(store: Store) -> None:
    index = store.folder / NAME
    assert f"name of {OTHER}".encode() in index.read_bytes()
    with store.locked(OTHER):
        store.delete(OTHER)
    content = index.read_bytes()
    assert (f"name of {OTHER}".encode() in content, f"name of {JOB}".encode() in content) == (False, True)
    with store.locked(JOB):
        store.delete(JOB)
    assert not index.exists()


def test_a_job_that_was_deleted_without_msgctl_is_removed_at_the_next_change(store: Store) -> None:
    store.path(OTHER).unlink()
    send_one(store)
    age(store)
    every(store)
    content = (store.folder / NAME).read_bytes()
    assert (f"name of {OTHER}".encode() in content, f"name of {JOB}".encode() in content) == (False, True)


def test_a_job_can_be_deleted_without_a_usable_index(store: Store) -> None:
    overwrite(store.folder / NAME)
    with store.locked(OTHER):
        store.delete(OTHER)
    (store.folder / NAME).unlink()
    (store.folder / NAME).mkdir()
    with store.locked(JOB):
        store.delete(JOB)
    assert store.ids() == []


# --- what commands find with it


@pytest.fixture
def many(home: Path) -> Store:
    """Jobs that sent their messages in any order, some in the same minute; one has a request in flight."""
    dice = random.Random(7)
    store = Store(home / "state" / "msgctl" / "jobs")
    store.folder.mkdir(parents=True, mode=0o700)
    store.folder.parent.chmod(0o700)
    for number in range(30):
        job = f"202611{number % 7 + 10}-{number:06x}"
        spec = replace(SPEC, name=f"job {number}", profile=dice.choice(("main", "other")))
        write(store.path(job), rows(4), spec)
        with closing(opened(store.path(job))) as ledger:
            for _ in range(dice.randrange(4)):
                send(ledger, at=NOW + dice.randrange(40) * 4000, credits=str(dice.randrange(3)))
            if number == 9:
                with ledger.transaction():
                    ledger.intend(2)
    age(store)
    return store


LINES = (
    *(("history",), ("history", "--limit", "7"), ("history", "--limit", "1000"), ("history", "--phone", phone(2))),
    ("history", "--limit", "3", "--until", "2026-09-22"),
    ("history", "--since", "2026-09-22", "--until", "2026-09-22"),
    *(("-p", "other", "history"), ("usage",), ("-p", "main", "usage"), ("usage", "--since", "2026-09-22")),
    *(("usage", "--by", by) for by in ("day", "month", "command", "job", "country", "profile")),
    *(("job", "show", "job 3"), ("job", "show", "--last"), ("job", "run-due")),
)


def test_commands_find_the_same_with_and_without_the_index(many: Store, tool: Tool) -> None:
    def found() -> list[Any]:
        return [(done.code, done.out, done.err) for line in LINES if (done := tool(*line, "--json"))]

    first = found()
    assert (many.folder / NAME).exists()
    assert found() == first
    every_entry = tool("history", "--json", "--limit", "1000").document
    assert tool("history", "--json").document == every_entry[-20:]
    assert sum(each["messages"] for each in tool("usage", "--json").document) == sum(
        each["outcome"] == "accepted" for each in every_entry
    )


def test_usage_by_day_has_the_days_of_this_machine(many: Store, tool: Tool, monkeypatch: pytest.MonkeyPatch) -> None:
    for zone in ("America/Bogota", "Asia/Kathmandu", "Pacific/Kiritimati"):
        with monkeypatch.context() as patch:
            patch.setenv("TZ", zone)
            time.tzset()
            shown = tool("usage", "--by", "day", "--json").document
            entries = tool("history", "--limit", "1000", "--json").document
            accepted = [each["time"] for each in entries if each["outcome"] == "accepted"]
            days = Counter(str(datetime.fromisoformat(each).astimezone().date()) for each in accepted)
        time.tzset()
        assert {each["day"]: each["messages"] for each in shown} == days
