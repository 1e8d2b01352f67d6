"""`msgctl job run-due` that is stopped or cannot send, and scheduled jobs before their time."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from msgctl.jobs.store import Store
from support.disks import mounted
from support.jobs import ANA, EVA, LUIS, REFUSAL, Jobs, accepting, counts, folder, of_phones, sends, sent_to
from support.service import Service, drop
from support.terminal import PATIENCE
from support.tool import Outcome, Tool, process

LONG_AGO = 1_700_000_000.0
"""A time at which jobs were scheduled that are due by the real clock."""
DUE = "2023-11-15 09:00Z"
FUTURE = "2099-01-01 09:00Z"


@pytest.fixture
def jobs(tool: Tool, service: Service) -> Jobs:
    service.always(accepting(service))
    tool.clock.now = LONG_AGO
    return Jobs(tool)


@pytest.fixture
def job(jobs: Jobs, home: Path) -> str:
    """A job for three people that is due, one request each."""
    return jobs.send(of_phones(home, [ANA, LUIS, EVA]), "--at", DUE, "--batch-size", "1")


def run_due(jobs: Jobs) -> Outcome:
    """Run the jobs that are due, in this process and after their time."""
    jobs.tool.clock.now = max(jobs.tool.clock.now, LONG_AGO + 10 * 86_400)
    return jobs("job", "run-due")


def stopped(service: Service, *line: str, signals: tuple[int, ...]) -> int:
    """Run a command, send it signals while its first message is in flight, and return its exit code.

    A second signal is sent after msgctl has reacted to the first; then the service does not respond.
    """
    arrived, go_on = threading.Event(), threading.Event()

    def hold(connection: socket.socket) -> None:
        if not arrived.is_set():
            arrived.set()
            assert go_on.wait(PATIENCE)
        if len(signals) == 1:
            accepting(service)(connection)

    service.always(hold)
    with subprocess.Popen([sys.executable, "-m", "msgctl", *line], stderr=subprocess.PIPE, text=True) as started:
        assert started.stderr is not None
        assert arrived.wait(PATIENCE)
        for number in signals:
            started.send_signal(number)
            next((printed for printed in started.stderr if "Stopping" in printed), None)
        if len(signals) == 1:
            go_on.set()
        started.communicate(timeout=PATIENCE)
        go_on.set()
    service.always(accepting(service))
    return started.returncode


# --- a due job that is stopped


@pytest.mark.parametrize("signals", [(signal.SIGHUP,), (signal.SIGTERM, signal.SIGTERM)])
def test_a_due_job_stopped_by_the_system_is_resumed_by_the_next_run(
    signals: tuple[int, ...], job: str, jobs: Jobs, service: Service
) -> None:
    assert stopped(service, "job", "run-due", signals=signals) == 130
    assert jobs.shown(job)["state"] == "scheduled"
    assert len(sent_to(service)) == 1
    process("job", "run-due")
    assert jobs.shown(job)["state"] == "done"
    assert sent_to(service) == sorted([ANA, LUIS, EVA])


@pytest.mark.parametrize("signals", [(signal.SIGINT,), (signal.SIGTERM, signal.SIGINT)])
def test_ctrl_c_pauses_a_due_job(signals: tuple[int, ...], job: str, jobs: Jobs, service: Service) -> None:
    assert stopped(service, "job", "run-due", signals=signals) == 130
    assert jobs.shown(job)["state"] == "paused"
    nothing = process("job", "run-due")
    assert (nothing.code, nothing.err, len(sent_to(service))) == (0, "", 1)
    assert process("job", "resume", job).code == (0 if len(signals) == 1 else 6)
    assert sent_to(service) == sorted([ANA, LUIS, EVA])


@pytest.mark.parametrize(("number", "state"), [(signal.SIGINT, "paused"), (signal.SIGTERM, "scheduled")])
def test_a_signal_before_the_first_message_counts_too(number: int, state: str, job: str, jobs: Jobs) -> None:
    stop = (
        "import os, sys\n"
        "from msgctl.__main__ import main\n"
        "from msgctl.jobs.ledger import Ledger\n"
        f"Ledger.check = lambda self: os.kill(os.getpid(), {int(number)})\n"
        "sys.argv = ['msgctl', 'job', 'run-due']\n"
        "sys.exit(main())\n"
    )
    assert subprocess.run([sys.executable, "-c", stop], check=False, timeout=60, capture_output=True).returncode == 130
    assert jobs.shown(job)["state"] == state


def test_five_unknown_outcomes_pause_a_due_job(jobs: Jobs, service: Service, home: Path) -> None:
    people = [f"57300{n:07}" for n in range(9)]
    job = jobs.send(of_phones(home, people), "--at", DUE, "--batch-size", "1")
    service.always(drop)
    assert process("job", "run-due").code == 6
    assert (jobs.shown(job)["state"], process("job", "run-due").err) == ("paused", "")


def test_a_service_that_is_lost_halfway_leaves_the_job_due(
    job: str, jobs: Jobs, service: Service, tool: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stopped(service, "job", "run-due", signals=(signal.SIGTERM,)) == 130
    monkeypatch.setattr("msgctl.jobs.workers.PAUSE", 0.0)
    tool.clock.now += 10 * 86_400
    service.stop()
    assert jobs("job", "run-due").code == 4
    shown = jobs.shown(job)
    assert (shown["state"], counts(shown)) == ("scheduled", {"accepted": 1, "pending": 2})


# --- a due job that cannot be sent


def damage(home: Path, job: str) -> None:
    (folder(home) / f"{job}.sqlite3").write_bytes(b"not a ledger" * 1000)


def damage_a_page(home: Path, job: str) -> None:
    """Damage that only shows when all of the ledger is read."""
    path = folder(home) / f"{job}.sqlite3"
    content = bytearray(path.read_bytes())
    content[-4096:] = b"\xff" * 4096
    path.write_bytes(content)


def damage_a_value(home: Path, job: str) -> None:
    import sqlite3

    with sqlite3.connect(folder(home) / f"{job}.sqlite3") as db:
        db.execute("UPDATE job SET value = '{}' WHERE name = 'spec'")
    db.close()


def replace_its_lock(home: Path, job: str) -> None:
    lock = folder(home) / f".{job}.lock"
    lock.unlink(missing_ok=True)
    lock.mkdir()


@pytest.mark.parametrize("harm", [damage, damage_a_page, damage_a_value, replace_its_lock])
def test_a_due_job_that_cannot_be_sent_is_an_error_and_the_others_are_sent(
    harm: Callable[[Path, str], None], job: str, jobs: Jobs, service: Service, home: Path
) -> None:
    jobs.tool.clock.now += 1
    other = jobs.send(of_phones(home, ["573001111111"]), "--at", DUE)
    harm(home, job)
    for sent in (["573001111111"], ["573001111111"]):
        done = run_due(jobs)
        assert (done.code, job in done.err) == (3, True), done.err
        assert "bug" not in done.err
        assert sent_to(service) == sent
    assert jobs.shown(other)["state"] == "done"


def test_a_lock_that_cannot_be_used_is_an_error(job: str, jobs: Jobs, service: Service, home: Path) -> None:
    lock = folder(home) / ".run-due.lock"
    lock.mkdir()
    run_due(jobs).refused(3, "Cannot lock", lock.name)
    assert sends(service) == []


def test_a_file_system_without_locks_does_not_mean_that_a_job_is_running(
    job: str, jobs: Jobs, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", no_locks)
    jobs.tool.clock.now += 10 * 86_400
    for line in (("run-due",), ("resume", job, "--yes"), ("show", job)):
        done = jobs("job", *line)
        done.refused(3, "Cannot lock", "No locks available", "XDG_STATE_HOME")
        assert "already running" not in done.err
    assert sends(service) == []


def test_a_full_disk_is_an_error_and_leaves_the_job_due(
    jobs: Jobs, service: Service, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mounted(tmp_path / "disk", "512k") as disk:
        monkeypatch.setenv("XDG_STATE_HOME", str(disk.path))
        job = jobs.send(of_phones(home, [ANA, LUIS, EVA]), "--at", DUE)
        disk.fill()
        done = run_due(jobs)
        assert (done.code, sends(service)) == (3, []), done.err
        disk.clear()
        assert run_due(jobs).code == 0
        assert jobs.shown(job)["state"] == "done"
    assert sent_to(service) == sorted([ANA, LUIS, EVA])


def test_run_due_is_quiet_only_if_another_run_due_is_running(
    job: str, jobs: Jobs, service: Service, home: Path
) -> None:
    with Store(folder(home)).locked("run-due"):
        quiet = run_due(jobs)
    assert (quiet.code, quiet.out, quiet.err, sends(service)) == (0, "", "", [])


# --- a job before its time


@pytest.fixture
def scheduled(jobs: Jobs, home: Path) -> str:
    return jobs.send(of_phones(home, [ANA, LUIS, EVA]), "--at", FUTURE, "--batch-size", "1")


def test_resuming_a_job_before_its_time_asks_first(
    scheduled: str, jobs: Jobs, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs("job", "resume", scheduled).refused(2, "is scheduled for Thu 2099-01-01", "--yes")
    done = jobs("job", "resume", scheduled, terminal=True, stdin="n\n")
    assert (done.code, "Send it now? [y/N]" in done.err) == (130, True)

    def interrupt(*_: object) -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("msgctl.cli.prompts.ask", interrupt)
        done = jobs("job", "resume", scheduled, terminal=True)
    assert (done.code, "nothing was sent, and it remains scheduled" in done.err) == (130, True)
    assert (jobs.shown(scheduled)["state"], sends(service)) == ("scheduled", [])
    assert jobs("job", "resume", scheduled, terminal=True, stdin="y\n").code == 0
    assert jobs.shown(scheduled)["state"] == "done"
    assert sent_to(service) == sorted([ANA, LUIS, EVA])


@pytest.mark.parametrize("signals", [(signal.SIGINT, signal.SIGINT), (signal.SIGTERM,)])
def test_a_job_resumed_before_its_time_and_interrupted_keeps_its_schedule(
    signals: tuple[int, ...], scheduled: str, jobs: Jobs, service: Service, tool: Tool
) -> None:
    assert stopped(service, "job", "resume", scheduled, "--yes", signals=signals) == 130
    shown = jobs.shown(scheduled)
    assert (shown["state"], shown["until"]) == ("scheduled", "2099-01-01T09:00:00Z")
    assert jobs("job", "run-due").out == ""
    tool.clock.now = 4_100_000_000.0
    jobs("job", "run-due")
    assert jobs.shown(scheduled)["state"] == "done"
    assert sent_to(service) == sorted([ANA, LUIS, EVA])


def test_last_is_the_newest_job_that_has_started(jobs: Jobs, service: Service, tool: Tool, home: Path) -> None:
    file = of_phones(home, [ANA])
    first = jobs.send(file, "--at", FUTURE, "--name", "offer")
    jobs("job", "show", "--last").refused(2, "No job has begun", f"msgctl job show {first}")
    assert jobs("job", "show", "offer", "--json").document["job"] == first
    service.always(REFUSAL)
    tool.clock.now += 1
    begun = jobs.send(of_phones(home, [LUIS]), code=6)
    tool.clock.now += 1
    jobs.send(of_phones(home, [EVA]), "--at", FUTURE)
    for command in ("show", "resume", "states"):
        assert jobs("job", command, "--last", "--json").document["job"] == begun
    assert [row["phone"] for row in jobs("job", "report", "--last", "--json").document] == [LUIS]
    service.always(accepting(service))
    assert jobs("job", "resend", "--last", "--only", "refused", "--yes").code == 0
    assert sent_to(service) == [LUIS, LUIS]


def test_a_scheduled_job_has_started_once_it_has_sent(jobs: Jobs, job: str, service: Service, tool: Tool) -> None:
    assert stopped(service, "job", "run-due", signals=(signal.SIGTERM,)) == 130
    shown = jobs("job", "show", "--last", "--json").document
    assert (shown["job"], shown["state"]) == (job, "scheduled")
