"""Real processes that are killed, stopped and disconnected while they send: the short version of `kills`."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from faults.kills import (
    Room,
    WrongError,
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
from support.counting_server import counting
from support.postgres import Cluster, running

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
    with counting(0.01) as server:
        killed(Room(tmp_path, location, server, Random(3)))  # raises WrongError


def test_a_second_send_after_a_kill_is_detected(tmp_path: Path) -> None:
    with counting(0.05) as server:
        room = Room(tmp_path, str(tmp_path / "store.sqlite3"), server, Random(4))
        room.plant(RETRIED)
        with pytest.raises(WrongError):
            _kill_jobs(room, 5)


def _kill_jobs(room: Room, number: int) -> None:
    for _ in range(number):
        killed(room)


def test_run_due_on_three_machines_at_once_runs_each_job_once(location: str, tmp_path: Path) -> None:
    with counting(0.01) as server:
        due_on_three_machines(Room(tmp_path, location, server, Random(5)))


@pytest.mark.parametrize("fault", [stopped, session_lost, network_cut])
def test_a_job_survives_a_lost_session(
    cluster: Cluster, tmp_path: Path, fault: Callable[[Room, Cluster], None]
) -> None:
    cluster.empty()
    with counting(0.01) as server:
        fault(Room(tmp_path, cluster.url(), server, Random(6)), cluster)


def test_a_job_survives_a_database_that_is_killed(tmp_path: Path) -> None:
    with running("fsync=on") as cluster, counting(0.01) as server:
        database_killed(Room(tmp_path, cluster.url(), server, Random(7)), cluster)


MAX_IDLE = 60.0
"""Seconds after which a machine that is silent loses its jobs; a promise that is not read from msgctl."""
MARGIN = 30.0
"""Seconds that a busy machine may take longer."""


def test_a_machine_that_is_silent_for_a_minute_loses_its_job_and_sends_nothing_more(
    cluster: Cluster, tmp_path: Path
) -> None:
    cluster.empty()
    with counting() as server, closing(open_store(cluster.url())) as store:
        room = Room(tmp_path, cluster.url(), server, Random(8))
        server.hold()
        job = room.new_job()
        silent = job.begin(0)
        server.wait_for(4)  # all its requests are in flight: it waits for the responses

        def is_running() -> bool:
            row = jobs.named(store, room.account, job.name)
            return row is not None and row.is_running

        assert is_running()
        silent.send_signal(signal.SIGSTOP)
        server.release()
        deadline = time.monotonic() + MAX_IDLE + MARGIN
        while is_running():
            assert time.monotonic() < deadline
            time.sleep(0.1)
        job.finish()
        arrived = len(server.dispatches)
        silent.send_signal(signal.SIGCONT)
        end(silent)
        assert silent.returncode == 6
        assert len(server.dispatches) == arrived
        job.finish()  # with the outcomes that it received late
