"""Jobs whose processes are killed at any statement, or lose their locks: every recipient gets exactly one message."""

from __future__ import annotations

import os
import random
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from faults.sender import SETTINGS, arrived, check, new_job, send
from msgctl.errors import ConditionError
from msgctl.store import jobs
from msgctl.store.store import URLS, open_store
from store.processes import child, wait_until

NUMBER = 60
MAX_CREDITS = 30


@pytest.mark.parametrize("seed", range(2))
def test_a_job_whose_processes_are_killed_stays_within_its_credits_and_reaches_everyone_once(
    location: str, tmp_path: Path, seed: int
) -> None:
    dice, arrivals = random.Random(seed), tmp_path / "arrivals"
    with closing(open_store(location, timeout=20)) as store:
        job = new_job(store, NUMBER)
        limited = partial(send, job=job, arrivals=arrivals, settings=replace(SETTINGS, max_credits=MAX_CREDITS))
        for most in (60, 60, 60, 100, 10_000):
            for process in [child(location, limited, statements=dice.randrange(1, most)) for _ in range(2)]:
                os.waitpid(process, 0)
        limited(store)
        assert sum(arrived(arrivals).values()) <= MAX_CREDITS
        row = jobs.get(store, job)
        assert (row.state, row.accepted + row.unknown) == ("paused", MAX_CREDITS)
        send(store, job, arrivals)
        check(store, job, arrivals, NUMBER)


def test_a_job_whose_owner_lives_and_has_lost_its_lock_is_sent_once(
    location: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    arrivals = tmp_path / "arrivals"
    with closing(open_store(location, timeout=20)) as store:
        job = new_job(store, NUMBER)
        owner = child(location, partial(send, job=job, arrivals=arrivals))
        wait_until(lambda: bool(arrived(arrivals)))
        if location.startswith(URLS):
            request.getfixturevalue("cluster").disconnect()
            store.reconnect()
        else:
            Path(f"{location}-owners").unlink()
        with suppress(ConditionError):  # its owner may be connected again
            send(store, job, arrivals)
        os.waitpid(owner, 0)
        if jobs.get(store, job).state != "done":
            send(store, job, arrivals)
        check(store, job, arrivals, NUMBER)
