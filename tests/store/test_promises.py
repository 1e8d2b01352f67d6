"""The store keeps its promises if several processes work at once, or if one is killed between two changes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import pytest

from msgctl.errors import ConditionError, MsgctlError
from msgctl.store import history, jobs, owners, people, recipients, removal, results, upgrades
from msgctl.store.queue import ExclusionRules
from msgctl.store.results import RequestOutcome
from msgctl.store.store import Store, open_store
from store.campaigns import ACCOUNT, ANA, LUIS, SMS, imported, intend, phone, published, record, responses, sent
from store.processes import before_lock, child, killed_everywhere, status_of, wait_until
from support import PATIENCE


@pytest.fixture
def store(location: str) -> Iterator[Store]:
    """A store with the time of the processes that use it, too."""
    with closing(open_store(location, timeout=PATIENCE)) as store:
        yield store


def at_once(location: str, *work: Callable[[Store], object]) -> list[int]:
    """Do some work in processes at the same time, and return their exit statuses."""
    return [status_of(pid) for pid in [child(location, each) for each in work]]


def check(store: Store, number: int) -> jobs.Job:
    """Compare the totals of a job with its rows, and return it."""
    job = jobs.get(store, number)
    results.check_counts(store, job)
    total = "SELECT coalesce(sum(credits), 0), count(DISTINCT request) FROM result WHERE job = ? AND request > 0"
    assert store.db.row(total, (number,)) == (job.credits, job.requests)
    return job


def free(store: Store, number: int) -> None:
    """Wait until the owner of a job is dead for the database, too."""
    wait_until(lambda: not jobs.get(store, number).is_running)


# --- a new store


def test_processes_that_create_a_store_at_once_use_the_same_one(
    location: str, engine: str, request: pytest.FixtureRequest
) -> None:
    if engine == "postgresql":
        request.getfixturevalue("cluster").empty()

    def work(store: Store, n: int) -> None:
        published(store, [ANA], message=str(n))

    assert at_once(location, *(partial(work, n=each) for each in range(4))) == [0] * 4
    with closing(open_store(location)) as store:
        assert len(jobs.listed(store)) == 4


def test_an_upgrade_that_is_killed_changes_nothing(store: Store, location: str) -> None:
    def work(other: Store, n: int) -> None:
        upgrades.upgrade(
            other.db, (*upgrades.STEPS, f"CREATE TABLE one{n} (x INTEGER); CREATE TABLE two{n} (x INTEGER)")
        )

    for n in killed_everywhere(location, work):
        version = store.db.value("SELECT value FROM meta WHERE name = 'version'")
        work(store, n)
        assert store.db.value("SELECT value FROM meta WHERE name = 'version'") == str(upgrades.VERSION + 1)
        for table in (f"one{n}", f"two{n}"):
            assert store.db.value(f"SELECT count(*) FROM {table}") == 0
            store.db.change(f"DROP TABLE {table}")
        store.db.change("UPDATE meta SET value = ? WHERE name = 'version'", (str(upgrades.VERSION),))
    assert version == str(upgrades.VERSION + 1)


# --- opt-outs


def test_opt_outs_that_processes_add_at_once_are_all_kept(store: Store, location: str) -> None:
    def work(other: Store, n: int) -> None:
        people.add_optouts(other, [(phone(each), "sms") for each in range(n, n + 600)])

    assert at_once(location, *(partial(work, n=each) for each in (0, 300, 600))) == [0] * 3
    assert [each.phone for each in people.optouts(store)] == [phone(each) for each in range(1200)]


def test_a_list_of_opt_outs_is_added_or_removed_completely_or_not_at_all(store: Store, location: str) -> None:
    def work(other: Store, n: int) -> None:
        people.add_optouts(other, [(phone(1000 * n + each), people.ALL) for each in range(600)])
        people.remove_optouts(other, [phone(1000 * n + each) for each in range(2)])

    for n in killed_everywhere(location, work):
        count = len(people.opted_out(store, [phone(1000 * n + each) for each in range(600)], "call"))
        assert count in (0, 600, 598)


# --- names


def test_a_name_that_several_processes_publish_at_once_belongs_to_one_job(store: Store, location: str) -> None:
    def work(other: Store) -> None:
        jobs.publish(other, imported(other, [ANA]), state="active", digest=b"1", name="day")

    assert at_once(location, work, work, work, work) == [0] * 4
    assert len(jobs.listed(store)) == 1


def test_a_name_belongs_to_the_job_that_is_published_first(store: Store, opened: Callable[[], Store]) -> None:
    number = imported(store, [ANA])
    before_lock(store, partial(published, opened(), [ANA], name="day"))
    job = jobs.publish(store, number, state="active", digest=b"Hola", name="day")
    assert (job.name, job.number != number) == ("day", True)


def test_an_import_that_is_killed_leaves_its_name_free_or_a_complete_job(store: Store, location: str) -> None:
    def work(other: Store, n: int) -> None:
        number = imported(other, [ANA, LUIS])
        if jobs.publish(other, number, state="active", digest=b"1", name=f"day-{n}").number != number:
            removal.discard(other, number)

    for n in killed_everywhere(location, work):
        earlier = [each.number for each in jobs.listed(store) if each.name == f"day-{n}"]
        work(store, n)
        (job,) = (each for each in jobs.listed(store) if each.name == f"day-{n}")
        assert earlier in ([], [job.number])
        assert check(store, job.number).pending == 2

    def is_tidy() -> bool:
        removal.tidy(store)
        return not store.db.value("SELECT count(*) FROM job WHERE state = 'importing'")

    wait_until(is_tidy)  # the imports of dead processes
    count = store.db.value("SELECT count(*) FROM job")
    assert store.db.value("SELECT count(*) FROM recipient") == 2 * count


# --- repeats and --at-most

RULES = [pytest.param(SMS, id="repeats"), pytest.param(ExclusionRules("sms", again=True, at_most=1), id="at most")]


def test_a_job_is_run_by_one_of_several_processes(store: Store, location: str) -> None:
    job = published(store, [phone(each) for each in range(20)])

    def work(other: Store) -> None:
        with suppress(MsgctlError):
            sent(other, job.number, size=2)

    assert at_once(location, work, work, work, work) == [0] * 4
    assert store.db.value("SELECT count(*) FROM result") == check(store, job.number).accepted == 20


@pytest.mark.parametrize("rules", RULES)
def test_jobs_that_run_at_once_send_to_each_person_once(store: Store, location: str, rules: ExclusionRules) -> None:
    phones = [phone(each) for each in range(40)]
    numbers = [published(store, each).number for each in (phones, phones[::-1], phones[20:] + phones[:20])]
    work = [partial(sent, number=number, rules=rules, size=3) for number in numbers]
    assert at_once(location, *work) == [0] * 3
    after = [check(store, number) for number in numbers]
    assert sum(each.accepted for each in after) == 40
    assert all(each.accepted + each.excluded == 40 for each in after)
    assert store.db.value("SELECT count(DISTINCT phone) FROM result WHERE outcome = 'accepted'") == 40


def test_two_jobs_send_to_no_one_twice_even_if_one_is_killed(store: Store, location: str, tmp_path: Path) -> None:
    log = tmp_path / "sends"

    def work(other: Store, n: int) -> None:
        sending = owners.take(other, n)
        outcomes: list[RequestOutcome] = []
        while True:
            with sending.batch(SMS, 2):
                sending.record(outcomes)
                intents = [intent for _ in range(2) if (intent := sending.intend(2))]
            if not intents:
                break
            with log.open("a") as file:
                file.writelines(f"{each}\n" for intent in intents for each in intent.phones)
            outcomes = responses(intents)
        sending.finish("done")

    def prepare(n: int) -> int:
        return published(store, [phone(10 * n + each) for each in range(3)]).number

    for first in killed_everywhere(location, work, prepare):
        free(store, first)
        phones = [str(each.phone) for each in recipients.with_results(store, first)]
        second = published(store, phones[::-1]).number
        for number in (second, first):
            if jobs.get(store, number).state != "done":
                work(store, number)
            assert check(store, number).pending == 0
        sends = log.read_text().split()
        assert len(sends) == len({*sends})
        missing = {*phones} - {*sends}
        assert len(missing) <= check(store, first).unknown
    assert not missing


def test_a_job_that_another_process_takes_first_is_not_changed(store: Store, opened: Callable[[], Store]) -> None:
    job, other = published(store, [ANA]), opened()
    for change in (
        owners.take,
        partial(owners.resend, outcomes=["refused"]),
        partial(owners.schedule, settings="{}", due=1),
    ):
        before_lock(store, partial(owners.take, other, job.number))
        with pytest.raises(ConditionError) as error:
            change(store, job.number)
        assert error.value.reason == "running_elsewhere"
        store.db.change("UPDATE job SET owner = NULL WHERE number = ?", (job.number,))


# --- resends


def refused_job(store: Store, message: str) -> jobs.Job:
    job = published(store, [ANA, LUIS], message=message)
    sent(store, job.number, {ANA: "refused", LUIS: "refused"})
    return job


def test_a_resend_that_is_killed_is_fixed_completely_or_not_at_all(store: Store, location: str) -> None:
    def work(other: Store, n: int) -> None:
        owners.resend(other, n, ["refused"])

    for number in killed_everywhere(location, work, lambda n: refused_job(store, f"{n}").number):
        job = check(store, number)
        assert (job.attempt, job.pending, job.refused) in ((1, 0, 2), (2, 2, 0))
        if job.attempt == 1:
            work(store, number)
        assert check(store, number).pending == 2
    assert job.pending == 2


# --- cancels


def test_a_job_that_another_process_cancels_while_it_runs_sends_nothing_more(store: Store, location: str) -> None:
    job = published(store, [phone(each) for each in range(9)])
    ready = os.pipe()

    def run(other: Store) -> None:
        sending = owners.take(other, job.number)
        os.write(ready[1], b"1")
        while not sending.job.stopping:
            record(sending, intend(sending, size=1))
        sending.finish("cancelled")

    pid = child(location, run)
    os.read(ready[0], 1)
    wait_until(lambda: not owners.ask_to_stop(store, job.number, "cancelled").is_running)
    assert status_of(pid) == 0
    after = check(store, job.number)
    assert (after.shown_state, after.sending, after.unknown) == ("cancelled", 0, 0)


def test_a_cancel_that_is_killed_can_be_repeated(store: Store, location: str) -> None:
    def prepare(n: int) -> int:
        number = refused_job(store, f"{n}").number
        owners.resend(store, number, ["refused"])
        intend(owners.take(store, number), size=1)  # in flight when its owner dies
        store.db.change("UPDATE job SET owner = 12345 WHERE number = ?", (number,))
        return number

    def work(other: Store, n: int) -> None:
        owners.ask_to_stop(other, n, "cancelled")

    for number in killed_everywhere(location, work, prepare):
        job = check(store, number)
        assert job.shown_state in ("paused", "cancelled")
        work(store, number)
        after = check(store, number)
        assert (after.state, after.unknown, after.refused, after.pending) == ("cancelled", 1, 1, 0)
    assert job.shown_state == "cancelled"


# --- removals


def test_a_removal_that_is_killed_hides_the_job_everywhere_or_nowhere(store: Store, location: str) -> None:
    def prepare(n: int) -> int:
        number = published(store, [ANA, LUIS], message=f"{n}").number
        sent(store, number)
        return number

    def work(other: Store, n: int) -> None:
        removal.remove(other, [n])

    for number in killed_everywhere(location, work, prepare):
        is_listed = number in [each.number for each in jobs.listed(store)]
        assert len(history.entries(store, 99, job=number)) == (2 if is_listed else 0)
        removal.tidy(store)
        assert len([*recipients.with_results(store, number)]) == (2 if is_listed else 0)
        assert [*people.repeats(store, ACCOUNT, [ANA]).values()].count(number) == 1
    assert not is_listed
