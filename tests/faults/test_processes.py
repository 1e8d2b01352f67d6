"""Real processes that are killed, stopped and disconnected while they send: the short version of `kills`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from faults.kills import (
    Room,
    WrongError,
    database_killed,
    due_on_three_machines,
    killed,
    network_cut,
    session_lost,
    stopped,
)
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


def test_a_msgctl_that_sends_again_after_a_kill_is_found_out(tmp_path: Path) -> None:
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
