"""The folder of jobs: ids, locks, removal, and files that are not ledgers."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.ledgers import SPEC, Service, opened, rows, run, write
from msgctl.errors import ConfigurationError, UsageError
from msgctl.jobs import resends
from msgctl.jobs.store import Store
from support.jobs import NOW, write_ledger

JOB = "20261121-3f9a2c"
OTHER = "20261122-000000"

HOLD = """
import sys
from pathlib import Path
from msgctl.jobs.store import Store
with Store(Path(sys.argv[1])).locked(sys.argv[2]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    (tmp_path / "jobs").mkdir(mode=0o700)
    return Store(tmp_path / "jobs")


def fault(store: Store, job: str = JOB) -> str:
    """Return why a ledger cannot be opened; the error mentions the file."""
    with pytest.raises(ConfigurationError) as caught:
        opened(store.path(store.find(job))).close()
    assert store.path(job).name in caught.value.message
    return caught.value.message


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


# --- names


def test_an_id_is_the_day_and_a_random_part(store: Store) -> None:
    found = {store.new_id(NOW) for _ in range(20)}
    assert len(found) == 20
    assert all(re.fullmatch("20260921-[0-9a-f]{6}", job) for job in found)


def test_the_day_of_an_id_is_that_of_utc(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        with monkeypatch.context() as patch:
            patch.setenv("TZ", "Pacific/Kiritimati")  # 14 hours ahead
            time.tzset()
            assert store.new_id(NOW).startswith("20260921-")
    finally:
        time.tzset()


def test_jobs_are_listed_oldest_day_first(store: Store) -> None:
    for job in (OTHER, JOB):
        write(store.path(job), rows(1))
    others = [JOB + ".sqlite3-old", "x.sqlite3", "20261121-3F9A2D.sqlite3", "20261121-3f9a2d", ".20261121-3f9a2d.lock"]
    for name in others:
        (store.folder / name).touch()
    (store.folder / "20261121-3f9a2e").mkdir()
    assert store.ids() == [JOB, OTHER]


# --- locks


def test_a_running_job_cannot_be_locked_or_removed(store: Store) -> None:
    write(store.path(JOB), rows(1))
    command = [sys.executable, "-c", HOLD, str(store.folder), JOB]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        assert store.is_running(JOB)
        with pytest.raises(ConfigurationError, match=f"Job {JOB} is already running"), store.locked(JOB):
            pass
        with pytest.raises(ConfigurationError, match="already running"):
            resends.remove(store, JOB)
        other.kill()
        other.wait()
    assert (store.folder / f".{JOB}.lock").exists(), "a killed process leaves its lock file"
    assert not store.is_running(JOB)
    with store.locked(JOB):
        assert store.is_running(JOB)


def test_all_files_are_private(tmp_path: Path) -> None:
    store = Store(tmp_path / "a" / "jobs")
    with store.locked(JOB):
        path = write(store.path(JOB), rows(3))
        with closing(opened(path)) as ledger:
            with ledger.transaction():
                ledger.intend(1)
            assert mode(store.folder) == 0o700
            found = {each.name: mode(each) for each in store.folder.iterdir()}
    assert set(found) == {f".{JOB}.lock", *(f"{JOB}.sqlite3{suffix}" for suffix in ("", "-wal", "-shm"))}
    assert set(found.values()) == {0o600}


def test_only_files_of_an_import_that_is_no_longer_running_are_deleted(store: Store) -> None:
    write(store.path(OTHER), rows(1))
    for name in (f".{JOB}.sqlite3.new", f"{JOB}.sqlite3-wal", f"{JOB}.sqlite3-shm"):
        (store.folder / name).touch()
    mine = store.folder / "notes.new"
    mine.touch()
    with store.locked(JOB):
        store.tidy()
        assert len([*store.folder.iterdir()]) == 6
    store.tidy()
    assert {*store.folder.iterdir()} == {store.path(OTHER), mine}
    Store(store.folder / "missing").tidy()


# --- which job


def test_the_newest_job_with_a_name_is_found(store: Store) -> None:
    def hint(job: str | None) -> tuple[str, str | None]:
        with pytest.raises(UsageError) as caught:
            store.find(job)
        return caught.value.message, caught.value.hint

    assert hint(None) == ("There are no jobs", "Create one with: msgctl sms bulk FILE")
    for number, job in enumerate((JOB, OTHER)):
        spec = replace(SPEC, at=NOW, name="orders")
        write_ledger(store.path(job), rows(1), spec, "{text}", created=NOW - number)
    assert store.find("orders") == JOB
    assert hint(None) == ("No job has begun", f"Show the scheduled job: msgctl job show {JOB}")
    assert hint("order") == ('There is no job "order"', "List the jobs: msgctl job list")
    assert hint("20991121-000000")[0] == 'There is no job "20991121-000000"'
    with closing(opened(store.path(OTHER))) as ledger:
        run(ledger, Service())
    assert store.find(None) == OTHER
    for number, job in enumerate(("20990101-000000", "20990102-000000")):
        store.path(job).write_bytes(b"not a ledger")
        os.utime(store.path(job), (NOW - 1 + number, NOW - 1 + number))
    with pytest.raises(ConfigurationError, match="20990102-000000"):
        store.find(None)
    os.utime(store.path("20990102-000000"), (NOW - 1, NOW - 1))
    assert store.find(None) == OTHER, "the damaged ledgers are older"


def test_a_change_of_the_log_is_a_change_of_the_ledger(store: Store) -> None:
    assert store.changed(JOB) == 0.0
    path = store.path(JOB)
    log = path.with_name(f"{JOB}.sqlite3-wal")
    for each, seconds, changed in ((path, 50, 50), (log, 40, 50), (log, 60, 60), (path, 70, 70)):
        each.touch()
        os.utime(each, (seconds, seconds))
        assert store.changed(JOB) == changed


# --- removing


def test_removing_a_job_leaves_nothing(store: Store) -> None:
    write(store.path(OTHER), rows(1))
    ledger = opened(write(store.path(JOB), rows(1)))
    with ledger.transaction():
        ledger.intend(1)
    assert store.path(JOB).with_name(f"{JOB}.sqlite3-wal").exists()
    resends.remove(store, JOB)
    ledger.close()
    assert [each.name for each in store.folder.iterdir()] == [f"{OTHER}.sqlite3"]


def test_removing_a_link_keeps_its_target(store: Store, tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("precious")
    store.path(JOB).symlink_to(target)
    resends.remove(store, JOB)
    assert (store.ids(), target.read_text()) == ([], "precious")


@pytest.mark.parametrize("steps", range(1, 4))
def test_an_interrupted_removal_is_finished_later(steps: int, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    write(store.path(OTHER), rows(1))
    ledger = opened(write(store.path(JOB), rows(1)))
    with ledger.transaction():
        ledger.intend(1)
    unlink, left = Path.unlink, iter(range(steps))

    def unlink_some(path: Path, missing_ok: bool = False) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        unlink(path, missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", unlink_some)
        with pytest.raises(KeyboardInterrupt):
            resends.remove(store, JOB)
    assert store.ids() == [OTHER]
    store.tidy()
    ledger.close()
    assert [each.name for each in store.folder.iterdir()] == [f"{OTHER}.sqlite3"]


def test_the_log_of_a_job_that_is_not_running_is_kept(store: Store) -> None:
    """After a kill, the log contains the intents and results that are not in the ledger itself yet."""
    with closing(opened(write(store.path(JOB), rows(1)))) as ledger:
        with ledger.transaction():
            ledger.intend(1)
        store.tidy()
        assert store.path(JOB).with_name(f"{JOB}.sqlite3-wal").exists()


# --- files that are not ledgers


def test_last_fails_if_the_newest_ledger_cannot_be_read(store: Store) -> None:
    write(store.path(JOB), rows(1))
    store.path(OTHER).write_bytes(b"not a ledger")
    for job in (None, "name"):
        with pytest.raises(ConfigurationError, match=OTHER):
            store.find(job)
    os.utime(store.path(OTHER), (1, 1))
    assert store.find(None) == JOB
