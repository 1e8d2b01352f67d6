"""--once KEY of the bulk commands: one job under one key."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import on_this_machine
from support.jobs import ANA, BALANCE, REFUSAL, Jobs, accepting, of_phones, sends, table
from support.service import Behaviour, Service, drop

pytestmark = pytest.mark.usefixtures("store")
"""Every test runs with local files, and again with a shared store."""

KEY = ("--once", "november")
OTHER = "573001234599"


def test_a_second_run_sends_nothing_and_prints_the_job(jobs: Jobs, service: Service, everyone: str) -> None:
    service.always(accepting(service))
    job = jobs.send(everyone, *KEY)
    again = jobs.sms(everyone, "--yes", "--json", *KEY)
    assert (again.code, again.document) == (0, jobs.shown(job))
    noted = jobs.sms(everyone, "--yes", *KEY)
    assert f'This time nothing was sent. --once "november" created job {job} before.' in noted.err
    assert len(sends(service)) == 1
    assert len(jobs("job", "list", "--json").document) == 1


def test_a_key_that_was_used_for_other_recipients_is_an_error(
    jobs: Jobs, service: Service, home: Path, everyone: str
) -> None:
    service.always(accepting(service))
    jobs.send(everyone, *KEY)
    (home / "other.csv").write_text(Path(everyone).read_text().replace(ANA, OTHER))
    for done in (
        jobs.sms(everyone, "--yes", *KEY, text="Another message"),
        jobs.sms(table(home, "phone", ANA, name="fewer.csv"), "--yes", *KEY),
        jobs.sms(str(home / "other.csv"), "--yes", *KEY),
    ):
        assert done.code == 2
        assert '"november" was used for another message or other recipients' in done.err
    assert len(sends(service)) == 1


def test_the_exit_code_is_repeated(jobs: Jobs, service: Service, everyone: str) -> None:
    service.will(BALANCE)
    service.always(drop)
    job = jobs.send(everyone, *KEY, code=6)
    again = jobs.sms(everyone, "--yes", *KEY)
    assert (again.code, f"msgctl job report {job} --only unknown" in again.err) == (6, True)


@pytest.mark.parametrize(("response", "code"), [(REFUSAL, 1), (drop, 6)], ids=["refusals", "lost responses"])
def test_a_job_that_stopped_has_the_same_exit_code_again(
    response: Behaviour, code: int, jobs: Jobs, service: Service, home: Path
) -> None:
    service.will(BALANCE)
    service.always(response)
    texts = ("--batch-size", "1")
    many = of_phones(home, [f"5730012345{number:02}" for number in range(20)])
    job = jobs.send(many, *texts, *KEY, code=code)
    made = len(sends(service))
    again = jobs.sms(many, "--yes", *texts, *KEY)
    assert (again.code, f"msgctl job resume {job}" in again.err) == (code, True)
    assert len(sends(service)) == made


def test_a_paused_job_is_explained_and_not_resumed(jobs: Jobs, service: Service, everyone: str) -> None:
    service.always(accepting(service))
    job = jobs.send(everyone, "--canary", "1", *KEY)
    again = jobs.sms(everyone, "--yes", "--canary", "1", *KEY)
    assert (again.code, f"Resume it: msgctl job resume {job}" in again.err) == (0, True)
    assert jobs("job", "resume", job, "--yes").code == 0
    assert jobs.sms(everyone, "--yes", *KEY).code == 0
    assert len(sends(service)) == 2


@on_this_machine
def test_nothing_is_resent_after_the_job_was_deleted(jobs: Jobs, service: Service, everyone: str) -> None:
    service.always(accepting(service))
    job = jobs.send(everyone, *KEY)
    assert jobs("job", "remove", job, "--yes").code == 0
    again = jobs.sms(everyone, "--yes", "--again", *KEY)
    assert (again.code, f"Job {job}" in again.err) == (5, True)
    assert len(sends(service)) == 1


def test_a_dry_run_and_a_refused_file_leave_the_key_free(
    jobs: Jobs, service: Service, home: Path, everyone: str
) -> None:
    service.always(accepting(service))
    assert jobs.sms(everyone, "--dry-run", *KEY).code == 0
    assert jobs.sms(everyone, *KEY).code == 2  # without --yes
    assert jobs.sms(table(home, "phone", "12", name="invalid.csv"), "--yes", *KEY).code == 2
    jobs.send(everyone, *KEY)


KILLED = """
import os, signal, sys
from msgctl.__main__ import main
from msgctl.cli import bulk
def kill(*given):
    {before}
    os.kill(os.getpid(), signal.SIGKILL)
real = bulk.Importer.finish
bulk.Importer.finish = kill
sys.argv = ["msgctl", *{line}]
main()
"""


@pytest.mark.parametrize("before", ["pass", "real(*given)"], ids=["before the job exists", "after"])
def test_a_kill_while_the_job_is_created_loses_nothing(
    before: str, jobs: Jobs, service: Service, everyone: str, home: Path
) -> None:
    service.always(accepting(service))
    line = ["sms", "bulk", everyone, "-m", "Hello", "--yes", *KEY]
    script = KILLED.format(before=before, line=line)
    done = subprocess.run([sys.executable, "-c", script], check=False, timeout=60, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    again = jobs.sms(everyone, "--yes", *KEY)
    if again.code:  # the job exists, and was not sent
        (job,) = (each["job"] for each in jobs("job", "list", "--json").document)
        assert (again.code, f"msgctl job resume {job}" in again.err) == (6, True)
        assert jobs("job", "resume", job, "--yes").code == 0
    assert len(sends(service)) == 1
