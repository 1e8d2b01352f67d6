"""Real processes are killed or disconnected, or their disk or clock fails. Each recipient gets one message at most."""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from faults.kills import (
    BATCH,
    CONCURRENCY,
    Room,
    database_killed,
    due_on_three_machines,
    end,
    killed,
    network_cut,
    session_lost,
    stopped,
)
from msgctl.store import jobs
from msgctl.store.store import open_store
from support import PATIENCE
from support.disks import mounted
from support.postgres import Cluster, running
from support.server import KEPT, Server
from support.service import Behaviour, Received, respond

pytestmark = pytest.mark.slow

RETRIED = """
import msgctl.store.results as results
from collections import Counter

def lose(db, job):
    lost = db.change("DELETE FROM result WHERE job = ? AND outcome = 'sending'", (job,))
    results.add_to_counts(db, job, Counter(sending=-lost, pending=lost))

results.lose = lose
"""


def test_killed_processes_are_continued_on_other_machines(location: str, tmp_path: Path) -> None:
    with Server(delay=0.01) as server:
        killed(Room(tmp_path, location, server, 3))


def test_a_second_send_after_a_kill_is_detected(tmp_path: Path) -> None:
    with Server(delay=0.05) as server:
        room = Room(tmp_path, str(tmp_path / "store.sqlite3"), server, 4)
        room.plant(RETRIED)
        with pytest.raises(AssertionError, match=r"got \d messages"):  # noqa: PT012
            for _ in range(5):
                killed(room)


def test_run_due_on_three_machines_at_once_runs_each_job_once(location: str, tmp_path: Path) -> None:
    with Server(delay=0.01) as server:
        due_on_three_machines(Room(tmp_path, location, server, 5))


@pytest.mark.parametrize("fault", [stopped, session_lost, network_cut])
def test_a_job_survives_a_lost_session(cluster: Cluster, tmp_path: Path, fault: Callable[[Room], None]) -> None:
    cluster.empty()
    with Server(delay=0.01) as server:
        fault(Room(tmp_path, cluster, server, 6))


def test_a_job_survives_a_database_that_is_killed(tmp_path: Path) -> None:
    with running("fsync=on") as cluster, Server(delay=0.01) as server:
        database_killed(Room(tmp_path, cluster, server, 7))


MAX_IDLE = 60.0
"""Seconds after which a machine that is silent loses its jobs: the promise, independent of msgctl's code."""
MARGIN = 30.0
"""Seconds that a busy machine may take longer."""


def test_a_machine_that_is_silent_for_a_minute_loses_its_job_and_sends_nothing_more(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.empty()
    with Server() as server, closing(open_store(cluster.url())) as store:
        room = Room(tmp_path, cluster, server, 8)
        server.script("waits", 200, "", "to /send-sms", "")
        job = room.new_job()
        silent = job.begin(0)
        assert server.wait_for(4, "/send-sms", PATIENCE)  # all its requests are in flight: it waits for the responses

        def is_running() -> bool:
            row = jobs.named(store, room.account, job.name)
            return row is not None and row.is_running

        assert is_running()
        silent.send_signal(signal.SIGSTOP)
        server.released.set()
        deadline = time.monotonic() + MAX_IDLE + MARGIN
        while is_running():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        job.finish()
        arrived = len(server.requests("/send-sms"))
        silent.send_signal(signal.SIGCONT)
        assert end(silent) == 6
        assert len(server.requests("/send-sms")) == arrived
        job.finish()  # with the outcomes that it received late


def test_a_clock_that_is_set_back_loses_no_recipient(tmp_path: Path) -> None:
    with Server(delay=0.05) as server:
        room = Room(tmp_path, str(tmp_path / "store.sqlite3"), server, 9)
        job = room.new_job()
        for number, seconds in enumerate((0, 7_200, 864_000_000), 1):  # finally to a time before the job was created
            process = job.begin(0, offset=-seconds)
            assert job.wait(process, 8 * number)
            end(process, kill=True)
        end(job.begin(0, offset=-1_700_000_000))  # as if the clock's battery were empty
        job.finish()


def test_a_job_on_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    with Server(delay=0.005) as server, mounted(tmp_path / "disk", "2m") as disk:
        room = Room(tmp_path, str(disk.path / "store.sqlite3"), server, 10)
        assert_job_survives(room, lambda: disk.resize("64m"))


def test_a_job_at_the_file_size_limit_loses_nothing(tmp_path: Path) -> None:
    with Server(delay=0.005) as server:
        room = Room(tmp_path, str(tmp_path / "store.sqlite3"), server, 11)
        room.plant("import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, 1_500_000))")
        assert_job_survives(room, lambda: room.plant(""))


def assert_job_survives(room: Room, make_space: Callable[[], None]) -> None:
    job = room.new_job(3_000)
    assert [end(job.begin(0)), end(job.begin(0))] == [3, 3]
    assert 0 < len(job.arrived()) < len(job.phones)
    make_space()
    assert job.finish().unknown <= 4 * CONCURRENCY * BATCH


def test_a_job_without_disk_space_sends_nothing(tmp_path: Path) -> None:
    with Server() as server, mounted(tmp_path / "disk", "2m") as disk:
        room = Room(tmp_path, str(disk.path / "store.sqlite3"), server, 12)
        assert end(room.new_job(30_000).begin(0)) == 3
        assert not server.requests(None)


class SlowRoutes(Server):
    """Messages whose ID ends in 0 stay queued."""

    def behaviour(self, request: Received) -> Behaviour:
        usual = super().behaviour(request)
        is_queued = request.path.endswith("/messages-state") and request.parameters["id"].endswith("0")
        return respond({"state": "queued", "id": request.parameters["id"]}, headers=KEPT) if is_queued else usual

    @property
    def questions(self) -> Counter[str]:
        return Counter(request.parameters["id"] for request in self.requests("/messages-state"))


def test_checking_states_can_be_killed_and_continued(tmp_path: Path) -> None:
    with SlowRoutes(delay=0.01) as server:
        room = Room(tmp_path, str(tmp_path / "store.sqlite3"), server, 13)
        job = room.new_job(600)
        job.finish()
        killed = room.start(0, "job", "states", job.name)
        assert server.wait_for(300, "/messages-state", PATIENCE)
        end(killed, kill=True)
        assert server.questions.total() < 600
        assert end(room.start(0, "job", "states", job.name)) == 0
        asked = server.questions
        assert {*asked} == {f"m{phone}" for phone in job.phones}
        # A message in a final state is not checked again, unless the kill came before the state was stored.
        assert sum(times > 1 and not message.endswith("0") for message, times in asked.items()) <= 202
        server.received.clear()
        assert end(room.start(0, "job", "states", job.name)) == 0
        assert server.questions == {message: 1 for message in asked if message.endswith("0")}
