"""The entries of one job in the history, read from its ledger."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jobs.ledgers import SPEC, Service, accept, lose, opened, phone, refuse, rows, run, write
from msgctl.errors import MsgctlError
from msgctl.history.job_entries import RESPONSE, of_job, of_jobs
from msgctl.history.store import HISTORY_FIELDS
from msgctl.jobs.ledger import Ledger
from msgctl.jobs.states import Outcome
from msgctl.jobs.store import Store
from msgctl.text import timestamp
from support.jobs import NOW

JOB = "20260921-000000"
FILTERS = ("since", "until", "phone", "state", "command", "profile")
ENDED, LOST = "2026-09-21T14:13:20.000Z", "2026-09-21T14:14:10.250Z"


def entries(store: Store, given: Mapping[str, str] | None = None, most: int = 10) -> list[dict[str, Any]]:
    """Return the entries that match some filters, with the fields that can be shown."""
    found = of_job(store, JOB, SPEC, most, {**dict.fromkeys(FILTERS), **(given or {})})
    return [{name: each[name] for name in (*HISTORY_FIELDS, RESPONSE)} for each in found]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A job whose process was killed with two requests in flight. One of them is a resend."""
    store = Store(tmp_path)
    path = write(store.path(JOB), rows(6), replace(SPEC, batch_size=1, concurrency=1, canary=4))
    with closing(opened(path)) as ledger:
        run(ledger, Service(accept, refuse, lose, accept))
        ledger.note_delivery(5, "delivered")
        ledger.resend(Outcome.UNKNOWN)
        with ledger.transaction():
            assert [intent.lines for _ in range(2) if (intent := ledger.intend(1))] == [[4], [6]]
    os.utime(path, (NOW, NOW + 50.25))
    return store


def test_each_recipient_of_a_sent_request_has_an_entry(store: Store) -> None:
    def entry(line: int, time: str, outcome: str, **more: Any) -> dict[str, Any]:
        found = dict.fromkeys(("id", "status", "state", "credits", "response"))
        about = {"job": JOB, "profile": "main", "command": "sms bulk", "message": "Hello"}
        return {**about, **found, "time": time, "phone": phone(line), "outcome": outcome, **more}

    accepted: dict[str, Any] = {"status": "queued", "credits": "1"}
    assert entries(store) == [
        entry(2, ENDED, "accepted", id=f"m{phone(2)}", **accepted),
        entry(3, ENDED, "refused"),
        entry(5, ENDED, "accepted", id=f"m{phone(5)}", state="delivered", **accepted),
        entry(4, LOST, "unknown"),
        entry(6, LOST, "unknown"),
    ]
    with store.locked(JOB):
        assert [(each["phone"], each["time"], each["outcome"]) for each in entries(store)] == [
            (phone(2), ENDED, "accepted"),
            (phone(3), ENDED, "refused"),
            (phone(4), ENDED, "unknown"),
            (phone(5), ENDED, "accepted"),
        ], "a request in flight may still get a response"


def test_filters_and_the_limit_select_the_newest_entries(store: Store) -> None:
    for given, lines in (
        ({"since": LOST}, [4, 6]),
        ({"until": LOST}, [2, 3, 5]),
        ({"until": ENDED}, []),
        ({"phone": phone(6)}, [6]),
        ({"phone": phone(5), "since": ENDED}, [5]),
        ({"profile": "main"}, [2, 3, 5, 4, 6]),
        ({"profile": "other"}, []),
    ):
        assert [each["phone"] for each in entries(store, given)] == [phone(line) for line in lines], given
    assert [each["phone"] for each in entries(store, most=1)] == [phone(5), phone(4)], "one is in flight"


def test_the_time_of_a_lost_request_is_the_last_change_of_the_ledger_or_its_log(store: Store) -> None:
    path = store.path(JOB)
    log = path.with_name(f"{path.name}-wal")
    with closing(opened(path)) as ledger:
        with ledger.transaction():
            assert ledger.intend(1)
        os.utime(path, (NOW, NOW + 20))
        for seconds in (50.25, 10):
            os.utime(log, (NOW, NOW + seconds))
            times = {each["time"] for each in entries(store) if each["outcome"] == "unknown"}
            assert times == {LOST if seconds > 20 else "2026-09-21T14:13:30.000Z"}


def test_the_newest_entries_of_all_jobs_are_found(tmp_path: Path) -> None:
    store, week = Store(tmp_path), 7 * 86400
    for number, time in ((1, NOW + week), (2, NOW), (3, NOW - week), (4, None)):
        path = write(store.path(f"20260921-00000{number}"), [rows(number)[-1]])
        if time is not None:
            with closing(Ledger(path, clock=partial(float, time))) as ledger:
                run(ledger, Service())
    every = dict.fromkeys(FILTERS)
    sent, failures = timestamp(NOW - 1, "milliseconds"), list[MsgctlError]()
    for most, others, given, lines in (
        (1, 1, {}, {2}),
        (2, 1, {}, {2, 3}),
        (9, 1, {}, {2, 3, 4}),
        (9, 0, {"since": ENDED}, {2, 3}),
        (9, 0, {"until": ENDED}, {4}),
    ):
        found = of_jobs(store, most, {**every, **given}, [{"time": sent}] * others, failures)
        assert {each["phone"] for each in found} == {phone(line) for line in lines}, (most, given)
    assert failures == []
