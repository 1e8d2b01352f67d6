"""Jobs that are killed at any statement, or started by several processes: every recipient gets exactly one message."""

from __future__ import annotations

import os
import random
import time
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from faults.sender import SETTINGS, FakeClient, arrived, check, new_job, send, send_with
from msgctl.errors import ConditionError, MsgctlError, TurnedAwayError
from msgctl.jobs.sending import CHECK
from msgctl.store import jobs, owners, people
from msgctl.store.store import URLS, Store, open_store
from store.processes import child

NUMBER = 60
MAX_CREDITS = 20


@pytest.mark.parametrize("seed", range(6))
def test_a_job_that_is_killed_at_any_statement_is_continued(location: str, tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)
    arrivals = tmp_path / "arrivals"
    with closing(open_store(location, timeout=20)) as store:
        job = new_job(store, NUMBER)
        for _ in range(8):
            process = child(
                location,
                lambda other: send_with(other, job, arrivals),
                statements=dice.randrange(1, 60),
            )
            os.waitpid(process, 0)
        if jobs.get(store, job).state != "done":
            send(location, job, arrivals)
        check(store, job, arrivals, NUMBER)


def test_two_processes_with_the_same_job_send_it_once(location: str, tmp_path: Path) -> None:
    arrivals = tmp_path / "arrivals"
    with closing(open_store(location, timeout=20)) as store:
        job = new_job(store, NUMBER)
        processes = [child(location, lambda other: send_with(other, job, arrivals)) for _ in range(3)]
        for process in processes:
            os.waitpid(process, 0)
        check(store, job, arrivals, NUMBER)
        assert jobs.get(store, job).state == "done"


