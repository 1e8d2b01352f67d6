"""With a store on a server, its clock decides when messages are sent, and not the clocks of the machines."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from msgctl.store import store as stores
from msgctl.store.store import boot_time, open_store
from support.forks import Process
from support.jobs import of_phones, sends
from support.postgres import Cluster
from support.service import Service

DAYS = 2 * 86_400


def test_a_machine_two_days_ahead_sends_no_job_of_tomorrow_and_gets_a_warning(
    home: Path, service: Service, postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time

    def run(*arguments: str, offset: float = 0) -> tuple[int, str, str]:
        monkeypatch.setattr(time, "time", lambda: now() + offset)
        return Process(arguments).end()

    monkeypatch.setenv("MSGCTL_STORE", postgres.url())
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now() + DAYS / 2))
    bulk = ("sms", "bulk", of_phones(home, ["573001234567"]), "-m", "Hello", "--yes", "--at", at)
    code, _, printed = run(*bulk)
    assert (code, "clock is" in printed) == (0, False), printed
    code, out, printed = run("job", "run-due", offset=DAYS)
    assert (code, out, "seconds ahead of the clock of the store" in printed) == (0, "", True)
    _, out, _ = run("doctor", "--json", offset=-300)
    clock = next(check for check in json.loads(out) if check["check"] == "clock")
    assert (clock["status"], "s behind the clock of the database" in clock["found"]) == ("warning", True), clock
    assert run(*bulk, offset=DAYS)[0] == 0, "a time of tomorrow is not in the past"
    assert sends(service) == []


def test_a_step_of_this_machines_clock_does_not_move_the_clock_of_a_store_on_a_server(
    postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = time.time
    with closing(open_store(postgres.url())) as store:
        later = boot_time() + stores.CLOCK_INTERVAL + 1
        monkeypatch.setattr(time, "time", lambda: real() + DAYS)
        assert abs(store.clock() - real()) < 60
        assert abs(store.machine_error - DAYS) < 60
        monkeypatch.setattr(stores, "boot_time", lambda: later)
        drifted = store.clock()
        store.check_clock()
        assert abs(drifted - real() - stores.CLOCK_INTERVAL) < 60
        assert abs(store.clock() - real()) < 60


def test_a_store_in_a_file_has_the_clock_of_this_machine(tmp_path: Path, clock: Callable[[], float]) -> None:
    with closing(open_store(tmp_path / "store.sqlite3")) as store:
        assert abs(store.clock() - time.time()) < 60
        assert store.machine_error == 0
    with closing(open_store(tmp_path / "store.sqlite3", clock=clock)) as store:
        assert store.clock() == clock()
