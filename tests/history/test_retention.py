"""Old records are deleted at most once a day, if the profile has the setting ``keep_days``."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.ledgers import SPEC, Service, rows, run, write
from msgctl.config.profiles import Profile
from msgctl.history.retention import delete_old
from msgctl.history.store import FORMAT, Contact, History, Send
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.store import Store
from msgctl.storage import files
from msgctl.text import timestamp
from support.jobs import ANA, NOW

DAY = 86400
MONTH = Profile("main", settings={"keep_days": 30})


@pytest.fixture
def store(home: Path) -> Store:
    """A directory with one job of each of two profiles. They ended five days after they were created."""
    store = Store(files.state("jobs"))
    store.folder.mkdir(0o700, parents=True)
    for number, profile in enumerate(("main", "other")):
        path = write(store.path(f"20260921-00000{number}"), rows(1), replace(SPEC, profile=profile))
        with closing(Ledger(path, clock=lambda: NOW + 5 * DAY)) as ledger:
            assert run(ledger, Service()) is None
    return store


def delete(day: float, profile: Profile = MONTH) -> None:
    """Delete old records this many days after ``NOW``. A warning is a failure."""
    delete_old(profile, lambda: NOW + day * DAY, pytest.fail)


def test_a_job_is_deleted_when_its_last_response_is_older_than_keep_days(store: Store) -> None:
    delete(35)
    assert len(store.ids()) == 2
    delete(36 - 1e-3)
    assert len(store.ids()) == 2, "the last check was less than a day ago"
    delete(36)
    assert store.ids() == ["20260921-000001"]


def test_nothing_is_deleted_without_keep_days_or_with_a_clock_in_1970(store: Store) -> None:
    delete(90, Profile("main"))
    delete(-NOW / DAY + 7)
    delete(31)
    assert len(store.ids()) == 2


def test_the_file_with_the_time_of_the_last_check_is_private(store: Store) -> None:
    before = {*store.folder.parent.iterdir()}
    delete(1)
    (created,) = {*store.folder.parent.iterdir()} - before
    assert (created.stat().st_mode & 0o777, created.stat().st_mtime) == (0o600, NOW + DAY)


def test_only_old_entries_of_the_profile_and_contacts_over_eight_days_old_are_deleted(home: Path) -> None:
    with closing(History(FORMAT.path())) as history:
        for seconds, profile in ((-1, "main"), (1, "main"), (-1, "other"), (23 * DAY, "main")):
            sent = timestamp(NOW + seconds, "milliseconds")
            contact = Contact("an account", None, [ANA], "")
            history.begin(Send(sent, profile, "https://a.example", "sms send", f"{seconds} {profile}"), [ANA], contact)
        delete(30)
        assert [each["message"] for each in history.entries(10)] == ["1 main", "-1 other", f"{23 * DAY} main"]
        assert history.db.execute("SELECT count(*) FROM contacts").fetchone()[0] == 1


def test_records_that_cannot_be_deleted_cause_a_warning(store: Store) -> None:
    path = FORMAT.path()
    path.write_bytes(b"no history at all\n" * 50)
    path.chmod(0o600)
    warnings: list[str] = []
    delete_old(MONTH, lambda: NOW + 90 * DAY, warnings.append)
    assert warnings == [
        f"Old records were not deleted: Cannot use the history {files.shown(path)}: file is not a database."
    ]
