"""A job whose processes are killed before any statement sends each recipient at most one message."""

from __future__ import annotations

import os
import random
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

from faults.sender import SETTINGS, arrived, check, new_job, phones, send
from msgctl.store import jobs
from msgctl.store.store import open_store
from store.processes import child
from support import PATIENCE

NUMBER = 60
MAX_CREDITS = 30


def test_a_job_whose_processes_are_killed_stays_within_its_credits_and_reaches_everyone_once(
    location: str, tmp_path: Path
) -> None:
    dice, arrivals = random.Random(1), tmp_path / "arrivals"
    with closing(open_store(location, timeout=PATIENCE)) as store:
        job = new_job(store, NUMBER)
        limited = partial(send, job=job, arrivals=arrivals, settings=replace(SETTINGS, max_credits=MAX_CREDITS))
        for most in (30, 30, 30, 50, 10_000):
            for process in [child(location, limited, changes=dice.randrange(1, most)) for _ in range(2)]:
                os.waitpid(process, 0)
        limited(store)
        assert sum(arrived(arrivals).values()) <= MAX_CREDITS
        row = jobs.get(store, job)
        assert (row.state, row.accepted + row.unknown) == ("paused", MAX_CREDITS)
        check(store, send(store, job, arrivals), phones(NUMBER), arrived(arrivals))
