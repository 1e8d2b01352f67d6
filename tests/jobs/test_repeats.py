"""People who have already got the message of a new job, from other jobs or single sends."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from jobs.ledgers import SPEC, Service, accept, lose, opened, phone, refuse, run
from msgctl.errors import ConfigurationError
from msgctl.jobs.importer import Importer
from msgctl.jobs.model import JobSpec
from msgctl.jobs.reader import Row
from msgctl.jobs.repeats import Repeats
from msgctl.jobs.store import Store
from support.jobs import NOW, imported

FIRST, SECOND, THIRD, NEW = (f"2026092{number}-000000" for number in range(1, 5))
DAY = 86400
Contact = tuple[bytes, str, str | None]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path)


def planned(
    store: Store, job: str, lines: Iterable[int], text: str = "Hello", spec: JobSpec = SPEC, *, national: bool = False
) -> Importer:
    """Import the recipients of a job. A ``national`` job has national numbers, and does not check them."""
    international = "57{}".format if national else None
    recipients = [Row(line, phone(line)[2 * national :], (text,)) for line in lines]
    return imported(store.path(job), recipients, spec, international=international, may_exclude_repeats=True)


def sent(store: Store, importer: Importer, service: Service | None = None) -> str:
    """Send a job, and return its ID."""
    importer.finish()
    job = store.ids()[-1]
    with closing(opened(store.path(job))) as ledger:
        run(ledger, service or Service())
    return job


@pytest.fixture
def new(store: Store) -> Iterator[Importer]:
    """A new job for ten people, which has not begun."""
    importer = planned(store, NEW, range(2, 12))
    yield importer
    importer.discard()


def test_messages_from_jobs_other_machines_and_single_sends_are_repeats(store: Store, new: Importer) -> None:
    digest = next(new.messages())[0]
    sent(store, planned(store, FIRST, range(2, 4)))
    sent(store, planned(store, SECOND, range(3, 6), spec=replace(SPEC, canary=1, batch_size=1)))
    sent(store, planned(store, THIRD, range(2, 12), spec=replace(SPEC, client=2)))
    elsewhere = "20260920-000000 on a", "20260921-000000 on b"
    contacts: list[Contact] = [
        (digest, phone(5), elsewhere[0]),
        *[(digest, phone(6 + number), job) for number, job in enumerate((None, *elsewhere, FIRST))],
        (b"another message", phone(10), None),
        (digest, phone(99), None),
    ]
    found = new.repeats(store, contacts, NOW)
    assert (found, [*found.jobs]) == (
        Repeats(8, {SECOND: False, FIRST: True}, [*reversed(elsewhere)], has_singles=True),
        [SECOND, FIRST],
    )
    assert new.repeats(store, [], NOW) == Repeats(4, {SECOND: False, FIRST: True}, [], has_singles=False)
    assert new.repeats(store, [], NOW + DAY) == Repeats(2, {SECOND: False}, [], has_singles=False)
    assert new.repeats(store, contacts[1:2], NOW + DAY) == Repeats(3, {SECOND: False}, [], has_singles=True)


def test_people_are_found_in_a_larger_job_with_national_numbers(store: Store, new: Importer) -> None:
    spec = replace(SPEC, batch_size=4, concurrency=1)
    sent(store, planned(store, FIRST, range(2, 30), spec=spec, national=True), Service(accept, refuse, lose))
    sent(store, planned(store, SECOND, range(2, 30), "Good morning"))
    assert new.repeats(store, [], NOW) == Repeats(6, {FIRST: True}, [], has_singles=False)
    new.exclude_repeats()
    assert new.lines() == [6, 7, 8, 9]


def test_a_ledger_that_cannot_be_read_stops_the_check_for_a_day(store: Store, new: Importer) -> None:
    sent(store, planned(store, FIRST, [2]))
    path = store.path(SECOND)
    path.write_bytes(b"not a ledger" * 1000)
    path.chmod(0o600)
    os.utime(path, (NOW, NOW))
    with pytest.raises(ConfigurationError) as caught:
        new.repeats(store, [], NOW + DAY - 1)
    why = f"Cannot use the ledger ~/{path.name}: file is not a database"
    fix = "Restore it from a backup, or rename it; nothing else records which messages the job sent."
    assert caught.value.message == f"Cannot check whether job {SECOND} sent this message: {why}"
    assert caught.value.hint == f"{fix}\nTo send without this check, add --again."
    os.utime(path, (NOW - DAY, NOW - DAY))
    assert new.repeats(store, [], NOW).jobs == {FIRST: True}


def test_a_history_that_cannot_be_read_stops_the_check(store: Store, new: Importer) -> None:
    def damaged() -> Iterator[Contact]:
        yield b"", phone(2), None
        raise ConfigurationError("The history is damaged")

    with pytest.raises(ConfigurationError) as caught:
        new.repeats(store, damaged(), NOW)
    what = "Cannot check whether this message was sent singly: The history is damaged"
    assert (caught.value.message, caught.value.hint) == (what, "To send without this check, add --again.")
