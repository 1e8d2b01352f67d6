"""Jobs in the store: imports, names, lists, removal."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial

import pytest

from msgctl.errors import ConditionError, ConfigurationError, StoreNotReachedError, UsageError
from msgctl.store import history, jobs, owners, people, recipients, removal, results
from msgctl.store.recipients import NewContent, NewRecipient
from msgctl.store.store import KEEP, Store
from store.campaigns import ACCOUNT, ANA, EVA, LUIS, imported, intend, phone, published, sent
from support import PATIENCE
from support.tool import Clock


def test_a_job_is_invisible_until_it_is_published(store: Store, opened: Callable[[], Store]) -> None:
    number = imported(store, [ANA, LUIS])
    other = opened()
    assert jobs.listed(other) == []
    with pytest.raises(UsageError, match="no job"):
        jobs.find(other, jobs.get(store, number).id)

    job = jobs.publish(store, number, state="active", digest=b"1", name="today")
    assert (job.number, job.pending, job.shown_state) == (number, 2, "paused")
    assert [each.id for each in jobs.listed(other)] == [job.id]


def test_the_same_number_in_a_later_line_is_a_duplicate_even_in_another_part_of_the_import(store: Store) -> None:
    number = imported(store, [ANA, LUIS, ANA])
    recipients.add(store, number, [], [NewRecipient(5, LUIS, 1), NewRecipient(6, EVA, 1)])
    jobs.publish(store, number, state="active", digest=b"1")
    errors = {each.line: each.error for each in recipients.with_results(store, number) if each.outcome == "duplicate"}
    assert errors == {3: "same number as line 1", 5: "same number as line 2"}


@pytest.mark.parametrize("outcome", ["invalid", "excluded"])
def test_the_same_number_in_an_earlier_line_without_a_message_makes_no_duplicate(store: Store, outcome: str) -> None:
    number = imported(store, [LUIS])
    without = [NewRecipient(line, ANA, None, "[]", outcome, "no message") for line in (2, 3)]
    recipients.add(store, number, [], [*without, NewRecipient(4, EVA, None, "[]", outcome), NewRecipient(5, EVA, 1)])
    # In later parts of the import, too; there the first line with a message counts, not one without.
    recipients.add(store, number, [], [NewRecipient(6, ANA, 1), NewRecipient(7, EVA, 1)])
    recipients.add(store, number, [], [NewRecipient(8, ANA, 1), NewRecipient(9, EVA, 1), NewRecipient(10, LUIS, 1)])
    jobs.publish(store, number, state="active", digest=b"1")
    rows = [*recipients.with_results(store, number)]
    assert [row.line for row in rows if row.outcome == outcome] == [2, 3, 4]
    assert [(row.line, row.error) for row in rows if row.outcome == "duplicate"] == [
        (7, "same number as line 5"),
        (8, "same number as line 6"),
        (9, "same number as line 5"),
        (10, "same number as line 1"),
    ]
    assert sorted(sent(store, number)) == [ANA, LUIS, EVA]


def test_a_removed_name_is_kept_for_90_days_from_the_removal(store: Store, clock: Clock) -> None:
    job = published(store, [ANA], name="day")
    clock.now += KEEP / 1000 + 1
    sent(store, job.number)
    clock.now += KEEP / 1000 + 1
    assert removal.remove(store, [job.number]) == 1
    clock.now += KEEP / 1000 - 1
    removal.tidy(store)
    with pytest.raises(ConditionError) as error:
        published(store, [ANA], name="day")
    assert error.value.reason == "job_removed"
    clock.now += 2
    removal.tidy(store)
    assert published(store, [ANA], name="day").name == "day"


def test_a_job_is_found_by_its_name_its_id_and_the_beginning_of_its_id(store: Store) -> None:
    job = published(store, [ANA], name="day")
    for text in ("day", job.id, job.id[:-2]):
        assert jobs.find(store, text, ACCOUNT).number == job.number
    published(store, [LUIS])
    with pytest.raises(UsageError, match=f'"{job.id[:8]}" is the name or the beginning of several jobs: {job.id}, '):
        jobs.find(store, job.id[:8], ACCOUNT)
    store.db.change("UPDATE job SET id = ? WHERE number = ?", ("20261127-775eab", job.number))
    assert jobs.find(store, "20261127-775e", ACCOUNT).number == job.number
    for text in ("", "%", "______", "nothing", "20261127-775E", "20261127-775EAB"):
        with pytest.raises(UsageError):
            jobs.find(store, text, ACCOUNT)


def test_only_jobs_that_are_done_or_cancelled_are_removed(store: Store, opened: Callable[[], Store]) -> None:
    done, open_job = published(store, [ANA], message="1"), published(store, [LUIS], message="2")
    sent(store, done.number)
    assert removal.remove(store, [done.number, open_job.number]) == 1
    other = opened()
    assert [each.number for each in jobs.listed(other)] == [open_job.number]
    assert history.entries(other, 10) == []
    assert history.usage(other, "day") == []
    assert [*recipients.with_results(other, done.number)] == []
    # What protects people stays.
    assert {phone for phone, _ in people.repeats(other, ACCOUNT, [ANA, LUIS])} == {ANA}


def test_a_long_job_is_removed_in_slices_that_leave_no_row(store: Store, clock: Clock) -> None:
    number = imported(store, [phone(each) for each in range(1000)])
    recipients.add(store, number, [], [NewRecipient(each, phone(each), 1) for each in range(2000, 3000)])
    assert [len(part) for part in recipients.file_rows(store, number)] == [1000, 1000]
    jobs.publish(store, number, state="active", digest=b"1")
    sent(store, number)
    assert len([*recipients.with_results(store, number)]) == len([*results.accepted(store, number)]) == 2000
    assert removal.remove(store, [number]) == 1
    assert store.db.value("SELECT count(*) FROM recipient") == 0
    assert store.db.value("SELECT count(*) FROM result WHERE id IS NOT NULL OR credits IS NOT NULL") == 0
    assert store.db.value("SELECT count(*) FROM content WHERE parameters <> ''") == 0
    clock.now += KEEP / 1000 + 1
    removal.tidy(store)
    for table in ("job", "result", "content"):
        assert store.db.value(f"SELECT count(*) FROM {table}") == 0


def test_an_import_whose_process_has_died_is_deleted_and_not_published(
    store: Store, opened: Callable[[], Store]
) -> None:
    number, other = imported(store, [ANA]), opened()
    removal.tidy(other)
    assert store.db.value("SELECT count(*) FROM job") == 1
    store.db.change("UPDATE job SET owner = 12345 WHERE number = ?", (number,))  # as if its lock was lost
    removal.tidy(other)
    with pytest.raises(StoreNotReachedError, match="lost this process during the import; nothing was sent"):
        recipients.add(store, number, [], [NewRecipient(3, LUIS, 1)])
    with pytest.raises(StoreNotReachedError):
        jobs.publish(store, number, state="active", digest=b"")
    for table in ("job", "recipient", "content"):
        assert store.db.value(f"SELECT count(*) FROM {table}") == 0


def test_a_job_that_is_published_while_imports_are_checked_is_not_deleted(
    store: Store, opened: Callable[[], Store]
) -> None:
    other = opened()
    number = imported(other, [ANA])
    check = store.db.alive

    def publish_and_check(owners: Collection[int]) -> set[int]:
        jobs.publish(other, number, state="active", digest=b"")
        other.close()
        return check(owners)

    store.db.alive = publish_and_check  # type: ignore[method-assign]
    removal.tidy(store)
    assert store.db.value("SELECT count(*) FROM recipient WHERE job = ?", (number,)) == 1


def test_strings_that_a_database_cannot_store_are_escaped(store: Store) -> None:
    number = jobs.create(store, ACCOUNT, "main", "sms bulk")
    recipients.add(
        store,
        number,
        [NewContent(1, "{}", None, 1)],
        [NewRecipient(2, "1\x002\ud800", None, "[]", "invalid", "\ud83d")],
    )
    row = next(recipients.with_results(store, number))
    assert (row.phone, row.error) == ("1\\x002\\ud800", "\\ud83d")


def test_the_newest_job_of_a_machine_has_begun(store: Store) -> None:
    assert jobs.last(store) is None
    first = published(store, [ANA], message="1")
    owners.take(store, first.number).finish("paused")
    published(store, [LUIS], message="2")
    newest = jobs.last(store)
    assert newest is not None
    assert newest.number == first.number
    store.machine = "another"
    assert jobs.last(store) is None


def test_a_plan_reads_recipients_with_their_messages_and_rows_that_are_left_out(store: Store) -> None:
    number = imported(store, [ANA, LUIS, ANA])
    long = NewContent(2, '{"sms": "long"}', b"long", 3)
    recipients.add(
        store, number, [long], [NewRecipient(9, EVA, 2), NewRecipient(10, "x", None, "[]", "invalid", "short")]
    )
    recipients.exclude(store, number, [LUIS, EVA[:-1]], "in no.txt")
    hola = '{"sms": "Hola"}'
    assert [*recipients.file_rows(store, number)] == [
        [
            (1, ANA, None, None, "[]", hola, b"Hola", 1),
            (2, LUIS, "excluded", "in no.txt", "[]", None, None, 0),
            (3, ANA, "duplicate", "same number as line 1", "[]", None, None, 0),
            (9, EVA, None, None, None, '{"sms": "long"}', b"long", 3),
            (10, "x", "invalid", "short", "[]", None, None, 0),
        ]
    ]
    job = jobs.publish(store, number, state="active", digest=b"1")
    assert (job.pending, job.excluded, job.invalid, job.duplicate, job.recipients) == (2, 1, 1, 1, 5)
    assert sent(store, number) == [ANA, EVA]


def test_settings_and_due_time_change_only_if_no_process_runs_the_job(
    store: Store, opened: Callable[[], Store], clock: Clock
) -> None:
    job = published(store, [ANA, LUIS])
    intend(owners.take(store, job.number), size=1)
    store.db.change("UPDATE job SET owner = 12345 WHERE number = ?", (job.number,))  # its owner has died
    later = int(clock.now * 1000) + 60_000
    owners.schedule(store, job.number, '{"rate": 6}', later)
    after = jobs.get(store, job.number)
    assert (after.settings, after.due, after.shown_state) == ('{"rate": 6}', later, "scheduled")
    assert (after.unknown, after.pending, after.sending) == (1, 1, 0)
    assert jobs.listed(store, states=["scheduled"], due_before=later - 1) == []
    assert len(jobs.listed(store, states=["scheduled"], due_before=later)) == 1

    other = opened()
    owners.take(store, job.number, "run-due")
    for change in (owners.take, partial(owners.schedule, due=later)):
        with pytest.raises(ConditionError) as error:
            change(other, job.number, settings="{}")
        assert error.value.reason == "running_elsewhere"
    assert jobs.get(store, job.number).settings == '{"rate": 6}'


def test_a_removed_job_cannot_be_taken_paused_or_sent_again_and_gets_no_settings(store: Store) -> None:
    job = published(store, [ANA])
    owners.ask_to_stop(store, job.number, "cancelled")
    assert removal.remove(store, [job.number]) == 1
    for change in (
        owners.take,
        partial(owners.ask_to_stop, state="paused"),
        partial(owners.resend, outcomes=["refused"]),
        partial(owners.take, settings='{"file": "people.csv"}'),
        partial(owners.schedule, settings='{"file": "people.csv"}', due=1),
    ):
        with pytest.raises(ConditionError) as error:
            change(store, job.number)
        assert error.value.reason == "job_removed"
    assert store.db.value("SELECT settings FROM job") == "{}"


def test_a_job_is_not_removed_while_another_process_changes_it(store: Store, opened: Callable[[], Store]) -> None:
    job, other = published(store, [ANA]), opened()
    sent(store, job.number)
    with ThreadPoolExecutor(1) as pool:
        with owners._changing(store, job.number):
            removing = pool.submit(removal.remove, other, [job.number])
            assert wait([removing], 0.2).not_done
        assert removing.result(PATIENCE) == 1


def test_a_job_whose_row_is_missing_is_damage(store: Store) -> None:
    with pytest.raises(ConfigurationError, match="job 7 is missing") as error:
        jobs.get(store, 7)
    assert error.value.reason == "damaged_store"
