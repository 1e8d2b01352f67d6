"""Jobs whose process, connections, disk or clock fail: every recipient gets exactly one message."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import pytest

from msgctl.store import owners
from msgctl.store.jobs import find
from msgctl.store.store import open_store
from support.bulk import CONCURRENCY, Bulk, NewBulk, assert_true
from support.counting_server import CountingServer, counting
from support.disks import Disk, mounted
from support.jobs import REFUSAL, Jobs, accepting, counts
from support.service import Service

BATCH = 10


@pytest.fixture
def counter(monkeypatch: pytest.MonkeyPatch) -> Iterator[CountingServer]:
    """A server that counts, and the environment that points to it."""
    with counting(delay=0.005) as counter:
        monkeypatch.setenv("MSGCTL_BASE_URL", counter.base_url)
        monkeypatch.setenv("MSGCTL_CLIENT", "12345")
        monkeypatch.setenv("MSGCTL_KEY", "key")
        yield counter


@pytest.fixture
def new_bulk(tmp_path: Path) -> Iterator[NewBulk]:
    with contextlib.ExitStack() as stack:

        def new(number: int, *options: str) -> Bulk:
            return stack.enter_context(contextlib.closing(Bulk(tmp_path, number, *options)))

        yield new


def test_two_processes_that_resume_at_once_send_to_everyone_once(counter: CountingServer, new_bulk: NewBulk) -> None:
    bulk = new_bulk(300, "--batch-size", str(BATCH))
    begun = bulk.begin()
    counter.wait_for(3)
    begun.kill()
    counter.hold()  # so that the first one is still running when the other one checks
    arrived = len(counter.dispatches)
    with ThreadPoolExecutor() as pool:
        ends = [pool.submit(each.end) for each in (bulk.resume(), bulk.resume())]
        counter.wait_for(arrived + CONCURRENCY)
        first = next(as_completed(ends)).result()
        assert first.code == 6
        assert "is running on" in first.err
        counter.release()
    assert {end.result().code for end in ends} <= {0, 3, 6}
    assert assert_true(bulk, counter)["pending"] == 0
    assert max(counter.arrived().values()) == 1


TURNED_BACK = "import time; now = time.time; time.time = lambda: now() - {seconds}"


def test_a_clock_that_is_set_back_loses_no_recipient(counter: CountingServer, new_bulk: NewBulk) -> None:
    bulk = new_bulk(300, "--batch-size", str(BATCH), "--rate", "100000")
    running = None
    for number, seconds in enumerate((0, 7_200, 864_000_000), start=1):  # in the end, before the job was created
        bulk.before_start(TURNED_BACK.format(seconds=seconds))
        running = bulk.resume() if running else bulk.begin()
        counter.wait_for(7 * number)
        running.kill()
    bulk.before_start(TURNED_BACK.format(seconds=1_700_000_000))  # as if the clock's battery were empty
    code = bulk.resume().end().code
    outcomes = assert_true(bulk, counter)
    assert outcomes["pending"] == 0
    assert code == (6 if outcomes["unknown"] else 0)
    assert max(counter.arrived().values()) == 1
    assert bulk.shown()["created"] > "2026"


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Disk]:
    """A disk of 2 MiB, on which the jobs are."""
    with mounted(tmp_path / "disk", "2m") as disk:
        monkeypatch.setenv("XDG_STATE_HOME", str(disk.path))
        yield disk


@pytest.mark.slow
def test_a_job_on_a_full_disk_loses_nothing(counter: CountingServer, small_disk: Disk, new_bulk: NewBulk) -> None:
    bulk = new_bulk(3_000, "--batch-size", str(BATCH))
    _stops_for_want_of_room(bulk, counter)
    small_disk.resize("64m")
    _goes_on(bulk, counter)


@pytest.mark.slow
def test_a_job_at_the_file_size_limit_loses_nothing(counter: CountingServer, new_bulk: NewBulk) -> None:
    bulk = new_bulk(3_000, "--batch-size", str(BATCH))
    bulk.before_start("import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, 1_500_000))")
    _stops_for_want_of_room(bulk, counter)
    bulk.before_start("")
    _goes_on(bulk, counter)


def _stops_for_want_of_room(bulk: Bulk, counter: CountingServer) -> None:
    for running in (bulk.begin, bulk.resume):
        arrived = len(counter.dispatches)
        done = running().end()
        assert done.code == 3, done.err
        assert "Cannot use" in done.err or "could not be written" in done.err
        assert bulk.id in done.err or "nothing was sent" in done.err
        if "nothing was sent" in done.err:
            assert len(counter.dispatches) == arrived
        outcomes = assert_true(bulk, counter)
        assert outcomes["pending"] > 0
        assert outcomes["unknown"] <= 2 * CONCURRENCY * BATCH


def _goes_on(bulk: Bulk, counter: CountingServer) -> None:
    code = bulk.resume().end().code
    outcomes = assert_true(bulk, counter)
    assert outcomes["pending"] == 0
    assert code == (6 if outcomes["unknown"] else 0)
    assert outcomes["unknown"] <= 2 * CONCURRENCY * BATCH
    assert max(counter.arrived().values()) == 1


@pytest.mark.slow
def test_a_job_without_disk_space_sends_nothing(counter: CountingServer, small_disk: Disk, new_bulk: NewBulk) -> None:
    done = new_bulk(30_000).begin().end()
    assert done.code == 3
    assert "full" in done.err
    assert not counter.dispatches


@pytest.mark.slow
def test_checking_states_can_be_killed_and_continued(counter: CountingServer, new_bulk: NewBulk) -> None:
    counter.state = lambda message: "queued" if message.endswith("0") else "delivered"
    bulk = new_bulk(600)
    assert bulk.begin().end().code == 0
    counter.delay = 0.01  # so that the kill comes in between
    running = bulk.states()
    counter.wait_for_questions(300)
    running.kill()
    stopped_after = len(counter.questions)
    assert stopped_after < 600
    assert bulk.states().end().code == 0
    asked = Counter(counter.questions)
    assert {counter.phone_of(message) for message in asked} == set(bulk.phones)
    checked_twice = [message for message, times in asked.items() if times > 1 and not message.endswith("0")]
    # A message in a final state is not checked again, unless the kill came before the state was written.
    assert len(checked_twice) <= 202
    queued = sum(message.endswith("0") for message in asked)
    assert bulk.shown()["states"] == {"delivered": 600 - queued, "queued": queued}
    counter.questions.clear()
    assert bulk.states().end().code == 0
    assert Counter(counter.questions) == {message: 1 for message in asked if message.endswith("0")}


def test_a_resume_after_a_killed_resend_sends_to_everyone_who_is_pending(
    home: Path, service: Service, jobs: Jobs, everyone: str
) -> None:
    service.always(REFUSAL)
    job = jobs.send(everyone, "--canary", "1", "--batch-size", "1", "--name", "today")
    service.always(accepting(service))
    with contextlib.closing(open_store(home / "state" / "msgctl" / "store.sqlite3")) as store:
        owners.resend(store, find(store, "today").number, ["refused"])  # as if it was killed then
    assert jobs("job", "resume", "today", "--yes").code == 0
    assert counts(jobs.shown(job)) == {"accepted": 3}


def test_a_resend_leaves_other_recipients_pending(service: Service, jobs: Jobs, everyone: str) -> None:
    service.always(REFUSAL)
    job = jobs.send(everyone, "--canary", "1", "--batch-size", "1", "--name", "today")
    service.always(accepting(service))
    assert jobs("job", "resend", "today", "--only", "refused", "--yes").code == 0
    assert counts(jobs.shown(job)) == {"accepted": 1, "pending": 2}
