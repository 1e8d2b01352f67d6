"""Contacts: what a job records before it sends, and what remains of it after a kill."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from threading import Timer

import pytest

from jobs.ledgers import SPEC, Service, accept, opened, outcomes, phone, refuse, rows, write
from msgctl.errors import ConfigurationError, RefusedError
from msgctl.history import contacts
from msgctl.history.contacts import Contacts
from msgctl.history.store import (
    CONTACTS,
    FORMAT,
    SHARED_CONTACTS,
    History,
    add_contact,
    kind_of_contacts,
    take_back_contacts,
)
from msgctl.jobs.frequency import Frequency
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.model import RequestResult
from msgctl.jobs.runner import Runner
from msgctl.jobs.schedule import Window
from msgctl.outcomes.judge import REFUSED, RecipientOutcome
from msgctl.storage.database import transaction
from msgctl.storage.records import LOCAL, Connection, LocalRecords, Records
from msgctl.storage.shared import SharedRecords
from msgctl.text import timestamp
from support.jobs import NOW
from support.postgres import Cluster

ACCOUNT, JOB = "https://service.example/api/v1 1", "20261123-aaaaaa"
DAY = 86400
ONCE = Frequency.parse("1/day", "America/Bogota")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    spec = replace(SPEC, at_most="1/day", batch_size=1, concurrency=2)
    with closing(opened(write(tmp_path / "job.sqlite3", rows(4), spec))) as ledger:
        yield ledger


OPENED: list[Contacts] = []


@pytest.fixture(autouse=True)
def closed_contacts() -> Iterator[None]:
    """Close the contacts that a test leaves open, as the end of a process would."""
    yield
    while OPENED:
        OPENED.pop().close()


def of_job(ledger: Ledger, limit: Frequency | None = ONCE, records: Records = LOCAL) -> Contacts:
    found = Contacts(records, ACCOUNT, JOB, limit, lambda: NOW)
    OPENED.append(found)
    found.open(ledger)
    return found


class Impatient(LocalRecords):
    """Records on this machine that wait for another process only a tenth of a second."""

    def set_wait(self, db: Connection, seconds: float) -> None:
        super().set_wait(db, min(seconds, 0.1))


def reached(records: Records = LOCAL) -> list[str]:
    return sorted(contacts.reached(records, ACCOUNT, ONCE, NOW, None))


def claimed(recorded: Contacts, ledger: Ledger) -> Collection[str]:
    """Claim the next recipient, whose intent does not reach the ledger."""
    with suppress(ZeroDivisionError), ledger.transaction():
        intent = ledger.intend(1)
        assert intent
        found = recorded.claim([intent])
        raise ZeroDivisionError
    return found


def run(ledger: Ledger, service: Service, recorded: Contacts) -> str:
    runner = Runner(ledger, service.connect, contacts=recorded)
    runner.start()
    assert runner.wait(30)
    error = runner.finish()
    recorded.close()
    return str(error or "")


def test_contacts_are_on_disk_before_the_request(ledger: Ledger, open_records: Callable[[], Records]) -> None:
    records = open_records()

    def behave(phones: Sequence[str]) -> list[dict[str, object]]:
        assert {*phones} <= {*reached(open_records())}
        return accept(phones)

    assert run(ledger, Service(otherwise=behave), of_job(ledger, records=records)) == ""
    assert (outcomes(ledger), reached(records)) == ({"accepted": 4}, [phone(line) for line in range(2, 6)])


def test_contacts_of_a_crashed_process_without_an_intent_do_not_count(ledger: Ledger, records: Records) -> None:
    killed = of_job(ledger, records=records)
    assert not claimed(killed, ledger)
    assert reached(records) == [phone(2)]
    service = Service()
    assert run(ledger, service, of_job(ledger, records=records)) == ""
    assert (outcomes(ledger), len(service.asked)) == ({"accepted": 4}, 4)


def test_many_contacts_of_a_crashed_process_are_corrected_only_once(ledger: Ledger, records: Records) -> None:
    """The first person got a message from a single send, but not from the job."""
    assert contacts.source_of(records, JOB) == (f"{JOB} on {records.owner}" if records.is_shared else JOB)
    people = [phone(2), *(phone(number) for number in range(1_000, 6_000))]
    with records.opened(kind_of_contacts(records)) as db, transaction(db):
        for source, contacted in ((contacts.source_of(records, JOB), people), ("a single send", people[:1])):
            add_contact(db, timestamp(NOW, "milliseconds"), ACCOUNT, source, 1, contacted)
    for _ in range(2):
        of_job(ledger, records=records).close()
    assert reached(records) == people
    twice = Frequency.parse("2/day", "America/Bogota")
    assert [*contacts.reached(records, ACCOUNT, twice, NOW, None)] == []


def test_people_who_have_reached_the_limit_are_not_claimed(ledger: Ledger, open_records: Callable[[], Records]) -> None:
    records, others = open_records(), open_records()
    recorded = of_job(ledger, records=records)
    for number in (2, 3):
        with others.opened(kind_of_contacts(others)) as db, transaction(db):
            add_contact(db, timestamp(NOW, "milliseconds"), ACCOUNT, f"a single send {number}", 1, [phone(number)])
        assert claimed(recorded, ledger) == {phone(2)}
        assert recorded.reached([phone(number), phone(5)]) == {phone(number)}
    twice = Frequency.parse("2/day", "America/Bogota")
    assert [*contacts.reached(records, ACCOUNT, twice, NOW, None)] == []


def test_a_single_send_counts_as_a_repeat_for_24_hours(records: Records) -> None:
    with records.opened(kind_of_contacts(records)) as db, transaction(db):
        for at, digest in ((0.5, b"later"), (0.4, b"before"), (0.5, None)):
            sent = timestamp(NOW + at, "milliseconds")
            add_contact(db, sent, ACCOUNT, f"{at} {digest!r}", 1, [phone(2), None, "3 words"], digest)
    assert [*contacts.recent(records, ACCOUNT, NOW + DAY + 0.4)] == [(b"later", phone(2), None)]
    assert [*contacts.recent(records, ACCOUNT, NOW + DAY + 0.5)] == []


def test_messages_count_for_the_day_on_which_the_window_opens(records: Records) -> None:
    """It is 9:13 in Bogota. The window from 8:00 to 9:00 opens again tomorrow."""
    with records.opened(kind_of_contacts(records)) as db, transaction(db):
        add_contact(db, timestamp(NOW, "milliseconds"), ACCOUNT, "a single send", 1, [phone(2)])
    for window, found in ((None, [phone(2)]), (Window.parse("08:00-09:00"), []), (Window.parse("8-10"), [phone(2)])):
        assert [*contacts.reached(records, ACCOUNT, ONCE, NOW, window)] == found


def test_a_refusal_that_a_crashed_process_had_not_recorded_does_not_count(ledger: Ledger, records: Records) -> None:
    def refuse(_: Sequence[str]) -> list[dict[str, object]]:
        raise RefusedError("no", http_status=520)

    killed = of_job(ledger, records=records)
    runner = Runner(ledger, Service(refuse, accept, accept, accept).connect, contacts=killed)
    runner.start()
    assert (runner.wait(30), runner.finish()) == (True, None)
    assert outcomes(ledger) == {"accepted": 3, "refused": 1}
    of_job(ledger, records=records).close()
    (refused,) = ledger.not_sent_to([phone(line) for line in range(2, 6)])
    assert {*reached(records)} == {phone(line) for line in range(2, 6)} - {refused}


def test_only_a_job_with_a_limit_stops_if_contacts_cannot_be_recorded(ledger: Ledger) -> None:
    limited, other = of_job(ledger), of_job(ledger, None)
    with closing(sqlite3.connect(FORMAT.path())) as db:
        db.execute("CREATE TRIGGER full BEFORE INSERT ON contacts BEGIN SELECT raise(ABORT, 'disk I/O error'); END")
    service = Service()
    assert "disk I/O error" in run(ledger, service, limited)
    assert (outcomes(ledger), service.asked) == ({"pending": 4}, [])
    assert run(ledger, service, other) == ""
    assert (outcomes(ledger), "disk I/O error" in str(other.error)) == ({"accepted": 4}, True)


def test_people_who_get_messages_while_the_history_is_locked_are_recorded_later(ledger: Ledger) -> None:
    recorded = of_job(ledger, None, Impatient())
    with closing(sqlite3.connect(FORMAT.path(), isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")

        def release(phones: Sequence[str]) -> list[dict[str, object]]:
            other.execute("ROLLBACK")
            return accept(phones)

        assert run(ledger, Service(release, refuse), recorded) == ""
    (refused,) = ledger.not_sent_to([phone(line) for line in range(2, 6)])
    assert {*reached()} == {phone(line) for line in range(2, 6)} - {refused}
    assert recorded.error is None


def test_a_job_with_a_limit_waits_while_another_process_writes_the_history(ledger: Ledger) -> None:
    recorded = of_job(ledger)
    with closing(sqlite3.connect(FORMAT.path(), check_same_thread=False, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        timer = Timer(0.1, other.execute, ["COMMIT"])
        timer.start()
        assert claimed(recorded, ledger) == set()
        timer.join()
    assert reached() == [phone(2)]


def test_a_job_records_people_who_waited_for_the_history_when_it_ends(ledger: Ledger) -> None:
    recorded = of_job(ledger, None, Impatient())
    with closing(sqlite3.connect(FORMAT.path(), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        claimed(recorded, ledger)
        assert "locked" in str(recorded.error)
    recorded.close()
    assert (reached(), recorded.error) == ([phone(2)], None)


@pytest.mark.parametrize("most", [0, 1])
def test_recording_ends_if_too_many_people_wait_to_be_recorded(
    most: int, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The people who are waiting are recorded later. After the error, nobody else is recorded."""
    monkeypatch.setattr(contacts, "MAX_WAITING", most)
    recorded = of_job(ledger, None, Impatient())
    with closing(sqlite3.connect(FORMAT.path(), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        claimed(recorded, ledger)
    claimed(recorded, ledger)
    assert reached() == ([phone(2)] if most else [])
    recorded.close()
    assert (reached(), "locked" in str(recorded.error)) == ([phone(2)], not most)


def test_a_damaged_history_ends_the_recording_but_not_the_job(ledger: Ledger) -> None:
    recorded = of_job(ledger, None)
    with closing(sqlite3.connect(FORMAT.path())) as db:
        db.execute("DROP TABLE contacts")
        claimed(recorded, ledger)
        for statement in CONTACTS:
            db.execute(statement)
    assert run(ledger, Service(), recorded) == ""
    assert (outcomes(ledger), reached()) == ({"accepted": 4}, [phone(2)])
    assert "no such table" in str(recorded.error)


def test_closed_contacts_allow_no_request_of_a_job_with_a_limit(ledger: Ledger, records: Records) -> None:
    recorded = of_job(ledger, records=records)
    recorded.close()
    with pytest.raises(ConfigurationError, match=r"^The contacts are closed"):
        claimed(recorded, ledger)
    assert reached(records) == []


def test_closed_contacts_record_nothing_for_a_job_without_a_limit(ledger: Ledger) -> None:
    recorded = of_job(ledger, None)
    recorded.close()
    assert (claimed(recorded, ledger), reached()) == ((), [])


def test_a_refusal_takes_the_contact_back(ledger: Ledger, records: Records) -> None:
    recorded = of_job(ledger, records=records)
    with ledger.transaction():
        sent, refused, also_single = intents = [intent for _ in range(3) if (intent := ledger.intend(1))]
        assert recorded.claim(intents) == set()
    recorded.settle([RequestResult(sent, [RecipientOutcome(None, "accepted")])])
    recorded.settle([RequestResult(each, [RecipientOutcome(None, REFUSED)]) for each in (refused, also_single)])
    with records.opened(kind_of_contacts(records)) as db, transaction(db):
        add_contact(db, timestamp(NOW, "milliseconds"), ACCOUNT, "a single send", 1, also_single.people)
    assert reached(records) == [phone(2), phone(3), phone(4)]
    recorded.close()
    assert reached(records) == [phone(2), phone(4)]


def test_a_send_is_taken_back_only_once(records: Records) -> None:
    """Ctrl-C while the result is stored makes it store the result again."""
    with records.opened(kind_of_contacts(records)) as db, transaction(db):
        for source in ("refused", "accepted"):
            add_contact(db, timestamp(NOW, "milliseconds"), ACCOUNT, source, 1, [phone(0)])
        for _ in range(2):
            take_back_contacts(db, "refused", [RecipientOutcome(phone(0), REFUSED)])
    assert reached(records) == [phone(0)]


def test_a_job_elsewhere_that_has_begun_counts_until_it_has_sent(postgres: Cluster) -> None:
    """It may wait for its window for longer than a day. A job scheduled for a later month does not hide it."""
    with closing(SharedRecords(postgres.url(), 30)) as records:

        def planned(job: str, at: float) -> None:
            contacts.plan(records, ACCOUNT, job, ((b"digest", phone(each)) for each in range(3)), at=at, now=NOW)

        def recent(now: float) -> list[tuple[str, str | None]]:
            return sorted((who, job) for _, who, job in contacts.recent(records, ACCOUNT, now))

        for job, at in (("begun", NOW), ("paused", NOW), ("scheduled", NOW + 30 * DAY)):
            planned(job, at)
        begun, paused, scheduled = (contacts.source_of(records, job) for job in ("begun", "paused", "scheduled"))
        with records.opened(SHARED_CONTACTS) as db, transaction(db):
            for weight, people in ((1, [phone(0), phone(1)]), (-1, [phone(1)])):
                add_contact(db, timestamp(NOW, "milliseconds"), ACCOUNT, begun, weight, people)
        later = [(phone(each), scheduled) for each in range(3)]
        now = [(phone(0), begun), (phone(2), begun)]
        assert recent(NOW + 60) == sorted([*later, *now, *((phone(each), paused) for each in range(3))])
        assert recent(NOW + 2 * DAY) == sorted([*later, (phone(2), begun)])
        contacts.delete_plan(records, "scheduled")
        assert recent(NOW + 2 * DAY) == [(phone(2), begun)]


def test_a_plan_is_deleted_after_plans_on_nine_later_days_even_if_it_is_large(postgres: Cluster) -> None:
    with closing(SharedRecords(postgres.url(), 30)) as records:

        def planned(day: int, number: int = 1) -> int:
            """Plan a job on a day, and return the number of people in all plans."""
            now = NOW + day * DAY
            messages = ((b"digest", phone(each)) for each in range(number))
            contacts.plan(records, ACCOUNT, f"of day {day}", messages, at=now, now=now)
            with records.opened(SHARED_CONTACTS) as db:
                return len(db.execute("SELECT value FROM plans, json_each(people)").fetchall())

        assert planned(0, 5_001) == len({*contacts.recent(records, ACCOUNT, NOW + 1)}) == 5_001
        assert [planned(day) for day in (*range(1, 8), 20)] == [5_001 + number for number in range(1, 9)]
        assert planned(21) == 9
        assert [*contacts.recent(records, "another account", NOW + 21 * DAY)] == []


@pytest.fixture
def older() -> Path:
    """Return a history of the previous version, with a contact of two people."""
    path = FORMAT.path()
    with FORMAT.opened(path, create=True) as db:
        for name in ("by_time", "by_source"):
            db.execute(f"DROP INDEX contacts_{name}")
        db.execute("DROP TABLE contacts")
        db.execute(
            """CREATE TABLE contacts (dispatch INTEGER NOT NULL, position INTEGER NOT NULL, time TEXT NOT NULL,
            account TEXT NOT NULL, digest BLOB NOT NULL, phone TEXT NOT NULL, PRIMARY KEY (dispatch, position))
            WITHOUT ROWID"""
        )
        db.execute("CREATE INDEX contacts_by_time ON contacts (time)")
        rows = [(7, place, "2026-09-21T14:00:00.000Z", ACCOUNT, b"digest", phone(place)) for place in (0, 2)]
        db.executemany("INSERT INTO contacts VALUES (?, ?, ?, ?, ?, ?)", rows)
        db.execute("PRAGMA user_version = 3")
    return path


@pytest.mark.usefixtures("older")
def test_contacts_of_an_older_history_are_kept() -> None:
    assert reached() == [phone(0), phone(2)]
    assert sorted(contacts.recent(LOCAL, ACCOUNT, NOW)) == [
        (b"digest", phone(0), None),
        (b"digest", phone(2), None),
    ]


def test_an_older_history_can_be_read_without_upgrading_it(older: Path) -> None:
    before = older.read_bytes()
    with closing(History(older, read_only=True)) as history:
        assert history.entries(1) == []
        assert history.db.execute("SELECT * FROM contacts").fetchall() == []
    assert older.read_bytes() == before


@pytest.mark.parametrize(
    ("number", "zone", "hours"),
    [
        ("573001234567", None, 9),
        ("12025550123", None, 10),
        ("525512345678", None, 8),
        ("79031234567", None, 23),
        ("99912345", "America/Bogota", 9),
    ],
    ids=["one zone", "by area", "by area and type", "several zones", "the profile's zone"],
)
def test_the_day_of_a_number(number: str, zone: str | None, hours: int) -> None:
    """At 14:13:20 UTC."""
    assert_begins(number, Frequency.parse("1/day", zone), hours * 3600 + 800)


@pytest.mark.parametrize(("period", "days"), [("day", 1), ("week", 7)])
def test_the_period_of_a_number_without_a_time_zone(period: str, days: int) -> None:
    assert_begins("99912345", Frequency.parse(f"1/{period}"), days * 86400)


def assert_begins(number: str, limit: Frequency, seconds: int) -> None:
    """Check that a period began these seconds ago."""
    for at, is_counted in ((seconds + 1, False), (seconds - 1, True)):
        contact = timestamp(NOW - at, "milliseconds"), 1
        assert limit.is_reached(number, [contact], NOW, None) is is_counted