@pytest.mark.parametrize("seed", range(3))
def test_a_job_that_several_processes_resume_and_are_killed_stays_within_its_credits(
    location: str, tmp_path: Path, seed: int
) -> None:
    dice = random.Random(seed)
    arrivals = tmp_path / "arrivals"
    settings = replace(SETTINGS, max_credits=MAX_CREDITS)
    with closing(open_store(location, timeout=20)) as store:
        job = new_job(store, NUMBER)
        for most in (40, 60, 80, 100, 10_000):
            work = partial(send_with, job=job, arrivals=arrivals, settings=settings)
            for process in [child(location, work, statements=dice.randrange(most // 2, most)) for _ in range(2)]:
                os.waitpid(process, 0)
        assert sum(arrived(arrivals).values()) <= MAX_CREDITS
        found = jobs.get(store, job)
        assert (found.state, found.accepted + found.unknown) == ("paused", MAX_CREDITS)


def test_a_job_whose_owner_lives_and_has_lost_its_lock_is_sent_once(
    location: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    arrivals = tmp_path / "arrivals"
    with closing(open_store(location, timeout=20)) as store:
        job = new_job(store, NUMBER)
    owner = child(location, partial(send_with, job=job, arrivals=arrivals, client=Slow))
    while not arrived(arrivals):
        time.sleep(0.01)
    if location.startswith(URLS):
        request.getfixturevalue("cluster").disconnect()
    else:
        Path(f"{location}-owners").unlink()
    with suppress(ConditionError):  # its owner may be connected again
        send(location, job, arrivals)
    os.waitpid(owner, 0)
    with closing(open_store(location, timeout=20)) as store:
        if jobs.get(store, job).state != "done":
            send_with(store, job, arrivals)
        check(store, job, arrivals, NUMBER)


def test_two_jobs_with_the_same_message_send_it_to_each_person_once(location: str, tmp_path: Path) -> None:
    arrivals = tmp_path / "arrivals"
    with closing(open_store(location, timeout=20)) as store:
        both = [new_job(store, NUMBER) for _ in range(2)]
        processes = [child(location, partial(_send, job, arrivals)) for job in both]
        for process in processes:
            os.waitpid(process, 0)
        times = arrived(arrivals)
        assert (len(times), max(times.values())) == (NUMBER, 1)
        found = [jobs.get(store, job) for job in both]
        assert sum(job.accepted for job in found) == sum(job.excluded for job in found) == NUMBER


def test_a_job_that_is_cancelled_from_another_process_sends_nothing_more(location: str, tmp_path: Path) -> None:
    arrivals = tmp_path / "arrivals"
    with closing(open_store(location, timeout=20)) as store:
        job = new_job(store, 3000 // 100 * 8)
        process = child(location, lambda other: send_with(other, job, arrivals, client=Slow))
        while not arrived(arrivals):
            time.sleep(0.01)
        while owners.ask_to_stop(store, job, "cancelled").is_running:
            time.sleep(0.01)
        os.waitpid(process, 0)
        found, before = jobs.get(store, job), arrived(arrivals)
        assert (found.state, found.sending, found.accepted) == ("cancelled", 0, len(before))
        assert found.pending > 0


def _send(job: int, arrivals: Path, store: Store) -> None:
    send_with(store, job, arrivals)


class Slow(FakeClient):
    """A service that takes a while."""

    def fail(self) -> MsgctlError | None:
        time.sleep(0.1)
        return None


def test_a_job_that_stops_does_not_use_the_store_while_it_waits(location: str, tmp_path: Path) -> None:
    arrivals = tmp_path / "arrivals"
    commits: list[int] = []
    paused: list[int] = []

    class Stopped(FakeClient):
        """Another process pauses the job while a request is in flight."""

        def fail(self) -> MsgctlError | None:
            if not paused:
                paused.append(1)
                with closing(open_store(location, timeout=20)) as other:
                    owners.ask_to_stop(other, job, "paused")
                time.sleep(2 * CHECK)
                commits.clear()
                time.sleep(CHECK)
            return None

    with closing(open_store(location, timeout=20)) as store:
        job = new_job(store, 1)
        commit = store.db.commit

        def counted() -> None:
            commits.append(1)
            commit()

        store.db.commit = counted  # type: ignore[method-assign]
        send_with(store, job, arrivals, client=Stopped)
        assert len(commits) < 20


def test_a_person_who_opts_out_while_a_job_runs_gets_nothing_after_a_second(location: str, tmp_path: Path) -> None:
    arrivals = tmp_path / "arrivals"
    with closing(open_store(location, timeout=20)) as store:
        job = new_job(store, 100)
        process = child(location, lambda other: send_with(other, job, arrivals, client=Slow))
        while not arrived(arrivals):
            time.sleep(0.01)
        everyone = [f"57300{line:07}" for line in range(100)]
        people.add_optouts(store, [(phone, people.ALL) for phone in everyone])
        time.sleep(1)
        before = arrived(arrivals)
        os.waitpid(process, 0)
        assert arrived(arrivals) == before
        assert jobs.get(store, job).excluded == 100 - len(before)


class Crowded(FakeClient):
    """A service that turns every third request away for now."""

    asked = 0

    def fail(self) -> MsgctlError | None:
        Crowded.asked += 1
        if Crowded.asked % 3:
            return None
        error = TurnedAwayError("slow down", reason="rate_limited")
        error.retry_after = 0.01
        return error


def test_requests_that_are_turned_away_are_made_again(location: str, tmp_path: Path) -> None:
    arrivals = tmp_path / "arrivals"
    with closing(open_store(location, timeout=20)) as store:
        job = new_job(store, NUMBER)
        assert send_with(store, job, arrivals, client=Crowded).state == "done"
        check(store, job, arrivals, NUMBER)


def test_a_job_that_is_taken_over_sends_nothing_more_and_keeps_true_outcomes(location: str, tmp_path: Path) -> None:
    arrivals = tmp_path / "arrivals"

    class TakenOver(FakeClient):
        """Another process takes the job over while the first request is in flight."""

        def fail(self) -> MsgctlError | None:
            if not taken:
                taken.append(1)
                with closing(open_store(location, timeout=20)) as other:
                    other.db.change("UPDATE job SET owner = NULL WHERE number = ?", (job,))
                    owners.take(other, job)
            return None

    taken: list[int] = []
    with closing(open_store(location, timeout=20)) as store:
        job = new_job(store, NUMBER)
        with pytest.raises(MsgctlError) as caught:
            send_with(store, job, arrivals, client=TakenOver)
        assert caught.value.reason == "running_elsewhere"
        assert _outcomes(store, job)["accepted"] == len(arrived(arrivals))


def _outcomes(store: Store, job: int) -> dict[str, int]:
    return dict(store.db.rows("SELECT outcome, count(*) FROM result WHERE job = ? GROUP BY outcome", (job,)))


def test_a_job_whose_process_is_killed_before_it_is_cancelled_never_sends_again(location: str, tmp_path: Path) -> None:
    arrivals = tmp_path / "arrivals"
    with closing(open_store(location, timeout=20)) as store:
        job = new_job(store, NUMBER)
        process = child(location, lambda other: send_with(other, job, arrivals, client=Slow))
        while not arrived(arrivals):
            time.sleep(0.01)
        owners.ask_to_stop(store, job, "cancelled")
        os.kill(process, 9)
        os.waitpid(process, 0)
        before = arrived(arrivals)
        if jobs.get(store, job).state != "cancelled":  # its process may have been faster
            assert jobs.get(store, job).shown_state == "cancelled"
            with pytest.raises(MsgctlError):
                send_with(store, job, arrivals)
            owners.ask_to_stop(store, job, "cancelled")
        assert jobs.get(store, job).state == "cancelled"
        assert arrived(arrivals) == before
