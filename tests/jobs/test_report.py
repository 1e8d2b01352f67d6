"""The summary of a job in each state, which jobs are finished, and the report of its recipients."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.ledgers import SPEC, Service, accept, entry, lose, opened, phone, refuse, report, rows, run, write
from msgctl.jobs.ledger import ENDED_EARLY, Ledger
from msgctl.jobs.model import JobSpec
from msgctl.jobs.report import UNDELIVERED, Report, finished, summary
from msgctl.jobs.runner import Runner
from msgctl.jobs.schedule import Window, ZoneFinder
from msgctl.jobs.states import Outcome
from msgctl.jobs.store import Store
from support.jobs import NOW, write_ledger

BOGOTA = "America/Bogota"
HOUR = 3600
WINDOW = replace(SPEC, name="offer", window="10:00-12:00", days="mon-sat", at_most="1/day")


def create(path: Path, spec: JobSpec, number: int = 4) -> Path:
    """Create a job with a window, for people in Bogota. It is 9:13 there."""
    zones = ZoneFinder(Window.parse(spec.window or "", spec.days), BOGOTA, NOW)
    return write_ledger(path, rows(number), spec, zones=zones)


def at(path: Path, time: float, *, running: bool = False) -> dict[str, Any]:
    """Return the summary of a job at a time."""
    with closing(Ledger(path, clock=lambda: time, read_only=True)) as ledger:
        return summary("the-job", ledger, running=running)


def test_the_summary_has_the_settings_the_counts_and_the_times_of_a_job(tmp_path: Path) -> None:
    path = create(tmp_path / "job.sqlite3", WINDOW)
    with closing(Ledger(path, clock=lambda: NOW + 2 * HOUR)) as ledger:
        with ledger.transaction():
            for number, reason in ((2, "opted out"), (3, WINDOW.over_limit), (4, WINDOW.over_limit)):
                ledger.leave_out([phone(number)], reason)
        pending = summary("the-job", ledger, running=False)
        runner = Runner(ledger, Service().connect, clock=ledger.clock)
        runner.start()
        assert (runner.wait(30), runner.finish()) == (True, None)
        ledger.note_delivery(5, "sent")
        done = summary("the-job", ledger, running=False)
    facts = {"job": "the-job", "name": "offer", "command": "sms bulk", "file": "customers.csv", "profile": "main"}
    limits = {"window": "Mon-Sat 10:00-12:00", "at_most": "1/day", "recipients": 4}
    excluded = {
        "refused": 0,
        "unknown": 0,
        "invalid": 0,
        "duplicate": 0,
        "excluded": 3,
        "opted_out": 1,
        "over_limit": 2,
    }
    times = {"created": "2026-09-21T14:13:20Z", "updated": "2026-09-21T14:13:20Z"}
    counts = {"accepted": 0, "pending": 1, "requests": 0, "credits": 0}
    assert pending == {**facts, "state": "paused", **limits, **excluded, **counts, **times}
    counts = {"accepted": 1, "pending": 0, "requests": 1, "credits": 1}
    times["updated"] = "2026-09-21T16:13:20Z"
    assert done == {**facts, "state": "done", **limits, **excluded, **counts, "states": {"sent": 1}, **times}


def test_a_job_waits_for_its_time_and_then_for_its_window(tmp_path: Path) -> None:
    due, opens, tomorrow = "2026-09-21T14:30:00Z", "2026-09-21T15:00:00Z", "2026-09-22T15:00:00Z"
    path = create(tmp_path / "job.sqlite3", replace(WINDOW, at=NOW + 1000))
    for time, running, state, until, opening in (
        (0, False, "scheduled", due, opens),
        (0, True, "waiting", due, opens),
        (999, True, "waiting", due, opens),
        (1000, True, "waiting", opens, opens),
        (1000, False, "scheduled", due, opens),
        (HOUR, True, "running", None, None),
        (3 * HOUR, True, "waiting", tomorrow, tomorrow),
    ):
        shown = at(path, NOW + time, running=running)
        assert (shown["state"], shown.get("until"), shown.get("opens")) == (state, until, opening), time


def test_the_summary_of_a_window_does_not_need_the_package_holidays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package was installed when the job was created."""
    pytest.importorskip("holidays")
    path = create(tmp_path / "job.sqlite3", replace(WINDOW, window="co", days=None))
    assert at(path, NOW + 12 * HOUR)["opens"] == "2026-09-22T12:00:00Z"
    monkeypatch.setitem(sys.modules, "holidays", None)
    shown = at(path, NOW + 12 * HOUR, running=True)
    assert (shown["state"], "opens" in shown) == ("running", False)


def test_finished_jobs_are_found_by_the_time_when_they_were_created(tmp_path: Path) -> None:
    store = Store(tmp_path)
    done, paused, running, damaged, last = (f"20260921-00000{number}" for number in range(5))
    for job in (done, running, damaged, last):
        with closing(opened(write(store.path(job), rows(1)))) as ledger:
            run(ledger, Service())
    write(store.path(paused), rows(1))
    store.path(damaged).write_bytes(b"not a ledger" * 1000)
    with store.locked(running):
        found = [*finished(store, NOW + 1, lambda: NOW)]
        assert [*finished(store, NOW, lambda: NOW)] == []
    assert [(each["job"], each["state"]) for each in found] == [(done, "done"), (last, "done")]


def test_the_report_gives_the_reason_for_each_outcome(tmp_path: Path) -> None:
    def reject(phones: Sequence[str]) -> list[dict[str, Any]]:
        return [{**entry(phones[0]), "status": "rejected"}]

    def reject_silently(phones: Sequence[str]) -> list[dict[str, Any]]:
        return [{**entry(phones[0]), "status": None, "error": "no route"}]

    def accept_another(_: Sequence[str]) -> list[dict[str, Any]]:
        return [entry(phone(99))]

    path = write(tmp_path / "job.sqlite3", rows(9), replace(SPEC, batch_size=1, concurrency=1, canary=6))
    with closing(opened(path)) as ledger:
        run(ledger, Service(accept, refuse, reject, reject_silently, lose, accept_another))
        assert [row["error"] for row in report(ledger, Outcome.UNKNOWN)] == [
            "the connection broke",
            "the response does not show whether this number was accepted",
        ]
        ledger.resend(Outcome.UNKNOWN)
        with ledger.transaction():
            ledger.leave_out([phone(10)], "opted out")
            for _ in range(3):
                assert ledger.intend(1)
        refusal = "the service refused the request (520): NO: not now"
        found = [
            ("accepted", None),
            ("refused", refusal),
            ("refused", "the service responded rejected"),
            ("refused", "the service refused this number"),
            ("unknown", ENDED_EARLY),
            ("unknown", ENDED_EARLY),
            ("unknown", ENDED_EARLY),
            ("pending", None),
            ("excluded", "opted out"),
        ]
        assert [(row["outcome"], row["error"]) for row in report(ledger)] == found
        found[6] = ("pending", None)
        assert [(row["outcome"], row["error"]) for row in report(ledger, running=True)] == found
        for only in (
            [],
            [Outcome.UNKNOWN],
            [Outcome.PENDING, Outcome.EXCLUDED],
            [UNDELIVERED],
            [UNDELIVERED, "refused"],
        ):
            some = Report(ledger, only, running=False)
            assert len(some) == len([*some]), only
        with ledger.transaction():
            ledger.note_delivery(2, "rejected")
            ledger.note_delivery(3, "rejected")
        assert [row["line"] for row in Report(ledger, [UNDELIVERED, Outcome.EXCLUDED], running=False)] == [2, 10]
